use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

use anabranch_proto::endpoint::{Metrics, TraceEvent, Traced, TracedSegment};
use anabranch_proto::{CloseReason, Flags, PathId};
use anabranch_units::Span;

use super::*;
use crate::address;

/// A sink that keeps what is written, for inspection.
#[derive(Clone, Default)]
struct Sink(Rc<RefCell<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink {
    /// The records without their separators.
    fn records(&self) -> Vec<String> {
        let text = String::from_utf8(std::mem::take(&mut *self.0.borrow_mut())).unwrap();
        let records = text.split('\u{1e}').skip(1);
        records.map(|record| record.strip_suffix('\n').expect("rfc-7464 sec. 2.2: a line feed").to_owned()).collect()
    }
}

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_micros(us)
}

fn tuple() -> FourTuple {
    let end = |text: &str| address::of(text.parse().unwrap());
    FourTuple { local: end("192.0.2.1:7"), remote: end("192.0.2.2:9") }
}

fn segment(number: u64, offset: u64, space: u32) -> TracedSegment {
    let sack = [(0, 0); 3];
    TracedSegment { number, size: space + 60, offset, space, stream: Some(3), flags: Flags::ACK, ack: Some(1), sack }
}

fn event(us: u64, what: Traced) -> TraceEvent {
    TraceEvent { at: at(us), path: PathId::FIRST, what }
}

