//! Names, links, holes and modes.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use anabranch_transfer::{Compare, Existing, Links, Options};

use crate::support::{Folder, both, noise, transfer, transfer_by, tree};

const WITH_LINKS: Options = Options { links: Links::Copy, compare: Compare::SizeAndTime, archives: false };

/// Links inside of the folder arrive as links; one that leads out of it is reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_inside_are_copied_and_others_said() {
    let (from, to) = (Folder::new(), Folder::new());
    from.file("f/sub/file", b"content");
    for (target, name) in
        [("sub/file", "to-file"), ("sub", "to-folder"), ("../to-file", "sub/up"), ("nothing", "sub/dangling")]
    {
        symlink(target, from.0.join("f").join(name)).unwrap();
    }
    for (target, name) in [("/etc/passwd", "absolute"), ("../../outside", "sub/out"), ("sub/../../x", "roundabout")] {
        symlink(target, from.0.join("f").join(name)).unwrap();
    }
    for round in 0..2 {
        let [sent, received] = both(transfer_by(WITH_LINKS, &[&from.0.join("f")], &to.0, Existing::Keep).await);
        assert_eq!((sent.links, received.links), if round == 0 { (4, 4) } else { (0, 0) });
        assert_eq!(sent.failed.len(), 3, "{sent:?}");
        assert!(sent.failed.iter().all(|failed| failed.reason.contains("leads out of the folder")), "{sent:?}");
        for name in ["to-file", "to-folder", "sub/up", "sub/dangling"] {
            let target = |folder: &Folder| fs::read_link(folder.0.join("f").join(name)).unwrap();
            assert_eq!(target(&from), target(&to), "{name}");
        }
    }
    // Another target is another file.
    fs::remove_file(from.0.join("f/to-file")).unwrap();
    symlink("sub", from.0.join("f/to-file")).unwrap();
    let (sent, _) = transfer_by(WITH_LINKS, &[&from.0.join("f")], &to.0, Existing::Keep).await;
    assert!(sent.unwrap().failed.iter().any(|failed| failed.reason.contains("another link has this name")));
    let (sent, _) = transfer_by(WITH_LINKS, &[&from.0.join("f")], &to.0, Existing::Overwrite).await;
    assert_eq!(sent.unwrap().links, 1);
    assert_eq!(fs::read_link(to.0.join("f/to-file")).unwrap(), OsStr::new("sub"));
    assert!(!to.0.join(".anabranch").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn non_unicode_name_arrives_and_line_end_is_reported() {
    let (from, to) = (Folder::new(), Folder::new());
    fs::create_dir_all(from.0.join("f")).unwrap();
    for name in [&b"caf\xe9"[..], b"good", "rtl\u{202e}fdp".as_bytes(), b"line\nend"] {
        fs::write(from.0.join("f").join(OsStr::from_bytes(name)), name).unwrap();
    }
    let [sent, received] = both(transfer(&[&from.0.join("f")], &to.0, Existing::Keep).await);
    assert_eq!((sent.files, received.files, sent.failed.len()), (3, 3, 1));
    assert!(sent.failed[0].name.ends_with("f/line\\nend"), "{:?}", sent.failed);
    fs::remove_file(from.0.join("f").join(OsStr::from_bytes(b"line\nend"))).unwrap();
    assert!(tree(&to.0).keys().eq(tree(&from.0).keys()));
    // In messages the names are escaped, at both ends.
    fs::write(to.0.join("f").join(OsStr::from_bytes(b"caf\xe9")), "longer than it was").unwrap();
    fs::write(to.0.join("f").join("rtl\u{202e}fdp"), "longer than it was").unwrap();
    for summary in both(transfer(&[&from.0.join("f")], &to.0, Existing::Keep).await) {
        let names: Vec<_> = summary.failed.iter().map(|failed| failed.name.as_str()).collect();
        assert_eq!(names, ["f/caf\\xe9", "f/rtl\\u{202e}fdp"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sparse_file_stays_sparse_and_equal() {
    const SIZE: u64 = 200 << 20;
    let (from, to) = (Folder::new(), Folder::new());
    let path = from.file("image", b"");
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(SIZE + 5).unwrap();
    for (at, len) in [(0, 10), (77 << 20, 5000), ((90 << 20) - 3, 2_000_000)] {
        std::os::unix::fs::FileExt::write_all_at(&file, &noise(at, len), at).unwrap();
    }
    drop(file);
    let (sent, _) = transfer(&[&path], &to.0, Existing::Keep).await;
    assert_eq!(sent.unwrap().bytes, SIZE + 5);
    assert!(tree(&from.0) == tree(&to.0));
    let blocks = |folder: &Folder| fs::metadata(folder.0.join("image")).unwrap().blocks() * 512;
    // A block of 4 kB more at each border.
    assert!(blocks(&to) <= blocks(&from) + 6 * 4096, "{} of {}", blocks(&to), blocks(&from));
}

/// Files of the kernel do not know their size.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn file_whose_size_is_said_to_be_zero_is_not_sent_empty() {
    let to = Folder::new();
    let (sent, received) = transfer(&["/proc/version".as_ref()], &to.0, Existing::Keep).await;
    let (sent, _) = (sent.unwrap(), received.unwrap());
    assert_eq!((sent.files, sent.failed.len()), (0, 1));
    assert!(sent.failed[0].reason.contains("its size is said to be 0, but it has content"), "{:?}", sent.failed);
    assert!(!to.0.join("version").exists());
}

/// A peer gives no permissions that the user's mask forbids, and none to folders that are there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mode_of_a_peer_is_masked_and_a_private_folder_stays_private() {
    let (from, to) = (Folder::new(), Folder::new());
    let set = |folder: &Folder, name: &str, mode| {
        fs::set_permissions(folder.0.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    from.file("f/wide", b"1");
    from.file("f/setuid", b"2");
    from.file("f/new/x", b"3");
    from.file("f/private/x", b"4");
    set(&from, "f/wide", 0o777);
    set(&from, "f/setuid", 0o6755);
    set(&from, "f/new", 0o1777);
    set(&from, "f/private", 0o777);
    fs::create_dir_all(to.0.join("f/private")).unwrap();
    set(&to, "f/private", 0o700);
    let (sent, _) = transfer(&[&from.0.join("f")], &to.0, Existing::Keep).await;
    assert_eq!(sent.unwrap().files, 4);
    let mode = |name: &str| fs::metadata(to.0.join(name)).unwrap().permissions().mode() & 0o7777;
    // What a new file gets that asks for everything.
    let probe = to.0.join("probe");
    fs::create_dir(&probe).unwrap();
    let allowed = mode("probe") & 0o777;
    assert_eq!(mode("f/wide"), 0o777 & allowed);
    assert_eq!(mode("f/setuid"), 0o755 & allowed);
    assert_eq!(mode("f/new"), 0o777 & allowed);
    assert_eq!(mode("f/private"), 0o700);
}
