//! The statistics that a connection reports.

use std::time::{Duration, Instant};

use anabranch::{Config, Limit};

use crate::support::{Pair, until};

/// Nothing is written, so the application is the limit. The limits add up to the elapsed time.
#[tokio::test]
async fn a_quiet_connection_is_limited_by_its_application() {
    let pair = Pair::new().await;
    let client = &pair.there;
    until(|| client.stats().limits.current().is_some()).await;
    let (begin, before) = (Instant::now(), client.stats().limits);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let limits = client.stats().limits.since(&before);
    let most = begin.elapsed().as_secs_f64() + 0.05;
    assert!((0.3..=most).contains(&limits.total().as_secs_f64()), "{limits:?} of {most}");
    assert!(limits.share(Limit::Application) > 0.9, "{limits:?}");
    assert!(client.paths()[0].report.limits.share(Limit::Application) > 0.5);
}

/// The peer does not read. When its buffer is full, the peer's buffer is the limit; then everything arrives.
#[tokio::test]
async fn limit_is_reader_that_does_not_read() {
    let small = Config { receive_buffer: 200_000, ..Config::default() };
    let pair = Pair::with(small).await;
    let (client, server) = (pair.there.clone(), &pair.here);
    let mut stream = client.open_stream().await.unwrap();
    let writing = tokio::spawn(async move {
        stream.write_all(&vec![7; 2_000_000]).await.unwrap();
        stream.finish().unwrap();
    });
    until(|| client.stats().limits.current() == Some(Limit::PeerBuffer)).await;
    let before = client.stats().limits;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let limits = client.stats().limits.since(&before);
    assert!(limits.share(Limit::PeerBuffer) > 0.9, "{limits:?}");
    let mut stream = server.accept_stream().await.unwrap();
    assert_eq!(stream.read_to_end(3_000_000).await.unwrap().len(), 2_000_000);
    writing.await.unwrap();
    until(|| client.stats().limits.current() == Some(Limit::Application)).await;
    let (stats, path) = (client.stats(), client.paths()[0]);
    assert!(path.rtt_base().is_some_and(|base| base <= Duration::from_secs(1)), "{path:?}");
    assert!(path.queue().is_some() && path.delivery_rate().is_some_and(|rate| rate > 0.0), "{path:?}");
    assert!(stats.segments_lost_by_timeout <= stats.segments_lost, "{stats:?}");
}
