//! The keys of a flow: the keys of all flows, and an enum with the keys of each transport. A key that a transport does not have is
//! not in its struct, so its use is an error.

use anabranch_units::{Bytes, SimSpan};
use schemars::JsonSchema;

use super::agent::{AgentKeys, MultihomedKeys, SctpKeys};
use super::engine::EngineKeys;
use super::options::{CmtOptionKeys, MFastOptionKeys, NewRenoOptionKeys, SctpOptionKeys};
use super::traffic::{CbrKeys, ClassKeys, OnOffKeys};
use crate::load::values::{Name, Text, WrittenOut};

/// A source, its transport and its destination. The transport determines the additional keys.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "flow", transform = super::schema::one_table)]
pub(crate) struct FlowKeys {
    /// Its name: letters, digits, `-` and `_`.
    pub(crate) id: Name,
    /// The number of copies, if more than one: `#` in names becomes 0, 1, and so on.
    #[expect(dead_code, reason = "elements are written out before they are read")]
    pub(crate) count: Option<WrittenOut>,
    /// The sending node.
    pub(crate) from: Name,
    /// The receiving node.
    pub(crate) to: Name,
    /// The start of sending; at once if absent. With `count` it may be a list with one time for each flow.
    #[serde(default)]
    pub(crate) start: Text<SimSpan>,
    /// A random delay of the start, from 0 to this.
    #[serde(default)]
    pub(crate) start_jitter: Text<SimSpan>,
    /// The end of sending; never if absent.
    pub(crate) stop: Option<Text<SimSpan>>,
    /// The class that it belongs to; none if absent.
    pub(crate) class: Option<ClassKeys>,
    /// The size of a data packet on the wire, headers included; `1040B` if absent. For SCTP, the size of the largest packet.
    #[serde(default = "packet_default")]
    pub(crate) packet: Text<Bytes>,
    /// The transport of its data; it determines the additional keys.
    pub(crate) transport: TransportKeys,
}

/// 1000 bytes of ns-2's `packetSize_` and 40 of header.
fn packet_default() -> Text<Bytes> {
    Text(Bytes::new(1040))
}

/// Declares the transports: the name of each in a file, and its keys.
macro_rules! transports {
    ($($(#[doc = $doc:literal])+ $name:literal => $variant:ident($keys:ty),)+) => {
        /// The transport of a flow's data.
        #[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
        #[schemars(rename = "transport", tag = "transport")]
        pub(crate) enum TransportKeys {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant($keys),)+
        }

        impl TransportKeys {
            /// The name in a file.
            pub(crate) fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)+
                }
            }
        }
    };
}

transports! {
    /// Our own transport, with streams and paths.
    "anabranch" => Engine(EngineKeys),
    /// ns-2.35's `Agent/TCP/Reno`. The agents of ns-2 are one-way TCPs that always have data.
    "ns2/reno" => Reno(AgentKeys),
    /// Its `Agent/TCP/Newreno`.
    "ns2/newreno" => NewReno(AgentKeys<NewRenoOptionKeys>),
    /// Its `Agent/TCP/Sack1`.
    "ns2/sack" => Sack(AgentKeys),
    /// Its `Agent/TCP/Fack`.
    "ns2/fack" => Fack(AgentKeys),
    /// Its `Agent/TCP/Vegas`.
    "ns2/vegas" => Vegas(AgentKeys),
    /// Its `Agent/TCP/FS`: fast start.
    "ns2/fs" => FastStart(AgentKeys),
    /// Its `Agent/TCP/Linux`.
    "ns2/linux" => Linux(AgentKeys),
    /// Composite TCP of ctcp-2019 on its `Agent/TCP/Sack1`.
    "ns2/composite" => Composite(AgentKeys),
    /// FAST TCP: the CUBIN module for ns-2.
    "ns2/fast" => Fast(AgentKeys),
    /// FAST with MFast's receiver: several streams in turn, with a stream header of 4 bytes in each packet.
    "ns2/mfast" => MFast(AgentKeys<MFastOptionKeys>),
    /// FAST multihoming: FAST on each of several paths at once.
    "ns2/fast-mh" => Multihomed(MultihomedKeys),
    /// ns-2's SCTP.
    "ns2/sctp" => Sctp(SctpKeys<SctpOptionKeys>),
    /// Its concurrent multipath transfer.
    "ns2/sctp-cmt" => SctpCmt(SctpKeys<CmtOptionKeys>),
    /// Packets at a constant rate, without acknowledgements.
    "cbr" => Cbr(CbrKeys),
    /// Exponential bursts between exponential silences, without acknowledgements.
    "on_off" => OnOff(OnOffKeys),
}
