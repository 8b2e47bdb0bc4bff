//! A deterministic packet simulator: nodes, links, queues, error models, routes, hosts, probes.
//!
//! A [`Builder`] collects the parts and says what is wrong with them; a [`World`] runs, and is asked for what happened:
//!
//! ```
//! use anabranch_sim::traffic::{Cbr, Sink};
//! use anabranch_sim::{Builder, LinkSpec, QueueSpec};
//! use anabranch_units::SimTime;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut net = Builder::new(1);
//! let (left, right) = (net.node("left"), net.node("right"));
//! let spec = LinkSpec::new("1.5Mbit/s".parse()?, "100ms".parse()?).queue(QueueSpec::Packets(10));
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
//! * `world` joins hosts to the network and runs the loop; `world::builder` describes it, within `world::limits`.
//! * `host` is the seam to everything that sends and receives: the four sans-I/O methods of [`Host`]. `traffic` has hosts that
//!   only fill links, `ns2_host`, `sctp_host` and `multihome_host` make hosts of ns-2's agents and `engine_host` of the transport, whose packets `datagrams` makes, `workload` says
//!   what applications want to have sent, `agenda` what the scenario does at a time. `driver` stands between a host and the network and makes it a
//!   program on a real machine, with timers that are late and arrivals that come in batches.
//! * `network` moves packets between hosts: `route` says where to, `link` how. A link is `error_model`s in front of a `queue`,
//!   a `link::transmitter`, whose rate may vary (`link::varying`), and a `link::pipe` in which packets fly; at its end `hold` may let them out in
//!   batches, and `link::scatter` out of order or twice.
//! * `account` holds the counters of a host of any type, and the variables that it recorded over time; `gauges` are a sender's
//!   variables.
//! * `probe` observes: it counts; `trace` and `pcap` record; `history` and
//!   `distribution` keep values in bounded memory.
//! * `float_clock` keeps time as ns-2 does, where a world is to agree with it to the last bit.
//! * `packet`, `event_queue`, `rng`, `run_hash`, `id` know nothing of the rest.
//!
//! # Guarantees
//!
//! **Two runs with one seed are the same to the bit**, on every machine and in any number of threads. Time is an integer of
//! picoseconds; events at equal times happen in the order of insertion; whoever draws random numbers has a
//! stream of its own ([`Substreams`]); floats are only added, multiplied, divided and rooted, and logarithms are computed in
//! software. [`World::hash`] is the proof: a number folded over every delivery and every loss.
//!
//! **Nothing appears or vanishes**: [`World::assert_conserved`].
//!
//! # Performance
//!
//! Packets of a link do not overtake each other, except where it scatters them, so only the next arrival of a link is an event, and the event queue is a
//! tournament over a few dozen sources, not a heap of thousands of packets. With drop-tail and RED a departure is known on
//! arrival, also where the rate varies as a schedule or a trace says, so a hop is one event. A packet's body stays put; links pass 40 bytes around. A host is told, asked and drained in
//! one dynamic call. Memory grows with packets in flight, not with time.

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
mod link;
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
mod trace;
pub mod traffic;
mod turn;
mod workload;
mod world;

pub use account::{
    Account, FirstArrivals, HostReport, HostSeries, Points, Portion, Portions, ReceivedReport, SenderPath, SentReport,
    WindowLimit,
};
pub use agenda::Control;
pub use distribution::{QueueLengths, Spans};
pub use driver::{Driven, DriverSpec, Reads, Stamps};
pub use engine_host::{EngineSink, EngineSource, Requests, Way};
pub use error_model::{ErrorSpec, GilbertElliott};
pub use event_queue::{EventQueue, Key, Next, Order};
pub use gauges::{GaugeRow, sum_of_paths};
pub use history::{Detail, Entry, History, is_same_bin};
pub use hold::{DelaySpec, HoldSpec};
pub use host::{Arrival, Due, Host, Input, Offer, Transmit};
pub use id::{Address, FlowId, HostId, LinkId, NodeId, Port};
pub use link::{
    Counts, DeliveryTrace, DropReason, LinkReport, PACKETS_PER_LINK_MAX, RateSpec, ReorderSpec, STEP_MIN, STEPS_MAX,
    ScatterSpec, Steps,
};
pub use multihome_host::{MultihomedSink, MultihomedSource};
pub use network::HOPS_MAX;
pub use ns2_host::{DeliveryRow, Ns2Sink, Ns2Source};
pub use packet::{Body, Fragment, Raw};
pub use pcap::Capture;
pub use probe::{
    Direction, DropRecord, Drops, Happening, Observer, ObserverId, PacketEvent, QueueArea, QueueSamples, Throughput,
};
pub use queue::{
    CoDelParameters, DualPi2Parameters, FqCoDelParameters, PieParameters, QueueSpec, RedParameters, RedWeight,
    StepParameters, Threshold, Unit,
};
pub use rng::{Stream, Substreams};
pub use run_hash::RunHash;
pub use sctp_host::{Ns2Sctp, SctpDelivery, SctpRow};
pub use sizes::Sizes;
pub use trace::{Trace, TraceRecord};
pub use workload::{Dialogue, Drawn, Messages, Spacing, Workload};
pub use world::{BuildError, Builder, LinkSpec, World, WorldSize};
