//! Endpoints: sockets that accept connections and connect.

use std::future::{Future as _, poll_fn};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use anabranch::pairs::Side;
use anabranch::{BindError, Config, SecretKey};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::net::bell::Bell;
use crate::net::connection::Connection;
use crate::net::identity::{self, Key, PublicKey, Ticket};
use crate::net::operation::{Operation, done};
use crate::net::runtime::{self, Runtime};
use crate::net::waiters::{Waiter, Waiters};
use crate::net::{config, error};

/// One or several sockets with their connections.
#[pyclass(frozen, module = "anabranch.net")]
pub(crate) struct Endpoint {
    open: Arc<Open>,
    runtime: Runtime,
}

struct Open {
    endpoint: Mutex<Option<anabranch::Endpoint>>,
    waiters: Waiters,
}

impl AsRef<Waiters> for Open {
    fn as_ref(&self) -> &Waiters {
        &self.waiters
    }
}

impl Open {
    fn endpoint(&self) -> Option<anabranch::Endpoint> {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Endpoint {
    fn open(&self) -> PyResult<anabranch::Endpoint> {
        self.runtime.handle()?;
        self.open.endpoint().ok_or_else(|| error::closed("endpoint"))
    }
}

#[pymethods]
impl Endpoint {
    /// Binds a socket at each address, or one at all addresses of the computer. With `accepts` it accepts every client with the ticket, or only the
    /// clients with one of the given keys.
    #[new]
    #[pyo3(signature = (addresses, key, keys, cc, settings, *, accepts))]
    fn new(
        py: Python<'_>,
        addresses: Vec<String>,
        key: Option<Bound<'_, Key>>,
        keys: Option<Bound<'_, PyAny>>,
        cc: Option<Bound<'_, PyAny>>,
        settings: &Bound<'_, PyDict>,
        accepts: bool,
    ) -> PyResult<Self> {
        let config = config::read(cc.as_ref(), settings)?;
        let admission = identity::admission(keys.as_ref())?;
        let config = Config { admission: accepts.then_some(admission), ..config };
        let addresses = addresses.iter().map(|text| identity::address(text)).collect::<PyResult<Vec<_>>>()?;
        let key = identity::secret(key.as_ref())?;
        let runtime = runtime::running()?;
        let handle = runtime.handle()?;
        let bound = py.detach(|| {
            let _entered = handle.enter();
            bind(&addresses, &key, &config)
        });
        let endpoint = Mutex::new(Some(bound.map_err(|error| error::bind(&error))?));
        Ok(Self { open: Arc::new(Open { endpoint, waiters: Waiters::default() }), runtime })
    }

    /// The ticket of this endpoint.
    #[getter]
    fn ticket(&self, py: Python<'_>) -> PyResult<Ticket> {
        let endpoint = self.open()?;
        Ok(Ticket(py.detach(|| endpoint.ticket())))
    }

    /// The addresses of its sockets.
    #[getter]
    fn addresses(&self) -> PyResult<Vec<String>> {
        Ok(self.open()?.local_addresses().iter().map(ToString::to_string).collect())
    }

    /// Its public key.
    #[getter]
    fn key(&self) -> PyResult<PublicKey> {
        Ok(PublicKey(self.open()?.public_key()))
    }

    /// Binds another socket.
    fn add_address(&self, py: Python<'_>, address: &str) -> PyResult<String> {
        let (endpoint, address, runtime) = (self.open()?, identity::address(address)?, self.runtime.handle()?);
        let bound = py.detach(|| {
            let _entered = runtime.enter();
            endpoint.add_address(address)
        });
        Ok(bound.map_err(|error| error::bind(&error))?.to_string())
    }

    /// Asks who is the relay at one of these addresses. Returns its ticket.
    fn find_relay(&self, bell: Bound<'_, Bell>, addresses: Vec<String>) -> PyResult<Operation> {
        let endpoint = self.open()?;
        let addresses = addresses.iter().map(|text| identity::address(text)).collect::<PyResult<Vec<_>>>()?;
        Ok(Operation::new(bell, &self.runtime, async move {
            let found = endpoint.find_relay(&addresses).await;
            done(move |_| {
                let failed = |error| error::plain("ConnectError", &format!("the relay {error}"));
                found.map(Ticket).map_err(failed)
            })
        }))
    }

    /// Joins a relay, through which this endpoint can be reached from then on.
    fn join(&self, bell: Bound<'_, Bell>, relay: &Bound<'_, PyAny>) -> PyResult<Operation> {
        let (endpoint, relay) = (self.open()?, identity::ticket(relay)?);
        Ok(Operation::new(bell, &self.runtime, async move {
            let joined = endpoint.with_relay(&relay).await;
            done(move |py| joined.map(|_| py.None()).map_err(|error| error::connect(&error)))
        }))
    }

    /// Connects to the endpoint of a ticket.
    fn connect(&self, bell: Bound<'_, Bell>, ticket: &Bound<'_, PyAny>) -> PyResult<Operation> {
        let (endpoint, ticket, runtime) = (self.open()?, identity::ticket(ticket)?, self.runtime.clone());
        Ok(Operation::new(bell, &self.runtime, async move {
            let connected = endpoint.connect(&ticket).await;
            done(move |_| {
                let connection = connected.map_err(|error| error::connect(&error))?;
                Ok(Connection::new(connection, Side::Client, runtime))
            })
        }))
    }

    /// Waits for a connection.
    fn accept(&self, bell: Bound<'_, Bell>) -> PyResult<Operation> {
        self.open()?;
        let waiter = Waiter::alone(&self.open, 0, "waits for a connection")?;
        let runtime = self.runtime.clone();
        Ok(Operation::new(bell, &self.runtime, async move {
            let accepted = poll_fn(|cx| {
                waiter.poll(cx, |open, cx| match open.endpoint() {
                    // The future keeps no state between two polls.
                    Some(endpoint) => pin!(endpoint.accept()).poll(cx),
                    None => Poll::Ready(None),
                })
            });
            let accepted = accepted.await;
            done(move |_| {
                let connection = accepted.ok_or_else(|| error::closed("endpoint"))?;
                Ok(Connection::new(connection, Side::Server, runtime))
            })
        }))
    }

    /// Waits until no connection is left.
    fn wait_idle(&self, bell: Bound<'_, Bell>) -> PyResult<Operation> {
        let (endpoint, waiter) = (self.open()?, Waiter::new(&self.open));
        Ok(Operation::new(bell, &self.runtime, async move {
            waiter.run(endpoint.wait_idle()).await;
            done(|py| Ok(py.None()))
        }))
    }

    /// Accepts no more connections. Existing connections go on.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            let endpoint = self.open.endpoint.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(endpoint);
            self.open.waiters.wake();
        });
    }

    #[getter]
    fn is_closed(&self) -> bool {
        self.open.endpoint().is_none()
    }
}

fn bind(addresses: &[SocketAddr], key: &SecretKey, config: &Config) -> Result<anabranch::Endpoint, BindError> {
    let bind = |address| anabranch::Endpoint::bind(address, key, config.clone());
    let Some((first, others)) = addresses.split_first() else {
        // Dual-stack if the system has IPv6, else IPv4.
        return bind((Ipv6Addr::UNSPECIFIED, 0).into()).or_else(|_| bind((Ipv4Addr::UNSPECIFIED, 0).into()));
    };
    let endpoint = bind(*first)?;
    for address in others {
        endpoint.add_address(*address)?;
    }
    Ok(endpoint)
}
