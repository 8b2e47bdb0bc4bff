//! `anabranch bench`: measures a network path.

mod beside;
mod datagrams;
mod round_trips;
mod set_up;
mod times;

use std::io::Write as _;
use std::time::{Duration, Instant};

use anabranch::measure::{self, Direction, MeasureError, Plan};
use anabranch::units::Rate;
use anabranch::{Config, Connection, Endpoint, Limit, Path, Stats, Ticket};
use serde::Serialize;
use tokio::task::JoinSet;

use self::beside::{Beside, Rivalry};
use self::datagrams::Datagrams;
use self::round_trips::RoundTrips;
use super::observe::{self, PathSeen, Shares, rate};
use super::offer::Offer;
use crate::args::online::{Bench, BenchServer, Listen, Log};
use crate::failure::{Failure, Outcome};
use crate::terminal::{self, Align, DIM, PLAIN, Table};

/// The final document.
#[derive(Serialize)]
struct Measured {
    direction: &'static str,
    connections: u8,
    /// Of each connection.
    streams: u8,
    cc: String,
    /// The rate limit of each sending end.
    rate_bits_per_second: Option<u64>,
    seconds: f64,
    /// Sum over both directions, if both sent.
    bytes: u64,
    bits_per_second: f64,
    /// The rate of each connection.
    connection_bits_per_second: Vec<f64>,
    bytes_sent: u64,
    bytes_received: u64,
    segments_sent: u64,
    segments_sent_again: u64,
    segments_lost: u64,
    /// Of these, segments lost without an acknowledgement that said so.
    segments_lost_by_timeout: u64,
    /// Duplicate arrivals at the other end.
    segments_doubled: u64,
    /// The mean of all samples of the first path of the first connection, as the other figures of RTT.
    rtt_ms_mean: Option<f64>,
    rtt_ms_p50: Option<f64>,
    rtt_ms_p95: Option<f64>,
    rtt_ms_p99: Option<f64>,
    /// What limited this end on the first connection, as shares of the time in which it had data to send; `None` if it did not send.
    limits: Option<Shares>,
    /// With `--datagrams`: what became of them.
    datagrams: Option<Datagrams>,
    /// With `--ping-pong`: how long they took.
    round_trips: Option<RoundTrips>,
    /// With `--beside`: what the kernel's TCP carried, and both at once.
    beside: Option<Beside>,
    /// The paths of all connections at the end.
    paths: Vec<PathSeen>,
    intervals: Vec<Interval>,
}

/// An interval of a second.
#[derive(Clone, Copy, Serialize)]
struct Interval {
    /// The time of its end.
    seconds: f64,
    /// Sum over both directions, if both send.
    bits_per_second: f64,
    sent_bits_per_second: f64,
    received_bits_per_second: f64,
    rtt_ms: Option<f64>,
    rtt_base_ms: Option<f64>,
    /// Of the first connection, as RTT and limit.
    window_segments: f64,
    segments_lost: u64,
    /// The limit that applied longest; `None` if this end does not send.
    limited_by: Option<&'static str>,
}

/// The documents of `--jsonl`.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum BenchEvent<'a> {
    Interval(&'a Interval),
    End(&'a Measured),
}

#[derive(Serialize)]
struct Listening<'a> {
    ticket: &'a str,
}

/// The output format.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Print {
    Text,
    /// One document at the end.
    Json,
    /// A document a second, and one at the end.
    Lines,
}

impl Print {
    fn of(args: &Bench) -> Self {
        match (args.json, args.jsonl) {
            (true, _) => Self::Json,
            (false, true) => Self::Lines,
            (false, false) => Self::Text,
        }
    }
}

