//! The progress of a transfer, for people.

use std::collections::VecDeque;
use std::time::Duration;

use anabranch::{Config, Connection, Limit, Limits};
use anabranch_transfer::Progress;

use crate::online::observe;
use crate::online::relay::Way;
use crate::terminal;

/// The role of an end of a transfer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::online) enum Side {
    Sends,
    Receives,
}

/// Updates a progress bar.
pub(in crate::online) async fn draw(
    bar: &terminal::Progress,
    progress: &Progress,
    connection: &Connection,
    way: &Way,
    side: Side,
) {
    let mut past: VecDeque<Limits> = VecDeque::new();
    loop {
        let ((files, bytes), (files_done, bytes_done)) = (progress.total(), progress.done());
        let rtt = connection.paths().first().and_then(|path| path.report.rtt_smoothed);
        let rtt = rtt.map(|rtt| format!(", RTT {:.1} ms", rtt.as_secs_f64() * 1e3)).unwrap_or_default();
        let by = if way.look(connection) { ", through the relay" } else { "" };
        let stats = connection.stats();
        past.push_back(stats.limits);
        let before = if past.len() > LIMITS_KEPT { past.pop_front() } else { past.front().copied() };
        let limit = match side {
            Side::Sends => before.and_then(|before| observe::most(&stats.limits.since(&before))).map(Limit::name),
            // Only the other end knows the limit, unless it is this end.
            Side::Receives => (stats.bytes_unread > Config::default().receive_buffer / 2).then_some("host"),
        };
        let limit = limit.map(|name| format!(", limited by {}", limit_words(name))).unwrap_or_default();
        bar.say(format!(", {files_done} of {files} files{rtt}{by}{limit}"));
        bar.set(bytes_done as usize, bytes as usize);
        tokio::time::sleep(TICK).await;
    }
}

/// A sender with nothing to send reads its files too slowly.
fn limit_words(name: &str) -> &str {
    if name == Limit::Application.name() { "reading files" } else { observe::words(name) }
}

/// The limit shown is that of the last second.
const LIMITS_KEPT: usize = 10;

const TICK: Duration = Duration::from_millis(100);
