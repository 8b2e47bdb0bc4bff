//! Connections: streams, pairs of streams, datagrams, paths and statistics.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch::pairs::{Pairs, Side};
use anabranch::units::{Rate, Span};
use anabranch::{DatagramStats, Limit, Limits, Path, PathId, PathState, PathStatus, RemovePathError, Stats};
use bytes::Bytes;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::net::bell::Bell;
use crate::net::identity::{self, PublicKey};
use crate::net::operation::{Operation, done};
use crate::net::receiving::ReceiveStream;
use crate::net::runtime::Runtime;
use crate::net::sending::SendStream;
use crate::net::waiters::{Waiter, Waiters};
use crate::net::{config, error};

/// A connection.
#[pyclass(frozen, module = "anabranch.net")]
pub(crate) struct Connection {
    connection: anabranch::Connection,
    side: Side,
    usage: Mutex<Usage>,
    waiters: Arc<Waiters>,
    runtime: Runtime,
}

/// How the streams of a connection are used. Its first stream decides.
enum Usage {
    Undecided,
    /// Single streams.
    Streams,
    Pairs(Arc<Pairs>),
}

impl Connection {
    pub(crate) fn new(connection: anabranch::Connection, side: Side, runtime: Runtime) -> Self {
        Self { connection, side, usage: Mutex::new(Usage::Undecided), waiters: Arc::default(), runtime }
    }

    /// The connection, for single streams. From now on its streams do not come in pairs.
    fn streams(&self) -> PyResult<anabranch::Connection> {
        self.runtime.handle()?;
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        if let Usage::Pairs(_) = *usage {
            return Err(PyRuntimeError::new_err(
                "the streams of this connection come in pairs since it was used by `open`, `accept` or `async for`",
            ));
        }
        *usage = Usage::Streams;
        Ok(self.connection.clone())
    }

    /// The pairs of the connection. From now on its streams come in pairs.
    fn pairs(&self) -> PyResult<Arc<Pairs>> {
        self.runtime.handle()?;
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        match &*usage {
            Usage::Pairs(pairs) => return Ok(Arc::clone(pairs)),
            Usage::Streams => {
                return Err(PyRuntimeError::new_err(
                    "the streams of this connection do not come in pairs since it was used by `open_stream`, `accept_stream` or messages",
                ));
            }
            Usage::Undecided => {}
        }
        let _entered = self.runtime.handle()?.enter();
        let pairs = Arc::new(Pairs::new(self.connection.clone(), self.side));
        *usage = Usage::Pairs(Arc::clone(&pairs));
        Ok(pairs)
    }

    fn path_id(&self, number: u8) -> PyResult<PathId> {
        let paths = self.connection.paths();
        let path = paths.iter().map(|path| path.id).find(|id| id.number() == number);
        path.ok_or_else(|| error::plain("PathError", &format!("the connection has no path {number}")))
    }
}

#[pymethods]
impl Connection {
    /// The peer's public key.
    #[getter]
    fn peer(&self) -> PublicKey {
        PublicKey(self.connection.remote_key())
    }

    /// Opens a pair of streams and returns it.
    fn open(&self, bell: Bound<'_, Bell>) -> PyResult<Operation> {
        let (pairs, runtime) = (self.pairs()?, self.runtime.clone());
        let waiter = Waiter::new(&self.waiters);
        Ok(Operation::new(bell, &self.runtime, async move {
            let opened = waiter.run(pairs.open()).await;
            done(move |_| {
                let (send, answer) = opened.map_err(error::stream)?;
                Ok((SendStream::new(send, runtime.clone()), ReceiveStream::answer(answer, runtime)))
            })
        }))
    }

    /// Waits for a pair of streams.
    fn accept(&self, bell: Bound<'_, Bell>) -> PyResult<Operation> {
        let (pairs, runtime) = (self.pairs()?, self.runtime.clone());
        let waiter = Waiter::new(&self.waiters);
        Ok(Operation::new(bell, &self.runtime, async move {
            let accepted = waiter.run(pairs.accept()).await;
            done(move |_| {
                let (send, receive) = accepted.map_err(error::stream)?;
                Ok((SendStream::new(send, runtime.clone()), ReceiveStream::new(receive, runtime)))
            })
        }))
    }

    /// Opens a stream.
    fn open_stream(&self, bell: Bound<'_, Bell>) -> PyResult<Operation> {
        let (connection, runtime) = (self.streams()?, self.runtime.clone());
        let waiter = Waiter::new(&self.waiters);
        Ok(Operation::new(bell, &self.runtime, async move {
            let opened = waiter.run(connection.open_stream()).await;
            done(move |_| Ok(SendStream::new(opened.map_err(error::stream)?, runtime)))
        }))
    }

