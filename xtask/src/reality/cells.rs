//! The quantities compared, and the results.

use crate::links::ONE;

/// A variant of a scenario.
pub(super) struct Cell {
    /// Its label in the experiment.
    pub(super) name: &'static str,
    pub(super) file: &'static str,
    /// The RTT of the empty path in seconds; if the route changes, of the shorter one.
    pub(super) rtt: f64,
    pub(super) paths: bool,
}

impl Cell {
    const fn one(name: &'static str, rtt: f64) -> Self {
        Self { name, file: ONE, rtt, paths: false }
    }

    /// The allowed difference of another RTT: 10 % of the queueing delay, or 1 ms.
    pub(super) fn allowance(&self, rtt: f64) -> f64 {
        (0.1 * (rtt - self.rtt)).max(0.001)
    }
}

const TWO: &str = "experiments/reality/two-paths.toml";
const REROUTE: &str = "experiments/reality/reroute.toml";

/// Rates from 10 to 200 Mbit/s, RTTs from 10 to 300 ms, losses of 0, 0.1 and 1 %, queues from half to four times the bandwidth-delay product.
pub(super) const CELLS: &[Cell] = &[
    Cell::one("10M 10ms 4BDP", 0.01),
    Cell::one("10M 300ms 1BDP", 0.3),
    Cell::one("50M 50ms 1BDP", 0.05),
    Cell::one("100M 100ms 1BDP", 0.1),
    Cell::one("100M 100ms 0.5BDP", 0.1),
    Cell::one("100M 100ms 0.1%", 0.1),
    Cell::one("100M 100ms 1%", 0.1),
    Cell::one("200M 20ms 1BDP", 0.02),
    Cell { name: "two paths 50M", file: TWO, rtt: 0.06, paths: true },
    Cell { name: "reroute 125-376ms", file: REROUTE, rtt: 0.125, paths: false },
];

/// The outcome of a transfer.
#[derive(Clone, Copy)]
pub(super) struct Came {
    pub(super) megabits: f64,
    pub(super) rtt: Option<f64>,
    pub(super) lost: f64,
}
