//! Streams of unknown length, texts, and a receiver that writes to its standard output.

use std::fs;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use anabranch_transfer::{
    Compare, Existing, Item, Options, Parcel, Progress, ReceiveError, Receiver, SendError, Summary,
};
use anabranch_transfer::{receive_into, send};
use tokio::time::timeout;

use crate::support::{Folder, Pair, both, noise, pair, parcel, transfer_items};

fn stream(name: &str, from: impl Read + Send + 'static) -> Item {
    Item::Stream { name: name.into(), from: Box::new(from) }
}

/// A reader that fails after these bytes.
struct Broken(io::Cursor<Vec<u8>>);

impl Read for Broken {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self.0.read(room)? {
            0 => Err(io::Error::other("the disk is gone")),
            len => Ok(len),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_of_any_length_becomes_a_file() {
    for len in [0, 1, 1 << 20, 5_000_001] {
        let to = Folder::new();
        let bytes = noise(5, len);
        let items = vec![stream("backup.tar", io::Cursor::new(bytes.clone()))];
        for summary in both(transfer_items(Options::default(), items, &to.0, Existing::Keep).await) {
            assert_eq!((summary.files, summary.bytes, summary.failed.len()), (1, len as u64, 0), "{summary:?}");
        }
        assert!(fs::read(to.0.join("backup.tar")).unwrap() == bytes);
        assert!(!to.0.join(".anabranch").exists());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_beside_files_respects_what_is_there() {
    let (from, to) = (Folder::new(), Folder::new());
    let file = from.file("file", b"content");
    to.file("stream", b"mine");
    let items = || vec![Item::Path(file.clone()), stream("stream", &b"new"[..])];
    let (sent, _) = transfer_items(Options::default(), items(), &to.0, Existing::Keep).await;
    let sent = sent.unwrap();
    assert_eq!((sent.files, sent.failed.len(), sent.failed[0].name.as_str()), (1, 1, "stream"), "{sent:?}");
    assert_eq!(fs::read(to.0.join("stream")).unwrap(), b"mine");
    let (sent, _) = transfer_items(Options::default(), items(), &to.0, Existing::Overwrite).await;
    assert_eq!(sent.unwrap().files, 1);
    assert_eq!(fs::read(to.0.join("stream")).unwrap(), b"new");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_that_breaks_off_leaves_nothing() {
    let to = Folder::new();
    let items = vec![stream("s", Broken(io::Cursor::new(noise(6, 3_000_000))))];
    for summary in both(transfer_items(Options::default(), items, &to.0, Existing::Keep).await) {
        assert_eq!((summary.files, summary.failed.len()), (0, 1), "{summary:?}");
        assert_eq!(summary.failed[0].to_string(), "s: it cannot be read: the disk is gone");
    }
    assert_eq!(fs::read_dir(&to.0).unwrap().count(), 0);
    // A sender that dies in the middle.
    let (feed, from) = feeder();
    feed.send(noise(7, 2_000_000)).unwrap();
    let Pair { sender, receiver, _ends } = pair().await;
    let parcel = Arc::new(Parcel::pack(vec![stream("s", from)], Options::default()).unwrap());
    let (target, progress) = (Receiver::new(&to.0, Existing::Keep), Arc::new(Progress::default()));
    let dies = async {
        while progress.done().1 < 2_000_000 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        sender.abort();
        drop(feed);
    };
    let (sent, received, ()) =
        tokio::join!(send(&sender, parcel, Arc::default()), target.receive(&receiver, Arc::clone(&progress)), dies);
    assert!(matches!(sent, Err(SendError::Lost(_))), "{sent:?}");
    assert!(matches!(received, Err(ReceiveError::Lost(_))), "{received:?}");
    let left: Vec<_> = fs::read_dir(to.0.join(".anabranch")).into_iter().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A text, and a stream of another sender with the same name, while a stream is received.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_senders_do_not_end_a_stream() {
    let to = Folder::new();
    let target = Receiver::new(&to.0, Existing::Keep);
    let pairs = [pair().await, pair().await, pair().await];
    let (feed, from) = feeder();
    let one = |at: usize, item: Item| {
        let (pair, target) = (&pairs[at], &target);
        let parcel = Arc::new(Parcel::pack(vec![item], Options::default()).unwrap());
        async move {
            let progress = Arc::new(Progress::default());
            tokio::join!(send(&pair.sender, parcel, Arc::default()), target.receive(&pair.receiver, progress)).0
        }
    };
    let others = async {
        feed.send(b"first ".to_vec()).unwrap();
        while !to.0.join(".anabranch").exists() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let text = one(1, Item::Text("hi".into())).await;
        let stream = one(2, stream("s", &b"other"[..])).await;
        feed.send(b"second".to_vec()).unwrap();
        drop(feed);
        (text, stream)
    };
    let both = async { tokio::join!(one(0, stream("s", from)), others) };
    let (first, (text, other)) = timeout(Duration::from_secs(60), both).await.expect("nobody waits for ever");
    assert!(first.unwrap().is_complete() && text.unwrap().texts_sent == 1);
    assert!(other.unwrap_err().to_string().contains("send it with another --name"));
    assert_eq!(fs::read(to.0.join("s")).unwrap(), b"first second");
}

/// A reader that waits for what is sent to it.
fn feeder() -> (mpsc::Sender<Vec<u8>>, Fed) {
    let (feed, fed) = mpsc::channel();
    (feed, Fed(fed, io::Cursor::default()))
}

struct Fed(mpsc::Receiver<Vec<u8>>, io::Cursor<Vec<u8>>);

impl Read for Fed {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.1.position() == self.1.get_ref().len() as u64 {
            self.1 = io::Cursor::new(self.0.recv().unwrap_or_default());
        }
        self.1.read(room)
    }
}

/// The standard output of a command.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A pipe whose reader is gone.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

type Both = (Result<Summary, SendError>, Result<Summary, ReceiveError>);

async fn transfer_into(items: Vec<Item>, writer: impl Write + Send + 'static) -> Both {
    transfer_into_by(Options::default(), items, writer).await
}

async fn transfer_into_by(options: Options, items: Vec<Item>, writer: impl Write + Send + 'static) -> Both {
    let Pair { sender, receiver, _ends } = pair().await;
    let parcel = Arc::new(Parcel::pack(items, options).unwrap());
    let both = async {
        tokio::join!(
            send(&sender, parcel, Arc::default()),
            receive_into(&receiver, writer, None, Arc::new(Progress::default()))
        )
    };
    timeout(Duration::from_secs(60), both).await.expect("it takes no longer than a minute")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn file_stream_or_text_is_written_to_the_output() {
    let from = Folder::new();
    let bytes = noise(8, 3_000_000);
    let holes = [&[0; 5_000_000][..], b"end"].concat();
    let sparse = from.file("sparse", b"");
    let file = fs::File::options().write(true).open(&sparse).unwrap();
    file.set_len(5_000_000).unwrap();
    fs::write(from.0.join("rest"), b"").unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"end", 5_000_000).unwrap();
    for (item, expected) in [
        (Item::Path(from.file("small", b"small")), b"small".to_vec()),
        (Item::Path(from.file("large", &bytes)), bytes.clone()),
        (Item::Path(sparse), holes),
        (Item::Path(from.file("empty", b"")), vec![]),
        (stream("-", io::Cursor::new(bytes.clone())), bytes.clone()),
        (stream("-", io::empty()), vec![]),
        (Item::Text("hello".into()), b"hello".to_vec()),
    ] {
        let output = Output::default();
        let (sent, received) = transfer_into(vec![item], output.clone()).await;
        assert!(sent.unwrap().is_complete());
        let received = received.unwrap();
        assert_eq!((received.files, received.bytes), (1, expected.len() as u64));
        assert!(*output.0.lock().unwrap() == expected);
    }
}

/// What was read is written before the stream ends, as for a log that is followed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn piece_of_a_stream_is_written_at_once() {
    let (feed, from) = feeder();
    let output = Output::default();
    let watched = output.clone();
    let watch = async {
        for said in ["one", "two", "three"] {
            feed.send(said.into()).unwrap();
            let comes = async {
                while !watched.0.lock().unwrap().ends_with(said.as_bytes()) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            timeout(Duration::from_secs(10), comes).await.unwrap();
        }
        drop(feed);
    };
    let ((sent, received), ()) = tokio::join!(transfer_into(vec![stream("-", from)], output), watch);
    assert_eq!((sent.unwrap().bytes, received.unwrap().bytes), (11, 11));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_that_takes_no_more_ends_both_ends() {
    let endless = io::repeat(7);
    let (sent, received) = transfer_into(vec![stream("-", endless)], Closed).await;
    assert!(matches!(received, Err(ReceiveError::Output(_))), "{received:?}");
    let said = sent.unwrap_err().to_string();
    assert!(said.contains("cannot be written to the standard output"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_files_or_a_folder_do_not_go_to_the_output() {
    let from = Folder::new();
    let (one, two) = (from.file("f/one", b"1"), from.file("two", b"2"));
    let empty = from.0.join("empty");
    fs::create_dir(&empty).unwrap();
    let verifies = Options { compare: Compare::Only, ..Options::default() };
    for (items, options) in [
        (vec![Item::Path(one.clone()), Item::Path(two)], Options::default()),
        (vec![Item::Path(from.0.join("f"))], Options::default()),
        (vec![Item::Path(empty)], Options::default()),
        (vec![Item::Path(one.clone())], verifies),
    ] {
        let output = Output::default();
        let (sent, received) = transfer_into_by(options, items, output.clone()).await;
        assert!(matches!(received, Err(ReceiveError::Several)), "{received:?}");
        assert!(sent.unwrap_err().to_string().contains("takes one file"));
        assert!(output.0.lock().unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_comes_with_the_summary_and_not_to_the_disk() {
    let to = Folder::new();
    let text = "the password is\n\u{1b}[2J swordfish";
    let items = vec![Item::Text(text.into())];
    let (sent, received) = transfer_items(Options::default(), items, &to.0, Existing::Keep).await;
    assert_eq!((sent.unwrap().texts_sent, received.unwrap().texts), (1, vec![text.to_owned()]));
    assert_eq!(fs::read_dir(&to.0).unwrap().count(), 0);
    let long = Parcel::pack(vec![Item::Text("x".repeat((64 << 10) + 1))], Options::default());
    assert!(long.unwrap_err().to_string().contains("at most 65536 bytes"));
}

/// The same files to three receivers at once, one of which loses its connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parcel_reaches_several_receivers_at_once() {
    let from = Folder::new();
    let whole = noise(9, 4_000_000);
    from.file("f/large", &whole);
    from.file("f/small", b"small");
    let (folders, pairs) = ([Folder::new(), Folder::new(), Folder::new()], [pair().await, pair().await, pair().await]);
    let parcel = parcel(&[from.0.join("f")]);
    pairs[1].receiver.abort();
    let one = |at: usize| {
        let (pair, parcel, folder) = (&pairs[at], Arc::clone(&parcel), &folders[at].0);
        async move {
            let target = Receiver::new(folder, Existing::Keep);
            let both = async {
                tokio::join!(
                    send(&pair.sender, parcel, Arc::default()),
                    target.receive(&pair.receiver, Arc::new(Progress::default()))
                )
            };
            timeout(Duration::from_secs(60), both).await.expect("it takes no longer than a minute")
        }
    };
    let ((first, _), (second, _), (third, _)) = tokio::join!(one(0), one(1), one(2));
    assert!(matches!(second, Err(SendError::Lost(_))), "{second:?}");
    for (sent, folder) in [(first, &folders[0]), (third, &folders[2])] {
        assert_eq!(sent.unwrap().files, 2);
        assert!(fs::read(folder.0.join("f/large")).unwrap() == whole);
    }
    // A stream can be read once.
    let parcel = Arc::new(Parcel::pack(vec![stream("s", &b"once"[..])], Options::default()).unwrap());
    for (at, files) in [(0, 1), (1, 0)] {
        let (Pair { sender, receiver, _ends }, to) = (pair().await, Folder::new());
        let target = Receiver::new(&to.0, Existing::Keep);
        let (sent, _) = tokio::join!(
            send(&sender, Arc::clone(&parcel), Arc::default()),
            target.receive(&receiver, Arc::new(Progress::default()))
        );
        let sent = sent.unwrap();
        assert_eq!((sent.files, sent.failed.len() as u64), (files, 1 - files), "{at}: {sent:?}");
    }
}
