//! The engine in its steady state asks for no memory.

mod loopback;

use loopback::Loopback;

#[track_caller]
fn allocations(streams: u8, paths: u8, lose_each: u64, segments: u64) -> u64 {
    let mut loopback = Loopback::new(streams, paths, lose_each);
    // What holds the most that there ever is has its memory by then.
    loopback.run(600_000);
    // Losses halve the window now and then.
    let (flight, _) = loopback.flight();
    assert!(flight > if lose_each == 0 { 900.0 } else { 250.0 }, "the path is full: {flight}");
    allocation_counter::measure(|| {
        loopback.run(segments);
    })
    .count_total
}

#[test]
fn a_stream_costs_no_allocation_per_segment() {
    assert_eq!(allocations(1, 1, 0, 100_000), 0);
}

#[test]
fn nor_do_many_streams() {
    assert_eq!(allocations(200, 1, 0, 100_000), 0);
}

/// Two paths overtake each other all the time, so that there is nearly always a hole.
#[test]
fn nor_do_two_paths() {
    assert_eq!(allocations(200, 2, 0, 100_000), 0);
}

/// One loss in a thousand, with a round trip of 1000 segments: there is a hole nearly all the time.
#[test]
fn nor_do_holes() {
    assert_eq!(allocations(20, 1, 1000, 100_000), 0);
}
