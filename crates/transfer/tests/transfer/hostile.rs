//! A sender that tries to write outside the folder, and one that violates the protocol.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::Duration;

use anabranch::Connection;
use anabranch_transfer::{Breach, Compare, Existing, Options, Parcel, Progress, ReceiveError, Receiver, SendError};
use anabranch_transfer::{receive_into, send};

use crate::support::{Folder, pair, tree};

/// An entry of a manifest in its encoded form, in the folder of this number.
fn entry_in(parent: u32, kind: u8, size: u64, name: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(parent.to_le_bytes());
    bytes.extend(0o644u16.to_le_bytes());
    bytes.extend(1_700_000_000i64.to_le_bytes());
    bytes.extend(0u32.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.push(name.len() as u8);
    bytes.extend(name);
    bytes
}

fn entry(kind: u8, size: u64, name: &[u8]) -> Vec<u8> {
    entry_in(u32::MAX, kind, size, name)
}

fn list(entries: &[Vec<u8>]) -> Vec<u8> {
    [&b"ab-list4\0"[..], &entries.concat()].concat()
}

async fn say(connection: &Connection, bytes: &[u8]) {
    let mut stream = connection.open_stream().await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream.finish().unwrap();
}

/// Runs a receiver with a manifest and, optionally, a data stream. Returns the receiver's result.
async fn receive(folder: &Folder, list: &[u8], data: Option<&[u8]>) -> (Result<(), ReceiveError>, Vec<u8>) {
    receive_after(folder, list, data, || ()).await
}

/// The same, with something that happens between plan and data.
async fn receive_after(
    folder: &Folder,
    list: &[u8],
    data: Option<&[u8]>,
    change: impl Fn(),
) -> (Result<(), ReceiveError>, Vec<u8>) {
    let pair = pair().await;
    let target = Receiver::new(folder.0.join("in"), Existing::Overwrite);
    let hostile = async {
        say(&pair.sender, list).await;
        let mut reply = pair.sender.accept_stream().await.unwrap();
        reply.read_exact(&mut [0; 8]).await.unwrap();
        if let Some(data) = data {
            // The receiver sends its plan first.
            let mut step = [0];
            reply.read_exact(&mut step).await.unwrap();
            change();
            say(&pair.sender, data).await;
        }
        let said = reply.read_to_end(100_000).await.map(|said| said.to_vec());
        _ = pair.sender.close().await;
        said.unwrap_or_default()
    };
    let both = async { tokio::join!(target.receive(&pair.receiver, Arc::new(Progress::default())), hostile) };
    let (received, said) = tokio::time::timeout(Duration::from_secs(20), both).await.expect("nobody waits for ever");
    (received.map(|_| ()), said)
}

#[tokio::test]
async fn names_that_leave_the_folder_are_refused() {
    let folder = Folder::new();
    folder.file("outside", b"mine");
    let before = tree(&folder.0);
    for name in
        [&b".."[..], b".", b"", b"/etc/passwd", b"../outside", b"a/../../outside", b"a\0b", b"\x1b[2J", b".anabranch"]
    {
        for kind in [0, 1] {
            let (received, said) = receive(&folder, &list(&[entry(kind, 4, name)]), None).await;
            assert!(matches!(received, Err(ReceiveError::Manifest(_))), "{name:?}: {received:?}");
            assert_eq!(said[0], 9, "it says why: {}", String::from_utf8_lossy(&said));
            assert!(tree(&folder.0) == before, "{name:?}");
        }
    }
}

/// A link in the receiver's folder that leads elsewhere does not count as a folder.
#[tokio::test]
async fn links_are_not_followed() {
    let folder = Folder::new();
    fs::create_dir_all(folder.0.join("in")).unwrap();
    fs::create_dir_all(folder.0.join("elsewhere")).unwrap();
    symlink(folder.0.join("elsewhere"), folder.0.join("in/link")).unwrap();
    symlink(folder.0.join("elsewhere/file"), folder.0.join("in/file")).unwrap();
    let entries = [entry(0, 0, b"link"), entry_in(0, 1, 0, b"x"), entry(1, 0, b"file"), entry_in(0, 0, 0, b"y")];
    let (received, _) = receive(&folder, &list(&entries), None).await;
    received.unwrap();
    assert_eq!(fs::read_dir(folder.0.join("elsewhere")).unwrap().count(), 0);
}

/// Data that is no manifest, and manifests that make no sense.
#[tokio::test]
async fn lists_that_are_none_are_refused() {
    let folder = Folder::new();
    let file = entry(1, 4, b"a");
    for list in [
        b"GET / HTTP/1.1\r\n".to_vec(),
        vec![],
        list(&[file[..10].to_vec()]),
        list(&[file.clone(), file.clone()]),
        list(&[entry(7, 4, b"a")]),
        list(&[entry(1, u64::MAX, b"a")]),
        list(&[entry(6, 0, b"a")]),
        [&b"ab-list4\x04"[..], &file].concat(),
        list(&[file.clone(), entry(6, 1 << 32, b"b")]),
        list(&[entry(4, 9, b"a")]),
    ] {
        let (received, _) = receive(&folder, &list, None).await;
        assert!(matches!(received, Err(ReceiveError::Manifest(_))), "{received:?}");
    }
}

/// A receiver that says that a file is there, or asks for its content, where it was asked to compare.
#[tokio::test]
async fn receiver_that_does_not_compare_is_not_believed() {
    let folder = Folder::new();
    let path = folder.file("secret", b"four");
    let verify = Options { compare: Compare::Only, ..Options::default() };
    for step in [vec![1], vec![0], vec![2, 0, 0, 0, 0], [&[4][..], &[7; 32], &[0; 4]].concat()] {
        let pair = pair().await;
        let parcel = Arc::new(Parcel::of_paths(std::slice::from_ref(&path), verify).unwrap());
        let hostile = async {
            say(&pair.receiver, &[&[0; 8][..], &step, &[3]].concat()).await;
            pair.receiver.accept_stream().await.unwrap().read_to_end(1000).await.unwrap();
            // Nothing else comes.
            assert!(pair.receiver.accept_stream().await.is_err());
        };
        let both = async { tokio::join!(send(&pair.sender, parcel, Arc::default()), hostile) };
        let (sent, ()) = tokio::time::timeout(Duration::from_secs(20), both).await.expect("nobody waits for ever");
        assert!(matches!(sent, Err(SendError::Protocol(_))), "{step:?}: {sent:?}");
    }
}

/// A receiver that ends before it has told the result of each file, or tells one twice, or one that nobody asked for.
#[tokio::test]
async fn receiver_that_leaves_results_out_is_not_believed() {
    let folder = Folder::new();
    let path = folder.file("secret", b"four");
    let done = [1, 0, 0, 0, 0];
    let verify = Options { compare: Compare::Only, ..Options::default() };
    let same = [&[5][..], blake3::hash(b"four").as_bytes()].concat();
    for (options, said, is_good) in [
        (Options::default(), vec![0, 3], false),
        (Options::default(), [&[0][..], &done, &[3]].concat(), true),
        (Options::default(), [&[0][..], &done, &done, &[3]].concat(), false),
        (verify, [&same[..], &done, &[3]].concat(), false),
    ] {
        let pair = pair().await;
        let parcel = Arc::new(Parcel::of_paths(std::slice::from_ref(&path), options).unwrap());
        let hostile = async { say(&pair.receiver, &[&[0; 8][..], &said].concat()).await };
        let both = async { tokio::join!(send(&pair.sender, parcel, Arc::default()), hostile) };
        let (sent, ()) = tokio::time::timeout(Duration::from_secs(20), both).await.expect("nobody waits for ever");
        match sent {
            Ok(summary) => assert!(is_good && summary.files == 1, "{said:?}: {summary:?}"),
            Err(error) => assert!(!is_good && matches!(error, SendError::Protocol(_)), "{said:?}: {error}"),
        }
    }
}

/// Two ends that both wait, and two that both say nothing.
#[tokio::test]
async fn silent_end_is_given_up() {
    let folder = Folder::new();
    let path = folder.file("f", b"four");
    let (one, two, three) = (pair().await, pair().await, pair().await);
    let target = Receiver::new(folder.0.join("in"), Existing::Keep);
    let parcel = Arc::new(Parcel::of_paths(&[path], Options::default()).unwrap());
    let ends = async {
        tokio::join!(
            send(&one.sender, parcel, Arc::default()),
            target.receive(&two.receiver, Arc::default()),
            receive_into(&three.receiver, std::io::sink(), None, Arc::default())
        )
    };
    let (sent, received, written) = tokio::time::timeout(Duration::from_secs(20), ends).await.expect("all give up");
    assert_eq!(sent.unwrap_err(), SendError::Silent);
    assert!(matches!(received, Err(ReceiveError::Silent)), "{received:?}");
    assert!(matches!(written, Err(ReceiveError::Silent)), "{written:?}");
}

/// Chunks of the file that is replaced are compared again when they are copied.
#[tokio::test]
async fn replaced_file_that_changes_meanwhile_stays() {
    const SIZE: usize = 3 << 20;
    let bytes = crate::support::noise(3, SIZE);
    let data = [&0u32.to_le_bytes()[..], &[4, 3, 0, 0, 0, 2], blake3::hash(&bytes).as_bytes()].concat();
    for is_changed in [false, true] {
        let folder = Folder::new();
        let path = folder.file("in/a", &bytes);
        let mut changed = bytes.clone();
        changed[SIZE / 2] ^= u8::from(is_changed);
        let change = || fs::write(&path, &changed).unwrap();
        let (received, said) = receive_after(&folder, &list(&[entry(1, SIZE as u64, b"a")]), Some(&data), change).await;
        received.unwrap();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert_eq!(said.contains("has changed meanwhile"), is_changed, "{said}");
        assert!(fs::read(&path).unwrap() == changed);
    }
}

/// A stream and a text have no size, so nothing can be kept of them, and only one text is remembered.
#[tokio::test]
async fn stream_or_text_that_breaks_the_rules_leaves_nothing() {
    let piece = |bytes: &[u8]| [&[1][..], &(bytes.len() as u32).to_le_bytes(), bytes].concat();
    let end = |bytes: &[u8]| [&[2][..], blake3::hash(bytes).as_bytes()].concat();
    let first = 0u32.to_le_bytes().to_vec();
    for (kind, data, is_fatal) in [
        (4, [first.clone(), piece(b"four"), end(b"other")].concat(), false),
        (4, [first.clone(), vec![4, 1, 0, 0, 0], end(b"")].concat(), true),
        (4, [first.clone(), vec![5, 1, 0, 0, 0], end(b"")].concat(), true),
        (4, [first.clone(), vec![6]].concat(), true),
        (4, [first.clone(), piece(b"four")].concat(), true),
        (5, [first.clone(), piece(b"four"), end(b"other")].concat(), false),
        (5, [first.clone(), piece(&[b'x'; 70_000]), end(&[b'x'; 70_000])].concat(), false),
        (5, [first.clone(), vec![7]].concat(), true),
    ] {
        let folder = Folder::new();
        let (received, said) = receive(&folder, &list(&[entry(kind, 0, b"a")]), Some(&data)).await;
        assert_eq!(matches!(received, Err(ReceiveError::Protocol(_))), is_fatal, "{kind}: {received:?}");
        let said = String::from_utf8_lossy(&said).into_owned();
        assert_eq!(said.contains("it is too long; send it as a file"), data.len() > 70_000, "{said}");
        assert!(!folder.0.join("in/a").exists());
        let left: Vec<_> = fs::read_dir(folder.0.join("in/.anabranch")).into_iter().flatten().collect();
        assert!(left.is_empty(), "{kind}: {left:?}");
    }
    let folder = Folder::new();
    let texts = list(&[entry(5, 0, b"a"), entry(5, 0, b"b")]);
    let data = [first, piece(b"four"), end(b"four")].concat();
    let (received, said) = receive(&folder, &texts, Some(&data)).await;
    received.unwrap();
    assert!(String::from_utf8_lossy(&said).contains("a transfer has one text"), "{said:?}");
}

/// Data that differs from what was announced: no file gets its final name.
#[tokio::test]
async fn data_that_breaks_the_rules_leaves_nothing() {
    let chunk = |len: u32, bytes: &[u8]| [&[1][..], &len.to_le_bytes(), bytes].concat();
    let file = |index: u32| index.to_le_bytes().to_vec();
    let end = |hash: [u8; 32]| [&[2][..], &hash].concat();
    let good = *blake3::hash(b"four").as_bytes();
    for (data, breach) in [
        ([file(0), chunk(4, b"four"), end([7; 32])].concat(), None),
        ([file(0), end(good)].concat(), None),
        ([file(0), chunk(5, b"fiver"), end(good)].concat(), Some(Breach::Unexpected)),
        ([file(0), chunk(2, b"fo"), chunk(2, b"ur"), end(good)].concat(), Some(Breach::Unexpected)),
        ([file(0), chunk(4, b"four"), chunk(4, b"four"), end(good)].concat(), Some(Breach::Unexpected)),
        ([file(0), chunk(0, b""), end(good)].concat(), Some(Breach::Ended)),
        ([file(0), chunk(u32::MAX, b"four")].concat(), Some(Breach::Ended)),
        ([file(1), chunk(4, b"four"), end(good)].concat(), Some(Breach::Unexpected)),
        ([file(0), vec![4, 1, 0, 0, 0], end(good)].concat(), Some(Breach::Unexpected)),
        ([file(0), vec![5, 1, 0, 0, 0], end(good)].concat(), Some(Breach::Unexpected)),
        ([file(0), vec![6]].concat(), Some(Breach::Unexpected)),
        ([file(0), vec![7]].concat(), Some(Breach::Unexpected)),
        ([file(0), vec![77]].concat(), Some(Breach::Ended)),
        ([file(0), chunk(4, b"fo")].concat(), Some(Breach::Ended)),
        (b"x".to_vec(), Some(Breach::Ended)),
    ] {
        let folder = Folder::new();
        let (received, _) = receive(&folder, &list(&[entry(1, 4, b"a")]), Some(&data)).await;
        match received {
            Err(ReceiveError::Protocol(found)) => assert_eq!(Some(found), breach, "{data:?}"),
            received => assert!(breach.is_none() && received.is_ok(), "{data:?}: {received:?}"),
        }
        assert!(!folder.0.join("in/a").exists(), "{data:?}");
    }
    let folder = Folder::new();
    let data = [file(0), chunk(4, b"four"), end(good)].concat();
    receive(&folder, &list(&[entry(1, 4, b"a")]), Some(&data)).await.0.unwrap();
    assert_eq!(fs::read(folder.0.join("in/a")).unwrap(), b"four");
}

/// It announces a file, reads the plan, and closes.
#[tokio::test]
async fn sender_that_closes_early_is_told_from_others() {
    let folder = Folder::new();
    let pair = pair().await;
    let target = Receiver::new(folder.0.join("in"), Existing::Overwrite);
    let hostile = async {
        say(&pair.sender, &list(&[entry(1, 4, b"a")])).await;
        let mut reply = pair.sender.accept_stream().await.unwrap();
        reply.read_exact(&mut [0; 9]).await.unwrap();
        pair.sender.close().await
    };
    let (received, _) = tokio::join!(target.receive(&pair.receiver, Arc::new(Progress::default())), hostile);
    assert!(matches!(received, Err(ReceiveError::Protocol(Breach::Missing))), "{received:?}");
}
