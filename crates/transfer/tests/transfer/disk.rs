//! Disks that are full or read-only: both ends get the reason, no incomplete file has its final name, and data that has arrived
//! is kept. Small disks are mounted, so this needs root; if nothing can be mounted, the test says so.

use std::fs;
use std::path::Path;
use std::process::Command;

use anabranch_transfer::{Existing, ReceiveError, SendError};

use crate::support::{Folder, both, noise, transfer, tree};

/// A file system in memory, mounted at a folder.
struct Disk(Folder);

impl Disk {
    #[expect(clippy::print_stdout, reason = "whoever runs the tests shall know what was not tested")]
    fn new(options: &str) -> Option<Self> {
        let disk = Self(Folder::new());
        let is_there = mount(&["-t", "tmpfs", "-o", options, "tmpfs"], &disk.0.0);
        if !is_there {
            println!("not run: only root may mount a small disk");
        }
        is_there.then_some(disk)
    }

    fn remount(&self, options: &str) {
        assert!(mount(&["-o", &format!("remount,{options}")], &self.0.0));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        _ = Command::new("umount").arg(&self.0.0).status();
    }
}

fn mount(arguments: &[&str], at: &Path) -> bool {
    cfg!(target_os = "linux")
        && Command::new("mount").args(arguments).arg(at).output().is_ok_and(|it| it.status.success())
}

/// A megabyte of space for 400 small files and one of 5 MB; later there is more space.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_told_and_then_it_goes_on() {
    let many = |from: &Folder| {
        (0..400).for_each(|number| _ = from.file(&format!("f/{}/{number}", number % 7), &noise(number, 5000)));
    };
    let one = |from: &Folder| _ = from.file("f/large", &noise(1, 5_000_000));
    for (is_small, room) in [(true, "size=1m"), (false, "size=3m")] {
        let Some(disk) = Disk::new(room) else { return };
        let from = Folder::new();
        if is_small {
            many(&from)
        } else {
            one(&from)
        }
        let path = from.0.join("f");
        let to = disk.0.0.join("in");
        let (sent, received) = transfer(&[&path], &to, Existing::Keep).await;
        let (Err(SendError::Receiver(sent)), Err(received @ ReceiveError::Folder(..))) = (sent, received) else {
            panic!("a disk that is full has no room")
        };
        assert!(sent.contains("No space left on device"), "{sent}");
        assert!(received.to_string().contains("No space left on device"), "{received}");
        // A file with its final name is complete.
        for (name, (bytes, ..)) in tree(&to) {
            if !name.starts_with(".anabranch") {
                assert!(bytes.is_none_or(|bytes| bytes == fs::read(from.0.join(&name)).unwrap()), "{}", name.display());
            }
        }
        disk.remount("size=64m");
        let [sent, received] = both(transfer(&[&path], &to, Existing::Keep).await);
        assert!(sent.failed.is_empty() && sent.bytes_there > 0, "{sent:?}");
        assert_eq!(received.bytes_there, sent.bytes_there);
        assert!(tree(&to.join("f")) == tree(&path), "names, bytes, modes, times, and nothing else");
    }
}

/// The folder is read-only at first, and then writable.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_is_read_only_is_told() {
    let Some(disk) = Disk::new("size=16m,ro") else { return };
    let from = Folder::new();
    from.file("f/small", &noise(1, 5000));
    from.file("f/large", &noise(2, 3_000_000));
    let path = from.0.join("f");
    let (sent, received) = transfer(&[&path], &disk.0.0, Existing::Keep).await;
    let (Err(SendError::Receiver(sent)), Err(received @ ReceiveError::Folder(..))) = (sent, received) else {
        panic!("nothing can be written there")
    };
    assert!(sent.contains("Read-only file system") && received.to_string().contains("Read-only file system"), "{sent}");
    disk.remount("rw");
    let (sent, received) = transfer(&[&path], &disk.0.0, Existing::Keep).await;
    assert!(sent.unwrap().failed.is_empty() && received.unwrap().files == 2);
    assert!(tree(&disk.0.0.join("f")) == tree(&path));
}
