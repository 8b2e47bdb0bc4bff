//! A deterministic packet simulator.
#![forbid(unsafe_code)]

mod agenda;
mod error_model;
mod event_queue;
mod host;
mod id;
mod link;
mod ns2_host;
mod packet;
mod probe;
mod queue;
mod rng;
mod route;
mod run_hash;
pub mod traffic;
mod workload;
mod world;

pub use agenda::Control;
pub use error_model::{ErrorSpec, GilbertElliott};
pub use event_queue::{EventQueue, Key, Order};
pub use host::{Arrival, Host, Input, Offer, Transmit};
pub use id::{Address, FlowId, HostId, LinkId, NodeId, Port};
pub use link::{Counts, DropReason, LinkReport, PACKETS_PER_LINK_MAX};
pub use ns2_host::{GaugeRow, Ns2Sink, Ns2Source};
pub use packet::{Body, Raw};
pub use probe::{
    Direction, DropRecord, Drops, Happening, Observer, ObserverId, PacketEvent, QueueArea, QueueSamples, Throughput,
};
pub use queue::{CoDelParameters, QueueSpec, RedParameters, RedWeight, Unit};
pub use rng::{Stream, Substreams};
pub use run_hash::RunHash;
pub use workload::{Messages, Spacing, Workload};
pub use world::{BuildError, Builder, HOPS_MAX, LinkSpec, World};
