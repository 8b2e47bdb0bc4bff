use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::online::observe::Seen;

/// A path that has delivered a megabyte a second for `tenths` tenths of a second.
fn path(tenths: u64) -> PathSeen {
    PathSeen {
        id: 1,
        local: "192.0.2.1:7".parse().unwrap(),
        remote: "192.0.2.2:9".parse().unwrap(),
        is_live: true,
        is_standby: false,
        is_relayed: false,
        segments_sent: 10,
        segments_lost: 3,
        segments_lost_by_timeout: 1,
        segments_doubled: 0,
        bytes_acknowledged: tenths * 100_000,
        window_segments: 40.0,
        flight_segments: 38.0,
        queue_segments: Some(12.0),
        rtt_ms: Some(25.0),
        rtt_latest_ms: Some(24.5),
        rtt_base_ms: Some(20.0),
        delivery_bits_per_second: None,
        pacing_bits_per_second: None,
        datagram_bytes_max: 1452,
        limited_by: Some("congestion_window".to_owned()),
        limits: [("congestion_window".to_owned(), 0.75), ("application".to_owned(), 0.25)].into(),
    }
}

fn frame(tenths: u64) -> Frame {
    let path = path(tenths);
    let seen = Seen {
        bytes_acknowledged: path.bytes_acknowledged,
        bytes_received: 0,
        bytes_unread: 0,
        segments_sent: 10,
        segments_sent_again: 0,
        segments_lost: 3,
        timeouts: 0,
        limited_by: path.limited_by.clone(),
        limits: path.limits.clone(),
        paths: vec![path],
    };
    let seconds = tenths as f64 / 10.0;
    Frame { pid: 4711, command: "send".to_owned(), seconds, connections: vec![Shown { number: 0, seen }] }
}

fn drawn(view: &View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|screen| view.draw(screen)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let rows = buffer.content().chunks(usize::from(width));
    rows.map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>() + "\n").collect()
}

#[test]
fn a_path_is_drawn_with_its_numbers_and_what_limits_it() {
    let mut view = View::default();
    (0..30).for_each(|tenths| view.add(frame(tenths)));
    let screen = drawn(&view, 140, 14);
    for expected in [
        "anabranch send (process 4711), 2.9 s, 1 connections",
        "path 1: 192.0.2.1:7 to 192.0.2.2:9",
        "8.00 Mbit/s  RTT 24.50 ms (base 20)  window 40 (in flight 38)  queue 12  lost 3  datagrams 1452 B",
        "limited by: congestion window; so far congestion window 75 %, nothing to send 25 %",
        "rate",
        "queue",
        "█",
    ] {
        assert!(screen.contains(expected), "{expected} in\n{screen}");
    }
}

/// Drawing works on a terminal of any size.
#[test]
fn any_terminal_is_large_enough() {
    let mut view = View::default();
    for (width, height) in [(1, 1), (3, 2), (10, 4), (200, 3)] {
        drawn(&view, width, height);
    }
    view.add(frame(1));
    for (width, height) in [(1, 1), (3, 2), (10, 4), (20, 10), (200, 3)] {
        drawn(&view, width, height);
    }
}

/// The text shows the same. A path that is gone is not shown, and text from elsewhere contains no control sequences.
#[test]
fn text_says_the_same() {
    let mut view = View::default();
    assert_eq!(view.text(), "nothing yet\n");
    (0..30).for_each(|tenths| view.add(frame(tenths)));
    let text = view.text();
    assert!(text.contains("8.00 Mbit/s  RTT 24.50 ms (base 20)"), "{text}");
    let gone = Frame { connections: vec![], command: "a\u{1b}[2J".to_owned(), ..frame(31) };
    view.add(gone);
    assert!(view.histories.is_empty());
    assert_eq!(view.text(), "anabranch a\u{fffd}[2J (process 4711), 3.1 s, 0 connections\nno connection\n");
}

/// Names of limits are text from elsewhere, too, drawn and as text.
#[test]
fn limits_command_no_terminal() {
    let mut frame = frame(1);
    let name = || "\u{1b}]0;x\u{7}\n".to_owned();
    for seen in frame.connections.iter_mut().map(|shown| &mut shown.seen) {
        seen.limited_by = Some(name());
        seen.limits = [(name(), 1.0)].into();
        for path in &mut seen.paths {
            path.limited_by = Some(name());
            path.limits = [(name(), 1.0)].into();
        }
    }
    let mut view = View::default();
    view.add(frame);
    let expected = "limited by: \u{fffd}]0;x\u{fffd}\u{fffd}; so far \u{fffd}]0;x\u{fffd}\u{fffd} 100 %";
    for text in [view.text(), drawn(&view, 140, 14)] {
        assert!(text.contains(expected), "{text:?}");
    }
}

/// The history has a limit.
#[test]
fn a_history_has_a_length() {
    let mut view = View::default();
    (0..2 * SAMPLES_KEPT as u64).for_each(|tenths| view.add(frame(tenths)));
    let history = view.histories.values().next().unwrap();
    assert_eq!([history.bytes.len(), history.rates.len()], [SAMPLES_KEPT; 2]);
}
