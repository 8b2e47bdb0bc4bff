//! Makes the transport of a flow from its keys: one file for each kind of transport; `settings.rs` has the settings of an agent's law.
//!
//! To add an agent, add its name to `TransportKeys`, its arm to `Drive::of`, and a function that takes the settings of its law, as
//! `vegas` in `agent.rs`.

mod agent;
mod engine;
mod fast;
mod multihomed;
mod reference;
mod sctp;
mod settings;
mod traffic;
mod workload;

use anabranch_ns2::config::Agent;
use anabranch_units::SimSpan;

use super::Checked;
use super::keys::{FlowKeys, TransportKeys};
use super::values::{Count, Name};
use crate::diagnostic::Fault;
use crate::document::{Path, Plugins};
use crate::own::OwnLaw;
use crate::scenario::transport::Transport;

pub use fast::fast_laws;
pub(crate) use reference::laws_markdown;

/// The transport of a flow by its keys, with what reports and paths need.
pub(super) struct Drive<'a> {
    pub(super) transport: Transport,
    /// Name of the congestion law.
    pub(super) law_name: Option<String>,
    /// The law, if it is a module's.
    pub(super) own: Option<OwnLaw>,
    /// Whether the receiver's window of an agent of ns-2 is the default.
    pub(super) is_window_default: bool,
    pub(super) paths: Vec<Pair<'a>>,
}

/// A pair of interfaces, by the names of their links.
pub(super) struct Pair<'a> {
    pub(super) first: &'a Name,
    pub(super) last: &'a Name,
    pub(super) loss_rate: f32,
    pub(super) weight: u32,
}

impl<'a> Drive<'a> {
    /// A transport on one path, or without a law.
    fn new(transport: Transport) -> Self {
        Self { transport, law_name: None, own: None, is_window_default: true, paths: vec![] }
    }

    /// The transport of the flow at `path`.
    pub(super) fn of(flow: &'a FlowKeys, plugins: &Plugins, path: &Path) -> Checked<Self> {
        let packet = flow.packet.0;
        match &flow.transport {
            TransportKeys::Engine(keys) => engine::drive(keys, packet, plugins, path),
            TransportKeys::Reno(keys) => agent::drive(keys, packet, path, |_, _| agent::law(Agent::Reno, "reno")),
            TransportKeys::NewReno(keys) => agent::drive(keys, packet, path, agent::newreno),
            TransportKeys::Sack(keys) => agent::drive(keys, packet, path, |_, _| agent::law(Agent::Sack, "reno")),
            TransportKeys::Fack(keys) => agent::drive(keys, packet, path, |_, _| agent::law(Agent::Fack, "reno")),
            TransportKeys::Vegas(keys) => agent::drive(keys, packet, path, |law, _| agent::vegas(law)),
            TransportKeys::FastStart(keys) => {
                agent::drive(keys, packet, path, |_, _| agent::law(Agent::FastStart, "reno"))
            }
            TransportKeys::Linux(keys) => agent::drive(keys, packet, path, |_, _| agent::law(Agent::Linux, "linux")),
            TransportKeys::Composite(keys) => agent::drive(keys, packet, path, |law, _| agent::composite(law)),
            TransportKeys::Fast(keys) => agent::drive(keys, packet, path, |law, _| agent::fast(law)),
            TransportKeys::MFast(keys) => agent::drive(keys, packet, path, agent::mfast),
            TransportKeys::Multihomed(keys) => multihomed::drive(keys, packet, path),
            TransportKeys::Sctp(keys) => sctp::plain(keys, packet, path),
            TransportKeys::SctpCmt(keys) => sctp::cmt(keys, packet, path),
            TransportKeys::Cbr(keys) => traffic::cbr(keys, packet, path).map(Self::new),
            TransportKeys::OnOff(keys) => traffic::on_off(keys, packet, path).map(Self::new),
        }
    }
}

/// A window in packets.
fn packets(count: Option<Count>, default: f64, most: u32, path: &Path) -> Checked<f64> {
    match count {
        None => Ok(default),
        Some(Count(count)) if count <= most => Ok(f64::from(count)),
        Some(Count(count)) => {
            let fault = Fault::new(format!("{count} packets are no window that can be simulated"));
            Err((path.clone(), fault.remedy(format!("use 1 to {most}"))))
        }
    }
}

/// The default receive buffer of our own transport and of FAST multihoming: 1.3 Gbit/s at 100 ms.
const RBUF: u64 = 16 << 20;

/// The limit of a window: five seconds of 10 Gbit/s. Agents keep a record of each packet in flight, so this takes some hundred million bytes.
const WINDOW_MAX: u32 = 1 << 22;

/// The limit of an initial window; RFC 6928 has ten segments.
const INITIAL_WINDOW_MAX: u32 = 1 << 16;

/// The longest IPv4 packet.
const PACKET_MAX: u32 = 65_535;

/// [rfc-9293] sec. 3.8.6.3: "an ACK SHOULD NOT be excessively delayed; in particular, the delay MUST be less than 0.5 seconds".
const ACK_DELAY_MAX: SimSpan = SimSpan::from_millis(500);
