//! Sent files and folders arrive.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::{Duration, Instant, SystemTime};

use anabranch_transfer::{Existing, Options, Parcel, SendError};

use crate::support::{Folder, both, noise, transfer, tree};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_of_all_kinds_arrives() {
    let (from, to) = (Folder::new(), Folder::new());
    let sizes = [0, 1, 1000, 65_536, 1 << 20, (1 << 20) + 1, 3 << 20, 5_000_001, 16_384, 16_385, 0];
    for (number, size) in sizes.into_iter().enumerate() {
        from.file(&format!("kinds/deep/er/{number}"), &noise(number as u64, size));
    }
    for number in 0..300 {
        from.file(&format!("kinds/many/{number}.txt"), format!("file {number}\n").as_bytes());
    }
    from.file("kinds/ä ö 日本", b"name");
    fs::create_dir_all(from.0.join("kinds/empty/emptier")).unwrap();
    let set = |name: &str, mode| {
        let path = from.0.join("kinds").join(name);
        fs::File::open(&path)
            .unwrap()
            .set_modified(SystemTime::UNIX_EPOCH + Duration::new(1_234_567_890, 987_654_321))
            .unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    set("many/7.txt", 0o600);
    set("many/8.txt", 0o755);
    set("deep/er/7", 0o440);
    set("empty", 0o700);
    let single = from.file("single", b"by itself");
    let [sent, received] = both(transfer(&[&from.0.join("kinds"), &single], &to.0, Existing::Keep).await);
    assert!(sent.failed.is_empty() && received.failed.is_empty(), "{sent:?}");
    assert_eq!((sent.files, received.files, sent.bytes), (313, 313, received.bytes));
    assert!(tree(&from.0) == tree(&to.0), "names, bytes, modes, times, and nothing else");
    // The second transfer sends nothing.
    let [sent, received] = both(transfer(&[&from.0.join("kinds"), &single], &to.0, Existing::Keep).await);
    assert_eq!((sent.files, sent.files_there, received.files_there), (0, 313, 313));
    assert!(tree(&from.0) == tree(&to.0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_small_files_are_quick() {
    let (from, to) = (Folder::new(), Folder::new());
    for number in 0..10_000u64 {
        from.file(&format!("f/{}/{number}", number % 100), &noise(number, 1000));
    }
    let begin = Instant::now();
    let (sent, received) = transfer(&[&from.0.join("f")], &to.0, Existing::Keep).await;
    println!("{:?}", begin.elapsed());
    assert_eq!((sent.unwrap().files, received.unwrap().files), (10_000, 10_000));
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert!(tree(&from.0) == tree(&to.0));
}

/// Each file that cannot be sent is reported with the reason; the others arrive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsendable_file_is_named() {
    let (from, to) = (Folder::new(), Folder::new());
    from.file("f/good", b"good");
    symlink("/etc/passwd", from.0.join("f/link")).unwrap();
    let [sent, received] = both(transfer(&[&from.0.join("f")], &to.0, Existing::Keep).await);
    assert_eq!((sent.files, received.files, sent.failed.len()), (1, 1, 1));
    assert!(
        sent.failed[0].to_string().contains("f/link: it is a symbolic link, which is not sent"),
        "{:?}",
        sent.failed
    );
    assert!(!to.0.join("f/link").exists());
    let packed = Parcel::of_paths(&[from.0.join("nothing")], Options::default());
    assert!(matches!(packed, Err(SendError::Path(..))), "{packed:?}");
}

/// An existing file that differs is kept, unless the receiver allows overwriting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn existing_file_is_kept_by_default() {
    let (from, to) = (Folder::new(), Folder::new());
    let (one, two) = (from.file("one", b"new"), from.file("two", b"two"));
    to.file("one", b"older");
    let [sent, received] = both(transfer(&[&one, &two], &to.0, Existing::Keep).await);
    assert_eq!((sent.files, received.files), (1, 1));
    assert_eq!((sent.failed.len(), sent.failed[0].name.as_str()), (1, "one"), "{:?}", sent.failed);
    assert_eq!(fs::read(to.0.join("one")).unwrap(), b"older");
    let (sent, _) = transfer(&[&one, &two], &to.0, Existing::Overwrite).await;
    assert_eq!(sent.unwrap().files, 1);
    assert_eq!(fs::read(to.0.join("one")).unwrap(), b"new");
}
