//! Reading inputs, and writing outputs whole or not at all.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anabranch_lab::document::Document;

use crate::args::Overrides;
use crate::failure::Failure;

/// Reads a scenario with its overrides.
pub(crate) fn read_document(file: &Path, overrides: &Overrides) -> Result<Document, Failure> {
    let mut document = read_plain(file)?;
    for argument in &overrides.set {
        document.set(argument)?;
    }
    if let Some(seed) = overrides.seed {
        document.set(&format!("seed={seed}"))?;
    }
    Ok(document)
}

/// Reads a scenario as it stands.
pub(crate) fn read_plain(file: &Path) -> Result<Document, Failure> {
    let name = file.display().to_string();
    let bytes = fs::read(file).map_err(|error| {
        Failure::usage(format!("{name}: cannot be read: {error}; name a scenario file that exists and may be read"))
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let line =
            error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|&&byte| byte == b'\n').count() + 1;
        Failure::usage(format!("{name}:{line}: not TOML: it is not UTF-8; save it as UTF-8"))
    })?;
    Ok(Document::parse(&name, &text)?)
}

/// A folder that was seen to be writable before any work is done for it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let refuse = |error: io::Error| {
            Failure::usage(format!(
                "{}: cannot write here: {error}; name a folder that you may write to",
                path.display()
            ))
        };
        fs::create_dir_all(path).map_err(refuse)?;
        let probe = path.join(format!(".anabranch-{}", std::process::id()));
        fs::write(&probe, "").and_then(|()| fs::remove_file(&probe)).map_err(refuse)?;
        Ok(Self(path.to_owned()))
    }

    /// The folder of a file, which must have one, and its name.
    pub(crate) fn of_file(path: &Path) -> Result<(Self, String), Failure> {
        let name = path.file_name().and_then(|name| name.to_str()).filter(|_| !path.is_dir());
        let Some(name) = name else {
            return Err(Failure::usage(format!("{}: cannot be written; name a file", path.display())));
        };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Self::create(parent).map(|folder| (folder, name.to_owned()))
    }

    /// Writes a file under a temporary name and renames it when it is whole.
    pub(crate) fn write(
        &self,
        name: &str,
        write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let path = self.0.join(name);
        let part = self.0.join(format!(".{name}.part"));
        let written = fs::File::create(&part).and_then(|file| {
            let mut out = io::BufWriter::new(file);
            write(&mut out)?;
            out.flush()
        });
        written.and_then(|()| fs::rename(&part, &path)).map_err(|error| {
            // What is left behind is no result; that it cannot be removed either changes nothing.
            let _ = fs::remove_file(&part);
            Failure::failed(format!("{}: cannot be written: {error}", path.display()))
        })
    }
}
