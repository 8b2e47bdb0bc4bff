//! The result of `anabranch bench --datagrams`. Fields that iperf3's report of UDP has, too, have its names.

use std::time::Duration;

use anabranch::measure::{DatagramReport, DatagramReports};
use serde::Serialize;

use crate::failure::Failure;
use crate::online::observe::rate;
use crate::terminal;

/// Both directions; `null` for one that was not measured.
#[derive(Serialize)]
pub(super) struct Datagrams {
    up: Option<Way>,
    down: Option<Way>,
}

/// The datagrams of one direction.
#[derive(Serialize)]
struct Way {
    /// How long the sender sent.
    seconds: f64,
    /// Received.
    bytes: u64,
    /// Received, without headers.
    bits_per_second: f64,
    /// The jitter of RFC 3550.
    jitter_ms: f64,
    /// Of the packets that have left, those that the receiver did not get.
    lost_packets: u64,
    /// Packets that have left the sender.
    packets: u64,
    lost_percent: f64,
    /// Received after one that was sent later.
    out_of_order: u64,
    /// Packets that have not left: congestion control allowed less than the rate.
    unsent_packets: u64,
    /// Of the lost packets, those that have arrived, but were not read in time.
    unread_packets: u64,
    /// How much longer than the fastest one the packets were on their way.
    delay_variation_ms_mean: f64,
    delay_variation_ms_p50: f64,
    delay_variation_ms_p95: f64,
    delay_variation_ms_p99: f64,
    delay_variation_ms_max: f64,
    /// How long the packets were on their way, by the clocks of both ends; `null` without --clocks-agree.
    delay_ms_min: Option<f64>,
    delay_ms_p50: Option<f64>,
    delay_ms_p99: Option<f64>,
}

impl Datagrams {
    /// The reports of measurements of this length, with the delays by the clocks of both ends if these agree.
    pub(super) fn new(reports: &DatagramReports, time: Duration, clocks_agree: bool) -> Self {
        let way = |report: &DatagramReport| Way::new(report, time.as_secs_f64(), clocks_agree);
        Self { up: reports.up.as_ref().map(way), down: reports.down.as_ref().map(way) }
    }

    /// Names and values for people.
    pub(super) fn rows(&self) -> impl Iterator<Item = (String, String)> {
        let ways = [("up", &self.up), ("down", &self.down)];
        ways.into_iter().filter_map(|(name, way)| Some((name, way.as_ref()?))).flat_map(|(name, way)| way.rows(name))
    }
}

impl Way {
    fn new(report: &DatagramReport, seconds: f64, clocks_agree: bool) -> Self {
        let least = report.delay_least_ns.filter(|_| clocks_agree);
        let delay = |variation: Duration| Some(least? as f64 / 1e6 + variation.as_secs_f64() * 1e3);
        let ms = |span: Duration| span.as_secs_f64() * 1e3;
        let percent = if report.sent > 0 { 100.0 * report.lost() as f64 / report.sent as f64 } else { 0.0 };
        Self {
            seconds,
            bytes: report.bytes,
            bits_per_second: 8.0 * report.bytes as f64 / seconds,
            jitter_ms: ms(report.jitter),
            lost_packets: report.lost(),
            packets: report.sent,
            lost_percent: percent,
            out_of_order: report.out_of_order,
            unsent_packets: report.unsent,
            unread_packets: report.unread,
            delay_variation_ms_mean: ms(report.variation.mean),
            delay_variation_ms_p50: ms(report.variation.p50),
            delay_variation_ms_p95: ms(report.variation.p95),
            delay_variation_ms_p99: ms(report.variation.p99),
            delay_variation_ms_max: ms(report.variation.largest),
            delay_ms_min: delay(Duration::ZERO),
            delay_ms_p50: delay(report.variation.p50),
            delay_ms_p99: delay(report.variation.p99),
        }
    }

    fn rows(&self, way: &str) -> Vec<(String, String)> {
        let ms = |value: f64| format!("{} ms", terminal::number(value));
        let delays =
            [("delay min", self.delay_ms_min), ("delay p50", self.delay_ms_p50), ("delay p99", self.delay_ms_p99)];
        let delays = delays.into_iter().filter_map(|(name, delay)| Some((name, ms(delay?))));
        let rows = [
            ("datagrams", format!("{} received", rate(self.bits_per_second))),
            ("sent", self.packets.to_string()),
            ("lost", format!("{} ({:.2} %)", self.lost_packets, self.lost_percent)),
            ("not sent in time", self.unsent_packets.to_string()),
            ("out of order", self.out_of_order.to_string()),
            ("jitter", ms(self.jitter_ms)),
            ("delay variation p50", ms(self.delay_variation_ms_p50)),
            ("delay variation p99", ms(self.delay_variation_ms_p99)),
        ];
        rows.into_iter().chain(delays).map(|(name, value)| (format!("{way}: {name}"), value)).collect()
    }
}

/// The size of a datagram.
pub(super) fn size(asked: Option<u32>) -> Result<u16, Failure> {
    let size = u16::try_from(asked.unwrap_or(SIZE)).ok().filter(|size| SIZES.contains(size));
    let (least, most) = (SIZES.start(), SIZES.end());
    size.ok_or_else(|| Failure::usage(format!("a datagram has {least} to {most} bytes: --size")))
}

/// It has a number and a time, and fits a packet of 9,000 bytes.
const SIZES: std::ops::RangeInclusive<u16> = 16..=8900;

/// It fits the packets with which each path begins.
const SIZE: u32 = 1000;
