//! The receiver's folder during a transfer.
//!
//! Incomplete files are in a folder `.anabranch` of the receiver's folder, named by the hash of their path. When complete they are
//! renamed. A folder below that is a mount of its own has a folder `.anabranch` of its own, as files cannot be renamed from one
//! mount to another.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::folder::{self, Folder, Occupied};
use crate::manifest::{Entry, Kind, Manifest, Stamp};
use crate::name::{Leaf, WORKSHOP};

/// What happens to existing files that differ from the sender's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Existing files stay, and the sender's files are refused.
    #[default]
    Keep,
    /// The sender's files replace existing ones.
    Overwrite,
}

/// The reason for which a file that was verified counts as not arrived.
pub(crate) const DIFFERS: &str = "its content differs there";

/// The reason for which a file that is there stays.
pub(crate) const ANOTHER: &str = "another file has this name; receive with --overwrite, or elsewhere";

/// The folder of a receiver while a transfer works in it.
#[derive(Debug)]
pub(crate) struct Site {
    path: PathBuf,
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) existing: Existing,
    root: Arc<Spot>,
    /// Whether the root was made for this transfer.
    is_new: bool,
    /// Open folders, by their entry.
    open: Mutex<BTreeMap<u32, Arc<Spot>>>,
    shops: Mutex<Vec<Arc<Shop>>>,
    /// Folders that this transfer has made: only these get attributes.
    made: Mutex<BTreeSet<u32>>,
    /// Folders that are not made: nothing is written below them.
    refused: Mutex<BTreeSet<u32>>,
    remarks: Mutex<BTreeSet<String>>,
    /// Held while the transfer works in the folder.
    holder: Arc<watch::Sender<()>>,
}

/// An open folder.
#[derive(Debug)]
pub(crate) struct Spot {
    pub(crate) folder: Arc<Folder>,
    mount: u64,
    /// Where incomplete files of this folder are; `None` if nothing is written.
    shop: Option<Arc<Shop>>,
    /// Whether that is in this folder.
    pub(crate) has_shop: bool,
}

/// A folder for incomplete files.
#[derive(Debug)]
pub(crate) struct Shop {
    above: Arc<Folder>,
    pub(crate) folder: Folder,
    mount: u64,
    /// Whether one call makes everything here durable.
    pub(crate) syncs_all: bool,
    /// Whether that call is due, because folders were made.
    is_due: AtomicBool,
}

/// Why something is not written.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// Only this entry fails, for this reason.
    Entry(String),
    /// Nothing more can be written.
    Disk(PathBuf, io::Error),
}

impl Site {
    /// Opens the folder, which is created if necessary. Where the sender asks only to verify, nothing is made.
    pub(crate) fn prepare(
        path: &Path,
        existing: Existing,
        manifest: Arc<Manifest>,
        holder: Arc<watch::Sender<()>>,
    ) -> Result<Self, Trouble> {
        let open = || {
            let is_new = !manifest.asks.verifies && !path.exists();
            if is_new {
                fs::create_dir_all(path)?;
            }
            let folder = Arc::new(Folder::of_user(path)?);
            let mount = folder.mount()?;
            let mut shop = None;
            if !manifest.asks.verifies {
                let opened = Shop::open(&folder, mount)?;
                opened.is_due.store(is_new, Ordering::Relaxed);
                shop = Some(Arc::new(opened));
            }
            let has_shop = shop.is_some();
            Ok((is_new, Arc::new(Spot { folder, mount, shop, has_shop })))
        };
        let (is_new, root) = open().map_err(|error| Trouble::Disk(path.to_owned(), error))?;
        Ok(Self {
            path: path.to_owned(),
            manifest,
            existing,
            is_new,
            open: Mutex::default(),
            shops: Mutex::new(root.shop.iter().cloned().collect()),
            root,
            made: Mutex::default(),
            refused: Mutex::default(),
            remarks: Mutex::default(),
            holder,
        })
    }

