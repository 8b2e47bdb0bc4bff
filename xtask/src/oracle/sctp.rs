//! Random cases of ns-2's SCTP: several associations over one path, or one over several, plain or with CMT.

mod case;
mod world;

pub(crate) use case::{AGENTS, Case};
pub(crate) use world::run;
