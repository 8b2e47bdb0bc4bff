//! Measurements of the kernel's TCP.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use anabranch::measure::{self, MeasureError, TcpPlan};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Pair, say, soon};

fn plan(is_reverse: bool) -> TcpPlan {
    TcpPlan { is_reverse, connections: 3, time: Duration::from_millis(300), law: None }
}

/// In each direction, over three connections; a law that there is everywhere; and the connection between the ends is closed after it.
#[tokio::test]
async fn tcp_of_each_direction_is_measured() {
    for is_reverse in [false, true] {
        let pair = Pair::new().await;
        let plan = TcpPlan { law: cfg!(target_os = "linux").then(|| "reno".to_owned()), ..plan(is_reverse) };
        let begin = Instant::now();
        let (measured, served) =
            soon(async { tokio::join!(measure::measure_tcp(&pair.there, &plan), measure::serve(&pair.here)) }).await;
        let report = measured.unwrap();
        assert_eq!((served, &report.law), (Ok(()), &plan.law));
        assert!(report.bytes > 1_000_000, "loopback carries more: {report:?}");
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    }
}

/// No kernel has this law, and no name is as long as the second one.
#[tokio::test]
async fn tcp_law_that_is_not_there_is_named() {
    for law in ["nosuchlaw", "a_name_of_17_char"] {
        for is_reverse in [false, true] {
            let pair = Pair::new().await;
            let plan = TcpPlan { law: Some(law.to_owned()), ..plan(is_reverse) };
            let serving = async {
                tokio::select! {
                    _ = measure::serve(&pair.here) => {}
                    () = tokio::time::sleep(Duration::from_secs(5)) => {}
                }
            };
            let measuring = async {
                let measured = measure::measure_tcp(&pair.there, &plan).await;
                pair.there.abort();
                measured
            };
            let (measured, ()) = soon(async { tokio::join!(measuring, serving) }).await;
            assert_eq!(measured, Err(MeasureError::TcpLaw), "{law}");
        }
    }
}

/// The serving end tells a port at which nobody listens, a port of zero, an outcome that there is not, or less than all.
#[tokio::test]
async fn serving_end_that_opens_no_port_is_named() {
    let free = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let port = free.port().to_le_bytes();
    let offer = |outcome: u8, port: [u8; 2]| [&[outcome][..], &port, &[7; 16], b"cubic", &[0; 11]].concat();
    let refused = MeasureError::Tcp(free, ErrorKind::ConnectionRefused);
    let cases = [
        (offer(0, port), refused),
        (offer(0, [0, 0]), MeasureError::Protocol),
        (offer(1, [0, 0]), MeasureError::TcpLaw),
        (offer(2, [0, 0]), MeasureError::TcpPort),
        (offer(3, port), MeasureError::Protocol),
        (vec![0; 10], MeasureError::Protocol),
    ];
    for (offer, expected) in cases {
        let Pair { here, there, server: _server, client: _client } = Pair::new().await;
        let hostile = async {
            soon(here.accept_stream()).await.unwrap().read_to_end(99).await.unwrap();
            say(&here, b"ab-ready").await;
            say(&here, &offer).await;
            _ = soon(here.closed()).await;
        };
        let plan = plan(false);
        let measuring = measure::measure_tcp(&there, &plan);
        let (measured, ()) = soon(async { tokio::join!(measuring, hostile) }).await;
        assert_eq!(measured, Err(expected), "{offer:?}");
    }
}

/// Strangers who find the port, with a wrong token or none, measure nothing and disturb nobody.
#[tokio::test]
async fn strangers_at_the_tcp_port_measure_nothing() {
    let Pair { here, there, server: _server, client: _client } = Pair::new().await;
    let serving = tokio::spawn(async move { measure::serve(&here).await });
    // The measuring end by hand: one TCP connection, up, 400 ms.
    say(&there, &[&b"ab-bench\x00\x01\x90\x01\0\0"[..], &[0; 8], &[3], &[0; 16]].concat()).await;
    assert_eq!(soon(there.accept_stream()).await.unwrap().read_to_end(99).await.unwrap(), &b"ab-ready"[..]);
    let offer = soon(there.accept_stream()).await.unwrap().read_to_end(99).await.unwrap();
    let place = ("127.0.0.1", u16::from_le_bytes([offer[1], offer[2]]));
    let mut wrong = TcpStream::connect(place).await.unwrap();
    wrong.write_all(&[9; 16]).await.unwrap();
    let silent = TcpStream::connect(place).await.unwrap();
    let read = soon(wrong.read(&mut [0; 8])).await;
    assert!(matches!(read, Ok(0)) || read.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
    let mut own = TcpStream::connect(place).await.unwrap();
    own.write_all(&offer[3..19]).await.unwrap();
    own.write_all(&[1; 5000]).await.unwrap();
    let mut count = [0; 8];
    soon(own.read_exact(&mut count)).await.unwrap();
    assert_eq!(u64::from_le_bytes(count), 5000);
    assert!(TcpStream::connect(place).await.is_err(), "the port is closed as soon as all are there");
    drop((own, silent));
    soon(there.close()).await.unwrap();
    assert_eq!(soon(serving).await.unwrap(), Ok(()));
}