/// Measures, or serves measurements.
pub(crate) fn bench(args: &Bench) -> Outcome {
    match (&args.serve, &args.ticket) {
        (Some(BenchServer::Serve { listen, law, packet_max, log, json }), _) => {
            super::block_on(serve(listen, Config { packet_max: *packet_max, ..super::config(law)? }, log, *json))
        }
        (None, Some(ticket)) if args.set_up => {
            let set_ups = super::block_on(async {
                let endpoint = super::client(None, super::logged(super::config(&args.law)?, &args.log))?;
                let set_ups = set_up::measured(args, &endpoint, ticket).await?;
                super::end_logs(&endpoint, &args.log).await;
                Ok(set_ups)
            })?;
            set_ups.print(args.json || args.jsonl)
        }
        (None, Some(_)) => {
            let measured = super::block_on(run(args))?;
            match Print::of(args) {
                Print::Json => super::print_line(&measured),
                Print::Lines => super::print_line(&BenchEvent::End(&measured)),
                Print::Text => print(&measured),
            }
        }
        (None, None) => Err(Failure::usage("a ticket is missing: `anabranch bench serve` prints one")),
    }
}

async fn serve(listen: &Listen, config: Config, log: &Log, json: bool) -> Outcome {
    let endpoint = super::server(listen, super::logged(config, log)).await?;
    let ticket = endpoint.ticket().to_string();
    if json {
        super::print_line(&Listening { ticket: &ticket })?;
    } else {
        let mut out = anstream::stdout();
        writeln!(out, "To measure with this computer:\n\n  anabranch bench {ticket}\n")?;
        super::show_code(&mut out, listen, &ticket)?;
        out.flush()?;
    }
    let offer = Offer::new("bench serve");
    while let Some(connection) = endpoint.accept().await {
        let showing = offer.show(&connection);
        tokio::spawn(async move {
            let _showing = showing;
            if let Err(error) = measure::serve(&connection).await {
                terminal::complain(&error.to_string());
            }
        });
    }
    Err(Failure::failed("the socket is gone"))
}

/// What is measured.
#[derive(Clone, Copy)]
enum Traffic {
    Streams,
    /// Datagrams of so many bytes, and whether both ends' clocks agree.
    Datagrams(u16, bool),
    /// Requests of so many bytes.
    RoundTrips(u32),
}

impl Traffic {
    fn of(args: &Bench) -> Result<Self, Failure> {
        match (args.datagrams, args.ping_pong) {
            (true, _) => datagrams::size(args.size).map(|size| Self::Datagrams(size, args.clocks_agree)),
            (false, true) => Ok(Self::RoundTrips(args.size.unwrap_or(round_trips::SIZE))),
            (false, false) => Ok(Self::Streams),
        }
    }
}

/// What only some measurements have.
#[derive(Default)]
struct Special {
    datagrams: Option<Datagrams>,
    round_trips: Option<RoundTrips>,
}

/// Measures on all connections.
async fn measure_all(connections: &[Connection], plan: Plan, traffic: Traffic) -> Result<Special, Failure> {
    let failed = |error: MeasureError| Failure::failed(error.to_string());
    // The other measurements have one connection.
    let [first, ..] = connections else { return Ok(Special::default()) };
    match traffic {
        Traffic::Datagrams(size, clocks_agree) => {
            let reports = measure::measure_datagrams(first, plan, size).await.map_err(failed)?;
            Ok(Special { datagrams: Some(Datagrams::new(&reports, plan.time, clocks_agree)), ..Special::default() })
        }
        Traffic::RoundTrips(size) => {
            let times = measure::measure_round_trips(first, plan, size).await.map_err(failed)?;
            Ok(Special { round_trips: Some(RoundTrips::new(&times, size, plan.time)), ..Special::default() })
        }
        Traffic::Streams => {
            let mut measurements = JoinSet::new();
            for connection in connections {
                let connection = connection.clone();
                measurements.spawn(async move { measure::measure(&connection, plan).await });
            }
            while let Some(ended) = measurements.join_next().await {
                ended.map_err(|error| Failure::failed(error.to_string()))?.map_err(failed)?;
            }
            Ok(Special::default())
        }
    }
}

