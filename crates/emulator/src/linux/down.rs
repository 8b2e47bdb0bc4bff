//! Removes an emulator completely, even after a crash.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Failure, State, namespace, state};
use crate::name::{Name, Namespace};

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Namespaces that were removed.
    pub namespaces: usize,
    /// Programs in the namespaces that were stopped.
    pub programs: usize,
    /// Whether there was anything to remove; also an emulator that crashed before it had namespaces.
    pub was_there: bool,
}

/// How long programs may take to end by themselves, and then how long the system may take to end them.
const PATIENCE: Duration = Duration::from_secs(1);

/// Stops an emulator and the programs in its namespaces, and removes the namespaces. If there are none, it does nothing.
///
/// # Errors
/// If the system refuses, or there are files that this program did not make. They stay; everything else is removed, and the call can be
/// repeated.
pub fn down(name: &Name) -> Result<Removed, Failure> {
    let folder = state::find(name)?;
    // An unreadable state is that of an emulator that was killed while it wrote it.
    let state = folder.as_ref().and_then(|folder| State::read_in(folder, name).ok().flatten());
    let own = std::process::id() as i32;
    let process = state.as_ref().map(State::process).filter(|process| process.id != own);
    if let Some(process) = process {
        end(|| process.is_alive().then_some(process.id).into_iter().collect());
    }
    // The remains of a crash are found by their names.
    let planned = state.iter().flat_map(|state| &state.plan.hosts).map(|host| host.namespace.clone());
    let namespaces: BTreeSet<Namespace> = planned.chain(namespace::all_of(name)).collect();
    let mut removed = Removed { was_there: folder.is_some() || !namespaces.is_empty(), ..Removed::default() };
    for namespace in &namespaces {
        if namespace::path(namespace).exists() {
            removed.programs += end(|| namespace::processes(namespace));
        }
        removed.namespaces += usize::from(namespace::remove(namespace)?);
    }
    if let Some(folder) = &folder {
        state::release(name, folder)?;
    }
    Ok(removed)
}

/// Ends processes. Returns their number.
fn end(alive: impl Fn() -> Vec<i32>) -> usize {
    let all = alive();
    for signal in [Signal::TERM, Signal::KILL] {
        let begin = Instant::now();
        loop {
            let left = alive();
            if left.is_empty() {
                return all.len();
            }
            if begin.elapsed() >= PATIENCE {
                break;
            }
            // A process that is gone by now needs no signal.
            left.into_iter().filter_map(Pid::from_raw).for_each(|id| _ = kill_process(id, signal));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    all.len()
}
