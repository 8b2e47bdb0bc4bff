//! Measurements of datagrams, also with ends that are older, or hostile.

use std::time::{Duration, Instant};

use anabranch::measure::{self, DatagramReport, Direction, MeasureError, Plan};
use anabranch::units::Rate;
use anabranch::{Config, DatagramError};

use crate::relay::Relay;
use crate::support::{Pair, client, say, server, soon};

/// 500 bytes at 4 Mbit/s are a thousand datagrams a second.
const SIZE: u16 = 500;

fn plan(direction: Direction, ms: u64) -> Plan {
    let rate = Some(Rate::from_bits_per_second(4_000_000));
    Plan { direction, streams: 1, time: Duration::from_millis(ms), rate }
}

async fn measured(pair: &Pair, plan: Plan, size: u16) -> measure::DatagramReports {
    let measuring = measure::measure_datagrams(&pair.there, plan, size);
    let (measured, served) = soon(async { tokio::join!(measuring, measure::serve(&pair.here)) }).await;
    assert_eq!(served, Ok(()));
    measured.unwrap()
}

/// Half a second at a thousand a second: 500, and one at the start. A busy machine makes up for a tenth of a second at most; one that pauses for longer may
/// drop a tenth.
#[track_caller]
fn is_complete(report: &DatagramReport) {
    assert!((200..=501).contains(&(report.sent + report.unsent)), "{report:?}");
    assert!(report.lost() + report.unsent <= 50 && report.received + report.lost() == report.sent, "{report:?}");
    assert_eq!((report.bytes, report.out_of_order), (500 * report.received, 0), "{report:?}");
    assert_eq!((report.variation.count, report.variation.least), (report.received, Duration::ZERO), "{report:?}");
    // Both ends have the same clock. The fastest datagram of half a second does not wait.
    assert!(report.delay_least_ns.is_some_and(|delay| (1..100_000_000).contains(&delay)), "{report:?}");
    assert!(report.variation.p50 <= report.variation.p99 && report.variation.p99 <= report.variation.largest);
}

#[tokio::test]
async fn each_direction_is_measured_at_its_rate() {
    for direction in [Direction::Up, Direction::Down, Direction::Both] {
        let reports = measured(&Pair::new().await, plan(direction, 500), SIZE).await;
        assert_eq!(reports.up.is_some(), direction != Direction::Down);
        assert_eq!(reports.down.is_some(), direction != Direction::Up);
        reports.up.iter().chain(&reports.down).for_each(is_complete);
    }
}

/// Without a rate, more are sent than those 500, of the size that only path MTU discovery finds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_rate_congestion_control_decides() {
    let plan = Plan { rate: None, ..plan(Direction::Both, 500) };
    let reports = measured(&Pair::new().await, plan, 1400).await;
    for report in [reports.up.unwrap(), reports.down.unwrap()] {
        assert!(report.sent > 1000, "{report:?}");
        assert!(report.bytes == 1400 * report.received && report.received > 0, "{report:?}");
        // What is offered is only what leaves soon.
        assert!(report.unsent < report.sent / 10, "{report:?}");
    }
}

/// 5 % are lost, and 5 % are held back until another one has passed. Of 2000 that is 100 each, with a deviation of 10.
#[tokio::test]
async fn lost_and_reordered_datagrams_are_counted() {
    let (server, client) = (server(Config::default()), client(Config::default()));
    let (relay, ticket) = Relay::before(&server).await;
    let (there, here) = tokio::join!(client.connect(&ticket), server.accept());
    let pair = Pair { here: here.unwrap(), there: there.unwrap(), server, client };
    relay.spoil(5, 0, 5);
    let report = measured(&pair, plan(Direction::Up, 2000), SIZE).await.up.unwrap();
    let share = |count: u64| count as f64 / report.sent as f64;
    assert!(report.sent > 1000 && report.received + report.lost() == report.sent, "{report:?}");
    assert!((0.02..0.09).contains(&share(report.lost())), "{report:?}");
    assert!((0.01..0.09).contains(&share(report.out_of_order)), "{report:?}");
    // One that is held back comes a millisecond later: with the next one.
    assert!(report.jitter > Duration::from_micros(10), "{report:?}");
}

/// The path carries a tenth of the rate. What does not leave within a quarter of a second is not lost, but unsent.
#[tokio::test]
async fn rate_above_the_limit_leaves_datagrams_unsent() {
    let pair = Pair::new().await;
    pair.there.set_rate_max(Some(Rate::from_bits_per_second(400_000))).unwrap();
    let report = measured(&pair, plan(Direction::Up, 1000), SIZE).await.up.unwrap();
    // 500 bytes in a packet of about 600: 83 a second, for one and a quarter.
    assert!((30..=130).contains(&report.sent) && report.lost() == 0, "{report:?}");
    assert!(report.unsent > 3 * report.sent, "{report:?}");
    // The first one did not wait, and later ones did.
    assert!(report.variation.largest > Duration::from_millis(150), "{report:?}");
}

