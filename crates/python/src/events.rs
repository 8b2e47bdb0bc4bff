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

fn time(time: Time) -> f64 {
    time.as_secs_f64()
}

fn span(span: Option<Span>) -> Option<f64> {
    span.map(Span::as_secs_f64)
}

/// A class of Python with a getter for each fact of an event: its doc, name, type and value. `it` is the event.
macro_rules! event {
    (
        $(#[doc = $about:literal])+
        $class:ident |$py:ident, $it:ident| {
            $($(#[doc = $doc:literal])+ $name:ident: $type:ty = $value:expr;)+
        }
    ) => {
        $(#[doc = $about])+
        #[pyclass(frozen, module = "anabranch")]
        pub(crate) struct $class(Facts<cc::$class>);

        #[pymethods]
        impl $class {
            $(
                $(#[doc = $doc])+
                #[getter]
                pub(crate) fn $name<'py>(&self, $py: Python<'py>) -> $type {
                    let $it = self.0.read($py);
                    $value
                }
            )+
        }

        impl Refill for $class {
            type Event = cc::$class;

            fn new(event: cc::$class) -> Self {
                Self(Facts::new(event))
            }

            fn facts(&self) -> &Facts<cc::$class> {
                &self.0
            }
        }
    };
}

event! {
    /// The state of the path that a law may read at any event.
    PathView |py, it| {
        /// The time of the event.
        now: f64 = time(it.now);
        /// Segments sent and neither acknowledged nor known to be lost.
        flight: f64 = it.flight;
        /// Payload bytes of a full segment.
        mss: u64 = it.mss.count();
        /// SRTT of RFC 6298.
        rtt_smoothed: Option<f64> = span(it.rtt_smoothed);
        /// The least RTT sample since the path was established or changed.
        rtt_min: Option<f64> = span(it.rtt_min);
        /// The delivery counters of the path.
        progress: Progress = it.progress.into();
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

event! {
    /// A segment was sent.
    Sent |py, it| {
        /// The size as a fraction of a full segment.
        segments: f64 = it.segments;
        /// `first` or `again`.
        transmission: &Bound<'py, PyString> = match it.transmission {
            Transmission::First => intern!(py, "first"),
            Transmission::Again => intern!(py, "again"),
        };
    }
}

event! {
    /// The state of the path when a segment left.
    Departure |py, it| {
        /// The send time.
        time: f64 = time(it.time);
        /// The window at that time, in segments.
        window: f64 = it.window;
        /// Segments in flight at that time, this one included.
        flight: f64 = it.flight;
        /// The delivery counters of the path at that time.
        progress: Progress = it.progress.into();
        /// Whether there was data whenever the window and the pacer allowed a departure: `enough` or `short`.
        supply: &Bound<'py, PyString> = match it.supply {
            Supply::Enough => intern!(py, "enough"),
            Supply::Short => intern!(py, "short"),
        };
    }
}

event! {
    /// An ACK that acknowledged something new.
    Ack |py, it| {
        /// Segments acknowledged for the first time; more than zero.
        newly_acked: f64 = it.newly_acked;
        /// Segments found to be lost since the ACK before it.
        newly_lost: f64 = it.newly_lost;
        /// Segments that a router marked since the ACK before it.
        newly_marked: f64 = it.newly_marked;
        /// The raw RTT sample; `None` where Karn's rule forbids one.
        rtt: Option<f64> = span(it.rtt);
        /// Payload bytes of the newest segment that it acknowledges.
        size: u64 = it.size.count();
        /// The arrival time.
        arrival: f64 = time(it.arrival);
        /// The state of the path when the newest acknowledged segment was last sent.
        departure: Departure = Departure::new(it.departure);
        /// What limits the sender: `window` or `application`.
        limit: &Bound<'py, PyString> = match it.limit {
            Limit::Window => intern!(py, "window"),
            Limit::Application => intern!(py, "application"),
        };
        /// `open` or `recovery`.
        phase: &Bound<'py, PyString> = match it.phase {
            Phase::Open => intern!(py, "open"),
            Phase::Recovery => intern!(py, "recovery"),
        };
    }
}

event! {
    /// About one RTT, counted by what is acknowledged.
    Round |py, it| {
        /// Rounds that ended before this one.
        count: u64 = it.count;
        /// The duration in seconds.
        elapsed: f64 = it.elapsed.as_secs_f64();
        /// Segments acknowledged for the first time within it.
        acked: f64 = it.acked;
        /// The least RTT sample within it.
        rtt_min: Option<f64> = span(it.rtt_min);
        /// The mean of the RTT samples within it.
        rtt_mean: Option<f64> = span(it.rtt_mean);
    }
}

event! {
    /// Data was lost, or an ECN mark signals congestion.
    Loss |py, it| {
        /// How the loss was detected: `dup_acks`, `timeout` or `ecn`.
        signal: &Bound<'py, PyString> = match it.signal {
            Signal::DupAcks => intern!(py, "dup_acks"),
            Signal::Timeout => intern!(py, "timeout"),
            Signal::Ecn => intern!(py, "ecn"),
        };
        /// The likely cause: `congestion`, `random` or `unknown`.
        cause: &Bound<'py, PyString> = match it.cause {
            Cause::Congestion => intern!(py, "congestion"),
            Cause::Random => intern!(py, "random"),
            Cause::Unknown => intern!(py, "unknown"),
        };
        /// Segments known to be lost so far.
        lost: f64 = it.lost;
        /// The state of the path when the first lost or marked segment was sent.
        departure: Departure = Departure::new(it.departure);
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
