//! A deterministic packet simulator: nodes, links, queues, error models, routes, hosts, probes.
//!
//! A [`Builder`] collects the parts and reports errors in them. A [`World`] runs the simulation and reports what happened:
//!
//! ```
//! use anabranch_sim::traffic::{Cbr, Sink};
//! use anabranch_sim::{Builder, LinkSpec, QueueSpec};
//! use anabranch_units::SimTime;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut net = Builder::new(1);
//! let (left, right) = (net.node("left"), net.node("right"));
//! let spec = LinkSpec::new("1.5Mbit/s".parse()?, "100ms".parse()?).queue(QueueSpec::packets(10));
//! let (link, _back) = net.duplex(left, right, spec)?;
//! let source = net.host(left, Cbr::new("2Mbit/s".parse()?, 1000))?;
//! let sink = net.host(right, Sink::default())?;
//! net.flow(source, sink)?;
//! net.start(SimTime::ZERO, source)?;
//!
//! let mut world = net.build()?;
//! world.run_until("10s".parse()?);
//! assert_eq!(world.link(link).counts.offered, 2501);
//! println!("seed {}, run {}: {:?}", world.seed(), world.hash(), world.link(link));
//! # Ok(())
//! # }
//! ```
//!
//! # Structure, from the top
//!
//! * `world` connects hosts to the network and runs the event loop. `world::builder` describes a world, `world::limits` bounds
//!   it.
//! * `topology` is a network without its traffic, as a scenario names it.
//! * `host` is the interface to everything that sends and receives: the four sans-I/O methods of [`Host`]. `traffic` has hosts
//!   that only fill links. `ns2_host`, `sctp_host` and `multihome_host` turn ns-2's agents into hosts, `engine_host` does so with
//!   the transport, and `datagrams` makes its packets. `workload` is the data that applications offer, `agenda` the timed actions
//!   of the scenario. `driver` wraps a host and models a program on a real machine, with late timers and batched arrivals.
//! * `network` moves packets between hosts: `route` selects the links, `link` carries the packets. A link is a chain of
//!   `error_model`s, a `queue`, a `link::transmitter`, whose rate may vary (`link::varying`), and a `link::pipe` with the packets
//!   in flight. At its end, `hold` may release packets in batches, and `link::scatter` may reorder or duplicate them.
//! * `account` holds the counters of a host of any type, and the variables that it recorded over time; `gauges` are a sender's
//!   variables.
//! * `probe` observes and counts; `trace` and `pcap` record packets; `history` and `distribution` keep values in bounded memory.
//! * `float_clock` keeps time as ns-2 does, for worlds that must agree with it to the last bit.
//! * `packet`, `event_queue`, `rng`, `run_hash` and `id` depend on nothing above them.
//!
//! # Guarantees
//!
//! **Two runs with one seed are bit-identical**, on every machine and with any number of threads. Time is an integer number of
//! picoseconds. Events at equal times happen in the order of insertion. Each user of random numbers has its own stream
//! ([`Substreams`]). Floats are only added, multiplied, divided and rooted; logarithms are computed in software. [`World::hash`]
//! makes it testable: a hash over every delivery and every loss.
//!
//! **Packets are conserved**: none appears or vanishes ([`World::assert_conserved`]).
//!
//! # Performance
//!
//! Packets of a link do not overtake each other, except where it scatters them. So only the next arrival of a link is an event,
//! and the event queue is a tournament over a few dozen sources instead of a heap of thousands of packets. With drop-tail and RED
//! a departure is known on arrival, even if the rate varies by a schedule or a trace, so a hop is one event. A packet's body
//! stays in place; links pass on 40 bytes. One dynamic call passes an event to a host, takes its packets and reads its deadline.
//! Memory grows with the packets in flight, not with time.

#![forbid(unsafe_code)]

mod account;
mod agenda;
mod datagrams;
mod distribution;
mod driver;
mod engine_host;
mod error_model;
mod event_queue;
mod float_clock;
mod gauges;
mod history;
mod hold;
mod host;
mod id;
mod interest;
mod link;
mod link_trace;
mod moment;
mod multihome_host;
mod network;
mod ns2_host;
mod packet;
mod pcap;
mod probe;
mod queue;
mod rng;
mod route;
mod run_hash;
mod sctp_host;
mod sizes;
mod topology;
mod trace;
pub mod traffic;
mod turn;
mod workload;
mod world;

pub use anabranch_proto::EcnCodepoint;

pub use account::{
    Account, FirstArrivals, HostReport, HostSeries, Points, Portion, Portions, ReceivedReport, SenderPath, SentReport,
    WindowLimit,
};
pub use agenda::Control;
pub use distribution::{QueueLengths, Spans};
pub use driver::{Driven, DriverSpec, Reads, Stamps};
pub use engine_host::{EngineSink, EngineSource, Requests};
pub use error_model::{ErrorSpec, GilbertElliott, RATE_MAX};
pub use event_queue::{EventQueue, Key, Next, Order};
pub use gauges::{GaugeListener, GaugeRow, sum_of_paths};
pub use history::{Detail, Entry, History, is_same_bin};
pub use hold::{DelaySpec, HoldSpec};
pub use host::{Arrival, Due, Host, Input, Offer, Transmit, Way};
pub use id::{Address, FlowId, HostId, LinkId, NodeId, Port};
pub use interest::Interest;
pub use link::{
    Counts, DeliveryTrace, DropReason, LinkReport, PACKETS_PER_LINK_MAX, RateSpec, ReorderSpec, STEP_MIN, STEPS_MAX,
    ScatterSpec, Steps,
};
pub use link_trace::{LinkRow, LinkTrace};
pub use multihome_host::{MultihomedSink, MultihomedSource};
pub use network::HOPS_MAX;
pub use ns2_host::{DeliveryRow, Ns2Sink, Ns2Source};
pub use packet::{Body, Fragment, Raw};
pub use pcap::Capture;
pub use probe::{Direction, DropRecord, Drops, Happening, Observed, Observer, PacketEvent, QueueArea, Throughput};
pub use queue::*;
pub use rng::{Stream, Substreams};
pub use run_hash::RunHash;
pub use sctp_host::{Ns2Sctp, SctpDelivery, SctpRow};
pub use sizes::Sizes;
pub use topology::{RouteChange, Topology, Wire};
pub use trace::{Trace, TraceRecord};
pub use workload::{Dialogue, Drawn, Messages, Spacing, Workload};
pub use world::{BuildError, Builder, LinkSpec, World, WorldSize};

/// The README; its example is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
