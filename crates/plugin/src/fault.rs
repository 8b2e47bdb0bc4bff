//! What has gone wrong in the controllers of a run.

use std::sync::{Arc, OnceLock};

/// The first thing that went wrong in the controllers of one run, which share it.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<OnceLock<String>>);

impl Faults {
    /// What went wrong, if something has: what, where and what to do. The run has no meaning from then on.
    pub fn first(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    /// Keeps it, unless something has gone wrong before.
    pub(crate) fn add(&self, message: String) {
        let _ = self.0.set(message);
    }

    pub(crate) fn is_any(&self) -> bool {
        self.0.get().is_some()
    }
}
