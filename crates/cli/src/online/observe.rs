//! A snapshot of a connection, as JSON and as text: for the end of `bench`, the progress of a transfer, and `watch`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anabranch::{Connection, Limit, Limits, Path, PathState, PathStatus};
use serde::{Deserialize, Serialize};

/// Shares of time by limit; limits that never applied are omitted.
pub(super) type Shares = BTreeMap<String, f64>;

/// A snapshot of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PathSeen {
    pub(super) id: usize,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    /// Whether it carries data.
    pub(super) is_live: bool,
    pub(super) is_standby: bool,
    #[serde(default)]
    pub(super) is_relayed: bool,
    pub(super) segments_sent: u64,
    pub(super) segments_lost: u64,
    /// Of these, segments lost without an acknowledgement that said so.
    pub(super) segments_lost_by_timeout: u64,
    /// Duplicate arrivals at the other end.
    pub(super) segments_doubled: u64,
    pub(super) bytes_acknowledged: u64,
    pub(super) window_segments: f64,
    pub(super) flight_segments: f64,
    /// The law's estimate of its queued segments.
    pub(super) queue_segments: Option<f64>,
    /// The smoothed RTT.
    pub(super) rtt_ms: Option<f64>,
    pub(super) rtt_latest_ms: Option<f64>,
    /// The RTT without a queue.
    pub(super) rtt_base_ms: Option<f64>,
    /// The largest delivery rate of recent rounds.
    pub(super) delivery_bits_per_second: Option<f64>,
    pub(super) pacing_bits_per_second: Option<f64>,
    /// The largest confirmed datagram, in bytes of UDP payload.
    pub(super) datagram_bytes_max: u32,
    /// What limits it.
    pub(super) limited_by: Option<String>,
    pub(super) limits: Shares,
}

/// A snapshot of a connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) bytes_acknowledged: u64,
    pub(super) bytes_received: u64,
    pub(super) bytes_unread: u64,
    pub(super) segments_sent: u64,
    pub(super) segments_sent_again: u64,
    pub(super) segments_lost: u64,
    pub(super) timeouts: u64,
    pub(super) limited_by: Option<String>,
    pub(super) limits: Shares,
    pub(super) paths: Vec<PathSeen>,
}

impl Seen {
    pub(super) fn of(connection: &Connection) -> Self {
        let stats = connection.stats();
        Self {
            bytes_acknowledged: stats.bytes_acknowledged,
            bytes_received: stats.bytes_received,
            bytes_unread: stats.bytes_unread,
            segments_sent: stats.segments_sent,
            segments_sent_again: stats.segments_sent_again,
            segments_lost: stats.segments_lost,
            timeouts: stats.timeouts,
            limited_by: name(stats.limits.current()),
            limits: shares(&stats.limits),
            paths: connection.paths().iter().map(PathSeen::of).collect(),
        }
    }
}

impl PathSeen {
    pub(super) fn of(path: &Path) -> Self {
        let ms = |span: anabranch::units::Span| span.as_secs_f64() * 1e3;
        let report = &path.report;
        Self {
            id: path.id.index(),
            local: path.local,
            remote: path.remote,
            is_live: path.state == PathState::Live,
            is_standby: report.status == PathStatus::Standby,
            is_relayed: path.is_relayed(),
            segments_sent: report.tally.sent,
            segments_lost: report.tally.lost,
            segments_lost_by_timeout: report.tally.lost_by_timeout,
            segments_doubled: report.tally.duplicates,
            bytes_acknowledged: report.tally.delivered,
            window_segments: report.window,
            flight_segments: report.flight,
            queue_segments: path.queue(),
            rtt_ms: report.rtt_smoothed.map(ms),
            rtt_latest_ms: report.tally.rtt_latest.map(ms),
            rtt_base_ms: path.rtt_base().map(|rtt| rtt.as_secs_f64() * 1e3),
            delivery_bits_per_second: path.delivery_rate().map(|rate| 8.0 * rate),
            pacing_bits_per_second: report.pacing_rate.map(|rate| rate.bits_per_second() as f64),
            datagram_bytes_max: report.datagram_max,
            limited_by: name(report.limits.current()),
            limits: shares(&report.limits),
        }
    }
}

fn name(limit: Option<Limit>) -> Option<String> {
    limit.map(|limit| limit.name().to_owned())
}

/// The shares of an account.
pub(super) fn shares(limits: &Limits) -> Shares {
    let parts = Limit::ALL.into_iter().map(|limit| (limit.name().to_owned(), limits.share(limit)));
    parts.filter(|(_, share)| *share > 0.0).collect()
}

/// The limit that applied longest; `None` if no time has passed.
pub(super) fn most(limits: &Limits) -> Option<Limit> {
    let all = Limit::ALL.into_iter().filter(|limit| limits.share(*limit) > 0.0);
    all.max_by_key(|limit| limits.span(*limit))
}

/// The name of a limit for people.
pub(super) fn words(name: &str) -> &str {
    match name {
        "application" => "nothing to send",
        "congestion_window" => "congestion window",
        "peer_buffer" => "the other end's buffer",
        "pacing" => "pacing",
        "memory" => "this end's memory limit",
        "host" => "this computer",
        other => other,
    }
}

/// Shares for people, the largest first; those that round to zero are omitted.
pub(super) fn sentence(shares: &Shares) -> String {
    let mut parts: Vec<_> = shares.iter().filter(|(_, share)| **share >= 0.005).collect();
    parts.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let parts: Vec<_> = parts.iter().map(|(name, share)| format!("{} {:.0} %", words(name), **share * 100.0)).collect();
    if parts.is_empty() { "?".to_owned() } else { parts.join(", ") }
}

/// A rate for people.
pub(super) fn rate(bits_per_second: f64) -> String {
    match bits_per_second {
        rate if rate >= 1e9 => format!("{:.2} Gbit/s", rate / 1e9),
        rate if rate >= 1e6 => format!("{:.2} Mbit/s", rate / 1e6),
        rate => format!("{:.2} kbit/s", rate / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_said_from_the_largest_on() {
        let shares = [("application", 0.25), ("congestion_window", 0.7), ("pacing", 0.05), ("memory", 0.0001)];
        let shares: Shares = shares.into_iter().map(|(name, share)| (name.to_owned(), share)).collect();
        assert_eq!(sentence(&shares), "congestion window 70 %, nothing to send 25 %, pacing 5 %");
        assert_eq!(sentence(&Shares::new()), "?");
    }

    /// Each limit has a name of its own.
    #[test]
    fn every_limit_has_words() {
        for limit in Limit::ALL {
            assert!(words(limit.name()) != limit.name() || limit == Limit::Pacing, "{limit:?}");
        }
    }
}
