//! The library's errors as the exceptions of `anabranch.net`, with its messages.

use anabranch::{AddPathError, BindError, ConnectError, DatagramError, Lost, ReadError, StreamError, WriteError};
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;

/// Creates an exception of `anabranch.net`. The module is imported here because it defines the exceptions and calls this module.
fn new<'py>(py: Python<'py>, class: &str, args: impl PyCallArgs<'py>) -> PyErr {
    let made = py.import("anabranch.net").and_then(|module| module.getattr(class)?.call1(args));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// An exception with only a message.
pub(crate) fn plain(class: &'static str, message: &impl ToString) -> PyErr {
    Python::attach(|py| new(py, class, (message.to_string(),)))
}

pub(crate) fn bind(error: &BindError) -> PyErr {
    plain("BindError", error)
}

pub(crate) fn connect(error: &ConnectError) -> PyErr {
    plain("ConnectError", error)
}

pub(crate) fn path(error: &AddPathError) -> PyErr {
    plain("PathError", error)
}

pub(crate) fn lost(lost: Lost) -> PyErr {
    let reason = match lost {
        Lost::Reset => "reset",
        Lost::GaveWay => "gave_way",
        Lost::PortClosed => "port_closed",
        Lost::TimedOut => "timed_out",
        Lost::Stalled => "stalled",
        Lost::Aborted => "aborted",
        Lost::Misbehaved => "misbehaved",
        Lost::EndpointGone => "endpoint_gone",
    };
    Python::attach(|py| new(py, "LostError", (lost.to_string(), reason)))
}

pub(crate) fn stream(error: StreamError) -> PyErr {
    match error {
        StreamError::Closed => plain("ClosedError", &error),
        StreamError::Lost(it) => lost(it),
    }
}

pub(crate) fn write(error: WriteError) -> PyErr {
    match error {
        WriteError::Stopped(code) => Python::attach(|py| new(py, "StoppedError", (error.to_string(), code))),
        WriteError::Closed => plain("ClosedError", &error),
        WriteError::Lost(it) => lost(it),
    }
}

pub(crate) fn read(error: ReadError) -> PyErr {
    match error {
        ReadError::Reset(code) => Python::attach(|py| new(py, "ResetError", (error.to_string(), code))),
        ReadError::Ended => plain("IncompleteReadError", &error),
        ReadError::TooLong => plain("TooLongError", &error),
        ReadError::Lost(it) => lost(it),
    }
}

pub(crate) fn datagram(error: DatagramError) -> PyErr {
    let max = match error {
        DatagramError::Closed => return plain("ClosedError", &error),
        DatagramError::Lost(it) => return lost(it),
        DatagramError::Unsupported | DatagramError::Disabled => 0,
        DatagramError::TooLarge { max, .. } => max,
    };
    Python::attach(|py| new(py, "DatagramError", (error.to_string(), max)))
}

/// The error for a handle that is used after its end.
pub(crate) fn closed(what: &str) -> PyErr {
    plain("ClosedError", &format!("the {what} is closed"))
}