async fn run(args: &Bench) -> Result<Measured, Failure> {
    let &Bench { packet_max, cipher, scheduling, .. } = args;
    let config = Config { packet_max, cipher, scheduling, ..super::config(&args.law)? };
    let endpoint = super::client(None, super::logged(config, &args.log))?;
    let ticket = args.ticket.as_ref().ok_or_else(|| Failure::usage("a ticket is missing"))?;
    let rivalry = args.beside.as_ref().map(|rival| Rivalry::new(args, rival, &endpoint, ticket));
    let alone = match &rivalry {
        Some(rivalry) => rivalry.alone().await?,
        None => None,
    };
    let (mut measured, ended) = once(args, &endpoint, ticket, Print::of(args)).await?;
    if let (Some(rivalry), Some(alone), Ended::InTime) = (&rivalry, alone, ended) {
        measured.beside = rivalry.together(alone).await?;
    }
    super::end_logs(&endpoint, &args.log).await;
    Ok(measured)
}

/// How a measurement has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    InTime,
    /// By Ctrl-C.
    Stopped,
}

/// Measures this transport.
async fn once(args: &Bench, endpoint: &Endpoint, ticket: &Ticket, print: Print) -> Result<(Measured, Ended), Failure> {
    let traffic = Traffic::of(args)?;
    let mut connections = vec![];
    for _ in 0..args.connections {
        let connection = endpoint.connect(ticket).await.map_err(|error| Failure::failed(error.to_string()))?;
        if args.multipath {
            connection.add_paths(ticket).await;
        }
        connections.push(connection);
    }
    if connections.iter().any(|connection| connection.paths().iter().any(Path::is_relayed)) {
        super::relay::say(endpoint)?;
    }
    let offer = Offer::new("bench");
    let _showing: Vec<_> = connections.iter().map(|connection| offer.show(connection)).collect();
    let direction = match (args.reverse, args.bidir || args.ping_pong) {
        (true, _) => Direction::Down,
        (false, true) => Direction::Both,
        (false, false) => Direction::Up,
    };
    let time = Duration::from_secs(args.time.into());
    let share = |rate: Rate| Rate::from_bits_per_second(rate.bits_per_second() / u64::from(args.connections));
    let plan = Plan { direction, streams: args.streams, time, rate: args.rate.map(share) };
    let mut watch = Watch::new(&connections, direction, time, print);
    let (special, ended) = tokio::select! {
        special = measure_all(&connections, plan, traffic) => (special?, Ended::InTime),
        error = watch.run() => return Err(error),
        // The result so far is a result.
        _ = tokio::signal::ctrl_c() => {
            connections.iter().for_each(Connection::abort);
            (Special::default(), Ended::Stopped)
        }
    };
    watch.end_interval()?;
    Ok((watch.end(args, special), ended))
}

/// Samples the connections during the measurement.
struct Watch<'a> {
    connections: &'a [Connection],
    direction: Direction,
    /// How long the senders send. What comes later is not counted.
    time: Duration,
    print: Print,
    begin: Instant,
    /// The start of the present interval, and the sums then.
    since: (f64, Stats),
    /// The end of the interval, a whole second, so that late samples do not add up.
    until: f64,
    /// The time of the latest sample.
    last: f64,
    /// What is known of each connection: at the end the peer may have closed it.
    seen: Vec<Sample>,
    rtts_ms: Vec<f64>,
    intervals: Vec<Interval>,
}

/// A connection, while it existed.
#[derive(Clone, Default)]
struct Sample {
    stats: Stats,
    paths: Vec<Path>,
}

impl<'a> Watch<'a> {
    fn new(connections: &'a [Connection], direction: Direction, time: Duration, print: Print) -> Self {
        Self {
            connections,
            direction,
            time,
            print,
            begin: Instant::now(),
            since: (0.0, Stats::default()),
            until: 1.0,
            last: 0.0,
            seen: vec![Sample::default(); connections.len()],
            rtts_ms: vec![],
            intervals: vec![],
        }
    }

    /// Returns only if printing fails.
    async fn run(&mut self) -> Failure {
        loop {
            tokio::time::sleep(SAMPLE).await;
            if self.last >= self.time.as_secs_f64() {
                continue;
            }
            let now = self.begin.elapsed().as_secs_f64();
            let mut has_news = false;
            for (connection, seen) in self.connections.iter().zip(&mut self.seen) {
                let (stats, paths) = (connection.stats(), connection.paths());
                if stats.segments_sent > 0 && !paths.is_empty() {
                    *seen = Sample { stats, paths };
                    has_news = true;
                }
            }
            if !has_news {
                continue;
            }
            self.last = now;
            let latest = self.first_path().and_then(|path| path.report.tally.rtt_latest);
            // A day has eight million.
            self.rtts_ms.extend(latest.map(|rtt| rtt.as_secs_f64() * 1e3));
            if now >= self.until
                && let Err(error) = self.tell_interval(now)
            {
                return error;
            }
        }
    }

