//! In steady state, two endpoints with real bytes and seals allocate no memory.

mod sealed;

use anabranch_proto::seal::Cipher;
use sealed::Sealed;

#[track_caller]
fn allocations(streams: u8, cipher: Cipher) -> u64 {
    let mut sealed = Sealed::new(streams, cipher, 2);
    // By now everything with a limit has reached its largest size.
    sealed.run(100_000_000);
    allocation_counter::measure(|| sealed.run(50_000_000)).count_total
}

/// Two allocations per write of 64 kB (45 segments) that ends within a segment, as the segment is joined with the next write.
#[test]
fn a_sealed_stream_costs_no_allocation_per_datagram() {
    let writes = 50_000_000 / (1 << 16);
    for cipher in [Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305] {
        let count = allocations(1, cipher);
        assert!(count <= 3 * writes, "{count} allocations for {writes} writes with {cipher:?}");
    }
}
