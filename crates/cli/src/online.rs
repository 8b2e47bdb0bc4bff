//! The common part of the commands that use a connection or a network.

mod bench;
mod code;
mod keep;
mod observe;
mod offer;
mod place;
mod recv;
mod relay;
mod resources;
mod send;
mod stop;
mod tunnel;
mod vpn;
mod watch;

use std::future::Future;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anabranch::cc::{Settings, registry};
use anabranch::{Config, Endpoint, KeyFileError, SecretKey};
use anabranch_tunnel::ListenAt;
use serde::Serialize;
use tracing_subscriber::filter::LevelFilter;

pub(crate) use self::bench::bench;
pub(crate) use self::recv::recv;
pub(crate) use self::relay::relay;
pub(crate) use self::send::send;
pub(crate) use self::tunnel::tunnel;
pub(crate) use self::watch::watch;
use crate::args::online::{Key, Level, Listen, Log, Sending};
use crate::failure::{Failure, Outcome};
use crate::terminal;

/// `anabranch key`.
pub(crate) fn key(command: &Key) -> Outcome {
    let key = match command {
        Key::New { file } => {
            let key = SecretKey::generate().map_err(|error| Failure::failed(error.to_string()))?;
            key.write_new(file).map_err(unusable)?;
            key
        }
        Key::Show { file } => read_key(file)?,
    };
    Ok(writeln!(anstream::stdout(), "{}", key.public())?)
}

/// The JSON document of a transfer.
#[derive(Serialize)]
struct Ended {
    files: u64,
    bytes: u64,
    files_there: u64,
    bytes_there: u64,
    links: u64,
    failed: Vec<Failed>,
    /// Failures that are not listed.
    failed_more: u64,
    /// What is not sent, and what the receiver's file system does not keep.
    remarks: Vec<String>,
    /// Texts that have come.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    texts: Vec<String>,
    /// Texts that have arrived at the other end.
    #[serde(skip_serializing_if = "is_none")]
    texts_sent: u64,
    /// Whether files were only compared.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    verified: bool,
    wall_seconds: f64,
    #[serde(flatten)]
    went: relay::Went,
    /// Whether all files that were there were compared by content, as far as this end knows.
    #[serde(skip)]
    is_compared: bool,
}

#[derive(Serialize)]
struct Failed {
    name: String,
    reason: String,
}

impl Ended {
    fn new(summary: anabranch_transfer::Summary, wall_seconds: f64, went: relay::Went) -> Self {
        let failed = summary.failed.into_iter();
        Self {
            files: summary.files,
            bytes: summary.bytes,
            files_there: summary.files_there,
            bytes_there: summary.bytes_there,
            links: summary.links,
            failed: failed.map(|failed| Failed { name: failed.name, reason: failed.reason }).collect(),
            failed_more: summary.failed_more,
            remarks: summary.remarks,
            texts: summary.texts,
            texts_sent: summary.texts_sent,
            verified: summary.verified,
            wall_seconds,
            went,
            is_compared: false,
        }
    }

    /// A summary for people, which begins with what was done: `sent` or `received`.
    fn line(&self, done: &str) -> String {
        let Self { files, bytes, files_there, links, wall_seconds, is_compared, .. } = self;
        if self.verified {
            let size = decimal(self.bytes_there as f64);
            return format!("verified: {files_there} files are there and equal; {size} in {wall_seconds:.1} s");
        }
        let texts = self.texts_sent + self.texts.len() as u64;
        if texts > 0 && files + files_there + links == 0 && self.failure().is_none() {
            return format!("{done} a text in {wall_seconds:.1} s");
        }
        let texts = if texts > 0 { " and a text" } else { "" };
        let links = if *links > 0 { format!(" and {links} links") } else { String::new() };
        let by = if *is_compared { "by content" } else { "by size and time; --checksum compares content" };
        let there = match files_there {
            0 => String::new(),
            there => format!(", {there} were there already ({by})"),
        };
        format!("{done} {files} files{links}{texts}{there}; {} in {wall_seconds:.1} s", decimal(*bytes as f64))
    }

    /// Prints what is not sent or kept.
    fn remark(&self, out: &mut impl io::Write) -> io::Result<()> {
        self.remarks.iter().try_for_each(|remark| writeln!(out, "note: {remark}"))
    }