    /// The measurement is over: prints the rest of the last interval.
    fn end_interval(&mut self) -> Outcome {
        if self.last > self.since.0 { self.tell_interval(self.last) } else { Ok(()) }
    }

    fn tell_interval(&mut self, now: f64) -> Outcome {
        let Some(interval) = self.interval(now) else { return Ok(()) };
        (self.since, self.until) = ((now, self.sum()), now.floor() + 1.0);
        self.intervals.push(interval);
        match self.print {
            Print::Text => print_interval(&interval, self.direction),
            Print::Lines => super::print_line(&BenchEvent::Interval(&interval)),
            Print::Json => Ok(()),
        }
    }

    /// The path whose RTT is shown.
    fn first_path(&self) -> Option<&Path> {
        self.seen.first()?.paths.first()
    }

    /// The sums over all connections; the limits are those of the first one.
    fn sum(&self) -> Stats {
        let first = self.seen.first().map(|seen| seen.stats).unwrap_or_default();
        self.seen.iter().skip(1).fold(first, |sum, Sample { stats, .. }| Stats {
            segments_sent: sum.segments_sent + stats.segments_sent,
            segments_sent_again: sum.segments_sent_again + stats.segments_sent_again,
            segments_lost: sum.segments_lost + stats.segments_lost,
            segments_lost_by_timeout: sum.segments_lost_by_timeout + stats.segments_lost_by_timeout,
            segments_doubled: sum.segments_doubled + stats.segments_doubled,
            bytes_acknowledged: sum.bytes_acknowledged + stats.bytes_acknowledged,
            bytes_received: sum.bytes_received + stats.bytes_received,
            ..sum
        })
    }

    fn interval(&self, now: f64) -> Option<Interval> {
        let ((begin, before), stats, path) = (&self.since, &self.sum(), self.first_path()?);
        let rate = |after: u64, before: u64| 8.0 * after.saturating_sub(before) as f64 / (now - begin);
        let ms = |rtt: Option<Duration>| rtt.map(|rtt| rtt.as_secs_f64() * 1e3);
        Some(Interval {
            seconds: now,
            bits_per_second: rate(self.bytes(stats), self.bytes(before)),
            sent_bits_per_second: rate(stats.bytes_acknowledged, before.bytes_acknowledged),
            received_bits_per_second: rate(stats.bytes_received, before.bytes_received),
            rtt_ms: path.report.tally.rtt_latest.map(|rtt| rtt.as_secs_f64() * 1e3),
            rtt_base_ms: ms(path.rtt_base()),
            window_segments: path.report.window,
            // Counters of a path that has gone meanwhile are excluded.
            segments_lost: stats.segments_lost.saturating_sub(before.segments_lost),
            limited_by: self
                .sends()
                .then(|| observe::most(&stats.limits.since(&before.limits)))
                .flatten()
                .map(Limit::name),
        })
    }

    fn sends(&self) -> bool {
        self.direction != Direction::Down
    }

    fn bytes(&self, stats: &Stats) -> u64 {
        match self.direction {
            Direction::Up => stats.bytes_acknowledged,
            Direction::Down => stats.bytes_received,
            Direction::Both => stats.bytes_acknowledged + stats.bytes_received,
        }
    }

