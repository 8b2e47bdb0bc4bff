//! The laboratory: scenarios, experiments, claims and verdicts.
//!
//! A scenario file describes a simulation. An experiment is a scenario file with axes of variation, measures and the claims of a
//! paper. All errors of a file are found before anything runs, and are shown with their line.
//!
//! The modules in the order in which a claim passes through them; no module uses a later one:
//!
//! * **Data.** [`files`] opens and creates files. [`document`] is a TOML file with its lines, [`diagnostic`] an error in it. [`scenario`] is the input of a run.
//!   `series` are quantities over time, [`report`] the counts of a run, [`expression`] the arithmetic on both.
//! * **Load.** [`load`] makes a scenario from its keys; [`own`] has the laws that are not in the registry; `names` has the gauges and series of a run. [`experiment`] is a scenario with axes, measures
//!   and claims; its `file` has all keys of a file.
//! * **Run.** `world` builds a scenario in the simulator, `trace` records it. [`run`] runs one scenario, [`sweep`] a grid, [`swarm`] random
//!   networks with random faults; [`stepped`] asks its caller for a window, step by step, [`live`] is moved on and looked at by its caller; [`parallel`] uses all cores.
//! * **Judge.** [`reproduce`] runs experiments and judges their claims by [`verdict`] and [`statistics`]; [`sensitivity`] marks claims that no
//!   change of an input flips; [`evaluation`] applies the criteria of RFC 9743 to a congestion law, [`field`] judges it on random networks.
//! * **Draw.** [`html`] makes a report of an outcome or, from a [`picture`], of a run; [`artifact`] makes a bundle for others to check;
//!   [`mod@reference`] describes the keys.

#[cfg(feature = "artifact")]
pub mod artifact;
mod comparison;
mod decimate;
pub mod diagnostic;
pub mod document;
pub mod evaluation;
pub mod experiment;
pub mod expression;
pub mod field;
pub mod files;
pub mod html;
pub mod live;
pub mod load;
mod names;
pub mod own;
mod papers;
pub mod parallel;
pub mod picture;
pub mod reference;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod scenario;
pub mod sensitivity;
mod series;
pub mod statistics;
pub mod stepped;
pub mod swarm;
pub mod sweep;
#[cfg(test)]
mod testing;
mod trace;
pub mod verdict;
mod world;
