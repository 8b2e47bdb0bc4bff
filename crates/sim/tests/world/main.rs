//! Whole worlds, judged by closed forms.

#![expect(clippy::unwrap_used, reason = "in tests an error is a failure, helpers included")]

mod capture;
mod determinism;
mod disciplines;
mod drivers;
mod engine;
mod hosts;
mod links;
mod multihome;
mod ns2;
mod outside;
mod random;
mod routes;
mod standard;
mod support;
mod varying;
