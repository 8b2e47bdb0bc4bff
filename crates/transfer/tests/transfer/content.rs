//! Files that are there, or partly there, and are not what they seem.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anabranch_transfer::{Compare, Existing, Options};

use crate::resume::break_off;
use crate::support::{Folder, both, noise, transfer, transfer_by, tree};

const BY_CONTENT: Options =
    Options { links: anabranch_transfer::Links::Report, compare: Compare::Content, archives: false };

fn set_time(path: &Path, seconds: i64) {
    let span = Duration::from_secs(seconds.unsigned_abs());
    let epoch = SystemTime::UNIX_EPOCH;
    let time = if seconds < 0 { epoch - span } else { epoch + span };
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// The only incomplete file of a folder.
pub(crate) fn part_in(folder: &Folder) -> PathBuf {
    let entries = fs::read_dir(folder.0.join(".anabranch")).unwrap().map(|entry| entry.unwrap().path());
    let parts: Vec<_> = entries.filter(|path| path.extension().is_some_and(|ending| ending == "part")).collect();
    assert_eq!(parts.len(), 1, "{parts:?}");
    parts[0].clone()
}

/// Damage at any place of what was kept: only the damaged chunks are sent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn part_damaged_far_before_its_end_is_repaired() {
    const SIZE: usize = 90 << 20;
    let (from, to) = (Folder::new(), Folder::new());
    from.file("f/big", &noise(11, SIZE));
    break_off(&from, &to, (SIZE - (20 << 20)) as u64).await;
    let part = part_in(&to);
    let mut bytes = fs::read(&part).unwrap();
    let chunks = bytes.len() >> 20;
    assert!(chunks > 40, "{chunks}");
    bytes[1 << 20] ^= 1;
    // As pages that were never written to the disk.
    bytes[(3 << 20) - 5..(5 << 20) + 5].fill(0);
    fs::write(&part, &bytes).unwrap();
    let [sent, received] = both(transfer(&[&from.0.join("f")], &to.0, Existing::Keep).await);
    // Chunks 1 to 5 are damaged.
    assert_eq!((sent.bytes_there, received.bytes_there), ((chunks as u64 - 5) << 20, (chunks as u64 - 5) << 20));
    assert!(sent.is_complete() && tree(&from.0) == tree(&to.0));
}

