//! A farewell to all peers of an endpoint at once.

use std::fmt;
use std::sync::Arc;

use crate::state::Shared;

/// Ends all connections of an endpoint, such as when its program is told to stop. It is no handle of the endpoint and keeps nothing
/// open.
#[derive(Clone)]
pub struct Aborter {
    shared: Arc<Shared>,
}

impl Aborter {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Ends all connections with a reset, as [`crate::Connection::abort`] ends one. The driver sends the resets in its next turn.
    pub fn abort_all(&self) {
        let now = self.shared.clock.now();
        self.shared.with(|state| state.abort_all(now));
    }
}

impl fmt::Debug for Aborter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Aborter(..)")
    }
}
