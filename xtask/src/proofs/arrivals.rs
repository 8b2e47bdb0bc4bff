//! The measurements that the example `arrivals` takes at the receiver.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::program::Program;
use super::{Bench, SOON};

/// The arrivals of bytes on a connection, and whether they were correct.
pub(super) struct Arrivals {
    /// Bytes that the sender wrote.
    sent: u64,
    /// Acknowledged bytes, stream headers included.
    acknowledged: u64,
    /// Bytes that the receiver read.
    came: u64,
    /// Bytes among them that differ from those written.
    wrong: u64,
    /// Whether every stream arrived to its end.
    is_whole: bool,
    /// The Unix time in seconds at which the times of the arrivals begin.
    begin_unix: f64,
    /// Bytes that arrived in each 10 ms.
    hundredths: Vec<u64>,
    /// The gaps without arrivals: their begin in seconds, and their length.
    gaps: Vec<(f64, f64)>,
    /// The baseRTT of the first path, when all was written.
    pub(super) rtt_base_ms: Option<f64>,
    /// The mean RTT of the first path until then.
    pub(super) rtt_mean_ms: Option<f64>,
    /// The limits of the first path until then, by name, as shares of the time.
    pub(super) limits: Value,
    /// Segments that the sender sent on each path that was left at the end.
    pub(super) segments: Vec<u64>,
}

/// A running transfer from host `a` to `b`.
pub(super) struct Running {
    server: Program,
    client: Program,
    seconds: u32,
}

impl Running {
    /// Begins a transfer of `seconds` seconds on `streams` streams.
    pub(super) fn begin(bench: &Bench, seconds: u32, streams: u32, multipath: bool) -> Result<Self, String> {
        let arrivals = bench.example("arrivals")?;
        let mut server = Program::start(&bench.anabranch, &bench.at("b", &[&arrivals, "serve"]))?;
        let ticket = server.line(SOON)?;
        Self::call(bench, server, &ticket, seconds, streams, multipath)
    }

    /// The same on one stream, paced at `megabits` Mbit/s.
    pub(super) fn paced(bench: &Bench, seconds: u32, megabits: u32) -> Result<Self, String> {
        let mut server = Program::start(&bench.anabranch, &bench.at("b", &[&bench.example("arrivals")?, "serve"]))?;
        let ticket = server.line(SOON)?;
        Self::with(bench, server, &ticket, seconds, 1, Some(&megabits.to_string()))
    }

    /// The same, with a running server and its ticket.
    pub(super) fn call(
        bench: &Bench,
        server: Program,
        ticket: &str,
        seconds: u32,
        streams: u32,
        multipath: bool,
    ) -> Result<Self, String> {
        Self::with(bench, server, ticket, seconds, streams, multipath.then_some("multipath"))
    }

    fn with(
        bench: &Bench,
        server: Program,
        ticket: &str,
        seconds: u32,
        streams: u32,
        more: Option<&str>,
    ) -> Result<Self, String> {
        let arrivals = bench.example("arrivals")?;
        let (time, streams) = (seconds.to_string(), streams.to_string());
        let mut call = vec![arrivals.as_str(), "call", ticket, &time, &streams];
        call.extend(more);
        let client = Program::start(&bench.anabranch, &bench.at("a", &call))?;
        Ok(Self { server, client, seconds })
    }

    /// The receiver.
    pub(super) fn server(&self) -> &Program {
        &self.server
    }

    /// Waits for the end.
    pub(super) fn end(mut self) -> Result<Arrivals, String> {
        let told = self.client.json(Duration::from_secs(self.seconds.into()) + SOON)?;
        self.client.succeed(SOON)?;
        let record = self.server.json(SOON)?;
        Arrivals::read(&told, &record).ok_or_else(|| "what `arrivals` prints is not understood".to_owned())
    }
}

impl Arrivals {
    fn read(told: &Value, record: &Value) -> Option<Self> {
        let numbers = |value: &Value| value.as_array()?.iter().map(Value::as_u64).collect::<Option<Vec<_>>>();
        let gaps = record["gaps_seconds"].as_array()?.iter();
        Some(Self {
            sent: told["bytes"].as_u64()?,
            acknowledged: told["bytes_acknowledged"].as_u64()?,
            rtt_base_ms: told["rtt_base_ms"].as_f64(),
            rtt_mean_ms: told["rtt_mean_ms"].as_f64(),
            limits: told["limits"].clone(),
            came: record["bytes"].as_u64()?,
            wrong: record["wrong_bytes"].as_u64()?,
            is_whole: record["is_whole"].as_bool()?,
            begin_unix: record["begin_unix_seconds"].as_f64()?,
            hundredths: numbers(&record["bytes_each_10_ms"])?,
            gaps: gaps.map(|gap| Some((gap[0].as_f64()?, gap[1].as_f64()?))).collect::<Option<_>>()?,
            segments: numbers(&told["segments_of_paths"])?,
        })
    }

    /// Whether all bytes arrived unchanged, and a sentence about it.
    pub(super) fn content(&self) -> (bool, String) {
        let holds = self.is_whole && self.wrong == 0 && self.came == self.sent;
        let Self { sent, came, wrong, .. } = self;
        (holds, format!("sent {sent} B, came {came}, wrong {wrong}"))
    }

    /// Acknowledged bytes for each written byte.
    pub(super) fn acknowledged_share(&self) -> f64 {
        self.acknowledged as f64 / self.sent as f64
    }

    /// Bytes that arrived between these times.
    pub(super) fn bytes(&self, from: f64, until: f64) -> u64 {
        let place = |seconds: f64| ((seconds.max(0.0) * 100.0).round() as usize).min(self.hundredths.len());
        self.hundredths[place(from)..place(until.max(from))].iter().sum()
    }

    /// Bits a second that the application received between these times.
    pub(super) fn rate(&self, from: f64, until: f64) -> f64 {
        8.0 * self.bytes(from, until) as f64 / (until - from)
    }

    /// Seconds from the begin to this Unix time.
    pub(super) fn at(&self, unix: f64) -> f64 {
        unix - self.begin_unix
    }

    /// The longest gap that began or ended between these times; 0 if none was above 50 ms.
    pub(super) fn longest_gap(&self, from: f64, until: f64) -> f64 {
        let near = self.gaps.iter().filter(|(at, long)| at + long >= from && *at <= until);
        near.map(|&(_, long)| long).fold(0.0, f64::max)
    }

    /// The cost in seconds of an event at `at`: the delay of the bytes in the two seconds after it, against the later rate.
    pub(super) fn cost(&self, at: f64) -> f64 {
        let after = self.rate(at + 2.0, at + 6.0) / 8.0;
        2.0 - self.bytes(at, at + 2.0) as f64 / after
    }
}

/// The Unix time in seconds.
pub(super) fn unix_now() -> f64 {
    SystemTime::UNIX_EPOCH.elapsed().map(|since| since.as_secs_f64()).unwrap_or_default()
}
