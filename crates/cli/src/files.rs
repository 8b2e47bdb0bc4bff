//! Reads inputs, and writes outputs completely or not at all.

mod unfinished;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anabranch_lab::document::Document;
use anabranch_lab::files;

use crate::args::Overrides;
use crate::failure::Failure;
use crate::terminal::named;

/// Reads files and remembers them, so that no output overwrites an input.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inputs(Vec<(Identity, PathBuf)>);

impl Inputs {
    /// Reads a scenario with its overrides.
    pub(crate) fn read_document(&mut self, file: &Path, overrides: &Overrides) -> Result<Document, Failure> {
        let mut document = self.read_plain(file)?;
        for argument in &overrides.set {
            document.set(argument)?;
        }
        if let Some(seed) = overrides.seed {
            document.set(&format!("seed={seed}"))?;
        }
        for file in document.own_laws().keys() {
            self.note(Path::new(file))
                .map_err(|reason| Failure::usage(format!("{file}: {reason}; name another file")))?;
        }
        Ok(document)
    }

    /// Reads a scenario without overrides, and what it extends.
    pub(crate) fn read_plain(&mut self, file: &Path) -> Result<Document, Failure> {
        Ok(Document::read_noting(file, &mut |file| self.note(file))?)
    }

    /// Reads a file of text.
    pub(crate) fn read_text(&mut self, file: &Path) -> Result<String, Failure> {
        let refuse = |error: String| Failure::usage(format!("{}: cannot be read: {error}", named(file)));
        self.note(file).map_err(refuse)?;
        files::read_to_string(file).map_err(|error| refuse(error.to_string()))
    }

    /// Remembers a file that is about to be read.
    fn note(&mut self, file: &Path) -> Result<(), String> {
        if let Some(identity) = Identity::of(file) {
            if Identity::of_stdout() == Some(identity.clone()) {
                return Err("standard output would be written over it".to_owned());
            }
            self.0.push((identity, file.to_owned()));
        }
        Ok(())
    }

    /// Refuses an output that would overwrite an input.
    fn spare(&self, output: &Path) -> Result<(), Failure> {
        let identity = Identity::of(output);
        match self.0.iter().find(|(input, _)| identity.as_ref() == Some(input)) {
            None => Ok(()),
            Some((_, input)) => {
                let (output, input) = (named(output), named(input));
                Err(Failure::usage(format!(
                    "{output}: would be written over {input}, which is read; name another place"
                )))
            }
        }
    }
}

/// The identity of a plain file, equal for all its names and links.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity(
    /// Device and inode: hard links have no canonical name.
    #[cfg(unix)]
    (u64, u64),
    #[cfg(not(unix))] PathBuf,
);

impl Identity {
    /// The identity of an existing plain file.
    #[cfg(unix)]
    fn of(path: &Path) -> Option<Self> {
        Self::of_metadata(&fs::metadata(path).ok()?)
    }

    #[cfg(unix)]
    fn of_metadata(metadata: &fs::Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        metadata.is_file().then(|| Self((metadata.dev(), metadata.ino())))
    }

    #[cfg(unix)]
    fn of_stdout() -> Option<Self> {
        use std::os::fd::AsFd as _;
        let stdout = io::stdout().as_fd().try_clone_to_owned().ok()?;
        Self::of_metadata(&fs::File::from(stdout).metadata().ok()?)
    }

    #[cfg(not(unix))]
    fn of(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        fs::canonicalize(path).ok().map(Self)
    }

    #[cfg(not(unix))]
    fn of_stdout() -> Option<Self> {
        None
    }
}

/// An output folder that was tested to be writable before any work.
pub(crate) struct Folder {
    path: PathBuf,
    /// Inputs that must not be overwritten.
    inputs: Inputs,
}

