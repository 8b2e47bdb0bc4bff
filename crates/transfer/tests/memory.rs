//! The memory that a peer's list of files takes.

#![expect(clippy::unwrap_used, reason = "a test may")]

use std::sync::Arc;
use std::time::Duration;

use anabranch::{Admission, Config, Connection, Endpoint, SecretKey};
use anabranch_transfer::{Existing, Progress, ReceiveError, Receiver};
use peak_alloc::PeakAlloc;

/// Counts what is allocated and not freed.
#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

fn bind(config: Config) -> Endpoint {
    Endpoint::bind("127.0.0.1:0".parse().unwrap(), &SecretKey::generate().unwrap(), config).unwrap()
}

fn entry(kind: u8, parent: u32, name: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(parent.to_le_bytes());
    bytes.extend([0; 2 + 8 + 4 + 8]);
    bytes.push(name.len() as u8);
    bytes.extend(name);
    bytes
}

/// Sends a list and leaves. Returns the peak of what both ends hold above what they held before, and the result.
async fn held(list: Vec<u8>, target: &Receiver) -> (usize, ReceiveError) {
    let (server, client) = (bind(Config::default().admit(Admission::Ticket)), bind(Config::default()));
    let ticket = server.ticket();
    let (sender, receiver) = tokio::join!(client.connect(&ticket), server.accept());
    let (sender, receiver) = (sender.unwrap(), receiver.unwrap());
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage();
    let said = say(&sender, list);
    let (received, ()) = tokio::join!(target.receive(&receiver, Arc::new(Progress::default())), said);
    (HEAP.peak_usage() - before, received.unwrap_err())
}

/// Sends a list, waits for the first of the answer, and leaves.
async fn say(connection: &Connection, list: Vec<u8>) {
    let mut stream = connection.open_stream().await.unwrap();
    _ = stream.write_all_bytes(list.into()).await;
    _ = stream.finish();
    let mut reply = connection.accept_stream().await.unwrap();
    // The rate, and the first step.
    _ = reply.read_exact(&mut [0; 9]).await;
    connection.abort();
}

/// Entries of the least length, in a folder that is 255 deep: before, each was a list of 256 texts. And lists beyond the limits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_of_a_million_deep_entries_is_bounded_and_freed() {
    let folder = std::env::temp_dir().join(format!("anabranch-memory-{}", std::process::id()));
    let target = Receiver::new(&folder, Existing::Keep);
    let deep = |count: u32| {
        let mut list = b"ab-list4\0".to_vec();
        (0..255u32).for_each(|depth| list.extend(entry(0, depth.wrapping_sub(1), b"d")));
        // A file, so that nothing is created but the folders; its parent is the last of them.
        (0..count).for_each(|number| list.extend(entry(1, 254, number.to_string().as_bytes())));
        list
    };
    let list = deep(700_000);
    let len = list.len();
    assert!((23_000_000..26_000_000).contains(&len), "24 MB: {len}");
    let begin = HEAP.current_usage();
    let (peak, error) = held(list, &target).await;
    assert!(matches!(error, ReceiveError::Lost(_)), "{error}");
    // The list of the test, the sender's copy, the receiver's, and 30 bytes for each entry while it is checked.
    assert!(peak < 3 * len + 16_000_000, "{peak} bytes at most for {len}");
    tokio::time::sleep(Duration::from_millis(200)).await;
    let left = HEAP.current_usage().saturating_sub(begin);
    assert!(left < 4_000_000, "{left} bytes are left");
    let (_, error) = held(deep(1_000_001), &target).await;
    assert!(error.to_string().contains("more than 1000000 entries"), "{error}");
    let long = entry(1, u32::MAX, &[b'x'; 255]);
    let (peak, error) = held([&b"ab-list4\0"[..], &long.repeat(400_000)].concat(), &target).await;
    assert!(error.to_string().contains("80 MB"), "{error}");
    assert!(peak < 3 * (80 << 20), "{peak}");
    _ = std::fs::remove_dir_all(folder);
}
