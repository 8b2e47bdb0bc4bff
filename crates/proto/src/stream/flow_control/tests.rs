//! Credit, shares of the pool, growth and idle SIDs.

use super::*;

const SID: Sid = Sid::new(1);

fn limit(record: Option<Record>) -> Option<u32> {
    record.map(|record| match record {
        Record::MaxStreamData { limit, .. } => limit,
        record => panic!("{record:?} is no credit"),
    })
}

fn read(flow_control: &mut FlowControl, sid: Sid, bytes: u32) -> Option<u32> {
    assert!(flow_control.take(sid, bytes));
    let record = flow_control.consume(sid, bytes.into());
    flow_control.totals();
    limit(record)
}

#[test]
fn a_quarter_that_was_read_is_given_back_at_once() {
    let mut flow_control = FlowControl::new(StreamBuffer::Bytes(1000), 9000, 100, 2, 9);
    assert_eq!(read(&mut flow_control, SID, 127), None);
    // 512 were granted before: the first read grants 1000.
    assert_eq!(read(&mut flow_control, SID, 1), Some(1128));
    assert_eq!(read(&mut flow_control, SID, 249), None);
    assert_eq!(read(&mut flow_control, SID, 1), Some(1378));
    assert!(!flow_control.take(SID, 1001) && flow_control.take(SID, 1000));
}

/// A sixteenth of 64 kB is 4 kB, five segments of 800 B. Eight of them are less than a quarter of 64 kB, but more than a
/// quarter of 3 kB.
#[test]
fn a_step_is_a_sixteenth_but_worth_eight_segments_or_a_quarter() {
    let step = |bytes: u64, mss| {
        let mut flow_control = FlowControl::new(StreamBuffer::Bytes(bytes), 1 << 20, mss, 1, bytes.ilog2() as u8);
        (1..=bytes).find(|_| read(&mut flow_control, SID, 1).is_some())
    };
    assert_eq!(
        [(1 << 16, 100), (1 << 16, 800), (1 << 11, 800)].map(|(bytes, mss)| step(bytes, mss)),
        [4096, 6400, 512].map(Some)
    );
}

/// 2^20 bytes and 4 streams: an initial credit of 2^16 each, a reserve of 2^16, and a pool of 11 × 2^16.
#[test]
fn a_stream_gets_a_share_of_what_the_others_leave() {
    let unit = 1 << 16;
    assert_eq!(FlowControl::exponent(StreamBuffer::Shared, 1 << 20, 4), 16);
    let mut flow_control = FlowControl::new(StreamBuffer::Shared, 1 << 20, 1000, 4, 16);
    let mut fill = |sid| {
        // Reads until the credit no longer grows.
        let mut most = 0;
        for _ in 0..1000 {
            most = read(&mut flow_control, sid, 8192).unwrap_or(most);
        }
        let account = *flow_control.accounts.get(sid).unwrap();
        (account.allotment * 10 / unit, flow_control.promised * 10 / unit)
    };
    // 1 + 11 × 2/3, then 1 + (11 − 22/3) × 2/5, as another stream holds a part. Bytes consumed since the last record are not granted yet.
    let (allotment, promised) = fill(Sid::new(1));
    assert_eq!(allotment, 83);
    assert!((55..=73).contains(&promised), "{promised}");
    let (allotment, _) = fill(Sid::new(2));
    assert!((24..=32).contains(&allotment), "{allotment}");
    let (total, unread) = flow_control.totals().unwrap();
    assert!(total <= (1 << 20) * 15 / 16 && unread == 0, "{total}");
}

#[test]
fn the_only_stream_gets_all_but_the_reserve() {
    let mut flow_control = FlowControl::new(StreamBuffer::Shared, 1 << 20, 1000, 1, 18);
    let mut last = None;
    for _ in 0..1000 {
        last = read(&mut flow_control, SID, 8192).map(u64::from).or(last);
    }
    assert_eq!(flow_control.accounts.get(SID).unwrap().allotment, (1 << 20) * 15 / 16);
    assert_eq!(last, Some(flow_control.accounts.get(SID).unwrap().limit));
}

fn end(flow_control: &mut FlowControl) -> Option<(u32, u8)> {
    let record = flow_control.end(SID);
    flow_control.totals();
    record.map(|record| match record {
        Record::MaxStreamData { limit, over, .. } => (limit, over),
        record => panic!("{record:?} is no credit"),
    })
}

