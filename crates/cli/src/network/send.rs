//! `anabranch send`.

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch::units::shown;
use anabranch::{Config, Connection, Limit, Limits};
use anabranch_transfer::{Compare, Links, Options, Progress, SendError};

use super::offer::Offer;
use super::relay::Way;
use super::{Ended, observe};
use crate::args::network::Send;
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
    for path in &args.paths {
        // Before connecting.
        std::fs::metadata(path).map_err(|error| Failure::usage(format!("{}: {error}", shown(path))))?;
    }
    let endpoint = super::client(
        args.key.as_deref(),
        super::logged(Config { rate_max: args.rate, ..Config::default() }, &args.log),
    )?;
    let connection = endpoint.connect(&args.ticket).await.map_err(|error| Failure::failed(error.to_string()))?;
    if args.multipath {
        connection.add_paths(&args.ticket).await;
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
        let send = anabranch_transfer::send(&connection, args.paths.clone(), options, Arc::clone(&progress));
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
