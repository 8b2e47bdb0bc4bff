//! How an independent decoder reads our datagrams: `docs/wire_decoder.py`, written from `docs/wire.md` alone.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::world::{Fate, World};
use super::*;

/// A file of the documentation.
fn doc(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// The output of the decoder.
#[track_caller]
fn decode(command: &str, file: &Path) -> String {
    let output = Command::new("python3").arg(doc("wire_decoder.py")).arg(command).arg(file).output();
    let output =
        output.unwrap_or_else(|error| panic!("python3 is needed for docs/wire_decoder.py, install it: {error}"));
    assert!(output.status.success(), "the decoder says:\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints text")
}

#[test]
fn somebody_else_reads_the_vectors_as_the_page_does() {
    let vectors = std::fs::read_to_string(doc("wire.md")).unwrap().matches("```vector ").count();
    let printed = decode("vectors", &doc("wire.md"));
    // Keys are vectors without a line of output.
    assert_eq!(printed.lines().count(), vectors - 2, "{printed}");
}

/// Two engines over a network that loses and delays datagrams, with frequent rekeying, fragments and padding.
#[test]
fn somebody_else_reads_what_we_send() {
    let text: Vec<u8> = (0..150_000u32).map(|at| (at % 251) as u8).collect();
    let fates: Vec<_> = (0..40)
        .map(|at| {
            if at % 13 == 5 {
                Fate::Lose
            } else if at % 7 == 2 {
                Fate::Delay
            } else {
                Fate::Arrive
            }
        })
        .collect();
    for (ciphers, datagram_max, padding) in [
        (CipherPreference::default(), 2000, Padding::Multiple(64)),
        (CipherPreference::fast_aes(), 900, Padding::None),
        (CipherPreference::new(&[Cipher::Aes256Gcm]), 65_535, Padding::None),
    ] {
        let (rekey_retry, rekey_interval) = (Span::from_millis(20), Span::ZERO);
        let limits = Limits { rekey_after_messages: 30, rekey_retry, rekey_interval, ..Limits::default() };
        let connection = SealConfig { ciphers, padding, limits };
        let mut world = World::new(ListenerConfig { connection, ..suspicious() }, datagram_max, fates.clone());
        assert!(world.transfer(Bytes::from(text.clone())) == text);

        // The client draws once for the grease cipher in its offer, then for the handshake and for each rekeying.
        let mut entropy = Entropy::new([11; 32]);
        entropy.draw();
        let mut capture = format!("initiator {}\nresponder {}\n", hex(&[1; 32]), hex(&[2; 32]));
        (0..50).for_each(|_| writeln!(capture, "ephemeral {}", hex(&entropy.draw())).unwrap());
        for (to_server, datagram) in &world.capture {
            writeln!(capture, "{} {}", if *to_server { '>' } else { '<' }, hex(datagram)).unwrap();
        }
        let file = std::env::temp_dir().join(format!("anabranch-capture-{}-{datagram_max}", std::process::id()));
        std::fs::write(&file, capture).unwrap();
        let printed = decode("capture", &file);
        std::fs::remove_file(&file).unwrap();

        let stream = format!("stream > 1: {} bytes", text.len());
        let line = printed.lines().find(|line| line.starts_with(&stream)).unwrap_or_else(|| panic!("{printed}"));
        assert!(line.ends_with(&hex(&noise::hash(&[&text]))), "{line}");
        let has = |word: &str| printed.lines().filter(|line| line.contains(word)).count();
        assert!(has("request=") > 1 && has("answer=") > 1 && has("session=2") > 0, "keys are replaced");
        assert_eq!(has("fragment=") > 0, datagram_max == 900);
        assert_eq!(has("padding=") > 0, padding != Padding::None);
        assert_eq!(has("kind=cookie"), 1);
        let sums = printed.lines().find_map(|line| line.strip_prefix("acknowledgements with the right sum: "));
        assert!(sums.is_some_and(|sums| sums.parse::<u32>().unwrap() > 100), "{sums:?}");
    }
}

#[test]
fn the_decoder_refuses_what_is_forged() {
    let capture =
        format!("initiator {}\nresponder {}\n> 0100000000000701{}\n", hex(&[1; 32]), hex(&[2; 32]), hex(&[0; 140]));
    let file = std::env::temp_dir().join(format!("anabranch-forged-{}", std::process::id()));
    std::fs::write(&file, capture).unwrap();
    let output = Command::new("python3").arg(doc("wire_decoder.py")).arg("capture").arg(&file).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("line 3: mac1 is wrong"), "{said}");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
