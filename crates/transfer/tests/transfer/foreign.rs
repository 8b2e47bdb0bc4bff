//! File systems that differ from the usual one, and folders that change meanwhile. Some are mounted, so this needs root and
//! Debian's packages `bindfs`, `exfat-fuse` and `exfatprogs`; if nothing can be mounted, the test says so.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_transfer::{Existing, Options, Summary};

use crate::support::{Folder, both, noise, transfer, transfer_by, tree};

/// A mount, which ends with the test.
struct Mounted {
    at: std::path::PathBuf,
    device: Option<String>,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        _ = Command::new("umount").arg("--lazy").arg(&self.at).status();
        if let Some(device) = &self.device {
            _ = Command::new("losetup").args(["--detach", device]).status();
        }
    }
}

fn succeeds(program: &str, arguments: &[&str], paths: &[&Path]) -> bool {
    let told = Command::new(program).args(arguments).args(paths).output();
    told.is_ok_and(|told| told.status.success())
}

#[expect(clippy::print_stdout, reason = "whoever runs the tests shall know what was not tested")]
fn mount(at: &Path, is_mounted: bool, device: Option<String>) -> Option<Mounted> {
    if !is_mounted {
        println!("not run: it needs root, and a package");
    }
    is_mounted.then(|| Mounted { at: at.to_owned(), device })
}

/// exFAT ignores case, and refuses some characters.
fn exfat(folder: &Folder) -> Option<Mounted> {
    let (image, at) = (folder.file("image", b""), folder.0.join("disk"));
    fs::create_dir(&at).unwrap();
    fs::File::options().write(true).open(&image).unwrap().set_len(32 << 20).unwrap();
    let is_made = succeeds("mkfs.exfat", &[], &[&image]);
    let device = Command::new("losetup").args(["--find", "--show"]).arg(&image).output().ok()?;
    let device = String::from_utf8(device.stdout).unwrap().trim().to_owned();
    let is_mounted = is_made && succeeds("mount.exfat-fuse", &[], &[Path::new(&device), &at]);
    let mounted = mount(&at, is_mounted, Some(device.clone()));
    if mounted.is_none() {
        _ = Command::new("losetup").args(["--detach", &device]).status();
    }
    mounted
}

fn failures(summary: &Summary) -> Vec<&str> {
    summary.failed.iter().map(|failed| failed.name.as_str()).collect()
}

/// One of two names that are one there keeps its place, also when it is sent again; the other is reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_are_one_on_a_disk_that_ignores_case_are_not_lost() {
    for existing in [Existing::Keep, Existing::Overwrite] {
        let (from, room) = (Folder::new(), Folder::new());
        let Some(disk) = exfat(&room) else { return };
        for (name, content) in
            [("README", "upper"), ("readme", "lower-case"), ("Sub/x", "first"), ("sub/x", "again"), ("z", "z")]
        {
            from.file(&format!("f/{name}"), content.as_bytes());
        }
        for round in 0..3 {
            let [sent, received] = both(transfer(&[&from.0.join("f")], &disk.at, existing).await);
            assert_eq!((sent.files, received.files), if round == 0 { (3, 3) } else { (0, 0) }, "{sent:?}");
            let mut failed = failures(&sent);
            failed.sort_unstable();
            assert_eq!(failed, ["f/readme", "f/sub", "f/sub/x"], "{existing:?}, {round}: {sent:?}");
            for (name, content) in [("README", "upper"), ("Sub/x", "first"), ("z", "z")] {
                assert_eq!(fs::read_to_string(disk.at.join("f").join(name)).unwrap(), content);
            }
        }
        // A foreign file with the name in other letters is overwritten by one of them, if that is allowed.
        let (sent, _) = transfer(&[&from.0.join("f/readme")], &disk.at.join("f"), existing).await;
        let is_over = existing == Existing::Overwrite;
        assert_eq!(sent.unwrap().files, u64::from(is_over));
        let expected = if is_over { "lower-case" } else { "upper" };
        let names = fs::read_dir(disk.at.join("f")).unwrap().map(|entry| entry.unwrap().path());
        let is_it = |path: &std::path::PathBuf| path.file_name().unwrap().eq_ignore_ascii_case("readme");
        let there: Vec<_> = names.filter(is_it).map(|path| fs::read_to_string(path).unwrap()).collect();
        assert_eq!(there, [expected]);
    }
}

