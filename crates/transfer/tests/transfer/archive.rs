//! Hard links and extended attributes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anabranch_transfer::{Compare, Existing, Links, Options};
use rustix::fs::{XattrFlags, getxattr, setxattr};

use crate::support::{Folder, both, noise, transfer, transfer_by, tree};

const ARCHIVE: Options = Options { links: Links::Copy, compare: Compare::SizeAndTime, archives: true };

fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

/// All but the symbolic link, whose time is that of its making.
fn files(folder: &Folder) -> BTreeMap<PathBuf, (Option<Vec<u8>>, SystemTime, u32)> {
    let mut tree = tree(&folder.0);
    assert!(tree.remove(Path::new("f/link")).is_some());
    tree
}

/// The value of an attribute; `None` if there is none.
fn attribute(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut room = [0; 1000];
    getxattr(path, name, &mut room[..]).ok().map(|len| room[..len].to_vec())
}

/// Sets it. False where the file system has no attributes.
fn set(path: &Path, name: &str, value: &[u8]) -> bool {
    setxattr(path, name, value, XattrFlags::empty()).is_ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_of_one_file_stay_names_of_one_file() {
    let (from, to) = (Folder::new(), Folder::new());
    let big = from.file("f/a/big", &noise(1, 2_000_000));
    fs::create_dir_all(from.0.join("f/b")).unwrap();
    fs::hard_link(&big, from.0.join("f/b/same")).unwrap();
    fs::hard_link(&big, from.0.join("f/zz")).unwrap();
    from.file("f/other", b"by itself");
    symlink("a/big", from.0.join("f/link")).unwrap();
    let path = from.0.join("f");
    for summary in both(transfer_by(ARCHIVE, &[&path], &to.0, Existing::Keep).await) {
        assert_eq!((summary.files, summary.links, summary.bytes), (2, 3, 2_000_009), "{summary:?}");
        assert!(summary.is_complete() && summary.remarks.is_empty(), "{summary:?}");
    }
    assert!(files(&from) == files(&to));
    let there = ["f/a/big", "f/b/same", "f/zz"].map(|name| inode(&to.0.join(name)));
    assert!(there[0] == there[1] && there[1] == there[2], "{there:?}");
    // Again: nothing is left to do.
    let (sent, _) = transfer_by(ARCHIVE, &[&path], &to.0, Existing::Overwrite).await;
    let sent = sent.unwrap();
    assert_eq!((sent.files, sent.links, sent.files_there), (0, 0, 2), "{sent:?}");
    // A new content gets all names, and nothing is left of the old one.
    fs::write(&big, noise(2, 1_900_000)).unwrap();
    let (sent, _) = transfer_by(ARCHIVE, &[&path], &to.0, Existing::Overwrite).await;
    assert!(sent.unwrap().is_complete());
    assert!(files(&from) == files(&to));
    assert_eq!(inode(&to.0.join("f/zz")), inode(&to.0.join("f/a/big")));
    assert!(!to.0.join(".anabranch").exists());
    // Without the option they are files of their own.
    let apart = Folder::new();
    transfer(&[&big, &from.0.join("f/zz")], &apart.0, Existing::Keep).await.0.unwrap();
    assert_ne!(inode(&apart.0.join("big")), inode(&apart.0.join("zz")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn further_name_that_is_taken_stays_and_is_reported() {
    let (from, to) = (Folder::new(), Folder::new());
    let first = from.file("f/first", b"content");
    fs::hard_link(&first, from.0.join("f/second")).unwrap();
    to.file("f/second", b"mine");
    let (sent, _) = transfer_by(ARCHIVE, &[&from.0.join("f")], &to.0, Existing::Keep).await;
    let sent = sent.unwrap();
    assert_eq!((sent.files, sent.links, sent.failed.len()), (1, 0, 1), "{sent:?}");
    assert!(sent.failed[0].to_string().contains("f/second: another file has this name"), "{:?}", sent.failed);
    assert_eq!(fs::read(to.0.join("f/second")).unwrap(), b"mine");
    // If the file itself does not arrive, its other names get no other content.
    let (from, to) = (Folder::new(), Folder::new());
    let first = from.file("f/first", b"content");
    fs::hard_link(&first, from.0.join("f/second")).unwrap();
    to.file("f/first", b"mine");
    let (sent, received) = transfer_by(ARCHIVE, &[&from.0.join("f")], &to.0, Existing::Keep).await;
    assert_eq!((sent.unwrap().failed.len(), received.unwrap().failed.len()), (2, 2));
    assert!(!to.0.join("f/second").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attributes_of_users_arrive_and_others_are_named() {
    let (from, to) = (Folder::new(), Folder::new());
    let (small, large) = (from.file("f/small", b"x"), from.file("f/large", &noise(3, 3_000_000)));
    let folder = from.0.join("f");
    let sets =
        [(&small, "user.tag", &b"blue"[..]), (&large, "user.empty", b""), (&folder, "user.origin", b"\0\xff binary")];
    if !sets.iter().all(|(path, name, value)| set(path, name, value)) {
        return println!("not run: the file system has no extended attributes");
    }
    // Only root may set it.
    let has_foreign = set(&small, "trusted.anabranch", b"1");
    let [sent, received] = both(transfer_by(ARCHIVE, &[&folder], &to.0, Existing::Keep).await);
    assert!(sent.is_complete() && received.remarks.is_empty(), "{sent:?} {received:?}");
    for (path, name, value) in sets {
        let there = to.0.join(path.strip_prefix(&from.0).unwrap());
        assert_eq!(attribute(&there, name).as_deref(), Some(value), "{}", there.display());
    }
    assert_eq!(attribute(&to.0.join("f/small"), "trusted.anabranch"), None);
    let is_said = sent.remarks.iter().any(|remark| remark == "attributes trusted.anabranch are not sent");
    assert_eq!(is_said, has_foreign, "{:?}", sent.remarks);
    // A folder that is there keeps its own, as it keeps its permissions.
    assert!(set(&to.0.join("f"), "user.origin", b"mine"));
    transfer_by(ARCHIVE, &[&folder], &to.0, Existing::Overwrite).await.0.unwrap();
    assert_eq!(attribute(&to.0.join("f"), "user.origin").as_deref(), Some(&b"mine"[..]));
    // Without the option no attribute is sent.
    let plain = Folder::new();
    transfer(&[&small], &plain.0, Existing::Keep).await.0.unwrap();
    assert_eq!(attribute(&plain.0.join("small"), "user.tag"), None);
}
