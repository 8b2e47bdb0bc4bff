use super::*;

const MSS: u64 = 1000;

/// Handles an ACK for `bytes` segments, with `flight` in flight and all below `una` acknowledged. Returns how many segments may
/// be sent then, and sends them. All in segments.
fn leaves(prr: &mut Prr, bytes: u64, flight: u64, una: u64, has_lost: bool) -> u64 {
    prr.on_ack(&Arrived { bytes: bytes * MSS, flight: flight * MSS, una: una * MSS, has_lost }, MSS);
    let mut count = 0;
    while prr.has_room(MSS) {
        prr.on_sent(MSS);
        count += 1;
    }
    count
}

/// Ten of twenty are to be in flight: one segment is sent for every second one that arrives ([rfc-9937] sec. 6).
#[test]
fn above_ssthresh_what_leaves_is_in_proportion() {
    let mut prr = Prr::new(10 * MSS, 20 * MSS, 0);
    let mut flight = 19;
    let left: Vec<u64> = (0..8)
        .map(|_| {
            let left = leaves(&mut prr, 1, flight, 0, false);
            flight = flight + left - 1;
            left
        })
        .collect();
    // ⌈n · 10/20⌉ for n ACKs.
    assert_eq!(left, [1, 0, 1, 0, 1, 0, 1, 0]);
}

/// Fewer are in flight than the law allows: as many are sent as arrive, one more if the ACK is safe, and at most what is missing.
#[test]
fn below_ssthresh_an_ack_says_how_much_leaves() {
    let mut prr = Prr::new(10 * MSS, 20 * MSS, 0);
    assert_eq!(leaves(&mut prr, 1, 4, 0, true), 1);
    assert_eq!(leaves(&mut prr, 1, 4, 1, false), 2);
    assert_eq!(leaves(&mut prr, 1, 5, 2, true), 1, "an ACK that shows more losses is not safe");
    assert_eq!(leaves(&mut prr, 4, 4, 3, false), 5);
    assert_eq!(leaves(&mut prr, 4, 8, 4, false), 2, "ten may be in flight");
    assert_eq!(leaves(&mut prr, 0, 4, 5, false), 0, "an ACK that says nothing");
}

/// If the application did not use the allowance of two arrivals, it may use it later.
#[test]
fn prr_keeps_unused_allowance() {
    let mut prr = Prr::new(10 * MSS, 20 * MSS, 0);
    let arrived = Arrived { bytes: MSS, flight: 6 * MSS, una: 0, has_lost: false };
    prr.on_ack(&arrived, MSS);
    prr.on_ack(&arrived, MSS);
    assert_eq!(leaves(&mut prr, 1, 6, 0, false), 3);
}

/// Windows of 2^40 bytes, whose product would overflow.
#[test]
fn large_windows_do_not_overflow() {
    let mut prr = Prr::new(1 << 40, 1 << 41, 0);
    prr.on_ack(&Arrived { bytes: 1 << 40, flight: (1 << 40) + 1, una: 0, has_lost: false }, MSS);
    // A half, in whole segments.
    assert!(prr.has_room(1 << 39) && !prr.has_room((1 << 39) + MSS));
}
