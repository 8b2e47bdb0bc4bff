//! `anabranch send`.

use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch::{Config, Connection};
use anabranch_transfer::{Progress, SendError};

use super::Ended;
use crate::args::network::Send;
use crate::failure::{Failure, Outcome};
use crate::terminal;

/// Sends, and says what has become of it.
pub(crate) fn send(args: &Send) -> Outcome {
    let ended = super::block_on(transfer(args))?;
    if args.json {
        super::print_line(&ended)?;
    } else {
        writeln!(anstream::stdout(), "sent {}", ended.line())?;
    }
    if ended.failed.is_empty() {
        return Ok(());
    }
    let lines: Vec<_> = ended.failed.iter().map(|failed| format!("\n  {}: {}", failed.name, failed.reason)).collect();
    Err(Failure::failed(format!("{} did not arrive:{}", lines.len(), lines.concat())))
}

async fn transfer(args: &Send) -> Result<Ended, Failure> {
    let begin = Instant::now();
    for path in &args.paths {
        // Before anybody is called.
        std::fs::metadata(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    }
    let endpoint = super::client(args.key.as_deref(), Config::default())?;
    let connection = endpoint.connect(&args.ticket).await.map_err(|error| Failure::failed(error.to_string()))?;
    if args.multipath {
        connection.add_paths(&args.ticket).await;
    }
    let progress = Arc::new(Progress::default());
    let sent = {
        let bar = terminal::Progress::of_bytes();
        let send = anabranch_transfer::send(&connection, args.paths.clone(), Arc::clone(&progress));
        tokio::select! {
            sent = send => sent,
            () = draw(&bar, &progress, &connection) => unreachable!("it goes on and on"),
        }
    };
    let summary = sent.map_err(|error| match error {
        SendError::Path(..) => Failure::usage(error.to_string()),
        _ => Failure::failed(error.to_string()),
    })?;
    Ok(Ended::new(&summary, begin.elapsed().as_secs_f64()))
}

/// Keeps a bar up to date.
pub(super) async fn draw(bar: &terminal::Progress, progress: &Progress, connection: &Connection) {
    loop {
        let ((files, bytes), (files_done, bytes_done)) = (progress.total(), progress.done());
        let rtt = connection.paths().first().and_then(|path| path.report.rtt_smoothed);
        let rtt = rtt.map(|rtt| format!(", RTT {:.1} ms", rtt.as_secs_f64() * 1e3)).unwrap_or_default();
        bar.say(format!(", {files_done} of {files} files{rtt}"));
        bar.set(bytes_done as usize, bytes as usize);
        tokio::time::sleep(TICK).await;
    }
}

const TICK: Duration = Duration::from_millis(100);
