//! Wakes an event loop from other threads, without the interpreter's lock.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use pyo3::exceptions::PyOSError;
use pyo3::intern;
use pyo3::prelude::*;

/// The bell of an event loop. The loop calls `ring` whenever the socket of `fileno` is readable.
#[pyclass(frozen, module = "anabranch.net")]
pub(crate) struct Bell {
    line: Arc<Line>,
    /// The asyncio future of each waiting operation, by the operation's number. Only the loop's thread changes them.
    waiting: Mutex<BTreeMap<u64, Py<PyAny>>>,
    numbered: AtomicU64,
}

/// The part of a bell that its wakers share.
struct Line {
    /// The operations to poll, each once for every wait.
    rung: Mutex<Vec<u64>>,
    ends: SocketPair,
}

/// The waker of one operation.
struct Ring {
    line: Arc<Line>,
    number: u64,
}

impl Wake for Ring {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut rung = self.line.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = rung.is_empty();
        rung.push(self.number);
        drop(rung);
        if is_first {
            self.line.ends.notify();
        }
    }
}

impl Bell {
    /// The number and the waker of a new operation.
    pub(crate) fn add(&self) -> (u64, Waker) {
        let number = self.numbered.fetch_add(1, Ordering::Relaxed);
        (number, Waker::from(Arc::new(Ring { line: Arc::clone(&self.line), number })))
    }

    /// Registers a future, which completes when the operation must be polled again.
    pub(crate) fn wait(&self, number: u64, future: Py<PyAny>) {
        self.lock().insert(number, future);
    }

    /// Removes the future of an operation, because no task waits for it any longer.
    pub(crate) fn forget(&self, number: u64) {
        // The future is dropped after the lock is released.
        let future = self.lock().remove(&number);
        drop(future);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Py<PyAny>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Bell {
    #[new]
    fn new() -> PyResult<Self> {
        let ends = SocketPair::new().map_err(|error| PyOSError::new_err(error.to_string()))?;
        let line = Arc::new(Line { rung: Mutex::default(), ends });
        Ok(Self { line, waiting: Mutex::default(), numbered: AtomicU64::new(0) })
    }

    /// The descriptor of the socket to watch.
    fn fileno(&self) -> i64 {
        self.line.ends.descriptor()
    }

    /// The number of waiting operations.
    #[getter]
    fn waiting(&self) -> usize {
        self.lock().len()
    }

    /// The number of live wakers of this bell's operations.
    #[getter]
    fn wakers(&self) -> usize {
        Arc::strong_count(&self.line) - 1
    }

    /// Completes the futures of the operations that must be polled.
    fn ring(&self, py: Python<'_>) -> PyResult<()> {
        // A waker that rings after this either finds the list empty and writes a byte, or is in the list that is taken below.
        self.line.ends.clear();
        let rung = std::mem::take(&mut *self.line.rung.lock().unwrap_or_else(PoisonError::into_inner));
        for number in rung {
            let Some(future) = self.lock().remove(&number) else { continue };
            let future = future.bind(py);
            // A cancelled future is done already.
            if !future.call_method0(intern!(py, "done"))?.is_truthy()? {
                future.call_method1(intern!(py, "set_result"), (py.None(),))?;
            }
        }
        Ok(())
    }
}

/// A pair of connected sockets.
#[cfg(unix)]
struct SocketPair {
    near: std::os::unix::net::UnixStream,
    far: std::os::unix::net::UnixStream,
}

#[cfg(unix)]
impl SocketPair {
    fn new() -> io::Result<Self> {
        let (near, far) = std::os::unix::net::UnixStream::pair()?;
        near.set_nonblocking(true)?;
        far.set_nonblocking(true)?;
        Ok(Self { near, far })
    }

    fn descriptor(&self) -> i64 {
        use std::os::fd::AsRawFd as _;
        self.near.as_raw_fd().into()
    }

    fn notify(&self) {
        use std::io::Write as _;
        // If the socket is full, it is readable, so the byte is not needed.
        _ = (&self.far).write(&[0]);
    }

    fn clear(&self) {
        use std::io::Read as _;
        _ = (&self.near).read(&mut [0; 64]);
    }
}

/// A socket that is connected to itself, which works on every system.
#[cfg(not(unix))]
struct SocketPair(std::net::UdpSocket);

#[cfg(not(unix))]
impl SocketPair {
    fn new() -> io::Result<Self> {
        let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(socket.local_addr()?)?;
        socket.set_nonblocking(true)?;
        Ok(Self(socket))
    }

    fn descriptor(&self) -> i64 {
        use std::os::windows::io::AsRawSocket as _;
        self.0.as_raw_socket() as i64
    }

    fn notify(&self) {
        _ = self.0.send(&[0]);
    }

    fn clear(&self) {
        while self.0.recv(&mut [0; 64]).is_ok() {}
    }
}
