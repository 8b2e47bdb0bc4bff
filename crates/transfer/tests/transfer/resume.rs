//! Interrupted transfers, and files that have changed.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anabranch_transfer::{Existing, Progress, Receiver, send};

use crate::support::{Folder, both, noise, pair, parcel, transfer, tree};

/// Interrupts a transfer when `bytes` bytes have arrived.
pub(crate) async fn break_off(from: &Folder, to: &Folder, bytes: u64) {
    let pair = pair().await;
    let target = Receiver::new(&to.0, Existing::Keep);
    let progress = Arc::new(Progress::default());
    let watch = async {
        while progress.done().1 < bytes {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        pair.sender.abort();
    };
    let (sent, received, ()) = tokio::join!(
        send(&pair.sender, parcel(&[from.0.join("f")]), Arc::new(Progress::default())),
        target.receive(&pair.receiver, Arc::clone(&progress)),
        watch
    );
    assert!(sent.is_err() && received.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_goes_on_where_it_stopped() {
    const SIZE: usize = 40 << 20;
    let (from, to) = (Folder::new(), Folder::new());
    from.file("f/big", &noise(1, SIZE + 12_345));
    from.file("f/small", b"small");
    for round in 1..4 {
        break_off(&from, &to, round * SIZE as u64 / 4).await;
        assert!(!to.0.join("f/big").exists(), "it has no name before it is whole");
    }
    let [sent, received] = both(transfer(&[&from.0.join("f")], &to.0, Existing::Keep).await);
    assert!(sent.bytes_there as usize >= SIZE / 2, "{sent:?}");
    assert_eq!(sent.bytes_there, received.bytes_there);
    assert!(tree(&from.0) == tree(&to.0), "and nothing is left besides");
}

/// If the disk has lost the data written last, that data is sent again. A file that has changed is sent completely.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_is_right_is_kept() {
    const SIZE: usize = 20 << 20;
    let (from, to) = (Folder::new(), Folder::new());
    let big = from.file("f/big", &noise(2, SIZE));
    break_off(&from, &to, SIZE as u64 / 2).await;
    let workshop = to.0.join(".anabranch");
    let part = fs::read_dir(&workshop).unwrap().map(|entry| entry.unwrap().path());
    let part = part.into_iter().find(|path| path.extension().unwrap() == "part").unwrap();
    let mut bytes = fs::read(&part).unwrap();
    let chunks = bytes.len() >> 20;
    assert!(chunks >= 3, "{chunks}");
    bytes[(chunks - 2) << 20] ^= 1;
    fs::write(&part, &bytes).unwrap();
    let (sent, _) = transfer(&[&from.0.join("f")], &to.0, Existing::Keep).await;
    assert_eq!(sent.unwrap().bytes_there, ((chunks - 1) as u64) << 20, "all but the chunk that is wrong");
    assert!(tree(&from.0) == tree(&to.0));
    let to = Folder::new();
    break_off(&from, &to, SIZE as u64 / 2).await;
    fs::write(big, noise(5, SIZE)).unwrap();
    let (sent, _) = transfer(&[&from.0.join("f")], &to.0, Existing::Keep).await;
    assert_eq!(sent.unwrap().bytes_there, 0);
    assert!(tree(&from.0) == tree(&to.0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_changes_while_it_is_sent_is_refused() {
    let (from, to) = (Folder::new(), Folder::new());
    let big = from.file("f/big", &noise(4, 30 << 20));
    from.file("f/small", b"small");
    let pair = pair().await;
    let target = Receiver::new(&to.0, Existing::Keep);
    let progress = Arc::new(Progress::default());
    let change = async {
        while progress.done().1 < 5 << 20 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        fs::OpenOptions::new().append(true).open(&big).unwrap().set_len(31 << 20).unwrap();
    };
    let (sent, received, ()) = tokio::join!(
        send(&pair.sender, parcel(&[from.0.join("f")]), Arc::new(Progress::default())),
        target.receive(&pair.receiver, Arc::clone(&progress)),
        change
    );
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!((sent.files, received.files), (1, 1), "the other one arrives");
    assert_eq!(sent.failed[0].to_string(), "f/big: it has changed since the start of the transfer; send it again");
    assert_eq!(fs::read_dir(to.0.join("f")).unwrap().count(), 1);
    assert!(!to.0.join(".anabranch").exists(), "nothing is kept of it");
}

/// A sender can retry before the receiver has noticed that the first connection is dead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_sender_takes_the_place_of_the_first() {
    let (from, to) = (Folder::new(), Folder::new());
    from.file("f/big", &noise(5, 20 << 20));
    let target = Receiver::new(&to.0, Existing::Keep);
    let (first, second) = (pair().await, pair().await);
    let progress = Arc::new(Progress::default());
    let slow = async {
        // It sends its manifest, and then nothing more.
        let sent = send(&first.sender, parcel(&[from.0.join("f")]), Arc::new(Progress::default()));
        _ = tokio::time::timeout(Duration::from_millis(30), sent).await;
        std::future::pending::<()>().await;
    };
    let again = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        tokio::join!(
            send(&second.sender, parcel(&[from.0.join("f")]), Arc::new(Progress::default())),
            target.receive(&second.receiver, Arc::new(Progress::default()))
        )
    };
    let old = target.receive(&first.receiver, Arc::clone(&progress));
    let all = async {
        tokio::select! {
            () = slow => unreachable!("it never ends"),
            (old, again) = async { tokio::join!(old, again) } => (old, again),
        }
    };
    let (_, (sent, received)) =
        tokio::time::timeout(Duration::from_secs(30), all).await.expect("nobody waits for the first");
    assert!(sent.unwrap().failed.is_empty() && received.unwrap().failed.is_empty());
    assert!(tree(&from.0) == tree(&to.0));
}