/// 512 bytes initially, and 1000 later. At the end of a stream even less than a step is granted, as far as the pool allows.
#[test]
fn end_of_stream_with_extra_credit_is_told() {
    let mut flow_control = FlowControl::new(StreamBuffer::Bytes(1000), 9000, 100, 2, 9);
    assert_eq!(read(&mut flow_control, SID, 100), None);
    assert_eq!(end(&mut flow_control), None, "no step was read, and the name has no more than a new one");
    assert_eq!(read(&mut flow_control, SID, 100), Some(1200));
    assert_eq!(end(&mut flow_control), Some((1200, 2)), "the same limit");
    assert_eq!(read(&mut flow_control, SID, 7), None);
    assert_eq!(end(&mut flow_control), Some((1207, 3)));
    let told: Vec<_> = (4..=300).map(|_| end(&mut flow_control)).collect();
    assert_eq!(told, (4..=300).map(|count: u32| Some((1207, count as u8))).collect::<Vec<_>>());
    flow_control.on_acked(SID, 1207);
    flow_control.on_acked(SID, 1207);
    assert_eq!(read(&mut flow_control, SID, 250), Some(1457));
    flow_control.close();
    assert_eq!(end(&mut flow_control), None);
}

/// Meanwhile another stream has taken the pool. For a SID with less credit than an unused one, no end is announced.
#[test]
fn the_end_of_a_stream_promises_no_more_than_there_is() {
    let mut flow_control = FlowControl::new(StreamBuffer::Shared, 1 << 20, 1000, 4, 16);
    for sid in [SID, Sid::new(2)] {
        (0..1000).for_each(|_| _ = read(&mut flow_control, sid, 8192));
    }
    let before = flow_control.limit(SID);
    let held = before - flow_control.accounts.get(SID).unwrap().consumed;
    for rest in [held / 2, held / 2 - 70_000] {
        assert!(flow_control.take(SID, rest as u32));
    }
    flow_control.consume(SID, 100);
    let (limit, over) = end(&mut flow_control).unwrap();
    assert!(over == 1 && u64::from(limit) >= before, "{limit}");
    let (total, _) = flow_control.totals().unwrap();
    assert!(total <= (1 << 20) * 15 / 16, "{total}");
}

/// Reads 8 kB after 8 kB of a stream, all in one round trip, until its credit no longer grows. Returns the credit.
fn take_all(flow_control: &mut FlowControl, sid: Sid) -> u64 {
    for _ in 0..1000 {
        let arrived = flow_control.accounts.get(sid).map_or(0, |account| account.arrived);
        let bytes = (flow_control.limit(sid) - arrived).min(8192) as u32;
        assert!(flow_control.take(sid, bytes));
        flow_control.consume(sid, bytes.into());
    }
    flow_control.totals();
    flow_control.accounts.get(sid).unwrap().allotment
}

/// 16 MiB for 4,080 SIDs. Each stream is read as fast as it can be, takes as much as it gets, and then is never read again. The
/// unread streams never hold the base of another, and the n-th leaves 1/(2n + 1) of the pool.
#[test]
fn stopped_fast_streams_leave_credit_to_next() {
    let capacity = 16 << 20;
    let exponent = FlowControl::exponent(StreamBuffer::Shared, capacity, 4080);
    let mut flow_control = FlowControl::new(StreamBuffer::Shared, capacity, 1000, 4080, exponent);
    let pool = flow_control.pool as f64;
    for number in 1..=40 {
        let sid = Sid::new(number);
        take_all(&mut flow_control, sid);
        // All of its credit is used, and nothing is read.
        let rest = flow_control.limit(sid) - flow_control.accounts.get(sid).unwrap().arrived;
        assert!(flow_control.take(sid, rest as u32));
        let left = pool - flow_control.promised as f64;
        assert!(left >= pool / f64::from(2 * number + 1), "{left} of {pool} after {number}");
        assert_eq!(flow_control.holders, u64::from(number));
    }
    let (total, _) = flow_control.totals().unwrap();
    assert!(total <= capacity, "{total}");
    for number in [41, 255, 256, 4080] {
        assert!(take_all(&mut flow_control, Sid::new(number)) >= initial(Sid::new(number), 1 << exponent));
    }
    assert!(flow_control.totals().unwrap().0 <= capacity);
}

