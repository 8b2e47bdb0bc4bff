//! ns-2's default random stream: L'Ecuyer's combined multiple recursive generator MRG32k3a (Operations Research 47(1), 1999).
//!
//! ns-2 draws the phase of every sender's coarse clock from it. So does an error model without its own stream. A run that is to
//! equal one of ns-2 needs the same numbers in the same order.

/// The state of the generator. Its period is 2^191.
#[derive(Clone, Debug)]
pub struct Mrg32k3a {
    first: [u64; 3],
    second: [u64; 3],
}

/// Moduli of the two components: the primes 2^32 - 209 and 2^32 - 22853.
const M1: u64 = 4_294_967_087;
const M2: u64 = 4_294_944_443;

impl Mrg32k3a {
    /// The seed of ns-2's default stream if the script does not call `ns-random`.
    pub const DEFAULT_SEED: u32 = 1;

    /// The stream that `ns-random seed` selects: all six words of the state are the seed. Zero, which the recurrence cannot leave
    /// (ns-2 takes the clock instead), is read as [`Self::DEFAULT_SEED`].
    pub fn new(seed: u32) -> Self {
        let word = u64::from(if seed == 0 { Self::DEFAULT_SEED } else { seed });
        Self { first: [word; 3], second: [word; 3] }
    }

    /// The next number, strictly between 0 and 1, with a resolution of 32 bits.
    pub fn uniform(&mut self) -> f64 {
        // [L'Ecuyer99] x(n) = (1403580 x(n-2) - 810728 x(n-3)) mod m1; the subtraction is written as an addition.
        let x = (1_403_580 * self.first[1] + 810_728 * (M1 - self.first[0])) % M1;
        self.first = [self.first[1], self.first[2], x];
        // y(n) = (527612 y(n-1) - 1370589 y(n-3)) mod m2.
        let y = (527_612 * self.second[2] + 1_370_589 * (M2 - self.second[0])) % M2;
        self.second = [self.second[1], self.second[2], y];
        let difference = if x > y { x - y } else { x + M1 - y };
        // 1 / (m1 + 1), with the digits that ns-2 uses.
        difference as f64 * 2.328306549295728e-10
    }

    /// The lowest bit of the next draw as an integer below 2^31 (ns-2's `Random::random() & 1`).
    pub fn coin(&mut self) -> bool {
        (self.uniform() * f64::from(1_u32 << 31)) as u32 % 2 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `[new RandomVariable/Uniform] value`, printed by ns-2.35 in a fresh interpreter.
    #[test]
    fn default_stream_prints_what_ns2_prints() {
        let mut stream = Mrg32k3a::new(Mrg32k3a::DEFAULT_SEED);
        let printed: Vec<String> = (0..4).map(|_| format!("{:.6e}", stream.uniform())).collect();
        assert_eq!(printed, ["3.395772e-4", "5.558807e-1", "1.420466e-2", "8.812267e-2"]);
    }

    /// L'Ecuyer's published first value for the seed 12345.
    #[test]
    fn published_first_value() {
        assert_eq!(format!("{:.9}", Mrg32k3a::new(12345).uniform()), "0.127011122");
    }
}
