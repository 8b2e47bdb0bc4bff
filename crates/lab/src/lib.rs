//! The laboratory: scenarios, experiments, claims and verdicts.
//!
//! A scenario file says what is simulated; an experiment is a scenario file that also says what is varied, what is measured and
//! what a paper claims. Everything that can be wrong with a file is found before anything runs, and is shown with its line.

pub mod diagnostic;
pub mod document;
pub mod expression;
pub mod statistics;
pub mod verdict;
