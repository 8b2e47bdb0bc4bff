//! The transport of a flow: agents of ns-2, our engine, or plain traffic.

use std::num::NonZeroU8;

use anabranch_ns2::STREAM_HEADER;
use anabranch_ns2::config::{SenderConfig, SinkConfig};
use anabranch_ns2::multihome;
use anabranch_ns2::sctp::{Data, EndpointConfig};
use anabranch_proto::Config;
use anabranch_sim::traffic::{Cbr, OnOffParameters};
use anabranch_sim::{Dialogue, Drawn, Messages, Workload};

/// The transport of a flow with its settings.
#[derive(Clone, Debug)]
pub(crate) enum Transport {
    /// A one-way agent of ns-2, its sink, the streams of MFast's receiver, and its workload.
    Ns2 { sender: Box<SenderConfig>, sink: SinkConfig, streams: Option<NonZeroU8>, workload: Workload },
    /// FAST's agent of ns-2 on each of several paths, and its workload.
    Multihomed { config: Box<multihome::Config>, workload: Workload },
    /// ns-2's SCTP with the same settings at both ends, its primary path, and its workload.
    Sctp { config: Box<EndpointConfig>, primary: usize, workload: Workload },
    /// Our own transport with the same settings at both ends, and its workload.
    Engine { config: Box<Config>, workload: Workload },
    /// Packets at a constant rate, without acknowledgements.
    Cbr(Cbr),
    /// Bursts between silences, without acknowledgements.
    OnOff(OnOffParameters),
}

impl Transport {
    /// The bytes of payload in a packet; 0 for `cbr` and `on_off`.
    pub(crate) fn payload(&self) -> u32 {
        match self {
            Self::Ns2 { sender, streams: None, .. } => sender.payload,
            Self::Ns2 { sender, streams: Some(_), .. } => sender.payload - STREAM_HEADER,
            Self::Multihomed { config, .. } => config.agent.payload,
            Self::Sctp { config, .. } => config.chunk - Data::HEADER,
            Self::Engine { config, .. } => config.payload(),
            Self::Cbr(_) | Self::OnOff(_) => 0,
        }
    }

    /// Whether its source has variables: a window and an RTT.
    pub(crate) fn has_variables(&self) -> bool {
        !matches!(self, Self::Cbr(_) | Self::OnOff(_))
    }

    /// Whether it has a stream of this number.
    pub(crate) fn has_stream(&self, stream: u8) -> bool {
        match self {
            Self::Ns2 { streams: Some(streams), .. } => (1..=streams.get()).contains(&stream),
            Self::Sctp { config, .. } => (1..=config.streams).contains(&stream.into()),
            Self::Engine { config, .. } => (1..=config.streams).contains(&stream.into()),
            _ => false,
        }
    }

    /// The workload; endless for `cbr` and `on_off`.
    pub(crate) fn workload(&self) -> Workload {
        match self {
            Self::Ns2 { workload, .. }
            | Self::Multihomed { workload, .. }
            | Self::Sctp { workload, .. }
            | Self::Engine { workload, .. } => *workload,
            Self::Cbr(_) | Self::OnOff(_) => Workload::Bulk,
        }
    }

    /// The bytes of the workload, if it ends.
    pub(crate) fn offered(&self) -> Option<u64> {
        match self.workload() {
            Workload::Bulk => None,
            Workload::Fixed { bytes } => Some(bytes),
            Workload::Messages(messages) => Some(messages.count?.saturating_mul(messages.bytes)),
            // These are random.
            Workload::Drawn(_) | Workload::Dialogue(_) => None,
        }
    }

    /// Whether its sending times or sizes are random.
    pub(crate) fn is_random(&self) -> bool {
        match self {
            Self::Ns2 { workload, .. } | Self::Multihomed { workload, .. } | Self::Engine { workload, .. } => {
                is_drawn(*workload)
            }
            Self::Sctp { workload, .. } => is_drawn(*workload),
            Self::Cbr(_) => false,
            Self::OnOff(_) => true,
        }
    }
}

/// Whether times or sizes of a workload are random.
fn is_drawn(workload: Workload) -> bool {
    match workload {
        Workload::Bulk | Workload::Fixed { .. } => false,
        Workload::Messages(Messages { spacing, .. }) => spacing.every_mean.is_some(),
        Workload::Drawn(Drawn { sizes, spacing, .. }) => sizes.is_random() || spacing.every_mean.is_some(),
        Workload::Dialogue(Dialogue { sizes, think, .. }) => sizes.is_random() || !think.is_zero(),
    }
}

/// The largest window that TCP can announce ([rfc-7323] sec. 2.3).
pub(crate) const RBUF_MAX: u64 = 1 << 30;
