//! The events of a controller as Python objects: those of `anabranch_cc`, with the same names.
//!
//! The arguments of most hooks hold [`Facts`], which the next call of the hook replaces. What is not filled again is plain.
//!
//! Windows and flights are in segments, times and spans in seconds, sizes in bytes. An enum is a string with the name of its variant.

use anabranch_cc::{self as cc, Cause, Limit, Phase, Restart, Signal, Supply, Transmission};
use anabranch_units::{Span, Time};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::facts::Facts;

/// An argument that is made once, and filled again for each call of a hook.
pub(crate) trait Refill: Sized {
    /// The event in `anabranch_cc`.
    type Event: Copy;

    fn new(event: Self::Event) -> Self;

    fn facts(&self) -> &Facts<Self::Event>;
}

/// Makes a class of [`Facts`] an argument that is filled again.
macro_rules! refill {
    ($($class:ident),+) => {
        $(impl Refill for $class {
            type Event = cc::$class;

            #[inline]
            fn new(event: cc::$class) -> Self {
                Self(Facts::new(event))
            }

            #[inline]
            fn facts(&self) -> &Facts<cc::$class> {
                &self.0
            }
        })+
    };
}

refill!(PathView, Sent, Ack, Round, Loss);

fn time(time: Time) -> f64 {
    time.as_secs_f64()
}

fn span(span: Option<Span>) -> Option<f64> {
    span.map(Span::as_secs_f64)
}

/// The state of the path that a law may read at any event.
#[pyclass(frozen, module = "anabranch")]
pub(crate) struct PathView(Facts<cc::PathView>);

#[pymethods]
impl PathView {
    /// The time of the event.
    #[getter]
    fn now(&self, py: Python<'_>) -> f64 {
        time(self.0.read(py).now)
    }

    /// Segments sent and neither acknowledged nor known to be lost.
    #[getter]
    fn flight(&self, py: Python<'_>) -> f64 {
        self.0.read(py).flight
    }

    /// Payload bytes of a full segment.
    #[getter]
    fn mss(&self, py: Python<'_>) -> u64 {
        self.0.read(py).mss.count()
    }

    /// SRTT of RFC 6298.
    #[getter]
    fn rtt_smoothed(&self, py: Python<'_>) -> Option<f64> {
        span(self.0.read(py).rtt_smoothed)
    }

    /// The least RTT sample since the path was established or changed.
    #[getter]
    fn rtt_min(&self, py: Python<'_>) -> Option<f64> {
        span(self.0.read(py).rtt_min)
    }

    /// The delivery counters of the path.
    #[getter]
    fn progress(&self, py: Python<'_>) -> Progress {
        self.0.read(py).progress.into()
    }
}

/// The delivery counters of a path.
#[pyclass(frozen, module = "anabranch")]
pub(crate) struct Progress {
    /// Segments delivered so far.
    #[pyo3(get)]
    delivered: f64,
    /// Segments found to be lost so far.
    #[pyo3(get)]
    lost: f64,
    /// The arrival time of the latest ACK of new data, or the start of the present flight, whichever is later.
    #[pyo3(get)]
    delivered_at: f64,
    /// The latest send time of all delivered segments, or the start of the present flight, whichever is later.
    #[pyo3(get)]
    departed: f64,
}

impl From<cc::Progress> for Progress {
    fn from(progress: cc::Progress) -> Self {
        let cc::Progress { delivered, lost, delivered_at, departed } = progress;
        Self { delivered, lost, delivered_at: time(delivered_at), departed: time(departed) }
    }
}

/// A segment was sent.
#[pyclass(frozen, module = "anabranch")]
pub(crate) struct Sent(Facts<cc::Sent>);

#[pymethods]
impl Sent {
    /// The size as a fraction of a full segment.
    #[getter]
    fn segments(&self, py: Python<'_>) -> f64 {
        self.0.read(py).segments
    }

    /// `first` or `again`.
    #[getter]
    fn transmission<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        match self.0.read(py).transmission {
            Transmission::First => intern!(py, "first"),
            Transmission::Again => intern!(py, "again"),
        }
    }
}

/// The state of the path when a segment left.
#[pyclass(frozen, module = "anabranch")]
pub(crate) struct Departure(cc::Departure);

impl From<cc::Departure> for Departure {
    fn from(departure: cc::Departure) -> Self {
        Self(departure)
    }
}

#[pymethods]
impl Departure {
    /// The send time.
    #[getter]
    fn time(&self) -> f64 {
        time(self.0.time)
    }

    /// The window at that time, in segments.
    #[getter]
    fn window(&self) -> f64 {
        self.0.window
    }

    /// Segments in flight at that time, this one included.
    #[getter]
    fn flight(&self) -> f64 {
        self.0.flight
    }

    /// The delivery counters of the path at that time.
    #[getter]
    fn progress(&self) -> Progress {
        self.0.progress.into()
    }

    /// Whether there was data whenever the window and the pacer allowed a departure: `enough` or `short`.
    #[getter]
    fn supply<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        match self.0.supply {
            Supply::Enough => intern!(py, "enough"),
            Supply::Short => intern!(py, "short"),
        }
    }
}

/// An ACK that acknowledged something new.
#[pyclass(frozen, module = "anabranch")]
pub(crate) struct Ack(Facts<cc::Ack>);

#[pymethods]
impl Ack {
    /// Segments acknowledged for the first time; more than zero.
    #[getter]
    fn newly_acked(&self, py: Python<'_>) -> f64 {
        self.0.read(py).newly_acked
    }

