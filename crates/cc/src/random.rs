//! Pseudorandom numbers that keep flows of one law from acting in step.
//!
//! They are computed from the times of a controller's events alone. Equal events give equal numbers; two flows get different ones, as
//! their events have different times. They must not be used for secrets.

use anabranch_units::Time;

/// The generator of one controller: splitmix64 over the times of the draws.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// A number from 0, included, to 1, excluded.
    pub(crate) fn draw(&mut self, now: Time) -> f64 {
        self.state = mix(self.state ^ now.ticks());
        // The upper 53 bits: all that a double holds.
        (self.state >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A whole number below `count`.
    pub(crate) fn below(&mut self, now: Time, count: u32) -> u32 {
        (self.draw(now) * f64::from(count)) as u32
    }
}

/// One step of splitmix64 (Steele, Lea, Flood 2014).
fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published first output of splitmix64 from the seed 1234567.
    #[test]
    fn a_step_is_splitmix64s() {
        assert_eq!(mix(1_234_567), 6_457_827_717_110_365_317);
    }

    #[test]
    fn equal_times_give_equal_numbers_and_others_are_spread() {
        let draws = |first: u64| {
            let mut random = Random::default();
            (0..1000).map(|step| random.below(Time::from_ticks(first + 1000 * step), 7)).collect::<Vec<_>>()
        };
        assert_eq!(draws(5), draws(5));
        assert_ne!(draws(5), draws(6));
        for face in 0..7 {
            let count = draws(5).iter().filter(|draw| **draw == face).count();
            // 1000/7 with a standard deviation of 11.
            assert!((100..190).contains(&count), "{face}: {count}");
        }
    }
}
