//! Speed of two sealed endpoints alone: `cargo run --release -p anabranch-proto --example sealed_back_to_back -- [CIPHER]
//! [STREAMS] [MEGABYTES] [SEGMENTS_PER_ACK]`,
//! where CIPHER is `chacha20`, `aes128` or `aes256`.

#[path = "../tests/sealed/mod.rs"]
mod sealed;

use std::time::Instant;

use anabranch_proto::seal::Cipher;
use sealed::Sealed;

#[expect(clippy::print_stdout, reason = "it is a program")]
fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "aes128".to_owned());
    let cipher = match name.as_str() {
        "chacha20" => Cipher::ChaCha20Poly1305,
        "aes128" => Cipher::Aes128Gcm,
        "aes256" => Cipher::Aes256Gcm,
        other => panic!("there is no cipher `{other}`: chacha20, aes128 or aes256"),
    };
    let mut number = |default: u64| arguments.next().map_or(default, |argument| argument.parse().expect("a number"));
    let (streams, megabytes, acks) = (number(1), number(2000), number(2));
    let acks = u8::try_from(acks).expect("an acknowledgement is asked for 255 segments at most");
    let mut sealed = Sealed::new(u8::try_from(streams).expect("there are at most 255 streams"), cipher, acks);
    sealed.run(50_000_000);
    let begin = Instant::now();
    sealed.run(megabytes * 1_000_000);
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{name}, {streams} streams: {megabytes} MB in {seconds:.2} s, {:.2} Gbit/s",
        megabytes as f64 * 8e-3 / seconds
    );
}