    /// Segments found to be lost since the ACK before it.
    #[getter]
    fn newly_lost(&self, py: Python<'_>) -> f64 {
        self.0.read(py).newly_lost
    }

    /// Segments that a router marked since the ACK before it.
    #[getter]
    fn newly_marked(&self, py: Python<'_>) -> f64 {
        self.0.read(py).newly_marked
    }

    /// The raw RTT sample; `None` where Karn's rule forbids one.
    #[getter]
    fn rtt(&self, py: Python<'_>) -> Option<f64> {
        span(self.0.read(py).rtt)
    }

    /// Payload bytes of the newest segment that it acknowledges.
    #[getter]
    fn size(&self, py: Python<'_>) -> u64 {
        self.0.read(py).size.count()
    }

    /// The arrival time.
    #[getter]
    fn arrival(&self, py: Python<'_>) -> f64 {
        time(self.0.read(py).arrival)
    }

    /// The state of the path when the newest acknowledged segment was last sent.
    #[getter]
    fn departure(&self, py: Python<'_>) -> Departure {
        self.0.read(py).departure.into()
    }

    /// What limits the sender: `window` or `application`.
    #[getter]
    fn limit<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        match self.0.read(py).limit {
            Limit::Window => intern!(py, "window"),
            Limit::Application => intern!(py, "application"),
        }
    }

    /// `open` or `recovery`.
    #[getter]
    fn phase<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        match self.0.read(py).phase {
            Phase::Open => intern!(py, "open"),
            Phase::Recovery => intern!(py, "recovery"),
        }
    }
}

/// About one RTT, counted by what is acknowledged.
#[pyclass(frozen, module = "anabranch")]
pub(crate) struct Round(Facts<cc::Round>);

#[pymethods]
impl Round {
    /// Rounds that ended before this one.
    #[getter]
    fn count(&self, py: Python<'_>) -> u64 {
        self.0.read(py).count
    }

    /// The duration in seconds.
    #[getter]
    fn elapsed(&self, py: Python<'_>) -> f64 {
        self.0.read(py).elapsed.as_secs_f64()
    }

    /// Segments acknowledged for the first time within it.
    #[getter]
    fn acked(&self, py: Python<'_>) -> f64 {
        self.0.read(py).acked
    }

    /// The least RTT sample within it.
    #[getter]
    fn rtt_min(&self, py: Python<'_>) -> Option<f64> {
        span(self.0.read(py).rtt_min)
    }

    /// The mean of the RTT samples within it.
    #[getter]
    fn rtt_mean(&self, py: Python<'_>) -> Option<f64> {
        span(self.0.read(py).rtt_mean)
    }
}

/// Data was lost, or an ECN mark signals congestion.
#[pyclass(frozen, module = "anabranch")]
pub(crate) struct Loss(Facts<cc::Loss>);

#[pymethods]
impl Loss {
    /// How the loss was detected: `dup_acks`, `timeout` or `ecn`.
    #[getter]
    pub(crate) fn signal<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        match self.0.read(py).signal {
            Signal::DupAcks => intern!(py, "dup_acks"),
            Signal::Timeout => intern!(py, "timeout"),
            Signal::Ecn => intern!(py, "ecn"),
        }
    }

    /// The likely cause: `congestion`, `random` or `unknown`.
    #[getter]
    fn cause<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        match self.0.read(py).cause {
            Cause::Congestion => intern!(py, "congestion"),
            Cause::Random => intern!(py, "random"),
            Cause::Unknown => intern!(py, "unknown"),
        }
    }

    /// Segments known to be lost so far.
    #[getter]
    fn lost(&self, py: Python<'_>) -> f64 {
        self.0.read(py).lost
    }

    /// The state of the path when the first lost or marked segment was sent.
    #[getter]
    fn departure(&self, py: Python<'_>) -> Departure {
        self.0.read(py).departure.into()
    }
}

impl Loss {
    pub(crate) fn is_timeout(&self, py: Python<'_>) -> bool {
        self.0.read(py).signal == Signal::Timeout
    }
}

/// The summary of one path of a connection, as the controllers of all paths see it.
#[pyclass(frozen, module = "anabranch")]
pub(crate) struct PathSummary {
    /// The id of the path.
    #[pyo3(get)]
    path: u32,
    /// Whether it is the path of this controller.
    #[pyo3(get)]
    own: bool,
    /// Its window in segments.
    #[pyo3(get)]
    window: f64,
    /// Segments in flight on it.
    #[pyo3(get)]
    flight: f64,
    /// Its SRTT.
    #[pyo3(get)]
    rtt_smoothed: Option<f64>,
    /// Its least RTT.
    #[pyo3(get)]
    rtt_min: Option<f64>,
    /// Segments delivered on it so far.
    #[pyo3(get)]
    delivered: f64,
    /// Segments lost on it so far.
    #[pyo3(get)]
    lost: f64,
}

impl From<&cc::PathSummary> for PathSummary {
    fn from(summary: &cc::PathSummary) -> Self {
        Self {
            path: summary.path,
            own: summary.own,
            window: summary.window,
            flight: summary.flight,
            rtt_smoothed: span(summary.rtt_smoothed),
            rtt_min: span(summary.rtt_min),
            delivered: summary.delivered,
            lost: summary.lost,
        }
    }
}

/// The string for the kind of a restart.
pub(crate) fn restart(py: Python<'_>, restart: Restart) -> &Bound<'_, PyString> {
    match restart {
        Restart::Established => intern!(py, "established"),
        Restart::Idle => intern!(py, "idle"),
        Restart::AfterTimeout => intern!(py, "after_timeout"),
        Restart::PathChanged => intern!(py, "path_changed"),
    }
}