/// A name that the disk refuses, first in the list, and many good ones behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn name_that_the_disk_refuses_fails_alone() {
    let (from, room) = (Folder::new(), Folder::new());
    let Some(disk) = exfat(&room) else { return };
    from.file("f/12:30", &noise(1, 3_000_000));
    from.file("f/a?", b"small");
    (0..40).for_each(|number| _ = from.file(&format!("f/b{number}"), &noise(number, 300_000)));
    let [sent, received] = both(transfer(&[&from.0.join("f")], &disk.at, Existing::Keep).await);
    assert_eq!((sent.files, received.files), (40, 40));
    assert!(sent.failed.iter().all(|failed| failed.reason.contains("does not take this name")), "{sent:?}");
    assert_eq!(failures(&sent).len(), 2);
    assert!(!disk.at.join(".anabranch").exists(), "nothing is left of them");
}

/// As on Android, WSL and CIFS.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disk_that_refuses_modes_gets_all_files_and_is_remarked_once() {
    let (from, back, at) = (Folder::new(), Folder::new(), Folder::new());
    let is_mounted = succeeds("bindfs", &["--chmod-deny"], &[&back.0, &at.0]);
    let Some(_mounted) = mount(&at.0, is_mounted, None) else { return };
    (0..20).for_each(|number| _ = from.file(&format!("f/{number}"), &noise(number, 20_000 * number as usize)));
    fs::set_permissions(from.0.join("f/3"), fs::Permissions::from_mode(0o640)).unwrap();
    for summary in both(transfer(&[&from.0.join("f")], &at.0, Existing::Keep).await) {
        assert_eq!((summary.files, summary.failed.len()), (20, 0), "{summary:?}");
        assert_eq!(summary.remarks.len(), 1, "{:?}", summary.remarks);
        assert!(summary.remarks[0].contains("modes"), "{:?}", summary.remarks);
    }
}

/// Files cannot be renamed from one mount to another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn folder_that_is_a_mount_of_its_own_gets_its_files() {
    for (options, fails) in [("size=64m", false), ("size=64m,ro", true)] {
        let (from, to) = (Folder::new(), Folder::new());
        (0..9).for_each(|number| _ = from.file(&format!("f/{number}"), &noise(number, 400_000)));
        (0..9).for_each(|number| {
            _ = from.file(&format!("f/sub/deep/{number}"), &noise(number, 400_000 * number as usize))
        });
        let at = to.0.join("f/sub");
        fs::create_dir_all(&at).unwrap();
        let is_mounted = succeeds("mount", &["-t", "tmpfs", "-o", options, "tmpfs"], &[&at]);
        let Some(_mounted) = mount(&at, is_mounted, None) else { return };
        let [sent, received] = both(transfer(&[&from.0.join("f")], &to.0, Existing::Keep).await);
        if fails {
            // The folder itself, a folder in it, and its files.
            assert_eq!((sent.files, received.files, sent.failed.len()), (9, 9, 10), "{sent:?}");
            assert!(sent.failed[0].reason.contains("Read-only file system"), "{sent:?}");
        } else {
            assert_eq!((sent.files, received.files, sent.failed.len()), (18, 18, 0), "{sent:?}");
            assert!(tree(&from.0) == tree(&to.0), "and nothing is left besides");
        }
    }
}

