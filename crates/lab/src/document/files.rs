//! Documents from files on a disk.

use std::io::Read as _;
use std::path::Path;

use super::plugins::Files;
use super::{Document, Lines};
use crate::diagnostic::{Diagnostic, Fault, Place};
use crate::files;
use crate::own::Given;

/// Receives the path of each file before it is read; an error is the reason why it must not be read.
pub type Notice<'a> = dyn FnMut(&Path) -> Result<(), String> + 'a;

impl Document {
    /// Reads and parses a file, with its bases and traces.
    ///
    /// # Errors
    /// If one of the files cannot be read, is longer than 16 MiB, or is not TOML.
    pub fn read(path: &Path) -> Result<Self, Diagnostic> {
        Self::read_noting(path, &mut |_| Ok(()))
    }

    /// Reads and parses a file, as [`Self::read`] does, and tells `notice` of each file.
    ///
    /// # Errors
    /// If [`Self::read`] fails, or `notice` refuses a file.
    pub fn read_noting(path: &Path, notice: &mut Notice<'_>) -> Result<Self, Diagnostic> {
        let name = path.display().to_string();
        let refused = |reason: String| Fault::new(reason).remedy("name another file");
        let read = notice(path).map_err(refused).and_then(|()| text(path));
        let text_of_file = read.map_err(|fault| fault.about(&name))?;
        Self::parse_from(&name, &text_of_file, &mut |base| base_text(base, notice), Files::Disk, &Given::new())
    }

    /// Parses a text as if it were the content of `file`: its bases are read relative to `file`, which need not exist. It may name the laws in
    /// `given`.
    ///
    /// # Errors
    /// As [`Document::read`].
    pub fn parse_beside(file: &str, text: &str, given: &Given) -> Result<Self, Diagnostic> {
        Self::parse_from(file, text, &mut |base| base_text(base, &mut |_| Ok(())), Files::Disk, given)
    }
}

/// The text of a file that another one names.
fn base_text(name: &str, notice: &mut Notice<'_>) -> Result<String, String> {
    let file = Path::new(name);
    // A missing file is named once, by the caller.
    files::open(file).map_err(|error| error.to_string())?;
    notice(file)?;
    text(file).map_err(|fault| fault.message)
}

fn text(path: &Path) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    let read = files::open(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes));
    read.map_err(|error| {
        Fault::new(format!("cannot be read: {error}")).remedy("name a scenario file that exists and may be read")
    })?;
    if bytes.len() as u64 > BYTES_MAX {
        let fault = Fault::new(format!("it has more than {} MiB, and no scenario has", BYTES_MAX >> 20));
        return Err(fault.remedy("name a scenario file, or make it smaller with `count`").at(&Place::File));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]).into_owned();
        let fault = Fault::new("not TOML: it is not UTF-8").remedy("save it as UTF-8");
        fault.at(&Lines::new(&before).place(before.len()))
    })
}

/// The limit of a file: no scenario is longer, and a device or a pipe may have no end.
const BYTES_MAX: u64 = 16 << 20;
