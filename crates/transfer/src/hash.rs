//! BLAKE3 of a file in chunks. The hash tree has a subtree for each chunk, and the chaining values of these subtrees suffice to
//! resume.

use blake3::hazmat::{self, ChainingValue, HasherExt as _, Mode};

/// Bytes of a chunk: a power of two, as the tree requires. An interrupted transfer loses less than a chunk per stream.
pub(crate) const CHUNK: u64 = 1 << 20;

/// The first chunks of a file, as their chaining values. A file of at most one chunk has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunks(pub(crate) Vec<ChainingValue>);

impl Chunks {
    /// The chaining value of this chunk.
    pub(crate) fn of(number: u64, bytes: &[u8]) -> ChainingValue {
        blake3::Hasher::new().set_input_offset(number * CHUNK).update(bytes).finalize_non_root()
    }

    /// BLAKE3 of a file of several chunks, computed from all their chaining values.
    pub(crate) fn root(&self) -> blake3::Hash {
        let (left, right) = self.0.split_at(left(self.0.len()));
        hazmat::merge_subtrees_root(&merge(left), &merge(right), Mode::Hash)
    }
}

/// The chaining value of the subtree of these chunks.
fn merge(chunks: &[ChainingValue]) -> ChainingValue {
    match chunks {
        [chunk] => *chunk,
        _ => {
            let (left, right) = chunks.split_at(left(chunks.len()));
            hazmat::merge_subtrees_non_root(&merge(left), &merge(right), Mode::Hash)
        }
    }
}

/// The number of chunks on the left side of a tree: the largest power of two below `count`.
fn left(count: usize) -> usize {
    count.next_power_of_two() / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the hash of the whole file.
    #[test]
    fn chunks_make_the_hash_of_the_file() {
        let bytes: Vec<u8> = (0..9 * CHUNK + 77).map(|at| (at * at % 251) as u8).collect();
        for len in [CHUNK + 1, 2 * CHUNK, 3 * CHUNK - 1, 3 * CHUNK, 5 * CHUNK + 5, 8 * CHUNK, 9 * CHUNK + 77] {
            let bytes = &bytes[..len as usize];
            let chunks = bytes.chunks(CHUNK as usize).enumerate();
            let chunks = Chunks(chunks.map(|(number, chunk)| Chunks::of(number as u64, chunk)).collect());
            assert_eq!(chunks.root(), blake3::hash(bytes), "{len} bytes");
        }
    }
}
