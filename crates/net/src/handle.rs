//! Handles keep a connection open: each handle of the connection and of its streams counts.

use std::sync::Arc;

use anabranch_proto::endpoint::ConnectionId;

use crate::state::Shared;

/// A counted handle of a connection.
#[derive(Debug)]
pub(crate) struct Handle {
    shared: Arc<Shared>,
    id: ConnectionId,
}

impl Handle {
    /// A handle that was already counted.
    pub(crate) fn adopt(shared: Arc<Shared>, id: ConnectionId) -> Self {
        Self { shared, id }
    }

    /// Another handle of the same connection; called while the lock is held.
    pub(crate) fn adopt_here(&self) -> Self {
        Self::adopt(Arc::clone(&self.shared), self.id)
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) fn id(&self) -> ConnectionId {
        self.id
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        self.shared.lock().call(self.id).handles += 1;
        self.adopt_here()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.with(|state| state.drop_handle(self.id));
    }
}
