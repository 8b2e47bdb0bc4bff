//! Any bytes are a segment or an error, and what is a segment has one form that says the same.
//!
//! `cargo +nightly fuzz run wire_segment corpus/wire_segment seeds/wire_segment`
#![no_main]

use anabranch_proto::wire::{Checksum, decode, encode};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

const NETWORKS: [Checksum; 3] =
    [Checksum::None, Checksum::V4([[192, 0, 2, 1], [198, 51, 100, 2]]), Checksum::V6([[0xfe; 16], [7; 16]])];

fuzz_target!(|bytes: &[u8]| {
    let bytes = Bytes::copy_from_slice(bytes);
    for network in NETWORKS {
        let _ = decode(bytes.clone(), network);
    }
    let Ok((ports, segment)) = decode(bytes, Checksum::None) else { return };
    for network in NETWORKS {
        let mut again = vec![];
        encode(&segment, ports, network, &mut again);
        assert_eq!(again.len() as u32, segment.wire_size() - 20);
        assert_eq!(decode(again.into(), network), Ok((ports, segment.clone())));
    }
});