impl Folder {
    /// The folder for files of these names, none of which is an input.
    pub(crate) fn create<'a>(
        path: &Path,
        names: impl IntoIterator<Item = &'a str>,
        inputs: &Inputs,
    ) -> Result<Self, Failure> {
        names.into_iter().try_for_each(|name| inputs.spare(&path.join(name)))?;
        let refuse = |error: io::Error| {
            Failure::usage(format!("{}: cannot write here: {error}; name a folder that you may write to", named(path)))
        };
        fs::create_dir_all(path).map_err(refuse)?;
        let probe = files::create_part(&path.join("anabranch"));
        probe.and_then(|(_, probe)| fs::remove_file(probe)).map_err(refuse)?;
        Ok(Self { path: path.to_owned(), inputs: inputs.clone() })
    }

    /// The folder and the name of an output file.
    pub(crate) fn of_file(path: &Path, inputs: &Inputs) -> Result<(Self, String), Failure> {
        let name = path.file_name().and_then(|name| name.to_str()).filter(|_| !path.is_dir());
        let Some(name) = name else {
            return Err(Failure::usage(format!("{}: cannot be written; name a file", named(path))));
        };
        inputs.spare(path)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            // The folder of a device need not be writable.
            return Ok((Self { path: parent.to_owned(), inputs: inputs.clone() }, name.to_owned()));
        }
        Self::create(parent, [], inputs).map(|folder| (folder, name.to_owned()))
    }

    /// The target of this name: if it is a link, where the link leads.
    fn place(&self, name: &str) -> PathBuf {
        let named = self.path.join(name);
        let folder = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        fs::canonicalize(named).unwrap_or_else(|_| folder.join(name))
    }

    /// Writes a file under a temporary name and renames it when it is complete.
    pub(crate) fn write(
        &self,
        name: &str,
        write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let mut part = self.part(name)?;
        let written = part.writer().and_then(|mut out| {
            write(&mut out)?;
            out.flush()
        });
        part.finish(written)
    }
}

impl Folder {
    /// A file in this folder that is written bit by bit.
    pub(crate) fn part(&self, name: &str) -> Result<Part, Failure> {
        // The folder may have changed since it was tested.
        self.inputs.spare(&self.path.join(name))?;
        Ok(Part::of(self, name))
    }
}

/// An output file under a temporary name until it is complete. An existing device or pipe is written directly; a link is followed.
pub(crate) struct Part {
    path: PathBuf,
    /// The file under a temporary name, while it exists.
    part: Option<PathBuf>,
}

impl Part {
    fn of(folder: &Folder, name: &str) -> Self {
        Self { path: folder.place(name), part: None }
    }

    /// An output file in a folder that was tested to be writable.
    pub(crate) fn create(path: &Path, inputs: &Inputs) -> Result<Self, Failure> {
        let (folder, name) = Folder::of_file(path, inputs)?;
        Ok(Self::of(&folder, &name))
    }

    /// Whether it is the folder's file of this name.
    pub(crate) fn is_in(&self, folder: &Folder, name: &str) -> bool {
        self.path == folder.place(name)
    }

    /// The writer of its content.
    pub(crate) fn writer(&mut self) -> io::Result<Box<dyn io::Write + Send>> {
        let is_plain = fs::metadata(&self.path).map_or(true, |found| found.is_file());
        let file = if is_plain {
            let (file, part) = unfinished::create(&self.path)?;
            self.part = Some(part);
            file
        } else {
            fs::File::options().write(true).open(&self.path)?
        };
        Ok(Box::new(io::BufWriter::new(file)))
    }

    /// The writer of its content, if many files are written at the same time: it opens the file for each piece, as a process may have only
    /// so many open ones. `files` is their number.
    pub(crate) fn appender(&mut self, files: usize) -> io::Result<Box<dyn io::Write + Send>> {
        let mut first = self.writer()?;
        first.flush()?;
        let path = self.part.as_ref().unwrap_or(&self.path).clone();
        let room = (PIECES_BYTES_MAX / files.max(1)).clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX);
        Ok(Box::new(io::BufWriter::with_capacity(room, Appender { path, name: self.path.clone() })))
    }

    /// Renames the file if it was written completely.
    pub(crate) fn finish<T>(mut self, written: io::Result<T>) -> Result<T, Failure> {
        let name = |part: &PathBuf| fs::rename(part, &self.path);
        let renamed = written.and_then(|result| self.part.as_ref().map_or(Ok(()), name).map(|()| result));
        if renamed.is_ok() {
            self.part.iter().for_each(|part| unfinished::forget(part));
            self.part = None;
        }
        renamed.map_err(|error| {
            let path = named(&self.path);
            Failure::failed(format!("{path}: cannot be written: {error}; free space, or name another place"))
        })
    }
}

/// A file that was not finished is removed.
impl Drop for Part {
    fn drop(&mut self) {
        self.part.iter().for_each(|part| unfinished::remove(part));
    }
}

/// Appends to a file, which is open only meanwhile.
struct Appender {
    path: PathBuf,
    /// The name that it will have, for messages.
    name: PathBuf,
}

impl io::Write for Appender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let file = fs::File::options().append(true).open(&self.path);
        let appended = file.and_then(|mut file| file.write_all(bytes));
        let about = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", named(&self.name)));
        appended.map(|()| bytes.len()).map_err(about)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The memory of all pieces that wait to be appended, and the limits of one. A smaller one would open files too often; a larger one gains
/// nothing.
const PIECES_BYTES_MAX: usize = 32 << 20;
const PIECE_BYTES_MIN: usize = 4 << 10;
const PIECE_BYTES_MAX: usize = 256 << 10;
