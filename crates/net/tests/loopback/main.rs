//! Endpoints over the loopback interface.

#![expect(clippy::unwrap_used, reason = "a test may")]

#[path = "../../src/websocket/anyone.rs"]
mod anyone;
mod closing;
mod datagrams;
mod faults;
mod limits;
mod logging;
mod measured_datagrams;
mod measured_tcp;
mod measuring;
#[cfg(feature = "prometheus")]
mod metrics;
mod over_tcp;
mod pairs;
mod paths;
mod relay;
mod relayed;
mod round_trips;
mod shards;
mod spans;
mod stats;
mod streams;
mod support;
