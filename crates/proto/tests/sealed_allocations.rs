//! Two endpoints in their steady state ask for no memory, with real bytes, sealed.

mod sealed;

use anabranch_proto::seal::Cipher;
use sealed::Sealed;

#[track_caller]
fn allocations(streams: u8, cipher: Cipher) -> u64 {
    let mut sealed = Sealed::new(streams, cipher, 2);
    // What holds the most that there ever is has its memory by then.
    sealed.run(100_000_000);
    allocation_counter::measure(|| sealed.run(50_000_000)).count_total
}

/// Two for each write of 64 kB that ends within a segment, which is joined with the next one: 45 segments.
#[test]
fn a_sealed_stream_costs_no_allocation_per_datagram() {
    let writes = 50_000_000 / (1 << 16);
    for cipher in [Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305] {
        let count = allocations(1, cipher);
        assert!(count <= 3 * writes, "{count} allocations for {writes} writes with {cipher:?}");
    }
}
