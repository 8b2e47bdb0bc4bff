//! Failures of a command, with their exit codes.

use std::io;

use anabranch_lab::diagnostic::{Diagnostic, Excerpt, Place};
use anabranch_lab::run::ControllerFailed;

/// An exit code and a message, which is empty if it has been printed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
    /// The line of the file with the error.
    pub(crate) excerpt: Option<Box<Excerpt>>,
}

pub(crate) type Outcome = Result<(), Failure>;

impl Failure {
    /// Wrong usage or invalid input.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: 2, message: message.into(), excerpt: None }
    }

    /// The operation failed.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { code: 1, message: message.into(), excerpt: None }
    }

    /// A claim or an assertion does not hold.
    pub(crate) fn missed(message: impl Into<String>) -> Self {
        Self { code: 3, message: message.into(), excerpt: None }
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        match diagnostic.place {
            Place::Run => Self::failed(diagnostic.to_string()),
            _ => Self { excerpt: diagnostic.excerpt.clone(), ..Self::usage(diagnostic.to_string()) },
        }
    }
}

/// Failures of printing. A reader that goes away (`| head`) is no failure.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self { code: 0, message: String::new(), excerpt: None },
            _ if error.get_ref().is_some_and(|inner| inner.is::<ControllerFailed>()) => Self::failed(error.to_string()),
            _ => Self::failed(format!("cannot write the result: {error}")),
        }
    }
}
