//! `anabranch bench`: how fast a network is with the transport.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anabranch::measure::{self, Direction, Plan};
use anabranch::{Connection, Path, PathState, Stats};
use serde::Serialize;

use crate::args::network::{Bench, BenchServer, Listen};
use crate::failure::{Failure, Outcome};
use crate::terminal::{self, Align, DIM, PLAIN, Table};

/// What is printed at the end.
#[derive(Serialize)]
struct Measured {
    direction: &'static str,
    streams: u8,
    cc: String,
    seconds: f64,
    bytes: u64,
    bits_per_second: f64,
    segments_sent: u64,
    segments_sent_again: u64,
    segments_lost: u64,
    /// Of all samples of the first path.
    rtt_ms_mean: Option<f64>,
    rtt_ms_p50: Option<f64>,
    rtt_ms_p95: Option<f64>,
    rtt_ms_p99: Option<f64>,
    /// Where they ended.
    paths: Vec<PathEnded>,
    intervals: Vec<Interval>,
}

/// A path, as it was at last.
#[derive(Clone, Serialize)]
struct PathEnded {
    local: SocketAddr,
    remote: SocketAddr,
    /// Whether data takes it.
    is_live: bool,
    segments_sent: u64,
    segments_lost: u64,
    window_segments: f64,
    rtt_ms: Option<f64>,
}

/// What happened in a second.
#[derive(Clone, Copy, Serialize)]
struct Interval {
    /// When it ended.
    seconds: f64,
    bits_per_second: f64,
    rtt_ms: Option<f64>,
    window_segments: f64,
    segments_lost: u64,
}

#[derive(Serialize)]
struct Listening<'a> {
    ticket: &'a str,
}

/// Measures, or waits for others to measure with.
pub(crate) fn bench(args: &Bench) -> Outcome {
    match (&args.serve, &args.ticket) {
        (Some(BenchServer::Serve { listen, law, json }), _) => super::block_on(serve(listen, law, *json)),
        (None, Some(_)) => {
            let measured = super::block_on(run(args))?;
            if args.json { super::print_line(&measured) } else { print(&measured) }
        }
        (None, None) => Err(Failure::usage("a ticket is missing: `anabranch bench serve` prints one")),
    }
}

async fn serve(listen: &Listen, law: &str, json: bool) -> Outcome {
    let endpoint = super::server(listen, super::config(law)?)?;
    let ticket = endpoint.ticket().to_string();
    if json {
        super::print_line(&Listening { ticket: &ticket })?;
    } else {
        let mut out = anstream::stdout();
        writeln!(out, "To measure with this computer:\n\n  anabranch bench {ticket}\n")?;
        out.flush()?;
    }
    while let Some(connection) = endpoint.accept().await {
        tokio::spawn(async move {
            if let Err(error) = measure::serve(&connection).await {
                terminal::complain(&error.to_string());
            }
        });
    }
    Err(Failure::failed("the socket is gone"))
}

async fn run(args: &Bench) -> Result<Measured, Failure> {
    let failed = |error: &dyn std::error::Error| Failure::failed(error.to_string());
    let endpoint = super::client(None, super::config(&args.law)?)?;
    let ticket = args.ticket.as_ref().ok_or_else(|| Failure::usage("a ticket is missing"))?;
    let connection = endpoint.connect(ticket).await.map_err(|error| failed(&error))?;
    if args.multipath {
        connection.add_paths(ticket).await;
    }
    let direction = if args.reverse { Direction::Down } else { Direction::Up };
    let plan = Plan { direction, streams: args.streams, time: Duration::from_secs(args.time.into()) };
    let mut watch = Watch::new(&connection, direction, !args.json);
    tokio::select! {
        ended = measure::measure(&connection, plan) => ended.map_err(|error| failed(&error))?,
        error = watch.run() => return Err(error),
    }
    Ok(watch.end(args))
}

/// Looks at a connection while it is measured.
struct Watch<'a> {
    connection: &'a Connection,
    direction: Direction,
    is_printing: bool,
    begin: Instant,
    /// When the present interval began, and what had happened then.
    since: (f64, Stats),
    /// The latest, as long as there was any.
    last: (f64, Stats),
    rtts_ms: Vec<f64>,
    rtt_ms_mean: Option<f64>,
    paths: Vec<PathEnded>,
    intervals: Vec<Interval>,
}

impl<'a> Watch<'a> {
    fn new(connection: &'a Connection, direction: Direction, is_printing: bool) -> Self {
        let none = (0.0, Stats::default());
        let (begin, since, last) = (Instant::now(), none, none);
        let (rtts_ms, rtt_ms_mean, paths, intervals) = (vec![], None, vec![], vec![]);
        Self { connection, direction, is_printing, begin, since, last, rtts_ms, rtt_ms_mean, paths, intervals }
    }

