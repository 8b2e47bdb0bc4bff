//! Handshakes alone: `cargo run --release -p anabranch-proto --example handshakes -- [COUNT]`. Each is that of two ends with keys of their
//! own, up to the first datagram with data; the keys are made anew.

#[path = "../tests/seals/mod.rs"]
#[expect(dead_code, reason = "another example seals datagrams")]
mod seals;

use std::time::Instant;

use anabranch_proto::seal::CipherPreference;

#[expect(clippy::print_stdout, reason = "it is a program")]
fn main() {
    let count = std::env::args().nth(1).map_or(10_000_u32, |argument| argument.parse().expect("a number"));
    let begin = Instant::now();
    for _ in 0..count {
        seals::pair(CipherPreference::default());
    }
    println!(
        "{count} handshakes: {:.1} us each, for both ends",
        begin.elapsed().as_secs_f64() * 1e6 / f64::from(count)
    );
}
