//! `anabranch send`.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch::units::shown;
use anabranch::{CodeError, Config, Connection, Endpoint, Limit, Limits, Ticket};
use anabranch_transfer::{Compare, Links, Options, Progress, SendError};
use serde::Serialize;

use super::offer::Offer;
use super::relay::Way;
use super::{Ended, observe};
use crate::args::network::Send;
use crate::args::relay::RelayName;
use crate::args::ticket;
use crate::failure::{Failure, Outcome};
use crate::terminal;

/// Sends, and reports the result.
pub(crate) fn send(args: &Send) -> Outcome {
    let ended = super::block_on(async {
        let ended = transfer(args).await?;
        if args.json {
            super::print_line(&ended)?;
        } else {
            writeln!(anstream::stdout(), "sent {}", ended.line())?;
            ended.remark()?;
        }
        // Everything has arrived and both ends have closed: nothing is waited for.
        Ok(ended)
    })?;
    ended.failure().map_or(Ok(()), Err)
}

async fn transfer(args: &Send) -> Result<Ended, Failure> {
    let begin = Instant::now();
    let (paths, to) = destination(args)?;
    for path in &paths {
        // Before connecting.
        std::fs::metadata(path).map_err(|error| Failure::usage(format!("{}: {error}", shown(path))))?;
    }
    let endpoint = super::client(
        args.key.as_deref(),
        super::logged(Config { rate_max: args.rate, ..Config::default() }, &args.log),
    )?;
    let ticket = match to {
        To::Ticket(ticket) => *ticket,
        To::Code(relay) => offered(args, &endpoint, &relay).await?,
    };
    let connection = super::relay::connect(&endpoint, &ticket).await?;
    if args.multipath {
        connection.add_paths(&ticket).await;
    }
    let offer = Offer::new("send");
    let showing = offer.show(&connection);
    let (progress, way) = (Arc::new(Progress::default()), Way::new());
    let sent = {
        let bar = terminal::Progress::of_bytes();
        let options = Options {
            links: if args.links { Links::Copy } else { Links::Report },
            compare: if args.checksum { Compare::Content } else { Compare::SizeAndTime },
        };
        let send = anabranch_transfer::send(&connection, paths, options, Arc::clone(&progress));
        tokio::select! {
            sent = send => sent,
            () = draw(&bar, &progress, &connection, &way, Side::Sends) => unreachable!("it goes on and on"),
        }
    };
    drop((showing, connection));
    super::end_logs(&endpoint, &args.log).await;
    let summary = sent.map_err(|error| match error {
        SendError::Path(..) => Failure::usage(error.to_string()),
        _ => Failure::failed(way.explain(&error.to_string())),
    })?;
    let is_compared = args.checksum;
    Ok(Ended { is_compared, ..Ended::new(summary, begin.elapsed().as_secs_f64(), way.went()) })
}

/// Where the files go.
enum To {
    Ticket(Box<Ticket>),
    /// To whoever types the code that this relay offers.
    Code(RelayName),
}

/// Tells the files from the ticket. Without a relay the last item is the ticket; one that only the environment names is used if the last item is none.
fn destination(args: &Send) -> Result<(Vec<PathBuf>, To), Failure> {
    let paths = |items: &[OsString]| items.iter().map(PathBuf::from).collect();
    let relay = RelayName::or_of_environment(args.relay.as_ref()).map_err(Failure::usage)?;
    let (last, others) = args.items.split_last().expect("one is required");
    let text = last.to_str().unwrap_or_default();
    let is_named =
        text == "-" || ["@", "env:"].iter().any(|begin| text.starts_with(begin)) || text.parse::<Ticket>().is_ok();
    match relay {
        Some(relay) if args.relay.is_some() || !is_named => Ok((paths(&args.items), To::Code(relay))),
        _ => {
            let wrong = |why| {
                Failure::usage(format!(
                    "{}: {why}\nThe last word is the ticket that `anabranch recv` has printed; or use --relay for a code in its place",
                    shown(Path::new(last))
                ))
            };
            let ticket = ticket::read(text).map_err(wrong)?;
            if others.is_empty() {
                return Err(Failure::usage("required arguments are missing: files or folders, in front of the ticket"));
            }
            Ok((paths(others), To::Ticket(Box::new(ticket))))
        }
    }
}

/// Shows a code, and waits until it is typed at the other end.
async fn offered(args: &Send, endpoint: &Endpoint, relay: &RelayName) -> Result<Ticket, Failure> {
    let failed = |error: CodeError| Failure::failed(error.to_string());
    let relay_ticket = super::relay::find(endpoint, relay).await?;
    let offer = endpoint.offer_code(&relay_ticket).await.map_err(failed)?;
    super::relay::say(endpoint)?;
    let code = offer.code();
    if args.json {
        super::print_line(&Told::Offered { code: code.to_string() })?;
    } else {
        let mut out = anstream::stdout();
        let option = args.relay.as_ref().map_or_else(String::new, |relay| format!(" --relay {relay}"));
        writeln!(out, "On the other computer:\n\n  anabranch recv{option} {code}\n")?;
        out.flush()?;
    }
    offer.ticket().await.map_err(failed)
}

/// The line of JSON before the document.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Told {
    Offered { code: String },
}

/// The role of an end of a transfer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Sends,
    Receives,
}

/// Updates a progress bar.
pub(super) async fn draw(
    bar: &terminal::Progress,
    progress: &Progress,
    connection: &Connection,
    way: &Way,
    side: Side,
) {
    let mut past: VecDeque<Limits> = VecDeque::new();
    loop {
        let ((files, bytes), (files_done, bytes_done)) = (progress.total(), progress.done());
        let rtt = connection.paths().first().and_then(|path| path.report.rtt_smoothed);
        let rtt = rtt.map(|rtt| format!(", RTT {:.1} ms", rtt.as_secs_f64() * 1e3)).unwrap_or_default();
        let by = if way.look(connection) { ", through the relay" } else { "" };
        let stats = connection.stats();
        past.push_back(stats.limits);
        let before = if past.len() > LIMITS_KEPT { past.pop_front() } else { past.front().copied() };
        let limit = match side {
            Side::Sends => before.and_then(|before| observe::most(&stats.limits.since(&before))).map(Limit::name),
            // Only the other end knows the limit, unless it is this end.
            Side::Receives => (stats.bytes_unread > Config::default().receive_buffer / 2).then_some("host"),
        };
        let limit = limit.map(|name| format!(", limited by {}", limit_words(name))).unwrap_or_default();
        bar.say(format!(", {files_done} of {files} files{rtt}{by}{limit}"));
        bar.set(bytes_done as usize, bytes as usize);
        tokio::time::sleep(TICK).await;
    }
}

/// A sender with nothing to send reads its files too slowly.
fn limit_words(name: &str) -> &str {
    if name == Limit::Application.name() { "reading files" } else { observe::words(name) }
}

/// The limit shown is that of the last second.
const LIMITS_KEPT: usize = 10;

const TICK: Duration = Duration::from_millis(100);
