//! Measurements, with ends that support all or only some of the protocol.

use std::time::{Duration, Instant};

use anabranch::measure::{self, Direction, MeasureError, Plan};
use anabranch::units::Rate;

use crate::support::{Pair, soon};

fn plan(direction: Direction) -> Plan {
    Plan { direction, streams: 2, time: Duration::from_millis(400), rate: None }
}

/// Both ends send at once, and both finish.
#[tokio::test]
async fn both_send_at_once() {
    let pair = Pair::new().await;
    let (measuring, serving) = (measure::measure(&pair.there, plan(Direction::Both)), measure::serve(&pair.here));
    let (measured, served) = soon(async { tokio::join!(measuring, serving) }).await;
    assert_eq!((measured, served), (Ok(()), Ok(())));
}

/// At 8 Mbit/s, half a second has 500 kB, plus what may be sent at once at the start: no more arrives. How much less arrives
/// depends on the machine.
#[tokio::test]
async fn a_rate_is_kept() {
    let pair = Pair::new().await;
    let rate = Some(Rate::from_bits_per_second(8_000_000));
    let plan = Plan { rate, time: Duration::from_millis(500), ..plan(Direction::Up) };
    let begin = Instant::now();
    let mut most = 0;
    let watched = async {
        loop {
            most = most.max(pair.there.stats().bytes_acknowledged);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let work = async { tokio::join!(measure::measure(&pair.there, plan), measure::serve(&pair.here)) };
    tokio::select! {
        () = watched => unreachable!("it watches for ever"),
        (measured, served) = soon(work) => assert_eq!((measured, served), (Ok(()), Ok(()))),
    }
    let elapsed = begin.elapsed();
    // A piece of 20 ms for each stream, plus the headers of segments.
    assert!((50_000..570_000).contains(&most), "{most} bytes in {elapsed:?}");
}

/// An end that reads 14 bytes of a request and finds more, as older versions do, closes the connection.
#[tokio::test]
async fn an_older_end_is_named() {
    for direction in [Direction::Both, Direction::Up, Direction::Down] {
        let Pair { here, there, server, client } = Pair::new().await;
        let older = async move {
            assert!(here.accept_stream().await.unwrap().read_to_end(14).await.is_err());
            drop(here);
            server.wait_idle().await;
        };
        let plan = Plan { rate: Some(Rate::from_bits_per_second(1_000_000)), ..plan(direction) };
        let (measured, ()) = soon(async { tokio::join!(measure::measure(&there, plan), older) }).await;
        assert_eq!(measured, Err(MeasureError::Older), "{direction:?}");
        drop((there, client));
    }
}

/// The request is the second stream that the other end sees, as if its first packet had been lost.
#[tokio::test]
async fn request_that_arrives_after_data_is_served() {
    let Pair { here, there, server, client } = Pair::new().await;
    let late = async move {
        let mut data = there.open_stream().await.unwrap();
        data.write_all(&[0x5a; 100_000]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let mut request = there.open_stream().await.unwrap();
        request.write_all(b"ab-bench\x00\x01\x10\x00\x00\x00").await.unwrap();
        request.finish().unwrap();
        data.finish().unwrap();
        there.close().await.unwrap();
        there.closed().await
    };
    let (served, closed) = soon(async { tokio::join!(measure::serve(&here), late) }).await;
    assert_eq!((served, closed), (Ok(()), Ok(())));
    drop((here, server, client));
}

/// The other end does not read, as if the path were very slow: the measurement ends on time, and what has arrived counts.
#[tokio::test]
async fn measurement_on_a_path_that_stands_still_ends_on_time() {
    let pair = Pair::new().await;
    let begin = Instant::now();
    assert_eq!(soon(measure::measure(&pair.there, plan(Direction::Up))).await, Ok(()));
    let took = begin.elapsed();
    assert!(took < Duration::from_millis(400) + measure::LATE_MAX + Duration::from_millis(500), "{took:?}");
}

/// An end that serves nothing neither sends nor closes: with data to come, that is an error.
#[tokio::test]
async fn end_that_sends_nothing_does_not_measure() {
    let pair = Pair::new().await;
    assert_eq!(soon(measure::measure(&pair.there, plan(Direction::Down))).await, Err(MeasureError::Protocol));
}
