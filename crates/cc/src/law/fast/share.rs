//! Alpha depends on the rate, so that the queueing delay grows with the root of the number of flows, not with the number.
//!
//! ```text
//! alpha(x) = alpha · √(x / reference)        x: segments a second, at least one segment
//! ```
//!
//! Why: with a fixed alpha, n flows queue n alpha: fifty times 20 segments are 240 ms at 50 Mbit/s, longer than most buffers. In equilibrium, all
//! flows that share a queue of the delay D have x D = alpha(x), so x = alpha²/(reference D²): the same for all, for any length of their paths. n flows on
//! a link of c segments a second have D = alpha √(n/(c · reference)). The more slowly alpha grows with the rate, the longer the delay of many flows;
//! if it grew in proportion to the rate, any division would be an equilibrium. With the root, a baseRTT that is wrong by a tenth of D changes the
//! rate by a fifth.
//!
//! Citation: none. fast-2006 sec. III-A lets alpha depend on the flow, and shows that the rates in equilibrium are in proportion to it.

use crate::settings::{Choice, Fields};

/// The dependence of alpha on the rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The rate at which alpha has the value that is set, in segments a second; more than zero.
    pub reference: f64,
}

impl Rule {
    /// 75 Mbit/s in segments of 1500 bytes. At 50 Mbit/s alpha is 16 segments and takes 3.9 ms; fifty flows there queue seven times as long.
    pub const DEFAULT: Self = Self { reference: 6250.0 };

    /// The factor of alpha at `rate` segments a second.
    #[inline]
    pub fn scale(&self, rate: f64) -> f64 {
        (rate / self.reference).sqrt()
    }
}

/// The least alpha: less than a segment cannot be queued.
pub const ALPHA_MIN: f64 = 1.0;

impl Choice for Option<Rule> {
    const KINDS: &'static [(&'static str, Self)] = &[("fixed", None), ("root", Some(Rule::DEFAULT))];

    fn visit(&mut self, fields: &mut Fields<'_>) {
        if let Some(Rule { reference }) = self {
            let help = "the rate at which alpha has the value that is set";
            fields.number("reference", reference, 1.0..=1e9, "segments/s", help);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_near;

    /// 20 segments at 6250 a second, half as many at a quarter of the rate.
    #[test]
    fn alpha_goes_with_the_root_of_the_rate() {
        let rule = Rule::DEFAULT;
        assert_near(20.0 * rule.scale(6250.0), 20.0, 1e-12);
        assert_near(20.0 * rule.scale(6250.0 / 4.0), 10.0, 1e-12);
    }
}
