//! Errors in the controllers of a run.

use std::sync::{Arc, OnceLock};

/// The first error in the controllers of one run, which share this record.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<OnceLock<String>>);

impl Faults {
    /// The first error, if there is one: what, where and what to do. After an error the results of the run have no meaning.
    pub fn first(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    /// Keeps the message if it is the first.
    pub fn add(&self, message: String) {
        let _ = self.0.set(message);
    }

    /// Whether there is an error.
    pub fn is_any(&self) -> bool {
        self.0.get().is_some()
    }
}
