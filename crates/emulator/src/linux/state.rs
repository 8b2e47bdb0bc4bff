//! The stored state of an emulator. With it, other processes query and remove the emulator, even after a crash.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Failure;
use super::folder::Folder;
use crate::name::Name;
use crate::plan::Plan;

/// The folder with one folder per emulator, below [`SYSTEM`]. Like the namespaces, it is gone after a reboot.
const FOLDERS: &str = "anabranch";
const SYSTEM: &str = "/run";

/// An emulator that is up, is starting, or has crashed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The scenario's file.
    pub file: String,
    /// What was created, or will be created.
    pub plan: Plan,
    /// The process that moves packets.
    process: Process,
}

/// A process, distinguished from a later process with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Process {
    pub(super) id: i32,
    /// Its start time, in ticks since boot.
    started: u64,
}

impl Process {
    pub(super) fn current() -> io::Result<Self> {
        let id = std::process::id() as i32;
        Ok(Self { id, started: started(id)? })
    }

    pub(super) fn is_alive(self) -> bool {
        started(self.id).is_ok_and(|started| started == self.started)
    }
}

/// The start time of a process: field 22 of its `stat` (proc(5)). A zombie counts as no process.
fn started(id: i32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
    // Field 2 may contain spaces and parentheses, and it is the last field with a closing parenthesis.
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let is_zombie = fields.first() == Some(&"Z");
    let started = fields.get(19).filter(|_| !is_zombie).and_then(|field| field.parse().ok());
    started.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

impl State {
    /// The state of this process.
    pub(super) fn new(file: String, plan: Plan) -> io::Result<Self> {
        Ok(Self { file, plan, process: Process::current()? })
    }

    /// Reads the state of an emulator.
    ///
    /// # Errors
    /// If there is no emulator with this name, or it is still starting.
    pub fn read(name: &Name) -> Result<Self, Failure> {
        let none = || Failure::Usage(format!("no links are up as `{name}`{}", others(name)));
        Self::read_in(&find(name)?.ok_or_else(none)?, name).and_then(|state| state.ok_or_else(none))
    }

    /// Reads the state in the folder of an emulator; `None` if it is still starting.
    pub(super) fn read_in(folder: &Folder, name: &Name) -> Result<Option<Self>, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::failed(folder.path().join(STATE).display(), error);
        let text = match folder.read(STATE) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&error)),
        };
        let state: Self = serde_json::from_str(&text).map_err(|error| failed(&error))?;
        match state.plan.name == *name && state.plan.hosts.iter().all(|host| host.namespace.is_of(name)) {
            true => Ok(Some(state)),
            false => Err(failed(&"it is the state of another emulator")),
        }
    }

    pub(super) fn write(&self) -> Result<(), Failure> {
        let name = &self.plan.name;
        let failed = |error: &dyn std::fmt::Display| Failure::failed(path(name).join(STATE).display(), error);
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(&error))?;
        let folder = find(name)?.ok_or_else(|| failed(&io::Error::from(io::ErrorKind::NotFound)))?;
        folder.write(STATE, &text).map_err(|error| failed(&error))
    }

    /// Whether its process is running.
    pub fn is_alive(&self) -> bool {
        self.process.is_alive()
    }

    pub(super) fn process(&self) -> Process {
        self.process
    }
}

/// The files in the folder of an emulator. Only these are removed.
const STATE: &str = "state.json";
const SOCKET: &str = "control";
const LOG: &str = "log";
/// The host names for programs in the namespaces.
const HOSTS: &str = "hosts";
/// It is written first and removed last: a folder without it was not made by this program.
const MARK: &str = "made-by-anabranch-link";

/// The path of an emulator's folder.
fn path(name: &Name) -> PathBuf {
    Path::new(SYSTEM).join(FOLDERS).join(name.as_str())
}

/// The socket for queries.
pub(super) fn socket(name: &Name) -> PathBuf {
    path(name).join(SOCKET)
}

/// The file of host names.
pub(super) fn hosts(name: &Name) -> PathBuf {
    path(name).join(HOSTS)
}

/// Writes the file of host names.
pub(super) fn write_hosts(plan: &Plan) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::failed(hosts(&plan.name).display(), error);
    let folder = find(&plan.name)?.ok_or_else(|| failed(&"its folder is gone"))?;
    folder.write(HOSTS, &plan.hosts_file()).map_err(|error| failed(&error))
}

/// Creates the log of an emulator without a terminal. Returns its path, too.
pub(super) fn log(name: &Name) -> Result<(fs::File, PathBuf), Failure> {
    let path = path(name).join(LOG);
    let folder = find(name)?.ok_or_else(|| Failure::failed(path.display(), "its folder is gone"))?;
    let file = folder.create(LOG).map_err(|error| Failure::failed(path.display(), error))?;
    Ok((file, path))
}

/// The names of all emulators, sorted.
pub fn names() -> Vec<Name> {
    let names = folders().ok().flatten().and_then(|folders| folders.names().ok());
    names.unwrap_or_default().into_iter().filter_map(|name| name.parse().ok()).collect()
}

/// Claims a name. Returns false if it is taken.
pub(super) fn claim(name: &Name) -> Result<bool, Failure> {
    let failed = |error: io::Error| Failure::failed(path(name).display(), error);
    let folders = Folder::of_system(SYSTEM).and_then(|system| system.child_or_make(FOLDERS)).map_err(failed)?;
    match folders.make(name.as_str()) {
        Ok(folder) => folder.write(MARK, "").map(|()| true).map_err(failed),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

/// The folder of an emulator; `None` if the name was not claimed.
///
/// # Errors
/// If there is something else of this name.
pub(super) fn find(name: &Name) -> Result<Option<Folder>, Failure> {
    let failed = |error: io::Error| Failure::failed(path(name).display(), error);
    let find = || folders()?.map_or(Ok(None), |folders| folders.child(name.as_str()));
    let Some(folder) = find().map_err(failed)? else { return Ok(None) };
    let inside = folder.names().map_err(failed)?;
    // A crash between two steps of a claim leaves an empty folder.
    match inside.is_empty() || inside.iter().any(|name| name == MARK) {
        true => Ok(Some(folder)),
        false => Err(Failure::Failed(format!(
            "{}: `anabranch link` did not make this folder, so nothing in it is touched",
            folder.path().display()
        ))),
    }
}

fn folders() -> io::Result<Option<Folder>> {
    Folder::of_system(SYSTEM)?.child(FOLDERS)
}

/// Releases a name, with the folder that [`find`] has returned.
pub(super) fn release(name: &Name, folder: &Folder) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::failed(folder.path().display(), error);
    for file in [STATE, SOCKET, LOG, HOSTS] {
        folder.remove_file(file).map_err(failed)?;
    }
    let others: Vec<_> = folder.names().map_err(failed)?.into_iter().filter(|name| name != MARK).collect();
    if !others.is_empty() {
        return Err(Failure::Failed(format!(
            "{}: not made by `anabranch link`, so it stays: {}; remove it by hand",
            folder.path().display(),
            others.join(", ")
        )));
    }
    folder.remove_file(MARK).map_err(failed)?;
    // Another process may have released it meanwhile.
    let remove = || folders()?.map_or(Ok(false), |folders| folders.remove_empty(name.as_str()));
    remove().map(drop).map_err(failed)
}

fn others(name: &Name) -> String {
    let others = names().into_iter().filter(|other| other != name).map(String::from).collect::<Vec<_>>();
    match others.is_empty() {
        true => "; type anabranch link up FILE".to_owned(),
        false => format!("; up are: {}", others.join(", ")),
    }
}
