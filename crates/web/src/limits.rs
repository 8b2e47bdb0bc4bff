//! The limits of what a page may run. A scenario comes from a link that anybody may have written.

use anabranch_lab::live;
use anabranch_lab::scenario::Scenario;
use anabranch_units::SimSpan;

/// The limit of a text in bytes. The longest file of the repository has 20 kB.
pub(crate) const TEXT_MAX: usize = 1 << 20;

/// The limit of simulated time in seconds. The longest experiment takes 1,000 s.
const SECONDS_MAX: u64 = 3600;

/// The limit of flows: the largest experiment has 200.
const FLOWS_MAX: usize = 500;

/// The limit of directions of links.
const LINKS_MAX: usize = 3000;

/// The limit of events: about half a minute in a browser.
pub(crate) const EVENTS_MAX: u64 = 100_000_000;

/// Checks a scenario.
///
/// # Errors
/// Which limit it exceeds.
pub(crate) fn check(scenario: &Scenario) -> Result<(), String> {
    let (links, flows) = live::names(scenario);
    let seconds = scenario.duration.as_secs_f64();
    let refuse =
        |what: String| Err(format!("{what}; the playground is for small runs, `anabranch sim run` has no such limit"));
    if scenario.duration > SimSpan::from_secs(SECONDS_MAX) {
        return refuse(format!("the run takes {seconds} s, and here at most {SECONDS_MAX} s are simulated"));
    }
    if flows.len() > FLOWS_MAX {
        return refuse(format!("there are {} flows, and here at most {FLOWS_MAX}", flows.len()));
    }
    if links.len() > LINKS_MAX {
        return refuse(format!("there are {} directions of links, and here at most {LINKS_MAX}", links.len()));
    }
    Ok(())
}
