//! The laboratory: scenarios, experiments, claims and verdicts.
//!
//! A scenario file says what is simulated; an experiment is a scenario file that also says what is varied, what is measured and
//! what a paper claims. Everything that can be wrong with a file is found before anything runs, and is shown with its line.
//!
//! From the bottom, in the order in which a claim passes through; no module names one that stands behind it:
//!
//! * **Data.** [`document`] is a TOML file with its lines, [`diagnostic`] says what is wrong with it. [`scenario`] is what runs, [`topology`] its links
//!   alone. `series` is what happened over time, [`report`] what a run counted, [`expression`] the arithmetic on both.
//! * **Load.** [`load`] makes a scenario of its keys, `names` knows what can be asked of a run. [`experiment`] is a scenario with what is varied,
//!   measured and claimed; its `file` has all keys of a file.
//! * **Run.** `world` puts a scenario into the simulator, `trace` records what happens there. [`run`] runs one, [`sweep`] a grid, [`swarm`] random
//!   networks with random faults, and [`stepped`] asks its caller for a window, step by step; [`parallel`] uses all cores.
//! * **Judge.** [`reproduce`] runs experiments and judges their claims by [`verdict`] and [`statistics`]; [`sensitivity`] marks claims that nothing
//!   flips; [`evaluation`] puts a congestion law through what RFC 9743 asks of one.
//! * **Draw.** [`html`] makes a report of an outcome or, from a [`picture`], of a run; [`artifact`] makes a bundle for others to check;
//!   [`mod@reference`] describes the keys.

pub mod artifact;
mod comparison;
pub mod diagnostic;
pub mod document;
pub mod evaluation;
pub mod experiment;
pub mod expression;
pub mod html;
pub mod load;
mod names;
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
pub mod topology;
mod trace;
pub mod verdict;
mod world;
