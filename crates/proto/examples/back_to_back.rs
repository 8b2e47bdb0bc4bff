//! Speed of the engine alone: `cargo run --release -p anabranch-proto --example back_to_back -- [STREAMS] [SEGMENTS] [PATHS]
//! [LOSE_EACH] [SHARE_ACK]`.
//!
//! Each segment is acknowledged. With SHARE_ACK, up to so many segments share an ACK, as in the library.

#[path = "../tests/loopback/mod.rs"]
mod loopback;

use std::time::Instant;

use loopback::Loopback;

#[expect(clippy::print_stdout, reason = "it is a program")]
fn main() {
    let mut numbers = std::env::args().skip(1).map(|argument| argument.parse().expect("arguments are numbers"));
    let (streams, segments) = (numbers.next().unwrap_or(1), numbers.next().unwrap_or(5_000_000));
    let (paths, lose_each) = (numbers.next().unwrap_or(1), numbers.next().unwrap_or(0));
    let share_ack = numbers.next().unwrap_or(1);
    let small = |number: u64, what| u8::try_from(number).unwrap_or_else(|_| panic!("there are at most 255 {what}"));
    let mut loopback = Loopback::new(
        small(streams, "streams"),
        small(paths, "paths"),
        lose_each,
        small(share_ack, "segments of an ACK"),
    );
    loopback.run(10_000);
    let begin = Instant::now();
    let read = loopback.run(segments);
    let seconds = begin.elapsed().as_secs_f64();
    let (flight, again) = loopback.flight();
    println!(
        "{streams} streams, {paths} paths: {segments} segments ({read} B read) in {seconds:.2} s, {:.2} M/s; {flight:.0} in flight, {again} sent again",
        segments as f64 / seconds / 1e6
    );
}
