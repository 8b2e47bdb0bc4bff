//! What SIGTERM and SIGHUP do to a command that uses a network: it says goodbye to its peers, which otherwise would wait for it for
//! half a minute, and removes its socket for `watch`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anabranch::{Aborter, Endpoint};

use crate::failure::Failure;

/// The endpoints of this process.
static ENDPOINTS: Mutex<Vec<Aborter>> = Mutex::new(vec![]);

/// The connections of this endpoint end when the command is stopped.
pub(super) fn register(endpoint: &Endpoint) {
    ENDPOINTS.lock().unwrap_or_else(PoisonError::into_inner).push(endpoint.aborter());
}

/// Ends all connections. Their resets are sent before this returns.
pub(super) async fn farewell() {
    let endpoints = std::mem::take(&mut *ENDPOINTS.lock().unwrap_or_else(PoisonError::into_inner));
    endpoints.iter().for_each(Aborter::abort_all);
    if !endpoints.is_empty() {
        tokio::time::sleep(FAREWELL).await;
    }
}

/// Work that Ctrl-C stops as SIGTERM does: the peers are told, and what cannot be resumed is removed.
pub(super) async fn or_interrupted<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::select! {
        result = work => result,
        Ok(()) = tokio::signal::ctrl_c() => {
            farewell().await;
            Err(Failure { code: INTERRUPTED, message: String::new(), excerpt: None })
        }
    }
}

/// Waits for a signal to stop. Returns the exit code of a command that it ends. Ctrl-C is handled by each command.
#[cfg(unix)]
pub(super) async fn signal() -> u8 {
    use tokio::signal::unix::{SignalKind, signal};

    let kinds = [(15, SignalKind::terminate(), false), (1, SignalKind::hangup(), is_hangup_ignored())];
    let mut waits = vec![];
    for (number, kind, is_ignored) in kinds {
        if !is_ignored && let Ok(mut signal) = signal(kind) {
            waits.push(Box::pin(async move {
                if signal.recv().await.is_none() {
                    std::future::pending::<()>().await;
                }
                SIGNALED + number
            }));
        }
    }
    std::future::poll_fn(|cx| {
        let ready = waits.iter_mut().find_map(|wait| match wait.as_mut().poll(cx) {
            std::task::Poll::Ready(code) => Some(code),
            std::task::Poll::Pending => None,
        });
        ready.map_or(std::task::Poll::Pending, std::task::Poll::Ready)
    })
    .await
}

#[cfg(not(unix))]
pub(super) async fn signal() -> u8 {
    std::future::pending().await
}

/// Whether this process was started so that a hangup does not end it (`nohup`). Where that cannot be known, a hangup keeps its usual
/// effect.
#[cfg(unix)]
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // Bit 0 is signal 1, SIGHUP.
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_none_or(|mask| mask & 1 != 0)
}

/// The driver has a turn within a millisecond, and on a busy machine within some more.
const FAREWELL: Duration = Duration::from_millis(100);

/// That of Ctrl-C, as shells report it.
const INTERRUPTED: u8 = 130;

/// Shells report the end by a signal as 128 and its number.
#[cfg(unix)]
const SIGNALED: u8 = 128;
