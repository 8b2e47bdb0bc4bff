//! The text: all samples of a metric, grouped below its description.

use std::fmt::{Display, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;

use anabranch_proto::endpoint::ConnectionId;
use anabranch_proto::{Limit, Limits, PathState, PathStatus};

use crate::call::Call;
use crate::connection::{Path, Stats};
use crate::forward::Forwarded;
use crate::key::PublicKey;
use crate::state::Shared;

/// A snapshot of a connection.
pub(super) struct Seen {
    /// The number of the connection in the order of creation, from 0.
    pub(super) number: u64,
    pub(super) peer: PublicKey,
    pub(super) stats: Stats,
    pub(super) paths: Vec<Path>,
}

pub(super) fn of(shards: &[Arc<Shared>]) -> String {
    let (mut count, mut seen) = (0, vec![]);
    for shared in shards {
        // The lock is not held while the text is formatted.
        let (state, now) = (shared.lock(), shared.clock.now());
        let one = |(id, call): (ConnectionId, &Call)| {
            let connection = state.engine.view(id)?;
            let (stats, paths) = (Stats::of(connection, now), Path::all(connection, now));
            Some(Seen { number: call.number, peer: call.remote, stats, paths })
        };
        count += state.established().count();
        seen.extend(state.established().take(CONNECTIONS_MAX).filter_map(one));
    }
    seen.sort_by_key(|one| one.number);
    seen.truncate(CONNECTIONS_MAX);
    let forwarder = shards.first().and_then(|shared| shared.lobby.forwarder.get());
    write(count, &seen, forwarder.map(|forwarder| (forwarder.members(), forwarder.forwarded())))
}

/// The limit on connections shown.
const CONNECTIONS_MAX: usize = 256;

/// Formats the metrics of these connections; there are `count` in total. A relay has members, over UDP and
/// over TCP, and what it has forwarded.
pub(super) fn write(count: usize, seen: &[Seen], relay: Option<((usize, usize), Forwarded)>) -> String {
    let mut text = Text(String::new());
    text.head("connections", Kind::Gauge, "Connections of the endpoint.");
    text.sample("connections", &[], count as f64);
    if let Some((members, forwarded)) = relay {
        text.relay(members, &forwarded);
    }
    text.head("connection_info", Kind::Gauge, "A connection, and whose key the other end has proved.");
    for connection in seen {
        let labels = [("connection", connection.number.to_string()), ("peer", connection.peer.to_string())];
        text.sample("connection_info", &labels, 1.0);
    }
    for metric in OF_CONNECTION {
        text.metric(metric, seen.iter().map(|seen| (labels(seen), &seen.stats)));
    }
    text.limits("connection", seen.iter().map(|seen| (labels(seen), &seen.stats.limits)));
    let paths = || seen.iter().flat_map(|seen| seen.paths.iter().map(move |path| (path_labels(seen, path), path)));
    text.head("path_info", Kind::Gauge, "A path, its ends, what it is good for and when it is used.");
    for (mut labels, path) in paths() {
        let Path { local, remote, state, report, .. } = path;
        let address = |address: &SocketAddr| address.to_string();
        let state = match state {
            PathState::Validating => "validating",
            PathState::Live => "live",
            PathState::Suspect => "suspect",
        };
        let status = if report.status == PathStatus::Standby { "standby" } else { "available" };
        labels.extend([("local", address(local)), ("remote", address(remote))]);
        labels.extend([("state", state.to_owned()), ("status", status.to_owned())]);
        text.sample("path_info", &labels, 1.0);
    }
    for metric in OF_PATH {
        text.metric(metric, paths());
    }
    text.head(
        "path_segments_lost_total",
        Kind::Counter,
        "Segments detected as lost, by cause: acknowledgements, or a timeout or the abandonment of the path.",
    );
    for (labels, path) in paths() {
        let tally = &path.report.tally;
        let acknowledgements = tally.lost.saturating_sub(tally.lost_by_timeout);
        for (cause, count) in [("acknowledgement", acknowledgements), ("timeout", tally.lost_by_timeout)] {
            let labels = [&labels[..], &[("cause", cause.to_owned())]].concat();
            text.sample("path_segments_lost_total", &labels, count as f64);
        }
    }
    text.limits("path", paths().map(|(labels, path)| (labels, &path.report.limits)));
    text.0
}

type Labels = Vec<(&'static str, String)>;

fn labels(seen: &Seen) -> Labels {
    vec![("connection", seen.number.to_string())]
}

fn path_labels(seen: &Seen, path: &Path) -> Labels {
    vec![("connection", seen.number.to_string()), ("path", path.id.index().to_string())]
}

#[derive(Clone, Copy)]
enum Kind {
    Gauge,
    Counter,
}

/// A metric with one value per connection or path, where the value is known.
struct Metric<T> {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    value: fn(&T) -> Option<f64>,
}

const fn gauge<T>(name: &'static str, help: &'static str, value: fn(&T) -> Option<f64>) -> Metric<T> {
    Metric { name, kind: Kind::Gauge, help, value }
}

const fn counter<T>(name: &'static str, help: &'static str, value: fn(&T) -> Option<f64>) -> Metric<T> {
    Metric { name, kind: Kind::Counter, help, value }
}

const OF_CONNECTION: &[Metric<Stats>] = &[
    counter("bytes_acknowledged_total", "Bytes that the peer has acknowledged, stream headers included.", |stats| {
        Some(stats.bytes_acknowledged as f64)
    }),
    counter("bytes_received_total", "Bytes that have arrived in order, stream headers included.", |stats| {
        Some(stats.bytes_received as f64)
    }),
    gauge("bytes_unread", "Bytes that have arrived and were not read.", |stats| Some(stats.bytes_unread as f64)),
    counter("datagrams_sent_total", "Datagrams sent.", |stats| Some(stats.datagrams.sent as f64)),
    counter("datagrams_delivered_total", "Sent datagrams that have certainly arrived.", |stats| {
        Some(stats.datagrams.delivered as f64)
    }),
    counter("datagrams_lost_total", "Sent datagrams that count as lost.", |stats| Some(stats.datagrams.lost as f64)),
    counter("datagrams_dropped_total", "Datagrams dropped before they were sent, for newer ones.", |stats| {
        Some(stats.datagrams.dropped_unsent as f64)
    }),
    counter("datagrams_expired_total", "Datagrams dropped before they were sent, as they had expired.", |stats| {
        Some(stats.datagrams.expired as f64)
    }),
    counter("datagrams_received_total", "Datagrams that arrived.", |stats| Some(stats.datagrams.received as f64)),
    counter("datagrams_missed_total", "Datagrams of the peer that did not arrive.", |stats| {
        Some(stats.datagrams.missed as f64)
    }),
    counter("datagrams_unread_total", "Datagrams that arrived and were dropped for newer ones.", |stats| {
        Some(stats.datagrams.dropped_unread as f64)
    }),
];

const OF_PATH: &[Metric<Path>] = &[
    gauge("path_window_segments", "The congestion window.", |path| Some(path.report.window)),
    gauge("path_flight_segments", "Segments in flight.", |path| Some(path.report.flight)),
    gauge("path_queue_segments", "Segments in queues on the path, as the congestion law estimates them.", Path::queue),
    gauge("path_rtt_seconds", "The smoothed round-trip time.", |path| {
        path.report.rtt_smoothed.map(|rtt| rtt.as_secs_f64())
    }),
    gauge("path_rtt_latest_seconds", "The latest sample of the round-trip time.", |path| {
        path.report.tally.rtt_latest.map(|rtt| rtt.as_secs_f64())
    }),
    gauge(
        "path_rtt_base_seconds",
        "The round-trip time without a queue: the baseRTT of the congestion law, or the least sample.",
        |path| path.rtt_base().map(|rtt| rtt.as_secs_f64()),
    ),
    gauge("path_delivery_bytes_per_second", "The largest delivery rate of recent rounds.", Path::delivery_rate),
    gauge("path_pacing_bytes_per_second", "The pacing rate.", |path| {
        path.report.pacing_rate.map(|rate| rate.bits_per_second() as f64 / 8.0)
    }),
    gauge("path_datagram_bytes_max", "The largest confirmed datagram, in bytes of UDP payload.", |path| {
        Some(f64::from(path.report.datagram_max))
    }),
    counter("path_bytes_acknowledged_total", "Sequence space delivered.", |path| {
        Some(path.report.tally.delivered as f64)
    }),
    counter("path_segments_sent_total", "Segments sent, retransmissions included.", |path| {
        Some(path.report.tally.sent as f64)
    }),
    counter("path_segments_sent_again_total", "Retransmissions and probes with old data.", |path| {
        Some(path.report.tally.sent_again as f64)
    }),
    counter("path_segments_doubled_total", "Duplicate arrivals at the peer.", |path| {
        Some(path.report.tally.duplicates as f64)
    }),
    counter("path_losses_undone_total", "Spurious episodes of loss, which were undone.", |path| {
        Some(path.report.tally.undone as f64)
    }),
    counter("path_losses_random_total", "Episodes of loss classified as random, without a window reduction.", |path| {
        Some(path.report.tally.random as f64)
    }),
    counter("path_marks_total", "Acknowledgements that reported ECN marks.", |path| {
        Some(path.report.tally.marked as f64)
    }),
    counter("path_timeouts_total", "Retransmission timeouts.", |path| Some(path.report.tally.timeouts as f64)),
];

struct Text(String);

impl Text {
    /// The members of a relay, what it has passed on for them, and what not.
    fn relay(&mut self, (over_udp, over_tcp): (usize, usize), forwarded: &Forwarded) {
        let Forwarded { datagrams, bytes, too_fast, congested, unknown } = *forwarded;
        self.head("relay_members", Kind::Gauge, "Members, by what carries their datagrams.");
        for (transport, count) in [("udp", over_udp), ("tcp", over_tcp)] {
            self.sample("relay_members", &[("transport", transport.to_owned())], count as f64);
        }
        self.head("relay_datagrams_forwarded_total", Kind::Counter, "Datagrams passed on between members.");
        self.sample("relay_datagrams_forwarded_total", &[], datagrams as f64);
        self.head("relay_bytes_forwarded_total", Kind::Counter, "Their bytes, without the relay's headers.");
        self.sample("relay_bytes_forwarded_total", &[], bytes as f64);
        self.head(
            "relay_datagrams_dropped_total",
            Kind::Counter,
            "Datagrams not passed on, by cause: beyond the rate of their member, without room in the queue of a member over TCP, or without a route from \
             their address.",
        );
        for (cause, count) in [("rate", too_fast), ("queue", congested), ("route", unknown)] {
            self.sample("relay_datagrams_dropped_total", &[("cause", cause.to_owned())], count as f64);
        }
    }

    /// The description of a metric. Its help has neither backslashes nor line feeds.
    fn head(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
        };
        self.add(format_args!("# HELP anabranch_{name} {help}\n# TYPE anabranch_{name} {kind}\n"));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, String)], value: f64) {
        let labels: Vec<_> = labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        self.add(format_args!("anabranch_{name}{labels} {}\n", number(value)));
    }

    fn metric<'a, T: 'a>(&mut self, metric: &Metric<T>, all: impl Iterator<Item = (Labels, &'a T)>) {
        self.head(metric.name, metric.kind, metric.help);
        for (labels, seen) in all {
            if let Some(value) = (metric.value)(seen) {
                self.sample(metric.name, &labels, value);
            }
        }
    }

    /// The time for which each limit applied, and the current limit.
    fn limits<'a>(&mut self, of: &str, all: impl Iterator<Item = (Labels, &'a Limits)> + Clone) {
        let seconds = format!("{of}_limited_seconds_total");
        self.head(&seconds, Kind::Counter, "For how long this kept the sender from sending more.");
        let with = |labels: Labels, limit: Limit| [labels, vec![("limit", limit.name().to_owned())]].concat();
        for (labels, limits) in all.clone() {
            for limit in Limit::ALL {
                self.sample(&seconds, &with(labels.clone(), limit), limits.span(limit).as_secs_f64());
            }
        }
        let now = format!("{of}_limited");
        self.head(&now, Kind::Gauge, "1 for what keeps the sender from sending more now, 0 for all else.");
        for (labels, limits) in all {
            for limit in Limit::ALL {
                let is_it = limits.current() == Some(limit);
                self.sample(&now, &with(labels.clone(), limit), f64::from(u8::from(is_it)));
            }
        }
    }

    fn add(&mut self, text: impl Display) {
        write!(self.0, "{text}").expect("a string takes all that is written");
    }
}

/// Escapes the value of a label, which may be any text.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn number(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        value if value.is_nan() => "NaN".to_owned(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The format's own rules for labels and numbers.
    #[test]
    fn labels_and_numbers_are_escaped() {
        let mut text = Text(String::new());
        text.sample("x", &[("a", "C:\\DIR\n\"b\"".to_owned()), ("c", String::new())], 0.5);
        text.sample("x", &[], f64::INFINITY);
        text.sample("x", &[], f64::NAN);
        text.sample("x", &[], 12_345_678_901.0);
        let expected = "anabranch_x{a=\"C:\\\\DIR\\n\\\"b\\\"\",c=\"\"} 0.5\nanabranch_x +Inf\nanabranch_x NaN\nanabranch_x 12345678901\n";
        assert_eq!(text.0, expected);
    }

    #[test]
    fn no_metric_has_two_heads() {
        let text = write(0, &[], Some(((2, 1), Forwarded::default())));
        let mut names: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup_by_key(|name| name.split(' ').next());
        assert_eq!(names.len(), count, "{names:?}");
        assert!(text.contains("anabranch_connections 0\n"));
        assert!(text.contains("anabranch_relay_members{transport=\"tcp\"} 1\n"));
    }
}
