//! Two connected ends, and folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use anabranch::{Config, Connection, Endpoint, SecretKey};
use anabranch_transfer::{Existing, Item, Options, Parcel, Progress, ReceiveError, Receiver, SendError, Summary, send};

/// A folder that is removed when the test ends.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("anabranch-transfer-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// Everything below a folder: the bytes of files (`None` for folders), and the time and mode of each.
pub(crate) fn tree(folder: &Path) -> BTreeMap<PathBuf, (Option<Vec<u8>>, SystemTime, u32)> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut all = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let bytes = metadata.is_file().then(|| fs::read(&path).unwrap());
            let about = (bytes, metadata.modified().unwrap(), metadata.permissions().mode() & 0o777);
            all.insert(path.strip_prefix(folder).unwrap().to_owned(), about);
            if metadata.is_dir() {
                open.push(path);
            }
        }
    }
    all
}

/// Pseudo-random bytes.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&(state ^ state >> 29).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

pub(crate) struct Pair {
    pub(crate) sender: Connection,
    pub(crate) receiver: Connection,
    pub(crate) _ends: [Endpoint; 2],
}

pub(crate) fn bind(config: Config) -> Endpoint {
    Endpoint::bind("127.0.0.1:0".parse().unwrap(), &SecretKey::generate().unwrap(), config).unwrap()
}

pub(crate) async fn pair() -> Pair {
    let server = bind(Config::default().admit(anabranch::Admission::Ticket));
    let client = bind(Config::default());
    let ticket = server.ticket();
    let (sender, receiver) = tokio::join!(client.connect(&ticket), server.accept());
    Pair { sender: sender.unwrap(), receiver: receiver.unwrap(), _ends: [server, client] }
}

/// These paths, to be sent.
pub(crate) fn parcel(paths: &[PathBuf]) -> Arc<Parcel> {
    Arc::new(Parcel::of_paths(paths, Options::default()).unwrap())
}

/// Sends paths to a folder.
pub(crate) async fn transfer(
    paths: &[&Path],
    to: &Path,
    existing: Existing,
) -> (Result<Summary, SendError>, Result<Summary, ReceiveError>) {
    transfer_by(Options::default(), paths, to, existing).await
}

/// The same with options of the sender.
pub(crate) async fn transfer_by(
    options: Options,
    paths: &[&Path],
    to: &Path,
    existing: Existing,
) -> (Result<Summary, SendError>, Result<Summary, ReceiveError>) {
    transfer_items(options, paths.iter().map(|path| Item::Path(path.to_path_buf())).collect(), to, existing).await
}

/// What both ends say of a transfer that succeeds: the sender, and the receiver.
#[track_caller]
pub(crate) fn both((sent, received): (Result<Summary, SendError>, Result<Summary, ReceiveError>)) -> [Summary; 2] {
    [sent.unwrap(), received.unwrap()]
}

/// Sends anything to a folder.
pub(crate) async fn transfer_items(
    options: Options,
    items: Vec<Item>,
    to: &Path,
    existing: Existing,
) -> (Result<Summary, SendError>, Result<Summary, ReceiveError>) {
    let Pair { sender, receiver, _ends } = pair().await;
    let parcel = Arc::new(Parcel::pack(items, options).unwrap());
    let target = Receiver::new(to, existing);
    let both = async {
        tokio::join!(
            send(&sender, parcel, Arc::new(Progress::default())),
            target.receive(&receiver, Arc::new(Progress::default()))
        )
    };
    tokio::time::timeout(Duration::from_secs(60), both).await.expect("it takes no longer than a minute")
}
