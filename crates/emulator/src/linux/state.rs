//! The stored state of an emulator. With it, other processes query and remove the emulator, even after a crash.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Failure;
use crate::plan::Plan;

/// The folder with one folder per emulator. Like the namespaces, it is gone after a reboot.
const FOLDERS: &str = "/run/anabranch";

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
    pub fn read(name: &str) -> Result<Self, Failure> {
        let path = folder(name).join(STATE);
        let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Failure::Usage(format!("no links are up as `{name}`{}", others(name))),
            _ => Failure::failed(path.display(), error),
        })?;
        serde_json::from_str(&text).map_err(|error| Failure::failed(path.display(), error))
    }

    pub(super) fn write(&self) -> Result<(), Failure> {
        let path = folder(&self.plan.name).join(STATE);
        let text = serde_json::to_string_pretty(self).map_err(|error| Failure::failed(path.display(), error))?;
        fs::write(&path, text).map_err(|error| Failure::failed(path.display(), error))
    }

    /// Whether its process is running.
    pub fn is_alive(&self) -> bool {
        self.process.is_alive()
    }

    pub(super) fn process(&self) -> Process {
        self.process
    }
}

const STATE: &str = "state.json";

/// The folder of an emulator.
pub(super) fn folder(name: &str) -> PathBuf {
    Path::new(FOLDERS).join(name)
}

/// The socket for queries.
pub(super) fn socket(name: &str) -> PathBuf {
    folder(name).join("control")
}

/// The log of an emulator without a terminal.
pub(super) fn log(name: &str) -> PathBuf {
    folder(name).join("log")
}

/// The names of all emulators, sorted.
pub fn names() -> Vec<String> {
    let entries = fs::read_dir(FOLDERS).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Claims a name. Returns false if it is taken.
pub(super) fn claim(name: &str) -> Result<bool, Failure> {
    let failed = |error: io::Error| Failure::failed(folder(name).display(), error);
    fs::create_dir_all(FOLDERS).map_err(failed)?;
    match fs::create_dir(folder(name)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

/// Releases a name. Returns false if it was not claimed.
pub(super) fn release(name: &str) -> Result<bool, Failure> {
    match fs::remove_dir_all(folder(name)) {
        Ok(()) => {
            // The folder was created with the first emulator; it is removed if it is empty.
            _ = fs::remove_dir(FOLDERS);
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Failure::failed(folder(name).display(), error)),
    }
}

fn others(name: &str) -> String {
    let others = names().into_iter().filter(|other| other != name).collect::<Vec<_>>();
    match others.is_empty() {
        true => "; type anabranch link up FILE".to_owned(),
        false => format!("; up are: {}", others.join(", ")),
    }
}
