//! Verification of what lies at the receiver, and what a changed file costs.

use std::fs;
use std::path::Path;

use anabranch_transfer::{Compare, Existing, Links, Options};

use crate::content::part_in;
use crate::resume::break_off;
use crate::support::{Folder, both, noise, transfer, transfer_by, tree};

const VERIFY: Options = Options { links: Links::Copy, compare: Compare::Only, archives: false };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verification_names_what_differs_and_writes_nothing() {
    let (from, to) = (Folder::new(), Folder::new());
    from.file("f/small", b"small");
    from.file("f/large", &noise(1, 3_000_000));
    from.file("f/deep/er/x", b"x");
    from.file("f/empty", b"");
    std::os::unix::fs::symlink("small", from.0.join("f/link")).unwrap();
    let path = from.0.join("f");
    let copy = Options { links: Links::Copy, ..Options::default() };
    transfer_by(copy, &[&path], &to.0, Existing::Keep).await.0.unwrap();
    let mut before = tree(&to.0);
    for existing in [Existing::Keep, Existing::Overwrite] {
        for summary in both(transfer_by(VERIFY, &[&path], &to.0, existing).await) {
            assert_eq!((summary.files, summary.files_there), (0, 4), "{summary:?}");
            assert!(summary.is_complete(), "{summary:?}");
        }
        assert!(tree(&to.0) == before);
    }
    // Damage that keeps size and time, another size, another link, and what is gone.
    let damage = |name: &str, change: &dyn Fn(&Path)| {
        let path = to.0.join(name);
        let time = fs::symlink_metadata(&path).unwrap().modified().unwrap();
        change(&path);
        if let Ok(file) = fs::File::options().write(true).open(&path) {
            file.set_modified(time).unwrap();
        }
    };
    damage("f/large", &|path| {
        let mut bytes = fs::read(path).unwrap();
        bytes[2_500_000] ^= 1;
        fs::write(path, bytes).unwrap();
    });
    damage("f/small", &|path| fs::write(path, "smaller").unwrap());
    damage("f/link", &|path| {
        fs::remove_file(path).unwrap();
        std::os::unix::fs::symlink("large", path).unwrap();
    });
    damage("f/deep", &|path| fs::remove_dir_all(path).unwrap());
    before = tree(&to.0);
    for existing in [Existing::Keep, Existing::Overwrite] {
        for summary in both(transfer_by(VERIFY, &[&path], &to.0, existing).await) {
            let mut failed: Vec<_> = summary.failed.iter().map(ToString::to_string).collect();
            failed.sort();
            let expected = [
                "f/deep/er/x: its folder f/deep/er is refused",
                "f/deep/er: its folder f/deep is refused",
                "f/deep: it is not there",
                "f/large: its content differs there",
                "f/link: the link there leads elsewhere",
                "f/small: its size differs there",
            ];
            assert_eq!(failed, expected);
            assert_eq!((summary.files, summary.files_there), (0, 1));
        }
        assert!(tree(&to.0) == before, "nothing is written");
    }
    // A folder that is not there is not made.
    let (sent, _) = transfer_by(VERIFY, &[&path], &to.0.join("nowhere"), Existing::Keep).await;
    assert!(sent.is_err(), "{sent:?}");
    assert!(!to.0.join("nowhere").exists());
}

/// Of a file of 40 MB whose middle and end have changed, only those chunks are sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_file_is_sent_by_its_changed_chunks() {
    const SIZE: usize = 40 << 20;
    let (from, to) = (Folder::new(), Folder::new());
    let mut bytes = noise(21, SIZE);
    let path = from.file("f/image", &bytes);
    to.file("f/image", &bytes);
    bytes[(7 << 20) + 5] ^= 1;
    bytes[(30 << 20) - 1..(30 << 20) + 1].fill(0);
    fs::write(&path, &bytes).unwrap();
    for summary in both(transfer(&[&from.0.join("f")], &to.0, Existing::Overwrite).await) {
        assert_eq!((summary.files, summary.bytes_there), (1, (SIZE - (3 << 20)) as u64), "{summary:?}");
    }
    assert!(tree(&from.0) == tree(&to.0));
    // Longer, and then shorter.
    for (len, there) in [(SIZE + 3_000_000, SIZE), (SIZE - 1_500_000, SIZE - (2 << 20))] {
        bytes.resize(len, 9);
        fs::write(&path, &bytes).unwrap();
        let (sent, _) = transfer(&[&from.0.join("f")], &to.0, Existing::Overwrite).await;
        let sent = sent.unwrap();
        assert!(sent.bytes_there >= there as u64 && sent.is_complete(), "{len}: {sent:?}");
        assert!(tree(&from.0) == tree(&to.0), "{len}");
    }
    assert!(!to.0.join(".anabranch").exists());
}

/// What an interrupted transfer has left counts, and so does the old file behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interrupted_change_goes_on_with_both_files() {
    const SIZE: usize = 60 << 20;
    let (from, to) = (Folder::new(), Folder::new());
    let old = noise(31, SIZE);
    // The first half is new, the second one is that of the old file.
    let new = [&noise(33, SIZE / 2)[..], &old[SIZE / 2..]].concat();
    from.file("f/big", &new);
    // Interrupted while there was no old file.
    break_off(&from, &to, (10 << 20) as u64).await;
    let chunks = fs::metadata(part_in(&to)).unwrap().len() >> 20;
    assert!((1..SIZE as u64 >> 21).contains(&chunks), "{chunks}");
    to.file("f/big", &old);
    let (sent, received) = transfer(&[&from.0.join("f")], &to.0, Existing::Overwrite).await;
    let there = (chunks << 20) + SIZE as u64 / 2;
    for summary in [sent.unwrap(), received.unwrap()] {
        assert_eq!((summary.files, summary.bytes_there), (1, there), "{summary:?}");
    }
    assert!(tree(&from.0) == tree(&to.0));
}
