//! Folders by file descriptors.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{self, AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{About, Occupied, What};
use crate::manifest::Stamp;
use crate::name::Leaf;

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    fd: OwnedFd,
}

impl Folder {
    /// The folder of a path that the user names. Links in it are followed.
    pub(crate) fn of_user(path: &Path) -> io::Result<Self> {
        Ok(Self { fd: fs::openat(CWD, path, FOLDER, Mode::empty())? })
    }

    /// A folder in this one.
    pub(crate) fn folder(&self, name: Leaf<'_>) -> io::Result<Self> {
        Ok(Self { fd: fs::openat(&self.fd, name.os(), FOLDER | OFlags::NOFOLLOW, Mode::empty())? })
    }

    /// Makes a folder, whose mode the system masks.
    pub(crate) fn make(&self, name: Leaf<'_>, mode: u32) -> io::Result<()> {
        Ok(fs::mkdirat(&self.fd, name.os(), bits(mode))?)
    }

    /// What has this name; `None` if nothing has.
    pub(crate) fn about(&self, name: Leaf<'_>) -> io::Result<Option<About>> {
        let stat = match fs::statat(&self.fd, name.os(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let what = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => What::File,
            FileType::Directory => What::Folder,
            FileType::Symlink => What::Link,
            _ => What::Other,
        };
        Ok(Some(About {
            what,
            size: number(stat.st_size),
            modified: Stamp { seconds: number(stat.st_mtime), nanoseconds: number(stat.st_mtime_nsec) },
            links: number(stat.st_nlink),
            id: (number(stat.st_dev), number(stat.st_ino)),
        }))
    }

    /// Creates a file that only this user may read, for reading and writing.
    pub(crate) fn create(&self, name: Leaf<'_>) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(fs::openat(&self.fd, name.os(), flags, bits(0o600))?.into())
    }

    /// Opens a plain file for reading and writing.
    pub(crate) fn open(&self, name: Leaf<'_>) -> io::Result<File> {
        self.plain(name, OFlags::RDWR)
    }

    /// Opens a plain file for reading.
    pub(crate) fn read(&self, name: Leaf<'_>) -> io::Result<File> {
        self.plain(name, OFlags::RDONLY)
    }

    fn plain(&self, name: Leaf<'_>, access: OFlags) -> io::Result<File> {
        // A pipe must not make this wait.
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(fs::openat(&self.fd, name.os(), flags, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// Gives a file of this folder a name in another one.
    pub(crate) fn rename(&self, name: Leaf<'_>, to: &Self, new: Leaf<'_>, occupied: Occupied) -> io::Result<()> {
        match occupied {
            Occupied::Replace => Ok(fs::renameat(&self.fd, name.os(), &to.fd, new.os())?),
            Occupied::Keep => self.rename_new(name, to, new),
        }
    }

    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    fn rename_new(&self, name: Leaf<'_>, to: &Self, new: Leaf<'_>) -> io::Result<()> {
        use rustix::fs::RenameFlags;
        match fs::renameat_with(&self.fd, name.os(), &to.fd, new.os(), RenameFlags::NOREPLACE) {
            // Some file systems cannot do it in one step.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => self.rename_checked(name, to, new),
            renamed => Ok(renamed?),
        }
    }

    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    fn rename_new(&self, name: Leaf<'_>, to: &Self, new: Leaf<'_>) -> io::Result<()> {
        self.rename_checked(name, to, new)
    }

    fn rename_checked(&self, name: Leaf<'_>, to: &Self, new: Leaf<'_>) -> io::Result<()> {
        match to.about(new)? {
            Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
            None => Ok(fs::renameat(&self.fd, name.os(), &to.fd, new.os())?),
        }
    }

    pub(crate) fn remove(&self, name: Leaf<'_>) -> io::Result<()> {
        Ok(fs::unlinkat(&self.fd, name.os(), AtFlags::empty())?)
    }

    /// Removes an empty folder.
    pub(crate) fn remove_folder(&self, name: Leaf<'_>) -> io::Result<()> {
        Ok(fs::unlinkat(&self.fd, name.os(), AtFlags::REMOVEDIR)?)
    }

    /// Makes a symbolic link.
    pub(crate) fn link(&self, name: Leaf<'_>, target: &[u8]) -> io::Result<()> {
        Ok(fs::symlinkat(OsStr::from_bytes(target), &self.fd, name.os())?)
    }

    /// Gives a file of this folder another name in another one. A symbolic link is not followed.
    pub(crate) fn name(&self, name: Leaf<'_>, to: &Self, new: Leaf<'_>) -> io::Result<()> {
        Ok(fs::linkat(&self.fd, name.os(), &to.fd, new.os(), AtFlags::empty())?)
    }

    /// The target of a symbolic link.
    pub(crate) fn target(&self, name: Leaf<'_>) -> io::Result<Vec<u8>> {
        Ok(fs::readlinkat(&self.fd, name.os(), vec![])?.into_bytes())
    }

    /// Numbers of the names in this folder ([`Leaf::number`]), sorted.
    pub(crate) fn listing(&self) -> io::Result<Vec<u64>> {
        let names = Dir::read_from(&self.fd)?;
        let number = |name: &[u8]| Leaf::new(name).map(Leaf::number).ok();
        let numbers = names.filter_map(|entry| entry.map(|entry| number(entry.file_name().to_bytes())).transpose());
        let mut numbers: Vec<u64> = numbers.collect::<Result<_, _>>()?;
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The folder as a file, for its time and mode.
    pub(crate) fn file(&self) -> io::Result<File> {
        Ok(self.fd.try_clone()?.into())
    }

    /// Makes the names in this folder durable. Some file systems cannot, and have no error then but this.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match fs::fsync(&self.fd) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::BADF) => Ok(()),
            synced => Ok(synced?),
        }
    }

    /// Whether [`Self::sync_all`] makes everything on the file system durable. Others, such as those in user space, may pass the
    /// data on, but not the wish.
    #[cfg(target_os = "linux")]
    pub(crate) fn syncs_all(&self) -> bool {
        fs::fstatfs(&self.fd).is_ok_and(|about| SYNCING.contains(&number(about.f_type)))
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn syncs_all(&self) -> bool {
        false
    }

    /// Makes the whole file system durable.
    #[cfg(target_os = "linux")]
    pub(crate) fn sync_all(&self) -> io::Result<()> {
        Ok(fs::syncfs(&self.fd)?)
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn sync_all(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// A number of the mount that it is on. Files cannot be renamed from one to another.
    pub(crate) fn mount(&self) -> io::Result<u64> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::StatxFlags;
            let about = fs::statx(&self.fd, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID);
            if let Some(about) = about.ok().filter(|about| about.stx_mask & StatxFlags::MNT_ID.bits() != 0) {
                return Ok(about.stx_mnt_id);
            }
        }
        Ok(number(fs::fstat(&self.fd)?.st_dev))
    }
}

/// The permissions that new files of this process may have.
pub(crate) fn mode_allowed() -> u32 {
    static ALLOWED: OnceLock<u32> = OnceLock::new();
    // The mask can only be read by setting it. Files made meanwhile by other threads are private to the user.
    *ALLOWED.get_or_init(|| {
        let mask = rustix::process::umask(Mode::from_bits_truncate(0o077));
        rustix::process::umask(mask);
        0o777 & !number::<_, u32>(mask.bits())
    })
}

/// A number of `stat`, whose type differs between systems.
fn number<T, N: TryFrom<T> + Default>(value: T) -> N {
    N::try_from(value).unwrap_or_default()
}

fn bits(mode: u32) -> Mode {
    Mode::from_bits_truncate(number(mode))
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// File systems of the kernel's that write everything to the disk on `syncfs`: ext4, XFS, Btrfs, F2FS, bcachefs, ZFS, tmpfs, overlayfs.
#[cfg(target_os = "linux")]
const SYNCING: [u64; 8] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0xca45_1a4e, 0x2fc1_2fc1, 0x0102_1994, 0x794c_7630];
