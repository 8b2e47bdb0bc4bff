//! The table in a module's memory, through which the module and its path exchange facts: its offsets, and how facts are written.
//!
//! Numbers are little-endian, as everywhere in WASM. Times are in seconds and windows in segments, as 64-bit floats; an unknown value is NaN. Codes
//! are 32-bit integers. `template/c/anabranch_cc.h` describes this table for authors; a test compares the two.

use anabranch_cc::{
    Ack, Cause, Departure, Limit, Loss, PathSummary, PathView, Phase, Restart, Round, Sent, Signal, Supply,
    Transmission,
};
use anabranch_units::{Span, Time};

/// The version of the interface. A module says for which version it is written.
pub const VERSION: u32 = 1;

/// The limit of path summaries in the table: the most paths that a connection has.
const GROUP_MAX: usize = 8;

/// The offsets of the table's parts, in bytes.
pub(crate) mod at {
    pub(crate) const REDUCTION: usize = 4;
    pub(crate) const ECT: usize = 8;
    pub(crate) const SETTINGS: usize = 12;
    pub(crate) const GAUGES: usize = 20;
    pub(crate) const GROUP_COUNT: usize = 28;
    pub(crate) const WINDOW: usize = 32;
    pub(crate) const PATH: usize = 48;
    pub(crate) const ACK: usize = 120;
    pub(crate) const ROUND: usize = 240;
    pub(crate) const LOSS: usize = 280;
    pub(crate) const SENT: usize = 360;
    pub(crate) const RESTART: usize = 376;
    pub(crate) const GROUP: usize = 384;
    /// The length of the table.
    pub(crate) const END: usize = 832;
}

/// An unknown value.
const UNKNOWN: f64 = f64::NAN;

/// The bytes of the table.
pub(crate) type Table = [u8; at::END];

/// Writes numbers one after the other into the table. Facts go to their place at once: a buffer between would double the cost of a call.
struct Writer<'a> {
    table: &'a mut Table,
    at: usize,
}

impl Writer<'_> {
    fn put<const N: usize>(self, bytes: [u8; N]) -> Self {
        self.table[self.at..self.at + N].copy_from_slice(&bytes);
        Self { at: self.at + N, ..self }
    }

    fn number(self, number: f64) -> Self {
        self.put(number.to_le_bytes())
    }

    fn code(self, code: u32) -> Self {
        self.put(code.to_le_bytes())
    }

    fn time(self, time: Time) -> Self {
        self.number(time.as_secs_f64())
    }

    fn span(self, span: Option<Span>) -> Self {
        self.number(span.map_or(UNKNOWN, Span::as_secs_f64))
    }

    fn departure(self, departure: &Departure) -> Self {
        let supply = match departure.supply {
            Supply::Enough => 0,
            Supply::Short => 1,
        };
        self.time(departure.time)
            .number(departure.window)
            .number(departure.flight)
            .number(departure.progress.delivered)
            .number(departure.progress.lost)
            .time(departure.progress.delivered_at)
            .time(departure.progress.departed)
            .code(supply)
            .code(0)
    }
}

pub(crate) fn write_path(table: &mut Table, path: &PathView) {
    Writer { table, at: at::PATH }
        .time(path.now)
        .number(path.flight)
        .number(path.mss.count() as f64)
        .span(path.rtt_smoothed)
        .span(path.rtt_min)
        .number(path.progress.delivered)
        .number(path.progress.lost)
        .time(path.progress.delivered_at)
        .time(path.progress.departed);
}

pub(crate) fn write_ack(table: &mut Table, ack: &Ack) {
    let limit = match ack.limit {
        Limit::Window => 0,
        Limit::Application => 1,
    };
    let phase = match ack.phase {
        Phase::Open => 0,
        Phase::Recovery => 1,
    };
    Writer { table, at: at::ACK }
        .number(ack.newly_acked)
        .number(ack.newly_lost)
        .number(ack.newly_marked)
        .span(ack.rtt)
        .number(ack.size.count() as f64)
        .time(ack.arrival)
        .departure(&ack.departure)
        .code(limit)
        .code(phase);
}

pub(crate) fn write_round(table: &mut Table, round: &Round) {
    Writer { table, at: at::ROUND }
        .number(round.count as f64)
        .span(Some(round.elapsed))
        .number(round.acked)
        .span(round.rtt_min)
        .span(round.rtt_mean);
}

pub(crate) fn write_loss(table: &mut Table, loss: &Loss) {
    let signal = match loss.signal {
        Signal::DupAcks => 0,
        Signal::Timeout => 1,
        Signal::Ecn => 2,
    };
    let cause = match loss.cause {
        Cause::Congestion => 0,
        Cause::Random => 1,
        Cause::Unknown => 2,
    };
    Writer { table, at: at::LOSS }.code(signal).code(cause).number(loss.lost).departure(&loss.departure);
}

pub(crate) fn write_sent(table: &mut Table, sent: &Sent) {
    let transmission = match sent.transmission {
        Transmission::First => 0,
        Transmission::Again => 1,
    };
    Writer { table, at: at::SENT }.number(sent.segments).code(transmission).code(0);
}

pub(crate) fn write_restart(table: &mut Table, restart: Restart) {
    let why = match restart {
        Restart::Established => 0,
        Restart::Idle => 1,
        Restart::AfterTimeout => 2,
        Restart::PathChanged => 3,
    };
    Writer { table, at: at::RESTART }.code(why).code(0);
}

pub(crate) fn write_group(table: &mut Table, group: &[PathSummary]) {
    let group = &group[..group.len().min(GROUP_MAX)];
    Writer { table, at: at::GROUP_COUNT }.code(group.len() as u32);
    group.iter().fold(Writer { table, at: at::GROUP }, |writer, path| {
        writer
            .code(path.path)
            .code(path.own.into())
            .number(path.window)
            .number(path.flight)
            .span(path.rtt_smoothed)
            .span(path.rtt_min)
            .number(path.delivered)
            .number(path.lost)
    });
}

pub(crate) fn write_window(table: &mut Table, window: f64) {
    Writer { table, at: at::WINDOW }.number(window);
}

/// The integer at an address of a memory; `None` beyond its end.
pub(crate) fn read_u32(memory: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(memory.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// The number at an address of a memory; `None` beyond its end.
pub(crate) fn read_f64(memory: &[u8], at: usize) -> Option<f64> {
    Some(f64::from_le_bytes(memory.get(at..at.checked_add(8)?)?.try_into().ok()?))
}
