//! Random draws, equal on every machine.

/// SplitMix64.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from 0 to 1, below 1.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number below `count`; 0 if that is 0.
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        ((self.uniform() * count as f64) as u64).min(count.saturating_sub(1))
    }

    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// A number with a uniform logarithm, in 64 steps: by square roots and products alone, which are equal on all machines.
    pub(crate) fn log(&mut self, least: f64, most: f64) -> f64 {
        let step = (0..6).fold(most / least, |root, _| root.sqrt());
        (0..self.below(64)).fold(least, |value, _| value * step)
    }
}
