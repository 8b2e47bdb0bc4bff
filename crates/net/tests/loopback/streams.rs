//! Written data is read at the other end.

use std::time::{Duration, Instant};

use anabranch::{Config, ReadError, StreamError, WriteError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Pair, client, pattern, server, soon};

/// A request and its reply, with tokio's traits.
#[tokio::test]
async fn an_echo() {
    let Pair { here, there, .. } = Pair::new().await;
    let serve = async {
        let (mut request, mut reply) = (here.accept_stream().await.unwrap(), here.open_stream().await.unwrap());
        tokio::io::copy(&mut request, &mut reply).await.unwrap();
        reply.shutdown().await.unwrap();
    };
    let ask = async {
        let mut request = there.open_stream().await.unwrap();
        request.write_all(&pattern(1, 0, 300_000)).await.unwrap();
        request.shutdown().await.unwrap();
        let mut bytes = vec![];
        there
            .accept_stream()
            .await
            .unwrap()
            .read_to_end(1_000_000)
            .await
            .unwrap()
            .as_ref()
            .read_to_end(&mut bytes)
            .await
            .unwrap();
        bytes
    };
    let ((), bytes) = soon(async { tokio::join!(serve, ask) }).await;
    assert!(bytes == pattern(1, 0, 300_000));
}

