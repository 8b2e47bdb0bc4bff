//! After the transfer, no end waits long for a peer that does not close.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_transfer::{Existing, Progress, Receiver, send};

use crate::support::{Folder, Pair, noise, pair, parcel, transfer};

/// The peer sends nothing more, but does not close. For half a minute it does not count as dead, and a keep-alive probe is
/// answered.
const STAYS: Duration = Duration::from_secs(20);

/// Two seconds, plus what a busy machine takes.
const SOON: Duration = Duration::from_secs(6);

#[tokio::test]
async fn a_receiver_that_does_not_close_is_not_waited_for() {
    let from = Folder::new();
    std::fs::create_dir(from.0.join("empty")).unwrap();
    let Pair { sender, receiver, _ends } = pair().await;
    tokio::spawn(async move {
        let list = receiver.accept_stream().await.unwrap().read_to_end(1000).await.unwrap();
        assert!(list.starts_with(b"ab-list4\0"));
        let mut reply = receiver.open_stream().await.unwrap();
        // No rate; a folder, of which nothing is requested; then the end of the transfer.
        reply.write_all(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 3]).await.unwrap();
        reply.finish().unwrap();
        tokio::time::sleep(STAYS).await;
    });
    let begin = Instant::now();
    let sent = send(&sender, parcel(&[from.0.join("empty")]), Arc::new(Progress::default()));
    let sent = tokio::time::timeout(STAYS, sent).await.expect("nobody waits for it").unwrap();
    assert!(sent.failed.is_empty(), "{sent:?}");
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
}

/// The sender has received everything, and then does nothing any more.
#[tokio::test]
async fn a_sender_that_does_not_close_is_not_waited_for() {
    let to = Folder::new();
    let Pair { sender, receiver, _ends } = pair().await;
    tokio::spawn(async move {
        let mut list = sender.open_stream().await.unwrap();
        list.write_all(b"ab-list4\0").await.unwrap();
        list.finish().unwrap();
        let said = sender.accept_stream().await.unwrap().read_to_end(1000).await.unwrap();
        assert_eq!(&said[..], [0, 0, 0, 0, 0, 0, 0, 0, 3]);
        tokio::time::sleep(STAYS).await;
    });
    let begin = Instant::now();
    let target = Receiver::new(&to.0, Existing::Keep);
    let received = target.receive(&receiver, Arc::new(Progress::default()));
    tokio::time::timeout(STAYS, received).await.expect("nobody waits for it").unwrap();
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
}

/// If both close, it takes only round trips.
#[tokio::test]
async fn two_that_close_do_not_wait() {
    let (from, to) = (Folder::new(), Folder::new());
    let file = from.file("file", &noise(1, 1000));
    let begin = Instant::now();
    let (sent, received) = transfer(&[&file], &to.0, Existing::Keep).await;
    assert_eq!((sent.unwrap().files, received.unwrap().files), (1, 1));
    assert!(begin.elapsed() < Duration::from_millis(1500), "{:?}", begin.elapsed());
}

/// The sender has read that all is over, and stops reading before the receiver has finished the stream. In one of two dozen transfers that came first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_after_the_last_word_breaks_nothing() {
    let to = Folder::new();
    for _ in 0..50 {
        let Pair { sender, receiver, _ends } = pair().await;
        let ends = tokio::spawn(async move {
            let mut list = sender.open_stream().await.unwrap();
            list.write_all(b"ab-list4\0").await.unwrap();
            list.finish().unwrap();
            let mut reply = sender.accept_stream().await.unwrap();
            reply.read_exact(&mut [0; 9]).await.unwrap();
            drop(reply);
            sender.close().await
        });
        let target = Receiver::new(&to.0, Existing::Keep);
        let received = target.receive(&receiver, Arc::new(Progress::default()));
        tokio::time::timeout(STAYS, received).await.expect("nobody waits for it").unwrap();
        drop(ends.await);
    }
}