/// Names of one file on two mounts become copies, with their holes. The second time nothing is left to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_on_two_mounts_become_copies_that_count_as_there() {
    let (from, to) = (Folder::new(), Folder::new());
    let first = from.file("f/a", &noise(1, 300_000));
    fs::File::options().write(true).open(&first).unwrap().set_len(50_000_000).unwrap();
    fs::create_dir_all(from.0.join("f/sub")).unwrap();
    fs::hard_link(&first, from.0.join("f/sub/b")).unwrap();
    let at = to.0.join("f/sub");
    fs::create_dir_all(&at).unwrap();
    let is_mounted = succeeds("mount", &["-t", "tmpfs", "-o", "size=20m", "tmpfs"], &[&at]);
    let Some(_mounted) = mount(&at, is_mounted, None) else { return };
    let archive = Options { archives: true, ..Options::default() };
    for (round, counts) in [(1, (1, 1, 0)), (2, (0, 0, 1))] {
        let (sent, _) = transfer_by(archive, &[&from.0.join("f")], &to.0, Existing::Keep).await;
        let sent = sent.unwrap();
        assert!(sent.is_complete(), "{round}: {sent:?}");
        assert_eq!((sent.files, sent.links, sent.files_there), counts, "{round}: {sent:?}");
        let is_said = sent.remarks.iter().any(|remark| remark.contains("which are copies now"));
        assert_eq!(is_said, round == 1, "{:?}", sent.remarks);
        assert!(tree(&from.0) == tree(&to.0), "{round}");
    }
}

/// With the path of the receiver's folder, the path is longer than the system allows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn file_with_a_path_too_long_for_the_system_arrives() {
    let (from, to) = (Folder::new(), Folder::new());
    let part = "d".repeat(200);
    let name = [part.as_str(); 14].join("/") + "/x";
    from.file(&format!("f/{name}"), b"deep");
    from.file("f/shallow", b"shallow");
    let deep = (0..8).fold(to.0.clone(), |path, _| path.join("e".repeat(200)));
    fs::create_dir_all(&deep).unwrap();
    let [sent, received] = both(transfer(&[&from.0.join("f")], &deep, Existing::Keep).await);
    assert_eq!((sent.files, received.files, sent.failed.len()), (2, 2, 0), "{sent:?}");
    // Its path is longer than 4096 bytes, so it is looked at from within.
    let script =
        format!("cd {}/f/{} && cat {}/x", deep.display(), [part.as_str(); 7].join("/"), [part.as_str(); 7].join("/"));
    let inner = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(inner.stdout, b"deep");
}

/// Somebody who may write into the folder replaces a folder in it by a link, again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn folder_replaced_by_a_link_meanwhile_leads_nowhere() {
    let (from, to) = (Folder::new(), Folder::new());
    (0..600).for_each(|number| _ = from.file(&format!("f/{}/{number}", number % 3), &noise(number, 20_000)));
    fs::set_permissions(from.0.join("f/0"), fs::Permissions::from_mode(0o755)).unwrap();
    let outside = to.0.join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o700)).unwrap();
    let before = tree(&outside);
    let is_over = Arc::new(AtomicBool::new(false));
    let swapping = std::thread::spawn({
        let (is_over, folder) = (Arc::clone(&is_over), to.0.join("in/f"));
        let outside = outside.clone();
        move || {
            while !is_over.load(Ordering::Relaxed) {
                for number in 0..3 {
                    let (place, aside) = (folder.join(number.to_string()), folder.join(format!("aside{number}")));
                    if fs::rename(&place, &aside).is_ok() {
                        _ = symlink(&outside, &place);
                        std::thread::yield_now();
                        _ = fs::remove_file(&place);
                        _ = fs::rename(&aside, &place);
                    }
                }
            }
        }
    });
    for _ in 0..3 {
        let (sent, received) = transfer(&[&from.0.join("f")], &to.0.join("in"), Existing::Keep).await;
        assert!(sent.is_ok() && received.is_ok(), "{sent:?} {received:?}");
    }
    is_over.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert!(tree(&outside) == before, "nothing is outside");
    assert_eq!(fs::metadata(&outside).unwrap().permissions().mode() & 0o777, 0o700, "nor is its mode changed");
}