/// More streams than there are SIDs: many at once, and then others on the same SIDs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_streams() {
    const STREAMS: u64 = 1000;
    let Pair { here, there, .. } = Pair::with(Config { streams: 100, ..Config::default() }).await;
    let write = tokio::spawn(async move {
        let mut tasks = vec![];
        for stream in 0..STREAMS {
            let mut opened = there.open_stream().await.unwrap();
            tasks.push(tokio::spawn(async move {
                opened.write_all(&stream.to_le_bytes()).await.unwrap();
                opened.write_all(&pattern(stream, 0, stream as usize * 37 % 5000)).await.unwrap();
                opened.finish().unwrap();
                assert_eq!(opened.stopped().await, Ok(None));
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        there.close().await.unwrap();
    });
    let mut seen = vec![false; STREAMS as usize];
    let mut tasks = tokio::task::JoinSet::new();
    soon(async {
        loop {
            match here.accept_stream().await {
                Ok(mut stream) => drop(tasks.spawn(async move { stream.read_to_end(10_000).await.unwrap() })),
                Err(error) => break assert_eq!(error, StreamError::Closed),
            }
        }
        while let Some(bytes) = tasks.join_next().await {
            let bytes = bytes.unwrap();
            let (number, content) = bytes.split_first_chunk().unwrap();
            let number = u64::from_le_bytes(*number);
            assert!(content == pattern(number, 0, number as usize * 37 % 5000), "stream {number}");
            assert!(!std::mem::replace(&mut seen[number as usize], true), "stream {number} came twice");
        }
        write.await.unwrap();
    })
    .await;
    assert!(seen.into_iter().all(|seen| seen));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_megabytes() {
    const PIECE: usize = 1 << 20;
    let Pair { here, there, .. } = Pair::new().await;
    let begin = Instant::now();
    let write = tokio::spawn(async move {
        let mut stream = there.open_stream().await.unwrap();
        for piece in 0..100 {
            stream.write_all_bytes(pattern(7, piece * PIECE as u64, PIECE)).await.unwrap();
        }
        stream.finish().unwrap();
        there.close().await.unwrap();
    });
    let read = async {
        let mut stream = here.accept_stream().await.unwrap();
        let (mut at, mut piece) = (0, vec![0; PIECE]);
        loop {
            match stream.read_exact(&mut piece).await {
                Ok(()) => assert!(piece == pattern(7, at, PIECE), "at {at}"),
                Err(error) => break assert_eq!((error, at), (ReadError::Ended, 100 * PIECE as u64)),
            }
            at += PIECE as u64;
        }
    };
    soon(read).await;
    soon(write).await.unwrap();
    println!("100 MB in {:?}", begin.elapsed());
}

/// If a stream is not read, its writer stops when the receive buffer and the send buffer are full; no other stream is affected.
#[tokio::test]
async fn writer_waits_for_reader() {
    let config = Config { receive_buffer: 1 << 20, send_buffer: 1 << 18, ..Config::default() };
    let Pair { here, there, .. } = Pair::with(config).await;
    let (mut slow, mut quick) = (there.open_stream().await.unwrap(), there.open_stream().await.unwrap());
    let mut written = 0;
    let write = async {
        loop {
            let mut piece = pattern(1, written, 10_000);
            written += slow.write_bytes(&mut piece).await.unwrap() as u64;
        }
    };
    let stopped: Result<(), _> = tokio::time::timeout(Duration::from_secs(2), write).await;
    assert!(stopped.is_err(), "it waits");
    assert!(written <= (1 << 20) + (1 << 18), "{written} bytes were taken");
    assert!(written >= 1 << 18, "{written} bytes were taken");
    assert!(here.stats().bytes_unread <= 1 << 20);
    quick.write_all(b"quick").await.unwrap();
    quick.finish().unwrap();
    let mut first = soon(here.accept_stream()).await.unwrap();
    let mut second = soon(here.accept_stream()).await.unwrap();
    assert_eq!(&soon(second.read_to_end(10)).await.unwrap()[..], b"quick");
    // The writer continues when there is room.
    let (mut at, mut rest) = (0, written);
    let read = async {
        while at < written + 500_000 {
            let piece = first.read_chunk(100_000).await.unwrap().unwrap();
            assert!(piece == pattern(1, at, piece.len()), "at {at}");
            at += piece.len() as u64;
        }
    };
    let write = async {
        while rest < written + 500_000 {
            rest += slow.write_bytes(&mut pattern(1, rest, 10_000)).await.unwrap() as u64;
        }
    };
    soon(async { tokio::join!(read, write) }).await;
}

#[tokio::test]
async fn a_stream_is_reset_or_stopped() {
    let Pair { here, there, .. } = Pair::new().await;
    let (mut first, mut second) = (there.open_stream().await.unwrap(), there.open_stream().await.unwrap());
    first.write_all(b"first").await.unwrap();
    second.write_all(b"second").await.unwrap();
    let (mut one, two) = (soon(here.accept_stream()).await.unwrap(), soon(here.accept_stream()).await.unwrap());
    first.reset(77);
    assert_eq!(first.write_all(b"more").await, Err(WriteError::Closed));
    let read = async {
        loop {
            match one.read_chunk(100).await {
                Ok(Some(_)) => {}
                end => break end,
            }
        }
    };
    assert_eq!(soon(read).await, Err(ReadError::Reset(77)));
    two.stop(78);
    assert_eq!(soon(second.stopped()).await, Ok(Some(78)));
    assert_eq!(second.write_all(b"more").await, Err(WriteError::Stopped(78)));
    // Both SIDs can be used for other streams.
    for text in ["third", "fourth"] {
        let mut stream = soon(there.open_stream()).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream.finish().unwrap();
        let mut stream = soon(here.accept_stream()).await.unwrap();
        assert_eq!(&soon(stream.read_to_end(10)).await.unwrap()[..], text.as_bytes());
    }
}

/// A stream dropped before its finish does not count as complete. Data that the reader does not want is no longer sent.
#[tokio::test]
async fn handles_that_are_dropped() {
    let Pair { here, there, .. } = Pair::new().await;
    let mut stream = there.open_stream().await.unwrap();
    stream.write_all(b"half of it").await.unwrap();
    let mut half = soon(here.accept_stream()).await.unwrap();
    assert_eq!(soon(half.read_chunk(4)).await.unwrap().unwrap(), "half");
    drop(stream);
    let read = async {
        loop {
            match half.read_chunk(100).await {
                Ok(Some(_)) => {}
                end => break end,
            }
        }
    };
    assert_eq!(soon(read).await, Err(ReadError::Reset(0)));
    let mut stream = there.open_stream().await.unwrap();
    stream.write_all(b"unwanted").await.unwrap();
    drop(soon(here.accept_stream()).await.unwrap());
    assert_eq!(soon(stream.stopped()).await, Ok(Some(0)));
}

/// If the program is busy while datagrams wait in the socket, their arrival time is the kernel's: no RTT sample includes the
/// wait.
#[test]
fn data_waiting_in_socket_has_arrived() {
    const BUSY: Duration = Duration::from_millis(60);
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let there = {
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            runtime().block_on(async {
                let server = server(Config::default());
                send.send(server.ticket()).unwrap();
                let here = server.accept().await.unwrap();
                while let Ok(mut stream) = here.accept_stream().await {
                    stream.read_to_end(100).await.unwrap();
                }
            });
        });
        receive.recv().unwrap()
    };
    runtime().block_on(async {
        let client = client(Config::default());
        let there = client.connect(&there).await.unwrap();
        let mut least = BUSY;
        for _ in 0..10 {
            let mut stream = there.open_stream().await.unwrap();
            stream.write_all(b"ping").await.unwrap();
            stream.finish().unwrap();
            // The driver sends it, and gets nothing until the thread is free again.
            tokio::task::yield_now().await;
            std::thread::sleep(BUSY);
            assert_eq!(soon(stream.stopped()).await, Ok(None));
            let latest = there.paths()[0].report.tally.rtt_latest.unwrap();
            least = least.min(Duration::from_nanos(latest.ticks()));
        }
        assert!(least < BUSY / 2, "{least:?}");
    });
}

/// A stream that was not read to its end does not hold up others: its SID is reused only after all others.
#[tokio::test]
async fn unread_end_of_stream_delays_no_other() {
    let Pair { here, there, .. } = Pair::new().await;
    let mut held = vec![];
    for number in 0..100_u8 {
        let mut stream = there.open_stream().await.unwrap();
        stream.write_all(&[number]).await.unwrap();
        stream.finish().unwrap();
        assert_eq!(soon(stream.stopped()).await, Ok(None), "all of it has arrived");
        let mut accepted = soon(here.accept_stream()).await.unwrap();
        assert_eq!(soon(accepted.read_chunk(1)).await.unwrap().unwrap(), &[number][..]);
        // Its end is not read.
        held.push(accepted);
    }
}

/// All possible streams at a time: none is finished before the last one is open. The next one waits for a SID.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_thousand_streams_at_a_time() {
    const STREAMS: u64 = 4080;
    let Pair { here, there, .. } = Pair::new().await;
    let write = tokio::spawn(async move {
        let mut streams = vec![];
        for number in 0..STREAMS {
            let mut stream = there.open_stream().await.unwrap();
            stream.write_all(&number.to_le_bytes()).await.unwrap();
            streams.push(stream);
        }
        let mut next = std::pin::pin!(there.open_stream());
        assert!(tokio::time::timeout(Duration::from_millis(50), &mut next).await.is_err(), "there is no name left");
        for (number, stream) in streams.iter_mut().enumerate() {
            stream.write_all(&pattern(number as u64, 0, 3000)).await.unwrap();
            stream.finish().unwrap();
        }
        next.await.unwrap().finish().unwrap();
        for mut stream in streams {
            assert_eq!(stream.stopped().await, Ok(None));
        }
        there.close().await.unwrap();
    });
    soon(async {
        let mut streams = vec![];
        for _ in 0..STREAMS {
            streams.push(here.accept_stream().await.unwrap());
        }
        let mut seen = vec![false; STREAMS as usize];
        for mut stream in streams {
            let bytes = stream.read_to_end(10_000).await.unwrap();
            let (number, content) = bytes.split_first_chunk().unwrap();
            let number = u64::from_le_bytes(*number);
            assert!(content == pattern(number, 0, 3000), "stream {number}");
            assert!(!std::mem::replace(&mut seen[number as usize], true), "stream {number} came twice");
        }
        assert!(here.accept_stream().await.unwrap().read_to_end(1).await.unwrap().is_empty());
        write.await.unwrap();
    })
    .await;
}
