//! Speed of two sealed endpoints alone: `cargo run --release -p anabranch-proto --example sealed_back_to_back -- [CIPHER]
//! [STREAMS] [MEGABYTES] [SEGMENTS_PER_ACK]`,
//! where CIPHER is `chacha20-poly1305`, `aes-128-gcm`, `aes-256-gcm` or `aegis-128l`.

#[path = "../tests/sealed/mod.rs"]
mod sealed;

use std::time::Instant;

use anabranch_proto::seal::Cipher;
use sealed::Sealed;

#[expect(clippy::print_stdout, reason = "it is a program")]
fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| Cipher::Aes128Gcm.name().to_owned());
    let cipher = Cipher::from_name(&name)
        .unwrap_or_else(|| panic!("there is no cipher `{name}`: {}", Cipher::ALL.map(Cipher::name).join(", ")));
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
