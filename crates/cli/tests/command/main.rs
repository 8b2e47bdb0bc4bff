//! Tests of the command: exit codes, messages, documents.
#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage shall stop there")]

mod artifacts;
mod assertions;
mod bad_input;
mod captures;
mod claims;
mod evaluation;
mod extends;
mod files;
mod limits;
mod online;
mod outcomes;
mod pages;
mod pictures;
mod plugins;
mod questions;
mod reference;
mod restart;
mod run;
mod support;
mod sweep;
#[cfg(target_os = "linux")]
mod tutorial;
