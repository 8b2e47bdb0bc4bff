//! The laboratory: scenarios, experiments, claims and verdicts.
//!
//! A scenario file says what is simulated; an experiment is a scenario file that also says what is varied, what is measured and
//! what a paper claims. Everything that can be wrong with a file is found before anything runs, and is shown with its line.
//!
//! From the top:
//!
//! * [`artifact`] bundles what was run and what came out, for others to check.
//! * [`html`] makes a report of what [`reproduce`] found out.
//! * [`reproduce`] runs experiments over all cores and judges their claims; [`sweep`] runs a grid; [`run`] runs one scenario.
//! * [`swarm`] runs random networks with random faults, and checks what must always hold.
//! * [`sensitivity`] marks claims that nothing flips.
//! * [`experiment`] holds claims, [`verdict`] judges them by [`statistics`]; [`expression`] is the arithmetic in between.
//! * [`scenario`] is what runs; `transport` builds what drives a flow, `world` puts it all into the simulator.
//! * [`topology`] is what a scenario says of links alone, for who brings traffic of his own.
//! * [`report`] is what a run measured, `trace` what happened in it, `series` what can be asked about that.
//! * [`document`] reads TOML, [`diagnostic`] says what is wrong with it, [`mod@reference`] describes its keys.

pub mod artifact;
mod comparison;
pub mod diagnostic;
pub mod document;
pub mod experiment;
pub mod expression;
mod file;
pub mod html;
mod names;
mod papers;
pub mod parallel;
pub mod reference;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod scenario;
pub mod sensitivity;
mod series;
pub mod statistics;
pub mod swarm;
pub mod sweep;
pub mod topology;
mod trace;
pub mod transport;
pub mod verdict;
mod world;
