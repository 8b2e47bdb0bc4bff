//! Folders by paths, for systems without descriptors of folders.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::{About, Occupied, What};
use crate::manifest::Stamp;
use crate::name::Leaf;

#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder of a path that the user names. Links in it are followed.
    pub(crate) fn of_user(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        if path.is_dir() { Ok(Self { path }) } else { Err(io::ErrorKind::NotADirectory.into()) }
    }

    /// The path of a name in this folder, which must still be a folder, and no link.
    fn at(&self, name: Leaf<'_>) -> io::Result<PathBuf> {
        let is_folder = fs::symlink_metadata(&self.path)?.is_dir();
        if is_folder { Ok(self.path.join(name.os())) } else { Err(io::ErrorKind::NotADirectory.into()) }
    }

    /// A folder in this one.
    pub(crate) fn folder(&self, name: Leaf<'_>) -> io::Result<Self> {
        let path = self.at(name)?;
        if fs::symlink_metadata(&path)?.is_dir() { Ok(Self { path }) } else { Err(io::ErrorKind::NotADirectory.into()) }
    }

    /// Makes a folder.
    pub(crate) fn make(&self, name: Leaf<'_>, _: u32) -> io::Result<()> {
        fs::create_dir(self.at(name)?)
    }

    /// What has this name; `None` if nothing has.
    pub(crate) fn about(&self, name: Leaf<'_>) -> io::Result<Option<About>> {
        let there = match fs::symlink_metadata(self.at(name)?) {
            Ok(there) => there,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let what = match there.file_type() {
            kind if kind.is_symlink() => What::Link,
            kind if kind.is_dir() => What::Folder,
            kind if kind.is_file() => What::File,
            _ => What::Other,
        };
        let modified = there.modified().map(Stamp::of).unwrap_or_default();
        Ok(Some(About { what, size: there.len(), modified, links: 1, id: (0, 0) }))
    }

    /// Creates a file, for reading and writing.
    pub(crate) fn create(&self, name: Leaf<'_>) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).open(self.at(name)?)
    }

    /// Opens a plain file for reading and writing.
    pub(crate) fn open(&self, name: Leaf<'_>) -> io::Result<File> {
        self.plain(name, OpenOptions::new().read(true).write(true))
    }

    /// Opens a plain file for reading.
    pub(crate) fn read(&self, name: Leaf<'_>) -> io::Result<File> {
        self.plain(name, OpenOptions::new().read(true))
    }

    fn plain(&self, name: Leaf<'_>, options: &OpenOptions) -> io::Result<File> {
        let path = self.at(name)?;
        let is_file = fs::symlink_metadata(&path)?.is_file();
        if is_file { options.open(path) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// Gives a file of this folder a name in another one.
    pub(crate) fn rename(&self, name: Leaf<'_>, to: &Self, new: Leaf<'_>, occupied: Occupied) -> io::Result<()> {
        if occupied == Occupied::Keep && to.about(new)?.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        fs::rename(self.at(name)?, to.at(new)?)
    }

    pub(crate) fn remove(&self, name: Leaf<'_>) -> io::Result<()> {
        fs::remove_file(self.at(name)?)
    }

    /// Removes an empty folder.
    pub(crate) fn remove_folder(&self, name: Leaf<'_>) -> io::Result<()> {
        fs::remove_dir(self.at(name)?)
    }

    /// Symbolic links are not made: here a link to a folder differs from one to a file, and needs a privilege.
    pub(crate) fn link(&self, _: Leaf<'_>, _: &[u8]) -> io::Result<()> {
        Err(io::Error::other("symbolic links are not made on this system"))
    }

    /// Gives a file of this folder another name in another one.
    pub(crate) fn name(&self, name: Leaf<'_>, to: &Self, new: Leaf<'_>) -> io::Result<()> {
        fs::hard_link(self.at(name)?, to.at(new)?)
    }

    /// The target of a symbolic link.
    pub(crate) fn target(&self, name: Leaf<'_>) -> io::Result<Vec<u8>> {
        Ok(fs::read_link(self.at(name)?)?.into_os_string().into_encoded_bytes())
    }

    /// Numbers of the names in this folder ([`Leaf::number`]), sorted.
    pub(crate) fn listing(&self) -> io::Result<Vec<u64>> {
        let number = |entry: fs::DirEntry| Leaf::of(&entry.file_name()).map(Leaf::number).ok();
        let numbers = fs::read_dir(&self.path)?.filter_map(|entry| entry.map(number).transpose());
        let mut numbers: Vec<u64> = numbers.collect::<Result<_, _>>()?;
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The folder as a file: there is none on this system.
    pub(crate) fn file(&self) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The system does not make folders durable on demand.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// Whether [`Self::sync_all`] makes everything on the file system durable.
    pub(crate) fn syncs_all(&self) -> bool {
        false
    }

    pub(crate) fn sync_all(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// A number of the mount that it is on: paths do not tell.
    pub(crate) fn mount(&self) -> io::Result<u64> {
        Ok(0)
    }
}
