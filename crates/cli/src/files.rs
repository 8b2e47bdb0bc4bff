//! Reading inputs, and writing outputs whole or not at all.

mod unfinished;

use std::fs;
use std::io::{self, Read as _, Write as _};
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

/// A longer file is no scenario that somebody wants to run; and a device or a pipe need not have an end.
const INPUT_BYTES_MAX: u64 = 16 << 20;

/// Reads a scenario as it stands.
pub(crate) fn read_plain(file: &Path) -> Result<Document, Failure> {
    let name = file.display().to_string();
    let mut bytes = Vec::new();
    let read = fs::File::open(file).and_then(|file| file.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes));
    read.map_err(|error| {
        Failure::usage(format!("{name}: cannot be read: {error}; name a scenario file that exists and may be read"))
    })?;
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        let limit = INPUT_BYTES_MAX >> 20;
        return Err(Failure::usage(format!(
            "{name}: it has more than {limit} MiB, and no scenario has; name a scenario file, or make it smaller with `count`"
        )));
    }
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
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            // Of a device the folder need not be writable.
            return Ok((Self(parent.to_owned()), name.to_owned()));
        }
        Self::create(parent).map(|folder| (folder, name.to_owned()))
    }

    /// Writes a file under a temporary name and renames it when it is whole.
    pub(crate) fn write(
        &self,
        name: &str,
        write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let part = Part::of(self, name);
        let written = part.writer().and_then(|mut out| {
            write(&mut out)?;
            out.flush()
        });
        part.finish(written)
    }
}

/// A file that is being written, under a temporary name until it is whole. What is there and is no plain file, such as a
/// device or a pipe, is written to as it is; where a link points to one, that is the file.
pub(crate) struct Part {
    path: PathBuf,
    /// `None`: there is no temporary name.
    part: Option<PathBuf>,
}

impl Part {
    fn of(Folder(folder): &Folder, name: &str) -> Self {
        let named = folder.join(name);
        let path = fs::canonicalize(&named).unwrap_or(named);
        let is_plain = fs::metadata(&path).map_or(true, |found| found.is_file());
        // Two programs that write one file at once do not write into one another's.
        let part = format!(".{}.{}.part", path.file_name().unwrap_or_default().to_string_lossy(), std::process::id());
        let part = is_plain.then(|| path.with_file_name(part));
        Self { path, part }
    }

    /// A file in a folder that was seen to be writable.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let (folder, name) = Folder::of_file(path)?;
        Ok(Self::of(&folder, &name))
    }

    /// Where to write it.
    pub(crate) fn writer(&self) -> io::Result<Box<dyn io::Write + Send>> {
        let file = match &self.part {
            Some(part) => {
                unfinished::add(part);
                fs::File::create(part)?
            }
            None => fs::File::options().write(true).open(&self.path)?,
        };
        Ok(Box::new(io::BufWriter::new(file)))
    }

    /// Gives it its name if it was written well.
    pub(crate) fn finish<T>(self, written: io::Result<T>) -> Result<T, Failure> {
        let Self { path, part } = self;
        let name = |part: &PathBuf| fs::rename(part, &path);
        let named = written.and_then(|result| part.as_ref().map_or(Ok(()), name).map(|()| result));
        part.iter().for_each(unfinished::remove);
        named.map_err(|error| {
            let path = path.display();
            Failure::failed(format!("{path}: cannot be written: {error}; free space, or name another place"))
        })
    }
}