/// The serving end would have to send what does not fit its packets.
#[tokio::test]
async fn datagrams_too_large_for_a_path_are_refused_by_either_end() {
    for direction in [Direction::Up, Direction::Down, Direction::Both] {
        let Pair { here, there, server, client } = Pair::new().await;
        let begin = Instant::now();
        let measuring = measure::measure_datagrams(&there, plan(direction, 300), 5000);
        let (measured, served) = soon(async { tokio::join!(measuring, measure::serve(&here)) }).await;
        let is_refused = |error| matches!(error, MeasureError::Datagram(DatagramError::TooLarge { max: 1144.., .. }));
        assert!(measured.is_err_and(is_refused), "{direction:?}: {measured:?}");
        assert!(served.is_err(), "{direction:?}: {served:?}");
        assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
        drop((server, client));
    }
}

#[tokio::test]
async fn end_that_takes_no_datagrams_is_named() {
    let (server, client) =
        (server(Config { datagram_receive_buffer: 0, ..Config::default() }), client(Config::default()));
    let ticket = server.ticket();
    let (there, _here) = tokio::join!(client.connect(&ticket), server.accept());
    let measured = soon(measure::measure_datagrams(&there.unwrap(), plan(Direction::Up, 300), SIZE)).await;
    assert_eq!(measured, Err(MeasureError::Datagram(DatagramError::Unsupported)));
}

/// An end that reads 22 bytes of a request and finds more closes the connection.
#[tokio::test]
async fn older_end_is_named() {
    for direction in [Direction::Up, Direction::Down, Direction::Both] {
        let Pair { here, there, server, client } = Pair::new().await;
        let older = async move {
            assert!(here.accept_stream().await.unwrap().read_to_end(22).await.is_err());
            drop(here);
            server.wait_idle().await;
        };
        let measuring = measure::measure_datagrams(&there, plan(direction, 300), SIZE);
        let (measured, ()) = soon(async { tokio::join!(measuring, older) }).await;
        assert_eq!(measured, Err(MeasureError::Older), "{direction:?}");
        drop((there, client));
    }
}

/// A serving end that tells nonsense, the wrong thing, something twice or too much.
#[tokio::test]
async fn serving_end_that_tells_nonsense_ends_the_measurement() {
    let sent = [&[1][..], &[7; 24]].concat();
    let wrong: [&[&[u8]]; 5] = [&[b"hello"], &[b""], &[&[2; 105]], &[&sent, &sent], &[&[1; 500]]];
    for told in wrong {
        let Pair { here, there, server, client } = Pair::new().await;
        let hostile = async {
            soon(here.accept_stream()).await.unwrap().read_to_end(150).await.unwrap();
            say(&here, b"ab-ready").await;
            for bytes in told {
                say(&here, bytes).await;
            }
            _ = soon(here.closed()).await;
        };
        let measuring = measure::measure_datagrams(&there, plan(Direction::Both, 300), SIZE);
        let (measured, ()) = soon(async { tokio::join!(measuring, hostile) }).await;
        // A report of nonsense in the right form is one: the numbers are the other end's.
        let is_report = told == [&[2; 105][..]];
        assert_eq!(measured, Err(if is_report { MeasureError::NoReport } else { MeasureError::Protocol }), "{told:?}");
        drop((server, client));
    }
}

/// A measuring end that sends no datagrams with a head, claims to have sent many more, and wants a report.
#[tokio::test]
async fn measuring_end_that_lies_gets_a_report_of_what_has_arrived() {
    let Pair { here, there, server: _server, client: _client } = Pair::new().await;
    let hostile = async {
        let plan = b"ab-bench\x00\x01\x64\x00\x00\x00\0\0\0\0\0\0\0\0\x01\x10\0\0\0";
        say(&there, plan).await;
        assert_eq!(&there.accept_stream().await.unwrap().read_to_end(150).await.unwrap()[..], b"ab-ready");
        for datagram in [&[][..], &[1], &[0xff; 15], &[0xff; 16], &[0; 1000]] {
            there.send_datagram(datagram.to_vec().into()).unwrap();
        }
        say(&there, &[&[1][..], &[0xff; 24]].concat()).await;
        let report = there.accept_stream().await.unwrap().read_to_end(150).await.unwrap();
        _ = there.close().await;
        report
    };
    let (served, report) = soon(async { tokio::join!(measure::serve(&here), hostile) }).await;
    assert_eq!((served, report.len()), (Ok(()), 105));
    // Two of 16 and 1000 bytes count.
    assert_eq!((&report[..9], &report[9..17]), (&[2, 2, 0, 0, 0, 0, 0, 0, 0][..], &1016_u64.to_le_bytes()[..]));
}
