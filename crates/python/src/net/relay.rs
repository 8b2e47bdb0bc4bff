//! A relay, at which ends behind NATs meet.

use std::sync::{Mutex, PoisonError};

use anabranch::{RelayConfig, RelayTcp};
use pyo3::prelude::*;
use tokio::task::JoinHandle;

use crate::net::error;
use crate::net::identity::{self, Key, Ticket};
use crate::net::runtime::{self, Runtime};

/// A relay that serves its members until it is closed.
#[pyclass(frozen, module = "anabranch.net")]
pub(crate) struct Relay {
    ticket: anabranch::Ticket,
    serving: Mutex<Option<JoinHandle<()>>>,
    runtime: Runtime,
}

#[pymethods]
impl Relay {
    /// Binds a relay at an address, and a TCP port if there is one, for everybody or for the ends with one of the keys.
    #[new]
    #[pyo3(signature = (address, key, keys, tcp))]
    fn new(
        py: Python<'_>,
        address: &str,
        key: Option<Bound<'_, Key>>,
        keys: Option<Bound<'_, PyAny>>,
        tcp: Option<&str>,
    ) -> PyResult<Self> {
        let admission = identity::admission(keys.as_ref())?;
        let tcp = tcp.map(identity::address).transpose()?.map(RelayTcp::at);
        let config = RelayConfig { admission, tcp, ..RelayConfig::default() };
        let address = identity::address(address)?;
        let key = identity::secret(key.as_ref())?;
        let runtime = runtime::running()?;
        let handle = runtime.handle()?;
        let bound = py.detach(|| {
            let _entered = handle.enter();
            anabranch::Relay::bind(address, &key, config)
        });
        let relay = bound.map_err(|error| error::bind(&error))?;
        let ticket = relay.ticket();
        let serving = handle.spawn(async move { relay.serve().await });
        Ok(Self { ticket, serving: Mutex::new(Some(serving)), runtime })
    }

    /// Its ticket.
    #[getter]
    fn ticket(&self) -> Ticket {
        Ticket(self.ticket.clone())
    }

    /// Ends it, and all memberships.
    fn close(&self) -> PyResult<()> {
        self.runtime.handle()?;
        if let Some(serving) = self.serving.lock().unwrap_or_else(PoisonError::into_inner).take() {
            serving.abort();
        }
        Ok(())
    }
}