    /// The folder of this entry, or the root.
    pub(crate) fn spot(&self, index: Option<u32>) -> Result<Arc<Spot>, Trouble> {
        let mut missing = vec![];
        let mut next = index;
        let mut spot = loop {
            let Some(index) = next else { break Arc::clone(&self.root) };
            if locked(&self.refused).contains(&index) {
                return Err(Trouble::Entry(format!("its folder {} is refused", self.manifest.path(index))));
            }
            if let Some(open) = locked(&self.open).get(&index) {
                break Arc::clone(open);
            }
            missing.push(index);
            next = self.manifest.place(index).0;
        };
        for index in missing.into_iter().rev() {
            let (_, name) = self.manifest.place(index);
            let opened = spot.folder.folder(name).and_then(|folder| self.below(&spot, folder));
            spot = opened
                .map_err(|error| self.trouble(format_args!("its folder {}", self.manifest.path(index)), error))?;
            let mut open = locked(&self.open);
            if open.len() >= FOLDERS_OPEN {
                open.clear();
            }
            open.insert(index, Arc::clone(&spot));
        }
        Ok(spot)
    }

    /// A folder in another one, with its folder for incomplete files.
    fn below(&self, spot: &Spot, folder: Folder) -> io::Result<Arc<Spot>> {
        let folder = Arc::new(folder);
        let mount = folder.mount()?;
        if mount == spot.mount || spot.shop.is_none() {
            return Ok(Arc::new(Spot { folder, mount, shop: spot.shop.clone(), has_shop: false }));
        }
        let mut shops = locked(&self.shops);
        let known = shops.iter().find(|shop| shop.mount == mount).map(Arc::clone);
        let shop = match known {
            Some(shop) => shop,
            None => {
                let shop = Arc::new(Shop::open(&folder, mount)?);
                shops.push(Arc::clone(&shop));
                shop
            }
        };
        Ok(Arc::new(Spot { folder, mount, shop: Some(shop), has_shop: true }))
    }

    /// What the next transfer into the folder waits for, until it is dropped.
    pub(crate) fn holder(&self) -> Arc<watch::Sender<()>> {
        Arc::clone(&self.holder)
    }

    /// Refuses everything below a folder.
    pub(crate) fn refuse_folder(&self, index: u32) {
        locked(&self.refused).insert(index);
    }