    fn end(mut self, args: &Bench, special: Special) -> Measured {
        let (seconds, stats) = (self.last, self.sum());
        let rate = |stats: &Stats| if seconds > 0.0 { 8.0 * self.bytes(stats) as f64 / seconds } else { 0.0 };
        let (bits_per_second, each) = (rate(&stats), self.seen.iter().map(|seen| rate(&seen.stats)).collect());
        let tally = self.first_path().map(|path| path.report.tally).filter(|tally| tally.rtt_samples > 0);
        let rtt_ms_mean = tally.map(|tally| tally.rtt_sum.as_secs_f64() * 1e3 / tally.rtt_samples as f64);
        self.rtts_ms.sort_by(f64::total_cmp);
        let quantile = |part: f64| {
            let last = self.rtts_ms.len().checked_sub(1)?;
            self.rtts_ms.get((last as f64 * part).round() as usize).copied()
        };
        Measured {
            direction: match self.direction {
                Direction::Up => "up",
                Direction::Down => "down",
                Direction::Both => "both",
            },
            rate_bits_per_second: args.rate.map(Rate::bits_per_second),
            bytes_sent: stats.bytes_acknowledged,
            bytes_received: stats.bytes_received,
            segments_lost_by_timeout: stats.segments_lost_by_timeout,
            segments_doubled: stats.segments_doubled,
            limits: self.sends().then(|| observe::shares(&stats.limits)),
            datagrams: special.datagrams,
            round_trips: special.round_trips,
            beside: None,
            connections: args.connections,
            streams: args.streams,
            cc: args.law.clone(),
            seconds,
            bytes: self.bytes(&stats),
            bits_per_second,
            connection_bits_per_second: each,
            segments_sent: stats.segments_sent,
            segments_sent_again: stats.segments_sent_again,
            segments_lost: stats.segments_lost,
            rtt_ms_mean,
            rtt_ms_p50: quantile(0.5),
            rtt_ms_p95: quantile(0.95),
            rtt_ms_p99: quantile(0.99),
            paths: self.seen.iter().flat_map(|seen| &seen.paths).map(PathSeen::of).collect(),
            intervals: self.intervals,
        }
    }
}

fn print_interval(interval: &Interval, direction: Direction) -> Outcome {
    let rtt = interval.rtt_ms.map_or("?".to_owned(), terminal::number);
    let window = terminal::number(interval.window_segments.round());
    let Interval { seconds, bits_per_second, segments_lost, .. } = interval;
    let rate = match direction {
        Direction::Up | Direction::Down => format!("{:>12}", rate(*bits_per_second)),
        Direction::Both => {
            let (up, down) = (rate(interval.sent_bits_per_second), rate(interval.received_bits_per_second));
            format!("up {up:>12}  down {down:>12}")
        }
    };
    let limit = interval.limited_by.map(|name| format!("  {}", observe::words(name))).unwrap_or_default();
    let line =
        format!("{seconds:>6.1} s  {rate}  RTT {rtt:>8} ms  window {window:>8}  lost {segments_lost:>6}{limit}",);
    let mut out = anstream::stdout();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

fn print(measured: &Measured) -> Outcome {
    let mut table = Table::new(&[("", Align::Left), ("", Align::Right)]);
    let ms = |value: Option<f64>| value.map_or("?".to_owned(), |ms| format!("{} ms", terminal::number(ms)));
    for (name, value) in [
        ("rate", rate(measured.bits_per_second)),
        ("sent", super::decimal(measured.bytes_sent as f64)),
        ("received", super::decimal(measured.bytes_received as f64)),
        ("segments sent", measured.segments_sent.to_string()),
        ("segments lost", measured.segments_lost.to_string()),
        ("RTT p50", ms(measured.rtt_ms_p50)),
        ("RTT p95", ms(measured.rtt_ms_p95)),
        ("RTT p99", ms(measured.rtt_ms_p99)),
    ] {
        table.row(vec![(name.to_owned(), DIM), (value, PLAIN)]);
    }
    let datagrams = measured.datagrams.iter().flat_map(Datagrams::rows);
    let others = measured.round_trips.iter().flat_map(RoundTrips::rows);
    for (name, value) in datagrams.chain(others).chain(measured.beside.iter().flat_map(Beside::rows)) {
        table.row(vec![(name, DIM), (value, PLAIN)]);
    }
    let mut out = anstream::stdout();
    write!(out, "{}", table.render(""))?;
    if let Some(limits) = &measured.limits {
        writeln!(out, "\nlimited by: {}", observe::sentence(limits))?;
    }
    Ok(())
}

/// The interval between samples.
const SAMPLE: Duration = Duration::from_millis(10);
