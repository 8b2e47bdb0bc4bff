//! What an emulator says of itself. Times are milliseconds; packets are IP packets, and their bytes those of IP.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// What has happened since the start, or since the last restart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// What the scenario's clock says.
    pub clock_seconds: f64,
    /// Processor time of the thread that moves packets, since it was started.
    pub cpu_seconds: f64,
    /// Whether that thread has the real-time class: without it it is late by whole milliseconds.
    pub is_real_time: bool,
    /// Packets that no host or link wanted: the kernel's own multicast, destinations without a way.
    pub stray_packets: u64,
    /// Packets that were thrown away because there were too many under way: a queue without a limit.
    pub overflowed_packets: u64,
    /// Each direction of each link.
    pub links: Vec<LinkStatus>,
}

/// What has happened on one direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// `LINK` or `LINK.reverse`.
    pub id: String,
    /// The node where it begins.
    pub from: String,
    /// The node where it ends.
    pub to: String,
    /// Packets that came to its entrance.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that an error model or an outage took.
    pub lost_packets: u64,
    /// Packets that the queue refused or threw away.
    pub dropped_packets: u64,
    /// Packets that came out.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets that wait for the transmitter now.
    pub waiting_packets: u64,
    /// Packets in transmission or under way now.
    pub flying_packets: u64,
    /// How much later than they were due packets left the emulator for a host at its end; none if none did.
    pub late: Option<Lateness>,
}

/// How late something was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// The median.
    pub p50_ms: f64,
    /// 99 of 100 are not later.
    pub p99_ms: f64,
    /// The latest.
    pub max_ms: f64,
}

impl Lateness {
    /// Of what was counted, if there is any.
    pub fn of(histogram: &Histogram) -> Option<Self> {
        let millis = |span: Duration| span.as_secs_f64() * 1e3;
        let quantile = |share| histogram.quantile(share).map(millis);
        Some(Self { p50_ms: quantile(0.5)?, p99_ms: quantile(0.99)?, max_ms: histogram.longest().map(millis)? })
    }
}