    /// What an I/O error means for the transfer. Only a full disk ends it.
    pub(crate) fn trouble(&self, what: impl fmt::Display, error: io::Error) -> Trouble {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Trouble::Disk(self.path.clone(), error),
            _ => Trouble::Entry(format!("{what}: {error}")),
        }
    }

    /// Says once that the file system cannot do something.
    pub(crate) fn remark(&self, what: &str, error: &io::Error) {
        let mut remarks = locked(&self.remarks);
        if remarks.len() < REMARKS_MAX {
            remarks.insert(format!("the file system does not keep {what}: {error}"));
        }
    }

    pub(crate) fn remarks(&self) -> Vec<String> {
        locked(&self.remarks).iter().cloned().collect()
    }

    /// Makes a folder, private to the user until [`Self::close`].
    pub(crate) fn make_folder(&self, index: u32, spot: &Spot) -> Result<(), Trouble> {
        let entry = self.manifest.entry(index);
        spot.shop()?.is_due.store(true, Ordering::Relaxed);
        let made = spot.folder.make(entry.name, entry.mode & folder::mode_allowed() | 0o700);
        made.map_err(|error| self.trouble("it cannot be created", error))?;
        if !entry.attributes.encoded().is_empty() {
            locked(&self.made).insert(index);
        }
        Ok(())
    }

    /// Sets the attributes, the time and the mode of a file that was received.
    pub(crate) fn dress(&self, file: &File, entry: &Entry<'_>) {
        if let Err(error) = entry.attributes.set(file) {
            self.remark("extended attributes", &error);
        }
        if let Err(error) = folder::set_time(file, entry.modified) {
            self.remark("times as they are", &error);
        }
        if let Err(error) = folder::set_mode(file, entry.mode & folder::mode_allowed()) {
            self.remark("modes", &error);
        }
    }

    /// Makes the names of all folders durable. Where one call makes everything durable, the sync for the first files does it.
    pub(crate) fn sync_folders(&self) -> Result<(), Trouble> {
        if self.manifest.asks.verifies {
            return Ok(());
        }
        if self.root.shop.as_ref().is_none_or(|shop| !shop.syncs_all) {
            self.root.folder.sync().map_err(|error| Trouble::Disk(self.path.clone(), error))?;
            if let Some(parent) = self.path.parent().filter(|parent| self.is_new && *parent != Path::new("")) {
                // The parent is the user's, and may not be readable.
                _ = Folder::of_user(parent).and_then(|parent| parent.sync());
            }
        }
        for (index, _) in self.manifest.entries().filter(|(_, entry)| entry.kind == Kind::Folder) {
            // A folder that cannot be opened was refused.
            if let Ok(spot) = self.spot(Some(index))
                && spot.shop.as_ref().is_none_or(|shop| !shop.syncs_all)
                && let Err(error) = spot.folder.sync()
            {
                self.remark("folders at once", &error);
            }
        }
        Ok(())
    }

    pub(crate) fn shops(&self) -> Vec<Arc<Shop>> {
        locked(&self.shops).clone()
    }

    /// Makes a symbolic link, which never is followed here.
    pub(crate) fn make_link(&self, index: u32, occupied: Occupied) -> Result<(), Trouble> {
        let entry = self.manifest.entry(index);
        let Kind::Link(target) = entry.kind else { return Ok(()) };
        let spot = self.spot(entry.parent)?;
        let shop = spot.shop()?;
        let link = || match occupied {
            Occupied::Keep => spot.folder.link(entry.name, target),
            Occupied::Replace => {
                let part = PartName::of(&self.manifest, index);
                _ = shop.folder.remove(part.leaf());
                shop.folder.link(part.leaf(), target)?;
                shop.folder.rename(part.leaf(), &spot.folder, entry.name, occupied)
            }
        };
        link().map_err(|error| self.trouble("the link cannot be made", error))
    }

    /// Gives a file of this transfer another name. Where the file system has no such names, the file is copied.
    pub(crate) fn make_name(&self, index: u32, original: u32, occupied: Occupied) -> Result<(), Trouble> {
        let (entry, first) = (self.manifest.entry(index), self.manifest.entry(original));
        let (spot, from) = (self.spot(entry.parent)?, self.spot(first.parent)?);
        let shop = spot.shop()?;
        let part = PartName::of(&self.manifest, index);
        let copy = || {
            let file = shop.create(&part)?;
            copy_sparsely(&from.folder.read(first.name)?, &file)?;
            self.dress(&file, &first);
            file.sync_all()
        };
        let make = || {
            // Renaming one name of a file to another name of it would do nothing.
            let (there, wanted) = (spot.folder.about(entry.name)?, from.folder.about(first.name)?);
            if there.zip(wanted).is_some_and(|(there, wanted)| there.id == wanted.id && there.id != (0, 0)) {
                return Ok(());
            }
            _ = shop.folder.remove(part.leaf());
            match from.folder.name(first.name, &shop.folder, part.leaf()) {
                Ok(()) => {}
                // Another mount, or a file system without such names.
                Err(error) if NO_NAMES.contains(&error.kind()) => {
                    self.remark("further names of a file, which are copies now", &error);
                    copy()?;
                }
                Err(error) => return Err(error),
            }
            shop.folder.rename(part.leaf(), &spot.folder, entry.name, occupied)
        };
        make().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Trouble::Entry(ANOTHER.into()),
            _ => self.trouble("this further name of a file cannot be made", error),
        })
    }

    /// Sets times and modes of folders after everything is written, removes the folders for incomplete files, and makes all durable.
    /// If all files and folders are durable already, only those times and modes may be lost, and another transfer sets them again.
    pub(crate) fn close(&self, is_durable: bool) -> Result<(), Trouble> {
        if self.manifest.asks.verifies {
            return Ok(());
        }
        for shop in self.shops() {
            // The removal fails while the folder contains anything.
            _ = shop.above.remove_folder(WORKSHOP);
        }
        for (index, entry) in self.manifest.entries().rev().filter(|(_, entry)| entry.kind == Kind::Folder) {
            let Ok(spot) = self.spot(Some(index)) else { continue };
            // A system without folders as files keeps no times of them.
            let Ok(file) = spot.folder.file() else { continue };
            if locked(&self.made).contains(&index)
                && let Err(error) = entry.attributes.set(&file)
            {
                self.remark("extended attributes", &error);
            }
            if let Err(error) = folder::set_time(&file, entry.modified) {
                self.remark("times as they are", &error);
            }
            // A folder that was there before never gets permissions by a peer.
            let set = folder::mode(&file).and_then(|mode| match mode & entry.mode {
                wanted if wanted == mode => Ok(()),
                wanted => folder::set_mode(&file, wanted),
            });
            if let Err(error) = set {
                self.remark("modes", &error);
            }
        }
        self.sync_folders()?;
        for shop in self.shops().iter().filter(|shop| shop.syncs_all && (!is_durable || shop.is_due())) {
            shop.sync_all().map_err(|error| Trouble::Disk(self.path.clone(), error))?;
        }
        Ok(())
    }
}