/// Four segments are sent. The third is acknowledged by SACK, the first cumulatively. The second is lost, retransmitted with
/// another number, and acknowledged under that number.
#[test]
fn acknowledgements_tell_of_packets_once() {
    let sink = Sink::default();
    let mut text = Text::new(sink.clone());
    for number in 0..4 {
        text.trace(&event(1000, Traced::Sent(segment(number, 1 + 100 * number, 100)))).unwrap();
    }
    let sent = sink.records();
    assert_eq!(
        sent[2],
        r#"{"time":1.000000,"name":"transport:packet_sent","group_id":"path-0","data":{"header":{"packet_type":"1RTT","packet_number":2},"raw":{"length":160},"frames":[{"frame_type":"stream","stream_id":3,"offset":201,"length":100}]}}"#
    );
    let came = |number, ack, sack| TracedSegment {
        ack: Some(ack),
        sack: [sack, (0, 0), (0, 0)],
        stream: None,
        ..segment(number, 1, 0)
    };
    text.trace(&event(2000, Traced::Received(came(0, 101, (201, 301))))).unwrap();
    text.trace(&event(2500, Traced::Lost { offset: 101, by_timeout: false })).unwrap();
    text.trace(&event(2600, Traced::Sent(segment(4, 101, 100)))).unwrap();
    text.trace(&event(3000, Traced::Received(came(1, 401, (0, 0))))).unwrap();
    text.trace(&event(3000, Traced::Received(came(2, 401, (0, 0))))).unwrap();
    let records = sink.records();
    let acked = |ranges: &str| format!(r#""frames":[{{"frame_type":"ack","acked_ranges":{ranges}}}]"#);
    assert!(records[0].contains(&acked("[[0,0],[2,2]]")), "{}", records[0]);
    assert!(
        records[1].contains(r#""recovery:packet_lost","group_id":"path-0","data":{"header":{"packet_type":"1RTT","packet_number":1},"trigger":"time_threshold"}"#),
        "{}",
        records[1]
    );
    assert!(records[3].contains(&acked("[[3,4]]")), "{}", records[3]);
    assert!(records[4].contains(r#""frames":[]"#), "{}", records[4]);
}

/// Only changed metrics are logged again, and the header is the one that readers look for.
#[test]
fn metrics_are_said_when_they_change() {
    let sink = Sink::default();
    let mut text = Text::new(sink.clone());
    text.header(Vantage::Client, SystemTime::UNIX_EPOCH + Duration::from_millis(1500)).unwrap();
    text.started(at(5), tuple()).unwrap();
    let metrics =
        Metrics { window: 14_000, flight: 2800, rtt_latest: Some(Span::from_millis(20)), ..Metrics::default() };
    text.trace(&event(10, Traced::Metrics(metrics))).unwrap();
    text.trace(&event(20, Traced::Metrics(metrics))).unwrap();
    text.trace(&event(30, Traced::Metrics(Metrics { flight: 1400, ..metrics }))).unwrap();
    text.event(at(40), Event::Closed(CloseReason::TimedOut)).unwrap();
    let records = sink.records();
    assert!(records[0].starts_with(r#"{"qlog_version":"0.3","qlog_format":"JSON-SEQ","#), "{}", records[0]);
    assert!(records[0].contains(r#""reference_time":1500.000"#), "{}", records[0]);
    let started = r#"{"time":0.005000,"name":"connectivity:connection_started","group_id":"path-0","data":{"ip_version":"v4","src_ip":"192.0.2.1","dst_ip":"192.0.2.2","src_port":7,"dst_port":9}}"#;
    assert_eq!(records[1], started);
    assert!(
        records[2].ends_with(r#""data":{"congestion_window":14000,"bytes_in_flight":2800,"latest_rtt":20.000000}}"#)
    );
    assert!(records[3].ends_with(r#""data":{"bytes_in_flight":1400}}"#), "{}", records[3]);
    assert!(records[4].contains(r#""connectivity:connection_closed""#) && records.len() == 5, "{records:?}");
}

/// If another path's ACK acknowledges a packet, this is logged on the path on which the packet was sent.
#[test]
fn paths_have_logs_of_their_own() {
    let sink = Sink::default();
    let mut text = Text::new(sink.clone());
    let mut sent = event(0, Traced::Sent(segment(7, 1, 100)));
    sent.path = PathId::of_index(1).unwrap();
    text.trace(&sent).unwrap();
    let ack = TracedSegment { ack: Some(101), stream: None, ..segment(0, 1, 0) };
    text.trace(&event(10, Traced::Received(ack))).unwrap();
    let records = sink.records();
    assert!(records[0].contains(r#""group_id":"path-1""#), "{}", records[0]);
    assert!(records[1].contains(r#""group_id":"path-0""#) && records[1].contains(r#""frames":[]"#), "{}", records[1]);
    assert!(
        records[2].contains(r#""transport:packets_acked","group_id":"path-1","data":{"packet_number_space":"application_data","packet_numbers":[7]}"#),
        "{}",
        records[2]
    );
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("anabranch-qlog-{name}-{}", std::process::id()));
    _ = std::fs::remove_dir_all(&folder);
    folder
}

fn connection() -> ConnectionId {
    let key = crate::SecretKey::generate().unwrap();
    let seed = crate::key::random().unwrap();
    let config = crate::Config::default();
    let mut engine = anabranch_proto::endpoint::Endpoint::new(at(0), key.engine(), config.endpoint(), seed);
    let mut last = Span::ZERO;
    let stamp = crate::clock::timestamp(&mut last);
    engine.connect(at(0), stamp, key.public().0, tuple(), config.connection()).unwrap()
}

/// The folder is removed before the first file is created: the error is reported once, and all events count as dropped. The
/// connections continue.
#[test]
fn a_folder_that_cannot_be_written_costs_the_log_alone() {
    let folder = folder("gone");
    let qlog = Qlog::start(&folder, SystemTime::now()).unwrap();
    std::fs::remove_dir(&folder).unwrap();
    let connection = connection();
    qlog.open(connection, Vantage::Client, tuple(), at(0));
    let events = vec![event(0, Traced::Sent(segment(0, 1, 100))); 5];
    qlog.traces(Traces { connection, events, dropped: 0 });
    let report = qlog.finish();
    assert_eq!((report.written, report.dropped), (0, 6));
    assert!(report.error.is_some_and(|error| error.contains("-client.sqlog: No such file")));
}

/// Events for which the engine had no room are reported in the log, and counted.
#[test]
fn dropped_events_are_reported() {
    let folder = folder("dropped");
    let qlog = Qlog::start(&folder, SystemTime::now()).unwrap();
    let connection = connection();
    qlog.open(connection, Vantage::Server, tuple(), at(0));
    qlog.traces(Traces { connection, events: vec![], dropped: 9 });
    assert_eq!(qlog.finish(), QlogReport { written: 1, dropped: 9, error: None });
    let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("9 events were dropped"), "{text}");
    std::fs::remove_dir_all(&folder).unwrap();
}
