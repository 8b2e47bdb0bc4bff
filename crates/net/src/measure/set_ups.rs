//! Measures how long connections take to be set up: connect, let the other end's program say that it is ready, close, and again.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::samples::{Quantiles, Samples};
use super::{Direction, MeasureError, Plan, Request, Traffic};
use crate::endpoint::Endpoint;
use crate::error::ConnectError;
use crate::ticket::Ticket;

/// How long set-ups took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetUpReport {
    /// From the call until the connection is established: the other end has proved its key, and data may be sent.
    pub connected: Quantiles,
    /// From the call until the first answer of the program at the other end is read.
    pub answered: Quantiles,
    /// Attempts that failed, after the first one.
    pub failed: u64,
}

/// Why nothing was measured.
#[derive(Debug)]
pub enum SetUpError {
    /// The first connection could not be established.
    Connect(ConnectError),
    /// The other end does not serve, or is older.
    Measure(MeasureError),
}

/// Measures set-ups of connections with an end that [serves](super::serve), one after the other, `at_once` of them at the same time, for this time, and at
/// most 20 a second: to those of one network that come more often an endpoint is deaf, and they try again after a second, which would be measured. A
/// connection is closed, and the close is waited for, before the next one is begun in its place.
///
/// # Errors
/// If the first connection fails. Later failures are counted.
pub async fn measure_set_ups(
    endpoint: &Endpoint,
    ticket: &Ticket,
    at_once: u8,
    time: Duration,
) -> Result<SetUpReport, SetUpError> {
    let state = Mutex::new((Samples::new(), Samples::new(), 0_u64));
    let until = Instant::now() + time;
    let next = Mutex::new(Instant::now() + INTERVAL);
    note(&state, once(endpoint, ticket).await?);
    let work = || async {
        loop {
            let at = turn(&next);
            if at >= until {
                return;
            }
            tokio::time::sleep_until(at.into()).await;
            // What is late has failed.
            let took = tokio::time::timeout_at((until + LATE).into(), once(endpoint, ticket)).await;
            match took {
                Ok(Ok(took)) => note(&state, took),
                Ok(Err(_)) | Err(_) => state.lock().unwrap_or_else(PoisonError::into_inner).2 += 1,
            }
        }
    };
    join_all((0..at_once.max(1)).map(|_| work())).await;
    let (connected, answered, failed) = &*state.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(SetUpReport { connected: connected.quantiles(), answered: answered.quantiles(), failed: *failed })
}

/// When the next set-up may begin.
fn turn(next: &Mutex<Instant>) -> Instant {
    let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
    let at = (*next).max(Instant::now());
    *next = at + INTERVAL;
    at
}

/// One connection: how long it took to be established, and until the first answer.
async fn once(endpoint: &Endpoint, ticket: &Ticket) -> Result<(Duration, Duration), SetUpError> {
    let begin = Instant::now();
    let connection = endpoint.connect(ticket).await.map_err(SetUpError::Connect)?;
    let connected = begin.elapsed();
    let plan = Plan { direction: Direction::Both, streams: 1, time: Duration::ZERO, rate: None };
    let answered = super::begin(&connection, Request { plan, traffic: Traffic::RoundTrips }).await;
    let answered = answered.map(|()| begin.elapsed()).map_err(SetUpError::Measure);
    super::end(&connection, answered.is_ok()).await;
    Ok((connected, answered?))
}

fn note(state: &Mutex<(Samples, Samples, u64)>, (connected, answered): (Duration, Duration)) {
    let nanos = |span: Duration| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    state.0.add(nanos(connected));
    state.1.add(nanos(answered));
}

impl fmt::Display for SetUpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => error.fmt(f),
            Self::Measure(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SetUpError {}

/// How long the last set-ups are waited for.
const LATE: Duration = Duration::from_secs(2);

/// Between two set-ups. An endpoint's bucket for a network has 20 tokens a second.
const INTERVAL: Duration = Duration::from_millis(50);
