//! Metrics of an endpoint for Prometheus: the text, and a small server for it.
//!
//! The text has the [exposition format] 0.0.4. Each metric is a gauge, or a counter that grows while its connection or path
//! exists. The time for which each limit applied is a counter in seconds, so its rate is a share of time.
//!
//! The server is minimal. It answers `GET /metrics` and closes. It reads at most 8 kB of a request, waits at most 5 seconds, and
//! serves 16 connections at a time. It neither encrypts nor authenticates, and the text contains peers' addresses and keys: bind it
//! to a local address.
//!
//! [exposition format]: https://prometheus.io/docs/instrumenting/exposition_formats/

mod server;
mod text;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use crate::endpoint::Endpoint;

impl Endpoint {
    /// The metrics of the endpoint, its connections and their paths in Prometheus' text format 0.0.4, whose content type is
    /// `text/plain; version=0.0.4`. It shows the 256 oldest connections; `anabranch_connections` counts all.
    pub fn metrics_text(&self) -> String {
        text::of(self.shards())
    }

    /// Answers `GET /metrics` at this address with [`Endpoint::metrics_text`], while the endpoint or one of its connections exists.
    /// Returns the bound address. Choose a local address, such as `127.0.0.1:9464`: whoever reaches it can read who communicates
    /// with whom.
    ///
    /// # Errors
    /// If the address cannot be bound.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn serve_metrics(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        tokio::spawn(server::serve(listener, self.shards().iter().map(Arc::downgrade).collect()));
        Ok(address)
    }
}
