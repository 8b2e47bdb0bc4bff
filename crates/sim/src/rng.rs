//! Randomness: named substreams of the scenario's single seed.
//!
//! Each user has its own stream with a descriptive name (`link.bottleneck.error.0`). The numbers depend on seed and name alone.
//! So a new flow or link changes no other draws, and the order of declarations does not matter.
//!
//! Derivation, which must never change: FNV-1a (64 bit) over the eight bytes of the seed (little-endian), then over the bytes of
//! the name. SplitMix64 expands the result to the state of xoshiro256++ (Blackman and Vigna, "Scrambled Linear Pseudorandom
//! Number Generators", ACM TOMS 47(4), 2021). The only mathematical function needed is the logarithm. It comes from `libm`, which
//! computes it in software with the four basic operations, so every machine gets the same bits.

use anabranch_units::SimSpan;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng};

/// The seed of a world, from which every stream is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Substreams {
    seed: u64,
}

/// One stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream(Xoshiro256PlusPlus);

impl Substreams {
    /// The streams of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The seed from which the streams are made.
    pub const fn seed(self) -> u64 {
        self.seed
    }

    /// The stream called `name`, from its start.
    pub fn stream(self, name: &str) -> Stream {
        let bytes = self.seed.to_le_bytes().into_iter().chain(name.bytes());
        let hash = bytes.fold(FNV_OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME));
        Stream(Xoshiro256PlusPlus::seed_from_u64(hash))
    }
}

impl Stream {
    /// Uniform in `[0, 1)`, a multiple of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        const ULP: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.0.next_u64() >> 11) as f64 * ULP
    }

    /// Draws whether an event of this probability happens. The test is ns-2's: `u < probability`.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Exponential with this mean. One draw: `-mean ln(1 - u)`, which is finite because `u < 1`.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }

    /// An exponential length of time, to the nearest picosecond.
    pub fn exponential_span(&mut self, mean: SimSpan) -> SimSpan {
        SimSpan::from_secs_f64(self.exponential(mean.as_secs_f64()))
    }
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

#[cfg(test)]
mod tests {
    use super::*;

    fn first(seed: u64, name: &str) -> u64 {
        Substreams::new(seed).stream(name).0.next_u64()
    }

    #[test]
    fn a_stream_depends_on_seed_and_name_only() {
        assert_eq!(first(1, "link.a.error.0"), first(1, "link.a.error.0"));
        assert_ne!(first(1, "link.a.error.0"), first(1, "link.a.error.1"));
        assert_ne!(first(1, "link.a.error.0"), first(2, "link.a.error.0"));
    }

    #[test]
    fn the_mean_of_an_exponential_is_its_parameter() {
        let mut stream = Substreams::new(7).stream("test");
        let n = 100_000;
        let mean = (0..n).map(|_| stream.exponential(2.0)).sum::<f64>() / f64::from(n);
        // Standard deviation of the mean: 2 / sqrt(100 000) = 0.0063; five of them.
        assert!((mean - 2.0).abs() < 0.032, "mean of {n} draws: {mean}, expected 2.0 within 0.032");
    }

    #[test]
    fn uniform_fills_the_unit_interval_evenly() {
        let mut stream = Substreams::new(7).stream("test");
        let mut tenths = [0_u32; 10];
        for _ in 0..100_000 {
            tenths[(stream.uniform() * 10.0) as usize] += 1;
        }
        // Binomial with mean 10 000 and standard deviation 95; five of them.
        assert!(tenths.iter().all(|count| count.abs_diff(10_000) < 475), "{tenths:?}");
    }
}
