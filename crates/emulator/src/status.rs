//! Counters of an emulator. Times are in milliseconds, packets are IP packets, and bytes include IP headers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// Counters since the start, or since the last restart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The scenario's clock in seconds.
    pub clock_seconds: f64,
    /// The processor time of the packet thread since its start, in seconds.
    pub cpu_seconds: f64,
    /// Whether that thread has real-time priority. Without it, lateness is whole milliseconds.
    pub is_real_time: bool,
    /// Packets that no host or link accepted, such as the kernel's own multicast packets, or packets without a route.
    pub stray_packets: u64,
    /// Packets dropped at the limit of packets in flight, which only an unlimited queue reaches.
    pub overflowed_packets: u64,
    /// The counters of each direction of each link.
    pub links: Vec<LinkStatus>,
}

/// Counters of one direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// `LINK` or `LINK.reverse`.
    pub id: String,
    /// The node where it begins.
    pub from: String,
    /// The node where it ends.
    pub to: String,
    /// Packets offered to the link.
    pub sent_packets: u64,
    /// The bytes of those packets.
    pub sent_bytes: u64,
    /// Packets lost by an error model or an outage.
    pub lost_packets: u64,
    /// Packets dropped by the queue.
    pub dropped_packets: u64,
    /// Packets marked by the queue (ECN congestion experienced).
    pub marked_packets: u64,
    /// Packets that left the link.
    pub delivered_packets: u64,
    /// The bytes of those packets.
    pub delivered_bytes: u64,
    /// Packets queued now.
    pub waiting_packets: u64,
    /// Packets in transmission or in flight now.
    pub flying_packets: u64,
    /// The lateness of packets that leave to the host at the link's end; `None` if there were none.
    pub late: Option<Lateness>,
}

/// A distribution of lateness.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// The median in milliseconds.
    pub p50_ms: f64,
    /// The 99th percentile in milliseconds.
    pub p99_ms: f64,
    /// The maximum in milliseconds.
    pub max_ms: f64,
}

impl Lateness {
    /// The distribution in a histogram, if it has any entries.
    pub fn of(histogram: &Histogram) -> Option<Self> {
        let millis = |span: Duration| span.as_secs_f64() * 1e3;
        let quantile = |share| histogram.quantile(share).map(millis);
        Some(Self { p50_ms: quantile(0.5)?, p99_ms: quantile(0.99)?, max_ms: histogram.longest().map(millis)? })
    }
}
