//! In steady state, sealing and opening allocate no memory: data datagrams, sent and read in batches in the caller's buffers.

mod seals;

use anabranch_proto::Content;
use anabranch_proto::seal::{Cipher, CipherPreference};
use anabranch_units::Time;
use bytes::BytesMut;
use seals::{PATH, arrived, outgoing, pair, segment};

/// Handles batches of datagrams of this length. Returns all that was allocated.
#[track_caller]
fn allocations(ciphers: CipherPreference, size: usize, pad_to: u32) -> u64 {
    let (mut client, mut server) = pair(ciphers);
    let (segment, mut out, mut buffer) = (segment(size), Vec::with_capacity(65_536), BytesMut::with_capacity(65_536));
    let outgoing = anabranch_proto::seal::Outgoing { pad_to, ..outgoing() };
    let mut now = Time::ZERO;
    let mut batch = || {
        now = now.saturating_add(anabranch_units::Span::from_micros(100));
        out.clear();
        let mut size = 0;
        for _ in 0..16 {
            size = client.seal(now, &outgoing, &segment, &mut out).expect("there are keys").size;
        }
        let mut batch = arrived(&mut buffer, &out);
        let mut bytes = 0;
        while !batch.is_empty() {
            let opened = server.open(now, PATH.reversed(), batch.split_to(size));
            let Ok(Some(opened)) = opened else { panic!("it is sealed: {opened:?}") };
            bytes += match opened.content {
                Content::Data(data) => data.len(),
                Content::Nothing | Content::Control(_) => 0,
            };
        }
        // Grease datagrams are included.
        out.clear();
        while client.poll_transmit(now, &mut out).is_some() {}
        bytes
    };
    (0..10).for_each(|_| {
        batch();
    });
    let mut bytes = 0;
    let count = allocation_counter::measure(|| (0..10_000).for_each(|_| bytes += batch())).count_total;
    assert_eq!(bytes, 160_000 * (size - 64));
    count
}

#[test]
fn no_datagram_costs_an_allocation() {
    for cipher in Cipher::ALL {
        let ciphers = CipherPreference::new(&[cipher]);
        assert_eq!(allocations(ciphers, 1428, 0), 0, "{cipher:?}, data");
        assert_eq!(allocations(ciphers, 64, 0), 0, "{cipher:?}, acknowledgements");
        assert_eq!(allocations(ciphers, 64, 1200), 0, "{cipher:?}, padded");
    }
}