/// With 100 bytes of credit: a stream of which 250 bytes are read in each round trip gets 1000 bytes, four times as much. When
/// its reader slows down to 50 bytes, it is granted no more before only 200 bytes are left.
#[test]
fn credit_is_four_round_trips_of_what_is_read() {
    let mut flow_control = FlowControl::new(StreamBuffer::Shared, 1 << 20, 1, 255, 6);
    let mut round = |bytes: u32| {
        (0..bytes).for_each(|_| _ = read(&mut flow_control, SID, 1));
        flow_control.on_round();
        let account = flow_control.accounts.get(SID).unwrap();
        account.limit - account.consumed
    };
    assert_eq!(round(25), 100 - 100 / 16 + 1, "a step is announced when it was read");
    round(250);
    for _ in 0..3 {
        let held = round(250);
        assert!((1000 - 1000 / 16..=1000).contains(&held), "{held}");
    }
    let slow: Vec<_> = (0..40).map(|_| round(50)).collect();
    assert!(slow.windows(2).all(|pair| pair[1] <= pair[0].max(200)), "{slow:?}");
    assert!(slow[20..].iter().all(|held| (150..=200).contains(held)), "{slow:?}");
}

/// Twice the buffer: half of the growth is for all SIDs alike, and a stream may have it although another holds the pool.
#[test]
fn growth_raises_what_every_stream_may_have() {
    let mut flow_control = FlowControl::new(StreamBuffer::Shared, 1 << 20, 1000, 4, 16);
    let (first, second) = (Sid::new(1), Sid::new(2));
    take_all(&mut flow_control, first);
    assert!(flow_control.take_is_short() && !flow_control.take_is_short());
    let promised = flow_control.promised;
    flow_control.grow(1 << 20);
    // A fourth of half of it.
    assert_eq!((flow_control.base(second), flow_control.base_more), ((1 << 16) + (1 << 17), 1 << 17));
    assert_eq!((flow_control.pool, promised - flow_control.promised), ((11 << 16) + (1 << 19), 1 << 17));
    flow_control.totals();
    // The first takes all it gets of the new pool, too; the second still has its base.
    take_all(&mut flow_control, first);
    assert!(take_all(&mut flow_control, second) >= 3 << 16);
    flow_control.totals();
}

/// An idle SID keeps its credit, which cannot be revoked, but takes no part of the pool from a stream that is read.
#[test]
fn idle_names_do_not_make_shares_smaller() {
    let mut flow_control = FlowControl::new(StreamBuffer::Shared, 1 << 20, 1000, 4, 16);
    let (first, second) = (Sid::new(1), Sid::new(2));
    take_all(&mut flow_control, first);
    flow_control.end(first);
    assert_eq!(flow_control.holders, 0);
    let left = flow_control.pool - flow_control.promised;
    let most = take_all(&mut flow_control, second) - (1 << 16);
    assert!((left * 2 / 3 - 2..=left * 2 / 3).contains(&most), "{most} of {left}");
    assert!(flow_control.take(first, 1));
    assert_eq!(flow_control.holders, 2, "a reused SID is not idle");
    flow_control.totals();
}

/// The 32-bit limit wraps many times.
#[test]
fn limits_wrap() {
    let mut flow_control = FlowControl::new(StreamBuffer::Bytes(u64::MAX), 1 << 20, 1000, 1, 31);
    let (mut known, mut records) = (1 << 31, 0);
    for _ in 0..1 << 12 {
        let new = read(&mut flow_control, SID, 1 << 24);
        if let Some(bits) = new {
            known = later(known, bits).unwrap();
            records += 1;
            assert_eq!((known, later(known, bits)), (flow_control.limit(SID), None));
            flow_control.on_acked(SID, bits);
        }
    }
    assert_eq!(records, 1 << 9, "2^36 bytes, a record for 2^27 of them");
}

#[test]
fn limit_stays_within_half_range_of_peer_limit() {
    let mut flow_control = FlowControl::new(StreamBuffer::Bytes(u64::MAX), 1 << 20, 1000, 1, 31);
    let told: Vec<u32> = (0..255).filter_map(|_| read(&mut flow_control, SID, 1 << 24)).collect();
    // 2^31 from the start, then 2^27 more fifteen times, then all but the amount that would make it half.
    let expected: Vec<u32> = (17..32).map(|steps| steps << 27).chain([u32::MAX]).collect();
    assert_eq!(told, expected);
    assert_eq!(limit(flow_control.on_acked(SID, 17 << 27)), Some((1 << 27) - 1), "33 × 2^27 - 1, modulo 2^32");
}
