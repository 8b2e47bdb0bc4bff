//! How a path detects losses: the requested method, as far as the peer supports it. `rack` and `control::dup_acks` implement it.

/// How losses are detected. Without SACK, duplicate ACKs are used in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDetection {
    /// By time, with an adaptive reordering window and tail loss probes: [rfc-8985].
    Rack,
    /// By counting SACKed segments that were sent later: [rfc-6675].
    DupAcks,
}

/// The loss detection of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detection {
    /// By time (RACK), with a tail loss probe.
    Rack,
    /// By SACKed segments that were sent later.
    Overtaken,
    /// By duplicate ACKs of a peer without SACK.
    NewReno,
}

impl Detection {
    /// The requested detection, as far as the peer supports it.
    pub(crate) fn of(wanted: LossDetection, has_sack: bool) -> Self {
        match wanted {
            _ if !has_sack => Self::NewReno,
            LossDetection::Rack => Self::Rack,
            LossDetection::DupAcks => Self::Overtaken,
        }
    }
}
