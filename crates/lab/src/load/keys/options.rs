//! The keys of the table `options`: the settings of an ns-2 agent besides its window and its timeout. A macro adds the keys that several
//! agents have in common, because `serde` needs all keys of a table in one struct to find a typo.

use std::num::{NonZeroU8, NonZeroU16};

use anabranch_ns2::config::SenderConfig;
use anabranch_ns2::sctp::EndpointConfig;
use anabranch_units::SimSpan;
use schemars::JsonSchema;

use crate::load::values::{Text, Whole};

/// The options that every one-way TCP of ns-2 has.
pub(crate) trait AgentOptions: Default {
    /// Sets them.
    fn apply(&self, sender: &mut SenderConfig);
}

/// The options that every SCTP of ns-2 has.
pub(crate) trait EndpointOptions: Default {
    /// Sets them, except the primary path.
    fn apply(&self, endpoint: &mut EndpointConfig);

    /// The primary path, counted from 1.
    fn primary(&self) -> u32;

    /// Whether the file gives the delay of a SACK although no SACK is delayed.
    fn has_idle_delay(&self) -> bool;
}

macro_rules! agent_options {
    ($(#[$doc:meta])* $name:ident, $schema:literal, { $($(#[$about:meta])* $key:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, serde::Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[schemars(rename = $schema)]
        pub(crate) struct $name {
            /// The largest number of packets that leave on one ACK: ns-2's `maxburst_`; 0, which is no limit, if absent.
            pub(crate) burst_max: Option<u32>,
            /// Whether half a window keeps its fraction of a packet: ns-2's `precisionReduce_`; true if absent.
            pub(crate) precise_halving: Option<bool>,
            $($(#[$about])* pub(crate) $key: Option<$type>,)*
        }

        impl AgentOptions for $name {
            fn apply(&self, sender: &mut SenderConfig) {
                sender.burst_max = self.burst_max.unwrap_or(sender.burst_max);
                sender.precise_halving = self.precise_halving.unwrap_or(sender.precise_halving);
            }
        }
    };
}

agent_options! {
    /// The options of a one-way TCP of ns-2.
    AgentOptionKeys, "options", {}
}

agent_options! {
    /// The options of ns-2's NewReno.
    NewRenoOptionKeys, "newreno_options", {
        /// Whether only the first partial ACK of a recovery restarts the retransmission timer: ns-2's `newreno_changes1_`; true if
        /// absent.
        impatient: bool,
    }
}

agent_options! {
    /// The options of MFast.
    MFastOptionKeys, "mfast_options", {
        /// The number of streams, 1 to 255; 5 if absent.
        streams: NonZeroU8,
    }
}

impl MFastOptionKeys {
    /// The number of streams: as many as mfast-2019 runs with (its Table 1), unless the file has another one.
    pub(crate) fn streams(&self) -> NonZeroU8 {
        const TABLE_1: NonZeroU8 = NonZeroU8::new(5).expect("five is not zero");
        self.streams.unwrap_or(TABLE_1)
    }
}

agent_options! {
    /// The options of FAST multihoming.
    MultihomedOptionKeys, "multihomed_options", {
        /// The silence of a path after a timeout before the other paths retransmit its flight; never, as with `0s`, if absent.
        reinject: Text<SimSpan>,
    }
}

impl MultihomedOptionKeys {
    /// The silence after which other paths take over; `None` is never.
    pub(crate) fn reinject(&self) -> Option<SimSpan> {
        self.reinject.map(|span| span.0).filter(|span| !span.is_zero())
    }
}

macro_rules! endpoint_options {
    ($(#[$doc:meta])* $name:ident, $schema:literal, { $($(#[$about:meta])* $key:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, serde::Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[schemars(rename = $schema)]
        pub(crate) struct $name {
            /// The bytes of a data chunk, its header of 16 included: ns-2's `dataChunkSize_`; as many as fit a packet if absent.
            pub(crate) chunk: Option<u32>,
            /// The number of streams: ns-2's `numOutStreams_`; 1 if absent.
            pub(crate) streams: Option<NonZeroU16>,
            /// The receive buffer of the other end in bytes: ns-2's `initialRwnd_`; 65536 if absent.
            pub(crate) receive_buffer: Option<u32>,
            /// The first slow start threshold in bytes: ns-2's `initialSsthresh_`; 65536 if absent.
            pub(crate) ssthresh: Option<u32>,
            /// The window in packets below which an idle window is not halved; in CMT also the least `ssthresh`: ns-2's
            /// `initialCwnd_`; 2 if absent.
            pub(crate) window_floor: Option<Whole<1, 1000>>,
            /// Whether the SACK of a first packet waits for a second one: ns-2's `useDelayedSacks_`; true if absent.
            pub(crate) delayed_sack: Option<bool>,
            /// How long it waits: ns-2's `sackDelay_`; 200 ms if absent.
            pub(crate) sack_delay: Option<Text<SimSpan>>,
            /// Whether at most four packets leave on the ACK of a retransmission: ns-2's `useMaxBurst_`; true if absent.
            pub(crate) burst_limit: Option<bool>,
            /// The reports that a chunk is missing after which it is retransmitted: ns-2's `fastRtxTrigger_`; 3 if absent.
            pub(crate) missing_reports: Option<Whole<1, 1000>>,
            /// Whether chunks are delivered in the order of their arrival: ns-2's `unordered_`; false if absent.
            pub(crate) unordered: Option<bool>,
            /// The destination after all have failed: ns-2's `dormantAction_`; `hop` if absent.
            pub(crate) dormant: Option<DormantKeys>,
            /// The consecutive timeouts after which a destination is inactive: ns-2's `pathMaxRetrans_`; 5 if absent.
            pub(crate) path_errors_max: Option<u32>,
            /// The consecutive timeouts after which the association is closed: ns-2's `associationMaxRetrans_`; 10 if absent.
            pub(crate) association_errors_max: Option<u32>,
            /// The seconds between heartbeats on an idle destination, 0 for none: ns-2's `heartbeatInterval_`; 30 if absent.
            pub(crate) heartbeat: Option<u32>,
            /// The primary path, counted from 1; 1 if absent.
            pub(crate) primary: Option<u32>,
            $($(#[$about])* pub(crate) $key: Option<$type>,)*
        }

        impl EndpointOptions for $name {
            fn apply(&self, endpoint: &mut EndpointConfig) {
                use anabranch_ns2::sctp::Dormant;

                let Self { heartbeat, dormant, .. } = self;
                endpoint.chunk = self.chunk.unwrap_or(endpoint.chunk);
                endpoint.streams = self.streams.map_or(endpoint.streams, NonZeroU16::get);
                endpoint.receive_buffer = self.receive_buffer.unwrap_or(endpoint.receive_buffer);
                endpoint.ssthresh = self.ssthresh.unwrap_or(endpoint.ssthresh);
                endpoint.window_floor = self.window_floor.map_or(endpoint.window_floor, |packets| packets.0);
                endpoint.sack_delay = self.sack_delay.map(|span| span.0).or(endpoint.sack_delay);
                if self.delayed_sack == Some(false) {
                    endpoint.sack_delay = None;
                }
                endpoint.limits_bursts = self.burst_limit.unwrap_or(endpoint.limits_bursts);
                endpoint.missing_reports = self.missing_reports.map_or(endpoint.missing_reports, |reports| reports.0);
                endpoint.unordered = self.unordered.unwrap_or(endpoint.unordered);
                endpoint.dormant = dormant.map_or(endpoint.dormant, |dormant| match dormant {
                    DormantKeys::Hop => Dormant::Hop,
                    DormantKeys::Primary => Dormant::Primary,
                    DormantKeys::Last => Dormant::Last,
                });
                endpoint.path_errors_max = self.path_errors_max.unwrap_or(endpoint.path_errors_max);
                endpoint.association_errors_max =
                    self.association_errors_max.unwrap_or(endpoint.association_errors_max);
                endpoint.heartbeat_s =
                    heartbeat.map_or(endpoint.heartbeat_s, |seconds| Some(seconds).filter(|&seconds| seconds > 0));
            }

            fn primary(&self) -> u32 {
                self.primary.unwrap_or(1)
            }

            fn has_idle_delay(&self) -> bool {
                self.delayed_sack == Some(false) && self.sack_delay.is_some()
            }
        }
    };
}

endpoint_options! {
    /// The options of ns-2's SCTP.
    SctpOptionKeys, "sctp_options", {
        /// The chunks that are retransmitted to another destination: ns-2's `rtxToAlt_`; `always` if absent.
        alternate: AlternateKeys,
    }
}

endpoint_options! {
    /// The options of ns-2's concurrent multipath transfer.
    CmtOptionKeys, "cmt_options", {
        /// Split fast retransmit, whether only a later chunk of the same destination reports one missing: ns-2's
        /// `useCmtReordering_`; true if absent.
        split_fast_retransmit: bool,
        /// Whether the least unacknowledged chunk of each destination lets that destination's window grow: ns-2's `useCmtCwnd_`;
        /// true if absent.
        window_update: bool,
        /// Whether SACKs are delayed in spite of gaps: ns-2's `useCmtDelAck_`; true if absent.
        delayed_ack: bool,
        /// The destination of a lost chunk: ns-2's `eCmtRtxPolicy_`; `window` if absent.
        policy: PolicyKeys,
    }
}

/// The destination after all have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "dormant")]
pub(crate) enum DormantKeys {
    /// The next one each time.
    Hop,
    /// The primary destination.
    Primary,
    /// The last one that was used.
    Last,
}

/// The chunks that plain SCTP retransmits to another destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "alternate")]
pub(crate) enum AlternateKeys {
    /// None, as long as the destination is active.
    Never,
    /// Every lost chunk.
    Always,
    /// Chunks that timed out.
    Timeouts,
}

/// The destination to which CMT sends a lost chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "policy")]
pub(crate) enum PolicyKeys {
    /// Any destination whose window has room (RTX-ASAP).
    Asap,
    /// The destination of the original transmission (RTX-SAME).
    Same,
    /// The one with the largest slow start threshold (RTX-SSTHRESH).
    Ssthresh,
    /// The one with the least `loss_rate` of its path (RTX-LOSSRATE).
    LossRate,
    /// The one with the largest window (RTX-CWND).
    Window,
}
