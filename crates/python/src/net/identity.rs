//! Keys and tickets, the same as the command line's.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::path::PathBuf;

use anabranch::{Admission, BindError, SecretKey, TicketError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::net::error;

/// The secret key of an end, which never leaves the computer.
#[pyclass(frozen, module = "anabranch.net")]
pub(crate) struct Key(pub(crate) SecretKey);

/// The public key of an end, which identifies it.
#[pyclass(frozen, eq, hash, module = "anabranch.net")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PublicKey(pub(crate) anabranch::PublicKey);

/// The addresses and the public key of an endpoint.
#[pyclass(frozen, eq, hash, module = "anabranch.net")]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Ticket(pub(crate) anabranch::Ticket);

#[pymethods]
impl Key {
    /// A new key, from the system's randomness.
    #[staticmethod]
    fn generate() -> PyResult<Self> {
        SecretKey::generate().map(Self).map_err(|error| error::plain("InvalidKeyError", &error))
    }

    /// Reads a key file that `anabranch key new` wrote. Only its owner may be able to read it.
    #[staticmethod]
    fn read(file: PathBuf) -> PyResult<Self> {
        SecretKey::read(&file).map(Self).map_err(|error| error::plain("InvalidKeyError", &error))
    }

    /// Writes a new key file that only its owner may read. An existing file is not overwritten.
    fn write_new(&self, file: PathBuf) -> PyResult<()> {
        self.0.write_new(&file).map_err(|error| error::plain("InvalidKeyError", &error))
    }

    /// Its public key.
    #[getter]
    fn public(&self) -> PublicKey {
        PublicKey(self.0.public())
    }

    fn __repr__(&self) -> &'static str {
        "Key(..)"
    }
}

#[pymethods]
impl PublicKey {
    /// Reads the 58 letters of a public key.
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        text.parse().map(Self).map_err(|error: anabranch::ParseKeyError| error::plain("InvalidKeyError", &error))
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.bytes())
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("PublicKey('{}')", self.0)
    }
}

impl Hash for PublicKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.bytes().hash(state);
    }
}

#[pymethods]
impl Ticket {
    /// Reads a ticket: `ab1` and letters.
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        text.parse().map(Self).map_err(|error: TicketError| error::plain("TicketError", &error))
    }

    /// A ticket for the endpoint with this key at these addresses, such as `127.0.0.1:4433` or `[::1]:4433`.
    #[staticmethod]
    fn of(key: &Bound<'_, PyAny>, addresses: Vec<String>) -> PyResult<Self> {
        let addresses = addresses.iter().map(|text| address(text)).collect::<PyResult<_>>()?;
        anabranch::Ticket::new(public(key)?, addresses).map(Self).map_err(|error| error::plain("TicketError", &error))
    }

    /// The public key of the endpoint.
    #[getter]
    fn key(&self) -> PublicKey {
        PublicKey(self.0.key())
    }

    /// Its addresses, the best one first.
    #[getter]
    fn addresses(&self) -> Vec<String> {
        self.0.addresses().iter().map(ToString::to_string).collect()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Ticket('{}')", self.0)
    }
}

impl Hash for Ticket {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_string().hash(state);
    }
}

/// A ticket, or the text of one.
pub(crate) fn ticket(given: &Bound<'_, PyAny>) -> PyResult<anabranch::Ticket> {
    match given.cast::<PyString>() {
        Ok(text) => Ticket::new(&text.to_cow()?).map(|ticket| ticket.0),
        Err(_) => Ok(given.cast::<Ticket>()?.get().0.clone()),
    }
}

/// A public key, or the text of one.
pub(crate) fn public(given: &Bound<'_, PyAny>) -> PyResult<anabranch::PublicKey> {
    match given.cast::<PyString>() {
        Ok(text) => PublicKey::new(&text.to_cow()?).map(|key| key.0),
        Err(_) => Ok(given.cast::<PublicKey>()?.get().0),
    }
}

/// Who may connect: the owners of these keys, or everybody with the ticket.
pub(crate) fn admission(keys: Option<&Bound<'_, PyAny>>) -> PyResult<Admission> {
    let Some(keys) = keys else { return Ok(Admission::Ticket) };
    let keys: PyResult<BTreeSet<_>> = keys.try_iter()?.map(|key| public(&key?)).collect();
    Ok(Admission::Keys(keys?))
}

/// The given key, or a new one.
pub(crate) fn secret(key: Option<&Bound<'_, Key>>) -> PyResult<SecretKey> {
    match key {
        Some(key) => Ok(key.get().0.clone()),
        None => SecretKey::generate().map_err(|error| error::bind(&BindError::Randomness(error))),
    }
}

/// An address with a port.
pub(crate) fn address(text: &str) -> PyResult<SocketAddr> {
    text.parse().map_err(|_| {
        error::plain("BindError", &format!("`{text}` is no address with a port, such as 127.0.0.1:4433 or [::1]:4433"))
    })
}
