//! BLAKE3 of a file in chunks. The hash tree has a subtree for each chunk. The values of these subtrees suffice to compare files
//! chunk by chunk, and to compute the hash of the whole file.

use std::fs::File;
use std::io;
use std::num::NonZero;
use std::thread;

use blake3::hazmat::{self, HasherExt as _, Mode};

/// Bytes of a chunk: a power of two, as the tree requires. An interrupted transfer loses less than a chunk per stream.
pub(crate) const CHUNK: u64 = 1 << 20;

/// The hash of a file, or of one of its chunks: the chaining value of its subtree.
pub(crate) type Value = [u8; 32];

/// The hash of a file, computed from the values of its chunks in their order. It holds one value for each level of the tree.
#[derive(Clone, Debug)]
pub(crate) struct Digest {
    chunks: u64,
    added: u64,
    /// Values of complete subtrees on the left; merging them is put off until it is certain that they are not the root.
    stack: Vec<Value>,
}

/// The number of chunks of a file of this size.
pub(crate) fn chunks(size: u64) -> u64 {
    size.div_ceil(CHUNK)
}

/// The length of this chunk of a file of this size.
pub(crate) fn chunk_len(size: u64, number: u64) -> u64 {
    size.saturating_sub(number.saturating_mul(CHUNK)).min(CHUNK)
}

/// The value of a chunk of a file of this size. That of the only chunk is the hash of the file.
pub(crate) fn value(size: u64, number: u64, bytes: &[u8]) -> Value {
    if size <= CHUNK {
        return *blake3::hash(bytes).as_bytes();
    }
    blake3::Hasher::new().set_input_offset(number * CHUNK).update(bytes).finalize_non_root()
}

impl Digest {
    /// Of a file of this size, from its first chunk on.
    pub(crate) fn new(size: u64) -> Self {
        Self { chunks: chunks(size), added: 0, stack: vec![] }
    }

    /// Of all chunks of a file of this size.
    pub(crate) fn of(size: u64, values: &[Value]) -> Option<Value> {
        let mut digest = Self::new(size);
        values.iter().for_each(|value| digest.add(*value));
        digest.finish()
    }

    /// Adds the value of the next chunk.
    pub(crate) fn add(&mut self, value: Value) {
        // As many subtrees are complete as the number of chunks has ones.
        while self.stack.len() > self.added.count_ones() as usize {
            self.merge(|left, right| hazmat::merge_subtrees_non_root(left, right, Mode::Hash));
        }
        self.stack.push(value);
        self.added += 1;
    }

    fn merge(&mut self, merge: impl Fn(&Value, &Value) -> Value) {
        if let (Some(right), Some(left)) = (self.stack.pop(), self.stack.pop()) {
            self.stack.push(merge(&left, &right));
        }
    }

    /// The number of chunks so far.
    pub(crate) fn added(&self) -> u64 {
        self.added
    }

    /// The hash of the file; `None` if chunks are missing.
    pub(crate) fn finish(mut self) -> Option<Value> {
        if self.added != self.chunks {
            return None;
        }
        while self.stack.len() > 2 {
            self.merge(|left, right| hazmat::merge_subtrees_non_root(left, right, Mode::Hash));
        }
        if self.stack.len() == 2 {
            self.merge(|left, right| *hazmat::merge_subtrees_root(left, right, Mode::Hash).as_bytes());
        }
        Some(self.stack.pop().unwrap_or_else(|| *blake3::hash(&[]).as_bytes()))
    }
}

/// The hash of the first `size` bytes of a file.
pub(crate) fn file(file: &File, size: u64) -> io::Result<Value> {
    let values = file_values(file, size, size)?;
    Digest::of(size, &values).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// The values of the first chunks of a file that shall get this size, as far as its first `there` bytes contain them. All processors
/// read and hash.
pub(crate) fn file_values(file: &File, size: u64, there: u64) -> io::Result<Vec<Value>> {
    let whole = if there >= size { chunks(size) } else { there / CHUNK };
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX) as u64;
    let mut values = vec![[0; 32]; whole as usize];
    let share = whole.div_ceil(threads).max(SHARE_MIN);
    let hash_share = |first: u64, values: &mut [Value]| {
        let mut bytes = vec![0; chunk_len(size, 0) as usize];
        for (number, place) in (first..).zip(values) {
            let bytes = &mut bytes[..chunk_len(size, number) as usize];
            read_at(file, bytes, number * CHUNK)?;
            *place = value(size, number, bytes);
        }
        Ok(())
    };
    // A single share needs no thread.
    if whole <= share {
        hash_share(0, &mut values)?;
        return Ok(values);
    }
    thread::scope(|scope| {
        let hash_share = &hash_share;
        let shares = (0..).step_by(share as usize).zip(values.chunks_mut(share as usize));
        let threads: Vec<_> = shares.map(|(first, values)| scope.spawn(move || hash_share(first, values))).collect();
        let mut ended = threads.into_iter().map(|thread| thread.join());
        ended.try_for_each(|ended| ended.unwrap_or_else(|_| Err(io::Error::other("a thread has failed"))))
    })?;
    Ok(values)
}

/// Reads exactly these bytes.
#[cfg(unix)]
pub(crate) fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

/// Reads exactly these bytes.
#[cfg(windows)]
pub(crate) fn read_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let len = std::os::windows::fs::FileExt::seek_read(file, bytes, at)?;
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[len..];
        at += len as u64;
    }
    Ok(())
}

/// More threads than a disk can serve.
const THREADS_MAX: usize = 16;

/// The least number of chunks that is worth a thread: some milliseconds of work.
const SHARE_MIN: u64 = 4;

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Compares with the hash of the whole file.
    #[test]
    fn values_of_chunks_make_the_hash_of_the_file() {
        let bytes: Vec<u8> = (0..9 * CHUNK + 77).map(|at| (at * at % 251) as u8).collect();
        let path = std::env::temp_dir().join(format!("anabranch-hash-{}", std::process::id()));
        for len in [
            0,
            1,
            CHUNK - 1,
            CHUNK,
            CHUNK + 1,
            2 * CHUNK,
            3 * CHUNK - 1,
            3 * CHUNK,
            5 * CHUNK + 5,
            7 * CHUNK,
            8 * CHUNK,
            9 * CHUNK + 77,
        ] {
            let whole = &bytes[..len as usize];
            let mut digest = Digest::new(len);
            for (number, chunk) in whole.chunks(CHUNK as usize).enumerate() {
                assert_eq!(digest.clone().finish(), None, "a chunk is missing");
                digest.add(value(len, number as u64, chunk));
            }
            let expected = *blake3::hash(whole).as_bytes();
            assert_eq!(digest.finish(), Some(expected), "{len} bytes");
            File::create(&path).unwrap().write_all(whole).unwrap();
            assert_eq!(file(&File::open(&path).unwrap(), len).unwrap(), expected, "{len} bytes");
            // Of a file that is not complete, only complete chunks count.
            let values = file_values(&File::open(&path).unwrap(), len + 1, len).unwrap();
            assert_eq!(values.len() as u64, len / CHUNK, "{len} bytes");
        }
        std::fs::remove_file(path).unwrap();
    }
}
