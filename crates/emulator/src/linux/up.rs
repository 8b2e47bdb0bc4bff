//! Starts an emulator, and runs it in this process.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use super::drive::Driver;
use super::state::{self, State};
use super::{Failure, control, namespace};
use crate::address::Interface;
use crate::name::Name;
use crate::plan::{Plan, Settings};
use anabranch_sim::Topology;

/// The claimed name of an emulator that is starting.
#[derive(Debug)]
pub struct Claim(Name);

impl Claim {
    /// Claims a name.
    ///
    /// # Errors
    /// If it is taken, or the system refuses.
    pub fn new(name: &Name) -> Result<Self, Failure> {
        match state::claim(name)? {
            true => Ok(Self(name.clone())),
            false => Err(Failure::Usage(format!(
                "links are up as `{name}`, or were left by a crash: type anabranch link down {name}, or choose another --name"
            ))),
        }
    }

    /// Takes over the claim of the process that started this one.
    pub fn inherited(name: &Name) -> Self {
        Self(name.clone())
    }

    /// The log file for a process without a terminal.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn log(&self) -> Result<(fs::File, PathBuf), Failure> {
        state::log(&self.0)
    }
}

/// Creates the namespaces, reports that they are ready, and moves packets until the process is stopped. Afterwards
/// [`super::down`] removes everything.
///
/// # Errors
/// If the system refuses.
pub fn serve(
    claim: Claim,
    file: &str,
    network: Topology,
    settings: &Settings,
    ready: impl FnOnce(&Plan),
) -> Result<(), Failure> {
    let plan = Plan::new(&claim.0, &network, settings).map_err(|refusal| Failure::Usage(refusal.to_string()))?;
    let state = State::new(file.to_owned(), plan).map_err(|error| Failure::failed("/proc", error))?;
    // First of all, so that whatever is created can be found and removed.
    state.write()?;
    state::write_hosts(&state.plan)?;
    let devices = devices(&state.plan, settings)?;
    let requests = control::listen(&claim.0)?;
    let driver = Driver::new(network, devices, settings, requests)?;
    ready(&state.plan);
    driver.run()
}

/// Creates the namespaces with their devices.
pub(super) fn devices(plan: &Plan, settings: &Settings) -> Result<Vec<(Interface, tun_rs::SyncDevice)>, Failure> {
    let mut devices = vec![];
    for (host, host_plan) in plan.hosts.iter().enumerate() {
        let of_host = namespace::make(host_plan, settings)?;
        devices.extend((0..).map(|number| Interface { host, number }).zip(of_host));
    }
    Ok(devices)
}

/// Detaches a command from the terminal, so that it survives the terminal and its interrupts.
pub fn detached(command: &mut Command) -> &mut Command {
    command.process_group(0)
}