impl Spot {
    /// The folder for incomplete files.
    ///
    /// # Errors
    /// If the transfer only verifies. Nothing is written then, so this is no case that a user meets.
    pub(crate) fn shop(&self) -> Result<&Arc<Shop>, Trouble> {
        self.shop.as_ref().ok_or_else(|| Trouble::Entry("nothing is written while files are verified".into()))
    }
}

impl Shop {
    /// Creates an incomplete file, in the place of what an earlier transfer has left.
    pub(crate) fn create(&self, name: &PartName) -> io::Result<File> {
        match self.folder.create(name.leaf()) {
            // Usually there is none. Trying to remove a missing file would lock the folder for as long as creating one does.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.folder.remove(name.leaf())?;
                self.folder.create(name.leaf())
            }
            created => created,
        }
    }

    /// Makes everything on the mount durable.
    pub(crate) fn sync_all(&self) -> io::Result<()> {
        self.folder.sync_all()?;
        self.is_due.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Whether only [`Self::sync_all`] makes the folders durable that the plan has made.
    pub(crate) fn is_due(&self) -> bool {
        self.syncs_all && self.is_due.load(Ordering::Relaxed)
    }

    /// Whether this is the folder for incomplete files of the same mount.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.mount == other.mount
    }

    fn open(above: &Arc<Folder>, mount: u64) -> io::Result<Self> {
        match above.make(WORKSHOP, 0o700) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let folder = above.folder(WORKSHOP)?;
        let syncs_all = folder.syncs_all();
        Ok(Self { above: Arc::clone(above), folder, mount, syncs_all, is_due: AtomicBool::new(false) })
    }
}

/// The name of an incomplete file.
#[derive(Clone, Debug)]
pub(crate) struct PartName(String);

impl PartName {
    /// That of an entry: the same for the same path.
    pub(crate) fn of(manifest: &Manifest, index: u32) -> Self {
        let mut hasher = blake3::Hasher::new();
        for leaf in manifest.leaves(index) {
            hasher.update(leaf.bytes()).update(b"/");
        }
        Self(format!("{}.part", &hasher.finalize().to_hex()[..32]))
    }

    pub(crate) fn leaf(&self) -> Leaf<'_> {
        Leaf::new(self.0.as_bytes()).expect("it consists of digits, and an ending")
    }
}

/// Copies a file, and leaves its blocks of zeros out.
fn copy_sparsely(mut from: &File, mut to: &File) -> io::Result<()> {
    let (mut bytes, mut len) = (vec![0; COPIED], 0);
    loop {
        let read = from.read(&mut bytes)?;
        if read == 0 {
            return to.set_len(len);
        }
        if bytes[..read].iter().any(|byte| *byte != 0) {
            to.seek(SeekFrom::Start(len))?;
            to.write_all(&bytes[..read])?;
        }
        len += read as u64;
    }
}

/// Bytes that are copied at once: larger holes stay holes.
const COPIED: usize = 64 << 10;

/// What a system says if a file can have no name there.
const NO_NAMES: [io::ErrorKind; 3] =
    [io::ErrorKind::CrossesDevices, io::ErrorKind::Unsupported, io::ErrorKind::PermissionDenied];

/// Whether a file has the time of an entry, as far as the file system can keep it.
pub(crate) fn is_same_time(there: Stamp, entry: &Entry<'_>) -> bool {
    there.keeps(entry.modified)
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Folders that are open at a time: more than the data streams and writers use at once.
const FOLDERS_OPEN: usize = 64;

/// Different remarks: there are a few kinds of them, each with the errors that a system has for it.
const REMARKS_MAX: usize = 20;
