//! A farewell to all peers of an endpoint at once.

use std::fmt;
use std::sync::Arc;

use crate::state::Shared;

/// Ends all connections of an endpoint, such as when its program is told to stop. It is no handle of the endpoint and keeps nothing
/// open.
#[derive(Clone)]
pub struct Aborter {
    shards: Arc<[Arc<Shared>]>,
}

impl Aborter {
    pub(crate) fn new(shards: Arc<[Arc<Shared>]>) -> Self {
        Self { shards }
    }

    /// Ends all connections with a reset, as [`crate::Connection::abort`] ends one. The drivers send the resets in their next turn.
    pub fn abort_all(&self) {
        for shared in &*self.shards {
            let now = shared.clock.now();
            shared.with(|state| state.abort_all(now));
        }
    }
}

impl fmt::Debug for Aborter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Aborter(..)")
    }
}
