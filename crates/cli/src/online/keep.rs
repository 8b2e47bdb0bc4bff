//! A client that connects again after a loss.

use std::io::Write as _;
use std::time::Duration;

use anabranch::{Endpoint, Lost};
use serde::Serialize;

use crate::args::online::Log;
use crate::failure::{Failure, Outcome};

/// The document of `--json`.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum LostEvent<'a> {
    Lost { reason: &'a str },
}

/// Connects, and does so again after each loss, until the user stops the command.
pub(super) async fn keep(json: bool, mut serve: impl AsyncFnMut() -> Result<Option<Lost>, Failure>) -> Outcome {
    let mut again = None;
    loop {
        match serve().await {
            Err(failure) if again.is_none() => return Err(failure),
            Err(failure) => tell_lost(json, &failure.message)?,
            Ok(Some(lost)) => {
                tell_lost(json, &lost.to_string())?;
                again = None;
            }
            Ok(None) => return Ok(()),
        }
        let wait = again.map_or(AGAIN_LEAST, |last: Duration| (2 * last).min(AGAIN_MOST));
        again = Some(wait);
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = tokio::signal::ctrl_c() => return Ok(()),
        }
    }
}

/// Closes the connection, so that the other end knows.
pub(super) async fn stop(endpoint: &Endpoint, log: &Log) -> Outcome {
    // An other end that misses the close will time out.
    _ = tokio::time::timeout(FAREWELL_WITHIN, endpoint.wait_idle()).await;
    super::end_logs(endpoint, log).await;
    Ok(())
}

fn tell_lost(json: bool, reason: &str) -> Outcome {
    if json {
        return super::print_line(&LostEvent::Lost { reason });
    }
    Ok(writeln!(anstream::stderr(), "{reason}; reconnecting")?)
}

/// The delay before reconnecting: after a loss, and after a failed attempt at most.
const AGAIN_LEAST: Duration = Duration::from_secs(1);
const AGAIN_MOST: Duration = Duration::from_secs(30);

/// An idle tunnel learns within two seconds that the server has restarted, or that its port is closed, which must be said twice; a probe
/// and its answer take 100 bytes.
pub(super) const ASKED_EACH: Duration = Duration::from_secs(1);

/// A round trip usually suffices.
const FAREWELL_WITHIN: Duration = Duration::from_secs(1);
