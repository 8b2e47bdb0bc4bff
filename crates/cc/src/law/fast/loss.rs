//! The response of FAST's window to a loss.
//!
//! ```text
//! duplicate ACKs, ECN:  w ← max(w/2, 2)
//! timeout:              w ← 2
//! under composite:      a random loss does not change w and starts no fast recovery ([`crate::composite`])
//! ```
//!
//! Citation: fast-2006 sec. III-C for the half, ns-2.35's FAST module for the window after a timeout; ctcp-2019 for composite.
//!
//! Differs from the paper in: ctcp-2019 applies its rule to SACK TCP; here it applies to FAST's window.

use crate::law::reno;
use crate::settings::Choice;

/// The window after a timeout, in segments (ns-2's module; there is no slow start that would need to begin at one).
pub const WINDOW_AFTER_TIMEOUT: f64 = 2.0;

/// The loss policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Every loss halves the window.
    Halve,
    /// Every loss but a random one halves the window.
    Composite,
}

impl Choice for Policy {
    const KINDS: &'static [(&'static str, Self)] = &[("halve", Self::Halve), ("composite", Self::Composite)];
}

/// The window after a loss by duplicate ACKs or a router's mark. Never larger than before.
pub fn halve(window: f64) -> f64 {
    window.min(reno::halve(window))
}

/// The window after a timeout. Never larger than before.
pub fn time_out(window: f64) -> f64 {
    window.min(WINDOW_AFTER_TIMEOUT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_near;

    #[test]
    fn a_loss_takes_half_but_leaves_two() {
        assert_near(halve(52.29), 26.145, 1e-12);
        assert_near(halve(3.0), 2.0, 0.0);
        assert_near(halve(1.5), 1.5, 0.0);
        assert_near(time_out(52.29), 2.0, 0.0);
        assert_near(time_out(1.5), 1.5, 0.0);
    }
}
