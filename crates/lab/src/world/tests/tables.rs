//! Tables that are written while a run goes on.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use anabranch_sim::{GaugeRow, is_same_bin};
use anabranch_units::SimSpan;

use super::*;
use crate::run::{Output, Records, run_recording};

/// The tables of a run by their names.
fn tables(scenario: &Scenario) -> BTreeMap<String, String> {
    let mut written: BTreeMap<String, Arc<Mutex<Vec<u8>>>> = BTreeMap::new();
    let mut open = |name: &str| {
        let text = written.entry(name.to_owned()).or_default();
        Ok(Box::new(Shared(Arc::clone(text))) as Output)
    };
    let records = Records { tables: Some(&mut open), ..Records::default() };
    run_recording(scenario, records, |_, _| ControlFlow::Continue(())).unwrap();
    let text = |bytes: Arc<Mutex<Vec<u8>>>| String::from_utf8(bytes.lock().unwrap().clone()).unwrap();
    written.into_iter().map(|(name, bytes)| (name, text(bytes))).collect()
}

struct Shared(Arc<Mutex<Vec<u8>>>);

impl io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// 40001 packets at intervals of 1 ms. Each changes the variables of the link three times: it enters the queue, leaves it 0.1 ms later, and
/// arrives 0.45 ms after that. A hundred idle links leave a kept series of this link a megabyte, which holds a quarter of these rows.
#[test]
fn table_of_many_changes_has_a_row_for_each() {
    let idle: String = (0..100)
        .map(|n| {
            format!("[[link]]\nid = \"i{n}\"\nfrom = \"i{n}\"\nto = \"x\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\nduplex = false\n")
        })
        .collect();
    let scenario = parsed(
        &format!(
            "duration = \"40.0007s\"\n[[link]]\nid = \"a\"\nfrom = \"x\"\nto = \"y\"\nrate = \"80Mbit/s\"\ndelay = \"0.45ms\"\n\
         [[flow]]\nid = \"f\"\nfrom = \"x\"\nto = \"y\"\ntransport = \"cbr\"\npacket = \"1000B\"\nrate = \"8Mbit/s\"\n{idle}"
        ),
        &[],
    );
    let tables = tables(&scenario);
    assert!(!tables.contains_key("flow.f.csv"), "a source without a window has no table");
    let rows: Vec<&str> = tables["link.a.csv"].lines().collect();
    assert_eq!(rows[0], "time_s,queue_packets,dropped_packets,forwarded_packets");
    assert_eq!(rows.len() - 1, 3 * 40_001);
    assert_eq!(rows[1..4], ["0.000000000,1,0,0", "0.000100000,0,0,0", "0.000550000,0,0,1"]);
    assert_eq!(rows.last(), Some(&"40.000550000,0,0,40001"));
    assert_eq!(tables["link.i7.csv"].lines().count(), 1);
}

/// The first cells of a table's rows: the times in nanoseconds.
fn times(table: &str) -> Vec<u64> {
    let cell = |line: &str| line.split(',').next().unwrap().parse::<f64>().unwrap();
    table.lines().skip(1).map(|line| (cell(line) * 1e9).round() as u64).collect()
}

/// The table has the rows of the series that are kept: of a link, of an agent of ns-2, and of the transport.
#[test]
fn table_equal_to_kept_rows() {
    for transport in ["ns2/sack", "anabranch"] {
        let flow = format!("flow.f={{ id = \"f\", from = \"n0\", to = \"n1\", transport = \"{transport}\" }}");
        let set = [&*flow, "link.a.error={ kind = \"list\", packets = [30] }"];
        let scenario = scenario(&set).unwrap();
        let simulation = ran(&scenario, Recording::Trace);
        let links: Vec<_> = simulation.traces[0].as_ref().unwrap().borrow().rows(simulation.end()).unwrap().collect();
        let gauges = simulation.world.account(simulation.flows[0].source).gauges().unwrap().into_owned();
        let tables = tables(&scenario);
        let lines = |rows: usize, name: &str| {
            let lines: Vec<&str> = tables[name].lines().skip(1).collect();
            assert_eq!((lines.len(), rows > 100), (rows, true), "{transport}, {name}");
            lines
        };
        for (row, line) in links.iter().zip(lines(links.len(), "link.a.csv")) {
            let expected = format!("{:.9},{},{},{}", row.time.as_secs_f64(), row.queue, row.dropped, row.forwarded);
            assert_eq!(line, expected, "{transport}");
        }
        for (GaugeRow { time, gauges }, line) in gauges.iter().zip(lines(gauges.len(), "flow.f.csv")) {
            let cells: Vec<&str> = line.split(',').collect();
            assert_eq!(cells[0], format!("{:.9}", time.as_secs_f64()));
            assert_eq!(
                (cells[1].parse(), cells[6].parse()),
                (Ok(gauges.window), Ok(gauges.in_flight)),
                "{transport}: {line}"
            );
        }
    }
}

/// With a resolution, of all rows within it the last is left.
#[test]
fn table_with_resolution_has_last_row_of_each_bin() {
    let whole = tables(&scenario(&[]).unwrap());
    let thin = tables(&scenario(&["resolution=50ms"]).unwrap());
    let width = SimSpan::from_millis(50);
    for name in ["link.a.csv", "flow.f.csv"] {
        let at = |nanos: u64| SimTime::from_ticks(nanos * 1000);
        let lines: Vec<_> = whole[name].lines().skip(1).zip(times(&whole[name])).collect();
        let is_last =
            |place: usize| lines.get(place + 1).is_none_or(|next| !is_same_bin(at(lines[place].1), at(next.1), width));
        let expected: Vec<&str> =
            (0..lines.len()).filter(|&place| is_last(place)).map(|place| lines[place].0).collect();
        let got: Vec<&str> = thin[name].lines().skip(1).collect();
        assert_eq!(got, expected, "{name}");
        assert!(got.len() < lines.len() / 3 && got.len() > 10, "{name}: {} of {}", got.len(), lines.len());
    }
}

/// A disk that is full ends with an error, not with a table that looks whole.
#[test]
fn table_that_cannot_be_written_fails_the_run() {
    struct Full;

    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    for full in ["link.a.csv", "flow.f.csv"] {
        let mut open = |name: &str| Ok(if name == full { Box::new(Full) as Output } else { Box::new(io::sink()) });
        let records = Records { tables: Some(&mut open), ..Records::default() };
        let scenario = scenario(&[]).unwrap();
        let failed = run_recording(&scenario, records, |_, _| ControlFlow::Continue(())).map(|_| ()).unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::StorageFull, "{full}");
    }
}
