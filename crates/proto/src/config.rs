//! What a connection can be set to.

use anabranch_cc::Settings;
use anabranch_units::Span;

use crate::receive::acks::AckPolicy;
use crate::scheduler::Scheduling;
use crate::segment::HEADERS;

/// What a connection can be set to. Checked once, when a connection is made.
#[derive(Clone, Debug)]
pub struct Config {
    /// The congestion law of each path, and its parameters.
    pub law: Settings,
    /// Streams wanted or granted in each direction; 0 speaks plain TCP.
    pub streams: u8,
    /// The most sequence space of a segment, the stream header included; at least [`Config::MSS_MIN`].
    pub mss: u16,
    /// rbuf: bytes that may arrive and wait, at least one segment.
    pub receive_buffer: u64,
    /// Bytes that may wait to be sent on each stream, at least one.
    pub send_buffer: u64,
    /// The most paths at a time, 1 to [`crate::PATHS_MAX`]. With one, the connection speaks of none: then it cannot move either.
    pub paths_max: u8,
    /// How data is spread over them.
    pub scheduling: Scheduling,
    /// Where lost segments are sent again.
    pub repair: Repair,
    /// What the tokens are made from by which a path is validated. Nobody else should be able to guess it.
    pub path_seed: u64,
    /// When to acknowledge.
    pub acks: AckPolicy,
    /// The least that is added to SRTT for the retransmission timeout.
    pub rto_margin: Span,
    /// How long the peer may say nothing to what is sent before the connection is given up; never if none. A loss, however
    /// heavy, never ends a connection as long as anything gets through.
    pub user_timeout: Option<Span>,
    /// How long the end that closes first remembers the connection: two maximum segment lifetimes.
    pub time_wait: Span,
}

/// Where a lost segment is sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repair {
    /// On its own path ([multihoming-2010] Table 1), unless that is given up.
    #[default]
    SamePath,
    /// On any path that has room, its own or one that is faster.
    AnyPath,
}

impl Config {
    /// Less is no use: [rfc-9293] sec. 3.7.1 has 536, and a record with its header needs twelve.
    pub const MSS_MIN: u16 = 64;

    /// The usual settings with this law.
    pub fn new(law: Settings) -> Self {
        Self {
            law,
            streams: 16,
            // A packet of 1500 B.
            mss: 1500 - HEADERS as u16,
            receive_buffer: 16 << 20,
            send_buffer: 1 << 20,
            paths_max: 1,
            scheduling: Scheduling::default(),
            repair: Repair::default(),
            path_seed: 0,
            acks: AckPolicy::EACH,
            rto_margin: Span::from_millis(200),
            // [rfc-9293] sec. 3.8.3: at least 100 s.
            user_timeout: Some(Span::from_secs(300)),
            // [rfc-9293] sec. 3.4.2 has two minutes for the lifetime of a segment; common systems take half a minute.
            time_wait: Span::from_secs(60),
        }
    }
}
