//! Measurements of round trips.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch::measure::{self, Direction, MeasureError, Plan};
use anabranch::{Config, Ticket};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::support::{Pair, between, client, say, server, soon};

fn plan(streams: u8, ms: u64) -> Plan {
    Plan { direction: Direction::Both, streams, time: Duration::from_millis(ms), rate: None }
}

#[tokio::test]
async fn round_trips_on_several_streams_are_counted() {
    for (streams, size) in [(1, 1), (5, 64), (2, 300_000)] {
        let pair = Pair::new().await;
        let measuring = measure::measure_round_trips(&pair.there, plan(streams, 400), size);
        let (measured, served) = soon(async { tokio::join!(measuring, measure::serve(&pair.here)) }).await;
        assert_eq!(served, Ok(()));
        let times = measured.unwrap();
        assert!(times.count > u64::from(streams), "{streams}, {size}: {times:?}");
        assert!(times.least <= times.p50 && times.p50 <= times.p95 && times.p99 <= times.largest, "{times:?}");
        // Each stream has one request at a time.
        assert!(times.mean.as_secs_f64() * times.count as f64 <= 0.4 * f64::from(streams) + 0.1, "{times:?}");
    }
}

/// Holds back each datagram for this time, in both directions.
async fn slow_path(to: SocketAddr, delay: Duration) -> SocketAddr {
    let inside = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let outside = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let address = inside.local_addr().unwrap();
    let client = Arc::new(Mutex::new(None));
    for (from, by, is_up) in [(inside.clone(), outside.clone(), true), (outside, inside, false)] {
        let client = Arc::clone(&client);
        let (put, mut waiting) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
        tokio::spawn({
            let client = Arc::clone(&client);
            async move {
                let mut bytes = vec![0; 65_536];
                while let Ok((len, sender)) = from.recv_from(&mut bytes).await {
                    if is_up {
                        *client.lock().unwrap() = Some(sender);
                    }
                    _ = put.send((Instant::now() + delay, bytes[..len].to_vec()));
                }
            }
        });
        tokio::spawn(async move {
            while let Some((at, bytes)) = waiting.recv().await {
                tokio::time::sleep_until(at).await;
                let to = if is_up { to } else { client.lock().unwrap().expect("it has sent first") };
                _ = by.send_to(&bytes, to).await;
            }
        });
    }
    address
}

/// 20 ms in each direction: no answer comes in less than 40 ms, and a stream has 25 of them in a second.
#[tokio::test]
async fn round_trips_take_the_delay_of_the_path() {
    let (server, client) = (server(Config::default()), client(Config::default()));
    let address = slow_path(server.local_address(), Duration::from_millis(20)).await;
    let ticket = Ticket::new(server.public_key(), vec![address]).unwrap();
    let (there, here) = between(&client, &server, &ticket).await;
    let measuring = measure::measure_round_trips(&there, plan(2, 1000), 64);
    let (measured, served) = soon(async { tokio::join!(measuring, measure::serve(&here)) }).await;
    let times = measured.unwrap();
    assert_eq!(served, Ok(()));
    assert!(times.least >= Duration::from_millis(40), "{times:?}");
    assert!(times.p50 < Duration::from_millis(80), "{times:?}");
    assert!((10..=50).contains(&times.count), "{times:?}");
}

/// An end that reads 22 bytes of a request and finds more closes the connection.
#[tokio::test]
async fn older_end_is_named() {
    let Pair { here, there, server, client } = Pair::new().await;
    let older = async move {
        assert!(here.accept_stream().await.unwrap().read_to_end(22).await.is_err());
        drop(here);
        server.wait_idle().await;
    };
    let measuring = measure::measure_round_trips(&there, plan(1, 300), 64);
    let (measured, ()) = soon(async { tokio::join!(measuring, older) }).await;
    assert_eq!(measured, Err(MeasureError::Older));
    drop((there, client));
}

/// Answers on a stream that was not asked, twice on one, or with fewer bytes than the request.
#[tokio::test]
async fn serving_end_that_answers_wrongly_ends_the_measurement() {
    let wrong: [&[&[u8]]; 4] = [&[&[9, 0, 0, 0]], &[&[0; 4], &[0; 4]], &[&[0; 20]], &[b"ab"]];
    for answers in wrong {
        let Pair { here, there, server: _server, client: _client } = Pair::new().await;
        let hostile = async {
            soon(here.accept_stream()).await.unwrap().read_to_end(99).await.unwrap();
            say(&here, b"ab-ready").await;
            for answer in answers {
                say(&here, answer).await;
            }
            _ = soon(here.closed()).await;
        };
        let measuring = measure::measure_round_trips(&there, plan(2, 5000), 64);
        let (measured, ()) = soon(async { tokio::join!(measuring, hostile) }).await;
        assert_eq!(measured, Err(MeasureError::Protocol), "{answers:?}");
    }
}

/// A measuring end opens more streams than it has announced.
#[tokio::test]
async fn stream_beyond_the_announced_ones_ends_the_service() {
    let Pair { here, there, server: _server, client: _client } = Pair::new().await;
    let hostile = async {
        say(&there, b"ab-bench\x02\x02\x88\x13\x00\x00\0\0\0\0\0\0\0\0\x02\0\0\0\0").await;
        assert_eq!(&there.accept_stream().await.unwrap().read_to_end(99).await.unwrap()[..], b"ab-ready");
        for number in 0..3_u32 {
            say(&there, &number.to_le_bytes()).await;
        }
        _ = there.close().await;
    };
    let (served, ()) = soon(async { tokio::join!(measure::serve(&here), hostile) }).await;
    assert_eq!(served, Err(MeasureError::Protocol));
}