    /// Ends only if nothing can be printed.
    async fn run(&mut self) -> Failure {
        loop {
            tokio::time::sleep(SAMPLE).await;
            let now = self.begin.elapsed().as_secs_f64();
            let (stats, path) = (self.connection.stats(), self.connection.paths().first().copied());
            let Some(path) = path.filter(|_| stats.segments_sent > 0) else { continue };
            self.last = (now, stats);
            self.paths = self.connection.paths().iter().map(PathEnded::of).collect();
            let tally = &path.report.tally;
            self.rtt_ms_mean =
                (tally.rtt_samples > 0).then(|| tally.rtt_sum.as_secs_f64() * 1e3 / tally.rtt_samples as f64);
            let rtt_ms = tally.rtt_latest.map(|rtt| rtt.as_secs_f64() * 1e3);
            // A day has eight million.
            self.rtts_ms.extend(rtt_ms);
            if now - self.since.0 < 1.0 {
                continue;
            }
            let interval = Interval {
                seconds: now,
                bits_per_second: 8.0 * (self.bytes(&stats) - self.bytes(&self.since.1)) as f64 / (now - self.since.0),
                rtt_ms,
                window_segments: path.report.window,
                segments_lost: stats.segments_lost - self.since.1.segments_lost,
            };
            self.since = (now, stats);
            self.intervals.push(interval);
            if self.is_printing
                && let Err(error) = print_interval(&interval)
            {
                return error;
            }
        }
    }

    fn bytes(&self, stats: &Stats) -> u64 {
        match self.direction {
            Direction::Up => stats.bytes_acknowledged,
            Direction::Down => stats.bytes_received,
        }
    }

    fn end(mut self, args: &Bench) -> Measured {
        let (seconds, stats) = self.last;
        self.rtts_ms.sort_by(f64::total_cmp);
        let quantile = |part: f64| {
            let last = self.rtts_ms.len().checked_sub(1)?;
            self.rtts_ms.get((last as f64 * part).round() as usize).copied()
        };
        Measured {
            direction: if args.reverse { "down" } else { "up" },
            streams: args.streams,
            cc: args.law.clone(),
            seconds,
            bytes: self.bytes(&stats),
            bits_per_second: if seconds > 0.0 { 8.0 * self.bytes(&stats) as f64 / seconds } else { 0.0 },
            segments_sent: stats.segments_sent,
            segments_sent_again: stats.segments_sent_again,
            segments_lost: stats.segments_lost,
            rtt_ms_mean: self.rtt_ms_mean,
            rtt_ms_p50: quantile(0.5),
            rtt_ms_p95: quantile(0.95),
            rtt_ms_p99: quantile(0.99),
            paths: self.paths,
            intervals: self.intervals,
        }
    }
}

impl PathEnded {
    fn of(path: &Path) -> Self {
        Self {
            local: path.local,
            remote: path.remote,
            is_live: path.state == PathState::Live,
            segments_sent: path.report.tally.sent,
            segments_lost: path.report.tally.lost,
            window_segments: path.report.window,
            rtt_ms: path.report.rtt_smoothed.map(|rtt| rtt.as_secs_f64() * 1e3),
        }
    }
}

fn print_interval(interval: &Interval) -> Outcome {
    let rtt = interval.rtt_ms.map_or("?".to_owned(), terminal::number);
    let window = terminal::number(interval.window_segments.round());
    let Interval { seconds, bits_per_second, segments_lost, .. } = interval;
    let line = format!(
        "{seconds:>6.1} s  {:>12}  RTT {rtt:>8} ms  window {window:>8}  lost {segments_lost:>6}",
        rate(*bits_per_second)
    );
    let mut out = anstream::stdout();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

fn print(measured: &Measured) -> Outcome {
    let mut table = Table::new(&[("", Align::Left), ("", Align::Right)]);
    let ms = |value: Option<f64>| value.map_or("?".to_owned(), |ms| format!("{} ms", terminal::number(ms)));
    for (name, value) in [
        ("rate", rate(measured.bits_per_second)),
        ("bytes", super::decimal(measured.bytes as f64)),
        ("segments sent", measured.segments_sent.to_string()),
        ("taken for lost", measured.segments_lost.to_string()),
        ("RTT p50", ms(measured.rtt_ms_p50)),
        ("RTT p95", ms(measured.rtt_ms_p95)),
        ("RTT p99", ms(measured.rtt_ms_p99)),
    ] {
        table.row(vec![(name.to_owned(), DIM), (value, PLAIN)]);
    }
    Ok(write!(anstream::stdout(), "{}", table.render(""))?)
}

fn rate(bits_per_second: f64) -> String {
    match bits_per_second {
        rate if rate >= 1e9 => format!("{:.2} Gbit/s", rate / 1e9),
        rate if rate >= 1e6 => format!("{:.2} Mbit/s", rate / 1e6),
        rate => format!("{:.2} kbit/s", rate / 1e3),
    }
}

/// From one sample to the next.
const SAMPLE: Duration = Duration::from_millis(10);