    /// Waits for a stream.
    fn accept_stream(&self, bell: Bound<'_, Bell>) -> PyResult<Operation> {
        let (connection, runtime) = (self.streams()?, self.runtime.clone());
        let waiter = Waiter::new(&self.waiters);
        Ok(Operation::new(bell, &self.runtime, async move {
            let accepted = waiter.run(connection.accept_stream()).await;
            done(move |_| Ok(ReceiveStream::new(accepted.map_err(error::stream)?, runtime)))
        }))
    }

    /// Sends a datagram without waiting, and drops it if it has not left within so many seconds.
    fn send_datagram(
        &self,
        py: Python<'_>,
        data: PyBackedBytes,
        within: Option<&Bound<'_, PyAny>>,
        urgent: bool,
    ) -> PyResult<()> {
        self.runtime.handle()?;
        let within = within.map(|within| config::seconds("within", within)).transpose()?;
        let datagram = Bytes::from_owner(data);
        let sent = py.detach(|| match within {
            _ if urgent => self.connection.send_urgent_datagram(datagram, within.unwrap_or(Duration::MAX)),
            Some(within) => self.connection.send_datagram_within(datagram, within),
            None => self.connection.send_datagram(datagram),
        });
        sent.map_err(error::datagram)
    }

    /// Waits for a datagram.
    fn read_datagram(&self, bell: Bound<'_, Bell>) -> PyResult<Operation> {
        self.runtime.handle()?;
        let connection = self.connection.clone();
        let waiter = Waiter::new(&self.waiters);
        Ok(Operation::new(bell, &self.runtime, async move {
            let read = waiter.run(connection.read_datagram()).await;
            done(move |py| Ok(PyBytes::new(py, &read.map_err(error::datagram)?).unbind()))
        }))
    }

    /// The bytes of the largest datagram that can be sent now.
    #[getter]
    fn max_datagram_size(&self, py: Python<'_>) -> PyResult<usize> {
        self.runtime.handle()?;
        py.detach(|| self.connection.max_datagram_size()).map_err(error::datagram)
    }

    /// Limits the rate at which this end sends.
    fn set_rate_max(&self, py: Python<'_>, rate: &Bound<'_, PyAny>) -> PyResult<()> {
        let rate: Option<Rate> = config::rate_max("rate", rate)?;
        let set = py.detach(|| self.connection.set_rate_max(rate));
        set.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Finishes all streams and waits until the peer has received everything.
    fn close(&self, bell: Bound<'_, Bell>) -> Operation {
        let connection = self.connection.clone();
        let waiter = Waiter::new(&self.waiters);
        Operation::new(bell, &self.runtime, async move {
            let closed = waiter.run(connection.close()).await;
            done(move |_| closed.map_err(error::lost))
        })
    }

    /// Waits until both ends have closed.
    fn closed(&self, bell: Bound<'_, Bell>) -> Operation {
        let connection = self.connection.clone();
        let waiter = Waiter::new(&self.waiters);
        Operation::new(bell, &self.runtime, async move {
            let closed = waiter.run(connection.closed()).await;
            done(move |_| closed.map_err(error::lost))
        })
    }

    /// Ends the connection at once.
    fn abort(&self, py: Python<'_>) {
        py.detach(|| self.connection.abort());
    }

    /// Counters, and the time for which each limit applied.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = py.detach(|| self.connection.stats());
        // Every field is named, so that the compiler reports a new one.
        let Stats {
            segments_sent,
            segments_sent_again,
            segments_lost,
            segments_lost_by_timeout,
            segments_doubled,
            losses_undone,
            timeouts,
            bytes_acknowledged,
            bytes_received,
            bytes_unread,
            datagrams,
            limits,
        } = stats;
        let DatagramStats { sent, delivered, lost, dropped_unsent, expired, received, missed, dropped_unread } =
            datagrams;
        let dict = PyDict::new(py);
        for (name, count) in [
            ("segments_sent", segments_sent),
            ("segments_sent_again", segments_sent_again),
            ("segments_lost", segments_lost),
            ("segments_lost_by_timeout", segments_lost_by_timeout),
            ("segments_doubled", segments_doubled),
            ("losses_undone", losses_undone),
            ("timeouts", timeouts),
            ("bytes_acknowledged", bytes_acknowledged),
            ("bytes_received", bytes_received),
            ("bytes_unread", bytes_unread),
            ("datagrams_sent", sent),
            ("datagrams_delivered", delivered),
            ("datagrams_lost", lost),
            ("datagrams_dropped_unsent", dropped_unsent),
            ("datagrams_expired", expired),
            ("datagrams_received", received),
            ("datagrams_missed", missed),
            ("datagrams_dropped_unread", dropped_unread),
        ] {
            dict.set_item(name, count)?;
        }
        set_limits(&dict, &limits)?;
        Ok(dict)
    }

