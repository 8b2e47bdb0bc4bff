//! Numbers of an endpoint for Prometheus: a text, and a small server for it.
//!
//! The text is the [exposition format] 0.0.4. Each metric is a gauge, or a counter that grows as long as its connection or path is there. How long a
//! sender was limited by what is counted in seconds: the rate of such a counter is the share of time.
//!
//! The server does no more than it must. It answers `GET /metrics` and closes; it reads 8 kB of a request at most, waits 5 seconds at most, and has
//! 16 connections at a time. It encrypts nothing and asks nobody who he is, and peers' addresses and keys are in the text: so it belongs on an
//! address of the computer itself.
//!
//! [exposition format]: https://prometheus.io/docs/instrumenting/exposition_formats/

mod server;
mod text;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use crate::endpoint::Endpoint;

impl Endpoint {
    /// Its numbers and those of its connections and their paths, in Prometheus' text format 0.0.4, whose content type is
    /// `text/plain; version=0.0.4`. Of 256 connections, the oldest; `anabranch_connections` counts all.
    pub fn metrics_text(&self) -> String {
        text::of(self.shared())
    }

    /// Answers `GET /metrics` at this address with [`Endpoint::metrics_text`], as long as there is the endpoint or a connection of it. Returns where.
    /// Choose an address of the computer itself, such as `127.0.0.1:9464`: whoever reaches it can read who talks to whom.
    ///
    /// # Errors
    /// If nobody can listen there.
    ///
    /// # Panics
    /// Outside of a runtime of tokio.
    pub fn serve_metrics(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        tokio::spawn(server::serve(listener, Arc::downgrade(self.shared())));
        Ok(address)
    }
}
