//! Why the command ends with another code than 0.

use std::io;

use anabranch_lab::diagnostic::Diagnostic;

/// An exit code, and what to say; nothing if it has been said.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

pub(crate) type Outcome = Result<(), Failure>;

impl Failure {
    /// It was asked for something that cannot be.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: 2, message: message.into() }
    }

    /// It was asked for the right thing and could not do it.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { code: 1, message: message.into() }
    }

    /// It did it, and a claim or an assertion does not hold.
    pub(crate) fn missed(message: impl Into<String>) -> Self {
        Self { code: 3, message: message.into() }
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::usage(diagnostic.to_string())
    }
}

/// Of printing. A reader that goes away (`| head`) is no mistake and no news.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self { code: 0, message: String::new() },
            _ => Self::failed(format!("cannot write the result: {error}")),
        }
    }
}