    /// All paths, each a dict.
    fn paths<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let paths = py.detach(|| self.connection.paths());
        PyList::new(py, paths.iter().map(|path| describe(py, path)).collect::<PyResult<Vec<_>>>()?)
    }

    /// Sets up a path and waits for its validation.
    fn add_path(&self, bell: Bound<'_, Bell>, local: &str, remote: &str) -> PyResult<Operation> {
        let no_ip = |_| error::plain("PathError", &format!("`{local}` is no IP address, such as 127.0.0.1 or ::1"));
        let (local, remote): (IpAddr, _) = (local.parse().map_err(no_ip)?, identity::address(remote)?);
        let connection = self.connection.clone();
        let waiter = Waiter::new(&self.waiters);
        Ok(Operation::new(bell, &self.runtime, async move {
            let added = waiter.run(connection.add_path(local, remote)).await;
            done(move |_| added.map(PathId::number).map_err(|error| error::path(&error)))
        }))
    }

    /// Sets up a path for each interface that has none.
    fn add_paths(&self, bell: Bound<'_, Bell>, ticket: &Bound<'_, PyAny>) -> PyResult<Operation> {
        let (connection, ticket) = (self.connection.clone(), identity::ticket(ticket)?);
        let waiter = Waiter::new(&self.waiters);
        Ok(Operation::new(bell, &self.runtime, async move {
            let count = waiter.run(connection.add_paths(&ticket)).await;
            done(move |_| Ok(count))
        }))
    }

    /// Abandons a path.
    fn remove_path(&self, path: u8) -> PyResult<()> {
        self.connection.remove_path(self.path_id(path)?).map_err(|error| {
            let why = match error {
                RemovePathError::Unknown => format!("the connection has no path {path}"),
                RemovePathError::OnlyPath => format!("path {path} is the only one that carries data"),
            };
            error::plain("PathError", &why)
        })
    }

    /// Uses a path always, or as a backup.
    fn set_path_status(&self, path: u8, status: &str) -> PyResult<()> {
        let status = match status {
            "active" => PathStatus::Active,
            "standby" => PathStatus::Standby,
            _ => {
                return Err(PyValueError::new_err(format!("a path is `active` or `standby`, and not `{status}`")));
            }
        };
        self.connection.set_path_status(self.path_id(path)?, status);
        Ok(())
    }
}

/// Adds the present limit, and the seconds of each limit.
fn set_limits(dict: &Bound<'_, PyDict>, limits: &Limits) -> PyResult<()> {
    dict.set_item("limit", limits.current().map(Limit::name))?;
    for limit in Limit::ALL {
        dict.set_item(format!("limited_by_{}_s", limit.name()), limits.span(limit).as_secs_f64())?;
    }
    Ok(())
}

fn describe<'py>(py: Python<'py>, path: &Path) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let (report, tally) = (&path.report, &path.report.tally);
    let seconds = |span: Option<Span>| span.map(Span::as_secs_f64);
    dict.set_item("id", path.id.number())?;
    dict.set_item("local", path.local.to_string())?;
    dict.set_item("remote", path.remote.to_string())?;
    let state = match path.state {
        PathState::Validating => "validating",
        PathState::Live => "live",
        PathState::Suspect => "suspect",
    };
    dict.set_item("state", state)?;
    let status = match report.status {
        PathStatus::Active => "active",
        PathStatus::Standby => "standby",
    };
    dict.set_item("status", status)?;
    for (name, value) in [
        ("window_segments", Some(report.window)),
        ("flight_segments", Some(report.flight)),
        ("queue_segments", path.queue()),
        ("rtt_s", seconds(report.rtt_smoothed)),
        ("rtt_latest_s", seconds(tally.rtt_latest)),
        ("rtt_min_s", seconds(report.rtt_min)),
        ("rtt_base_s", path.rtt_base().map(|base| base.as_secs_f64())),
        ("delivery_bps", path.delivery_rate().map(|rate| 8.0 * rate)),
        ("pacing_bps", report.pacing_rate.map(|rate| rate.bits_per_second() as f64)),
    ] {
        dict.set_item(name, value)?;
    }
    for (name, count) in [
        ("datagram_max_bytes", u64::from(report.datagram_max)),
        ("segments_sent", tally.sent),
        ("segments_sent_again", tally.sent_again),
        ("segments_lost", tally.lost),
        ("segments_lost_by_timeout", tally.lost_by_timeout),
        ("segments_doubled", tally.duplicates),
        ("losses_random", tally.random),
        ("losses_undone", tally.undone),
        ("marks", tally.marked),
        ("timeouts", tally.timeouts),
        ("bytes_acknowledged", tally.delivered),
    ] {
        dict.set_item(name, count)?;
    }
    let gauges = PyDict::new(py);
    for (name, value) in report.gauges.iter() {
        gauges.set_item(name, value)?;
    }
    dict.set_item("gauges", gauges)?;
    set_limits(&dict, &report.limits)?;
    Ok(dict)
}