/// Reproducible builds make files of equal name, size and time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn part_of_another_file_of_equal_name_size_and_time_is_not_kept() {
    const SIZE: usize = 20 << 20;
    let (from, to) = (Folder::new(), Folder::new());
    let big = from.file("f/big", &noise(12, SIZE));
    set_time(&big, 1);
    break_off(&from, &to, SIZE as u64 / 2).await;
    fs::write(&big, noise(14, SIZE)).unwrap();
    set_time(&big, 1);
    let (sent, received) = transfer(&[&from.0.join("f")], &to.0, Existing::Keep).await;
    assert_eq!((sent.unwrap().bytes_there, received.unwrap().bytes_there), (0, 0));
    assert!(tree(&from.0) == tree(&to.0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_before_1970_is_kept_and_a_change_noticed() {
    let (from, to) = (Folder::new(), Folder::new());
    let photo = from.file("photo", b"version A");
    set_time(&photo, -141_022_980);
    transfer(&[&photo], &to.0, Existing::Keep).await.0.unwrap();
    assert!(tree(&from.0) == tree(&to.0));
    fs::write(&photo, b"version B").unwrap();
    set_time(&photo, -63_115_200);
    let (sent, _) = transfer(&[&photo], &to.0, Existing::Overwrite).await;
    assert_eq!(sent.unwrap().files, 1);
    assert!(tree(&from.0) == tree(&to.0));
}

/// Without --checksum, a file of the same size and time counts as there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_file_of_same_size_and_time_is_found_by_content() {
    let (from, to) = (Folder::new(), Folder::new());
    for (name, content) in [("small", noise(1, 5000)), ("large", noise(1, 3_000_000)), ("same", noise(1, 2_000_000))] {
        let other = if name == "same" { content.clone() } else { [&content[1..], b"x"].concat() };
        for (folder, content) in [(&from, content), (&to, other)] {
            set_time(&folder.file(&format!("f/{name}"), &content), 1_700_000_000);
        }
    }
    let path = from.0.join("f");
    let before = tree(&to.0.join("f"));
    let (sent, _) = transfer(&[&path], &to.0, Existing::Overwrite).await;
    assert_eq!(sent.unwrap().files_there, 3);
    assert!(tree(&to.0.join("f")) == before, "nothing is changed");
    for summary in both(transfer_by(BY_CONTENT, &[&path], &to.0, Existing::Keep).await) {
        assert_eq!((summary.files, summary.files_there, summary.failed.len()), (0, 1, 2), "{summary:?}");
        assert!(summary.failed.iter().all(|failed| failed.reason.contains("--overwrite")), "{:?}", summary.failed);
    }
    assert!(tree(&to.0.join("f")) == before, "what is there stays");
    for summary in both(transfer_by(BY_CONTENT, &[&path], &to.0, Existing::Overwrite).await) {
        assert_eq!((summary.files, summary.files_there, summary.failed.len()), (2, 1, 0), "{summary:?}");
    }
    assert!(tree(&path) == tree(&to.0.join("f")));
}

/// A file system that cannot keep the time must not lead to a refusal the next time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn file_of_same_content_but_other_time_is_there() {
    let (from, to) = (Folder::new(), Folder::new());
    for name in ["f/small", "f/large"] {
        let bytes = noise(3, if name == "f/small" { 100 } else { 2_500_000 });
        set_time(&from.file(name, &bytes), 1_600_000_000);
        set_time(&to.file(name, &bytes), 1_600_009_999);
    }
    for existing in [Existing::Keep, Existing::Overwrite] {
        for summary in both(transfer(&[&from.0.join("f")], &to.0, existing).await) {
            assert_eq!((summary.files, summary.files_there, summary.failed.len()), (0, 2, 0), "{summary:?}");
        }
    }
}

/// A power failure can leave names whose data was not yet on the disk, with times that were already set.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn empty_or_short_remains_of_a_crash_are_replaced() {
    let (from, to) = (Folder::new(), Folder::new());
    for (name, len) in [("empty", 5000), ("short", 5000), ("large", 3_000_000)] {
        let bytes = noise(7, len);
        set_time(&from.file(&format!("f/{name}"), &bytes), 1_700_000_000);
        let left = if name == "empty" { 0 } else { len * 2 / 3 };
        set_time(&to.file(&format!("f/{name}"), &bytes[..left]), 1_700_000_000);
    }
    let [sent, received] = both(transfer(&[&from.0.join("f")], &to.0, Existing::Keep).await);
    assert_eq!((sent.files, received.files, sent.failed.len()), (3, 3, 0), "{sent:?}");
    assert!(tree(&from.0.join("f")) == tree(&to.0.join("f")));
}

/// A shorter file of other content, or of another time, is no remains.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shorter_file_of_other_content_or_time_stays() {
    let (from, to) = (Folder::new(), Folder::new());
    for name in ["f/content", "f/time", "f/large"] {
        let bytes = noise(7, if name == "f/large" { 2_000_000 } else { 5000 });
        set_time(&from.file(name, &bytes), 1_700_000_000);
        let there = if name == "f/time" { bytes[..100].to_vec() } else { b"mine".to_vec() };
        set_time(&to.file(name, &there), if name == "f/time" { 1_600_000_000 } else { 1_700_000_000 });
    }
    let before = tree(&to.0);
    let (sent, received) = transfer(&[&from.0.join("f")], &to.0, Existing::Keep).await;
    assert_eq!((sent.unwrap().failed.len(), received.unwrap().failed.len()), (3, 3));
    let after = tree(&to.0);
    for (path, there) in before.iter().filter(|(_, there)| there.0.is_some()) {
        assert!(after.get(path) == Some(there), "{}", path.display());
    }
}