    /// The files that did not arrive.
    fn failure(&self) -> Option<Failure> {
        let count = self.failed.len() as u64 + self.failed_more;
        let lines: String =
            self.failed.iter().map(|failed| format!("\n  {}: {}", failed.name, failed.reason)).collect();
        let more = if self.failed_more > 0 { format!("\n  and {} more", self.failed_more) } else { String::new() };
        let what = if self.verified { "are missing or differ" } else { "did not arrive" };
        (count > 0).then(|| Failure::failed(format!("{count} {what}:{lines}{more}")))
    }
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Prints the ticket as a QR code, if requested.
fn show_code(out: &mut impl io::Write, listen: &Listen, ticket: &str) -> io::Result<()> {
    if listen.qr { writeln!(out, "{}", code::qr(ticket)) } else { Ok(()) }
}

fn read_key(file: &Path) -> Result<SecretKey, Failure> {
    SecretKey::read(file).map_err(unusable)
}

fn unusable(error: KeyFileError) -> Failure {
    Failure::usage(error.to_string())
}

/// Settings with this congestion law.
fn config(law: &str) -> Result<Config, Failure> {
    let row = registry::find(law).map_err(|error| Failure::usage(error.to_string()))?;
    Ok(Config { law: Settings::default_for(row), ..Config::default() })
}

/// The settings of an end of a tunnel.
fn sending(args: &Sending) -> Result<Config, Failure> {
    Ok(Config { rate_max: args.rate, scheduling: args.scheduling, ..config(&args.law)? })
}

/// The same settings with logs.
fn logged(config: Config, log: &Log) -> Config {
    let level = log.log.map(|level| match level {
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    });
    if let Some(level) = level {
        tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr).with_target(false).init();
    }
    Config { qlog: log.qlog.clone(), ..config }
}

/// Ends the logs, if there are any, and reports what is missing. A failure does not fail the command.
async fn end_logs(endpoint: &Endpoint, log: &Log) {
    if log.qlog.is_none() {
        return;
    }
    // A log includes the end of its connection.
    _ = tokio::time::timeout(LOGS_WITHIN, endpoint.wait_idle()).await;
    let Some(report) = endpoint.finish_qlog().await else { return };
    if let Some(error) = &report.error {
        terminal::complain(&format!("the log is not complete: {error}"));
    } else if report.dropped > 0 {
        terminal::complain(&format!("the log lacks {} events: the disk is too slow for them", report.dropped));
    }
}

/// The key of a file, or a new one.
fn identity(file: Option<&Path>) -> Result<SecretKey, Failure> {
    match file {
        Some(file) => read_key(file),
        None => SecretKey::generate().map_err(|error| Failure::failed(error.to_string())),
    }
}

/// An endpoint that accepts connections, also through the relay that is named.
async fn server(listen: &Listen, config: Config) -> Result<Endpoint, Failure> {
    relay::join(bound(listen, config)?, listen.relay.as_ref()).await
}

/// An endpoint that accepts connections at its own addresses.
fn bound(listen: &Listen, config: Config) -> Result<Endpoint, Failure> {
    resources::raise_files();
    let key = identity(listen.key.as_deref())?;
    let bind = |address| Endpoint::server(address, &key, config.clone());
    let all = || bind((Ipv6Addr::UNSPECIFIED, 0).into()).or_else(|_| bind((Ipv4Addr::UNSPECIFIED, 0).into()));
    let endpoint = listen.address.map_or_else(all, bind).map_err(|error| Failure::failed(error.to_string()))?;
    stop::register(&endpoint);
    if let Some(ListenAt(address)) = listen.metrics {
        let refused = |error| Failure::failed(format!("cannot serve metrics at {address}: {error}"));
        let address = endpoint.serve_metrics(address).map_err(refused)?;
        writeln!(anstream::stderr(), "metrics at http://{address}/metrics")?;
    }
    Ok(endpoint)
}

/// An endpoint that connects.
fn client(key: Option<&Path>, config: Config) -> Result<Endpoint, Failure> {
    resources::raise_files();
    let key = identity(key)?;
    let bind = |address: SocketAddr| Endpoint::bind(address, &key, config.clone());
    let bound = bind((Ipv6Addr::UNSPECIFIED, 0).into()).or_else(|_| bind((Ipv4Addr::UNSPECIFIED, 0).into()));
    let endpoint = bound.map_err(|error| Failure::failed(error.to_string()))?;
    stop::register(&endpoint);
    Ok(endpoint)
}

/// Runs asynchronous work.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(format!("cannot start threads: {error}")))?;
    let result = runtime.block_on(async {
        tokio::select! {
            result = work => result,
            code = stop::signal() => {
                stop::farewell().await;
                Err(Failure { code, message: String::new(), excerpt: None })
            }
        }
    });
    // Pending reads of files are abandoned.
    runtime.shutdown_background();
    result
}

/// Prints a line of JSON.
pub(crate) fn print_line(document: &impl Serialize) -> Outcome {
    let line = serde_json::to_string(document).map_err(|error| Failure::failed(error.to_string()))?;
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// The end that closes first waits two seconds for a peer that may have missed the last acknowledgement.
const LOGS_WITHIN: Duration = Duration::from_secs(4);

/// Bytes with a decimal unit.
fn decimal(bytes: f64) -> String {
    let (unit, size) = match bytes {
        _ if bytes >= 1e9 => ("GB", bytes / 1e9),
        _ if bytes >= 1e6 => ("MB", bytes / 1e6),
        _ if bytes >= 1e3 => ("kB", bytes / 1e3),
        _ => return format!("{bytes} B"),
    };
    format!("{size:.1} {unit}")
}
