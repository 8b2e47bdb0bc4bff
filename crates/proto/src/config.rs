//! What a connection can be set to.

use anabranch_cc::Settings;
use anabranch_units::Span;

use crate::options::Timestamps;
use crate::receive::acks::AckPolicy;
use crate::recovery::control::Timing;
use crate::recovery::pacer::Pacing;
use crate::scheduler::Scheduling;
use crate::segment::{HEADERS, StreamHeader};

/// What a connection can be set to. Checked once, when a connection is made.
#[derive(Clone, Debug)]
pub struct Config {
    /// In which form segments travel.
    pub form: Form,
    /// The congestion law of each path, and its parameters.
    pub law: Settings,
    /// Streams wanted or granted in each direction, at most [`crate::Sid::STREAMS_MAX`]; 0 speaks plain TCP. In the TCP form there are 255, and no more with a
    /// peer that has no more.
    pub streams: u16,
    /// The most sequence space of a segment, the stream header included; at least [`Config::MSS_MIN`]. In the sealed form a segment has
    /// less if its path does not carry as much.
    pub mss: u16,
    /// How long datagrams of the sealed form may be. Segments of the TCP form have [`Config::mss`] on every path: there it is for the
    /// host to know.
    pub path_mtu: PathMtu,
    /// rbuf: bytes that may arrive and wait, at least one segment.
    pub receive_buffer: u64,
    /// It grows up to so many bytes where the application reads more in a round trip than a quarter of it; never if this is no more than
    /// [`Config::receive_buffer`].
    pub receive_buffer_max: u64,
    /// How much of that one stream may take.
    pub stream_buffer: StreamBuffer,
    /// Bytes that may wait to be sent on each stream, at least one.
    pub send_buffer: u64,
    /// So many they may become where paths carry the usual number in less than 10 ms, for which an application may be kept waiting by its machine;
    /// never more if this is no more than [`Config::send_buffer`].
    pub send_buffer_max: u64,
    /// The most memory for what has been written on all streams and not been acknowledged, with what it costs to keep it. A
    /// quarter of it may wait to be sent. What has been sent takes only what its paths need, but however much the peer offers to
    /// take, no more than the rest.
    pub send_memory: u64,
    /// The most paths at a time, 1 to [`crate::PATHS_MAX`]. With one, the connection speaks of none: then it cannot move either.
    pub paths_max: u8,
    /// How data is spread over them.
    pub scheduling: Scheduling,
    /// Whether routers may mark what leaves in the sealed form instead of dropping it ([rfc-3168]). A path that does not keep marks is used
    /// without.
    pub ecn: bool,
    /// Where lost segments are sent again.
    pub repair: Repair,
    /// Whether other paths take over from a silent one.
    pub failover: Failover,
    /// When to acknowledge, unless the peer asks for something else.
    pub acks: AckPolicy,
    /// Where a round trip takes many segments, the peer is asked to acknowledge so many of them at once, at most; 1 asks nothing. In the
    /// sealed form only.
    pub ack_requests: u8,
    /// How losses are found.
    pub loss_detection: LossDetection,
    /// The least that is added to SRTT for the retransmission timeout.
    pub rto_min: Span,
    /// How what leaves is spread over time.
    pub pacing: Pacing,
    /// How late the timers of the host ring, at most, if nothing else is late: what leaves at one moment, and what is made up for when a timer was late,
    /// hang on it.
    pub timer: Span,
    /// Whether a short segment waits as long as something is unacknowledged, for more to fill it ([rfc-9293] sec. 3.7.4:
    /// Nagle's algorithm).
    pub nagle: bool,
    /// Whether segments say when they left, if the peer wants that, too. Takes twelve bytes of each ([rfc-7323]).
    pub timestamps: bool,
    /// How long what is sent may get nowhere before the connection is given up; never if none. A loss, however heavy, never
    /// ends a connection as long as anything gets through, nor does a window that stays shut.
    pub user_timeout: Option<Span>,
    /// How long the peer may say nothing before the connection is given up, whether anything is sent or not; as long as it likes if none.
    /// With [`Config::keep_alive`] a peer that is there says something. In FIN-WAIT-2, where only the peer can end the connection, there is
    /// always such a limit.
    pub idle_timeout: Option<Span>,
    /// How a peer that says nothing is asked whether it is there; not at all if none.
    pub keep_alive: Option<KeepAlive>,
    /// How long the end that closes first remembers the connection: two maximum segment lifetimes.
    pub time_wait: Span,
}

/// In which form segments travel ([`crate::wire`], [`crate::seal`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// As TCP. Who sees the path can do with the connection what he likes, and the peer can acknowledge what it has not got.
    #[default]
    Tcp,
    /// In sealed datagrams. There each segment has a nonce, and an acknowledgement the sum of those that it acknowledges: a peer that
    /// acknowledges what it has not got ends the connection, with 65,535 to 65,536.
    Sealed,
}

/// What a path carries: bytes of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathMtu {
    /// Packets of so many bytes, on every path, and nothing is asked.
    Fixed {
        /// The bytes, IP's header included.
        packet: u32,
    },
    /// 1200 bytes of UDP's payload at first, and later as much as probes have shown ([rfc-8899]). Packets must not be fragmented on
    /// the way: the driver sees to that.
    Searched {
        /// No longer packets are tried.
        packet_max: u32,
    },
}

impl PathMtu {
    /// No path carries less: IPv6's least ([rfc-8200] sec. 5).
    pub const PACKET_MIN: u32 = 1280;

    /// No packet has more bytes.
    pub const PACKET_MAX: u32 = 65_535;

    /// Ethernet's packets are the longest.
    pub const USUAL: Self = Self::Searched { packet_max: 1500 };
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

/// Whether other paths take over from a silent one. With a single path there is nobody to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Failover {
    /// When a path has answered nothing for about two probe timeouts ([rfc-9002] sec. 6.2.1), a probe among what it did not answer,
    /// it is suspected, as [rfc-7829] calls a path potentially failed: it carries no data until it answers a challenge, and what
    /// it had in flight leaves on others. So does, before any silence, what a slow path has in flight while it keeps the peer's
    /// window shut, if a faster one brings it sooner.
    #[default]
    OnSilence,
    /// Never: what left on a path waits for it, for its own repairs and retransmission timeouts, and what comes after it in its
    /// stream waits, too ([multihoming-2010] Table 1). If the path stays dead, the connection stops when the peer's buffer is full,
    /// and [`Config::user_timeout`] ends it. What is found lost may leave on others all the same with [`Repair::AnyPath`], and so
    /// may everything once the path is removed by either end or the peer is heard of at another address in its place. With
    /// [`Scheduling::Backup`](crate::Scheduling::Backup) the paths in reserve are of no use.
    Never,
}

/// How losses are found. With a peer that has no SACK, by duplicate ACKs in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDetection {
    /// By time, learning how much the path reorders, with a probe of the tail: [rfc-8985].
    Rack,
    /// By counting what arrived of what left later: [rfc-6675].
    DupAcks,
}

/// How a silent peer is asked whether it is there ([rfc-9293] sec. 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// How long it may say nothing.
    pub idle: Span,
    /// From one question to the next.
    pub interval: Span,
    /// So many may have no answer.
    pub probes_max: u32,
}

impl KeepAlive {
    /// [rfc-9293] sec. 3.8.4: no less than two hours by default. The rest is what common systems do.
    pub const USUAL: Self = Self { idle: Span::from_secs(7200), interval: Span::from_secs(75), probes_max: 9 };
}

/// How much of the receive buffer one stream may take before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamBuffer {
    /// As much as leaves something for every other stream: one that is not read never keeps another from going on. Each has an
    /// even part of a quarter of the buffer for good, and of what the others leave of the rest two thirds. So a single busy
    /// stream gets about half of the buffer, or all if there is no other.
    Shared,
    /// So many bytes, at most 2^31, whatever the others take. If all streams together can take more than the buffer has, those
    /// that are not read may stop the others; with as much as the buffer has, one may.
    Bytes(u64),
}

impl Config {
    /// Less is no use: [rfc-9293] sec. 3.7.1 has 536, and a record with its header needs twelve.
    pub const MSS_MIN: u16 = 64;

    /// The most that the receive buffer ever holds.
    pub(crate) fn receive_buffer_ceiling(&self) -> u64 {
        self.receive_buffer.max(self.receive_buffer_max)
    }

    pub(crate) fn timing(&self) -> Timing {
        Timing { rto_min: self.rto_min, pacing: self.pacing, timer: self.timer }
    }

    /// Bytes of content in a full segment between two ends that are set like this.
    pub fn payload(&self) -> u32 {
        let stream_header = if self.streams > 0 { StreamHeader::LEN } else { 0 };
        let timestamps = if self.timestamps { Timestamps::SPACE } else { 0 };
        u32::from(self.mss).saturating_sub(stream_header + timestamps)
    }

    /// The same for paths that may carry packets of up to so many bytes, such as 9000, or 65,535 within a machine. They are looked for.
    #[must_use]
    pub fn with_packet_max(self, packet_max: u32) -> Self {
        let mss = packet_max.saturating_sub(HEADERS).clamp(Self::MSS_MIN.into(), u16::MAX.into());
        Self { mss: mss as u16, path_mtu: PathMtu::Searched { packet_max }, ..self }
    }

    /// The usual settings with this law.
    pub fn new(law: Settings) -> Self {
        Self {
            form: Form::Tcp,
            law,
            streams: 16,
            // A packet of 1500 B.
            mss: 1500 - HEADERS as u16,
            path_mtu: PathMtu::USUAL,
            ecn: true,
            receive_buffer: 16 << 20,
            receive_buffer_max: 0,
            stream_buffer: StreamBuffer::Shared,
            send_buffer: 1 << 20,
            send_buffer_max: 0,
            // Three times the bandwidth-delay product of 10 Gbit/s and 200 ms may be unacknowledged.
            send_memory: 1 << 30,
            paths_max: 1,
            scheduling: Scheduling::default(),
            repair: Repair::default(),
            failover: Failover::default(),
            acks: AckPolicy::EACH,
            // [rfc-9293] sec. 3.8.6.3. A law that keeps alpha segments in a queue needs an alpha of several times as many to tell it from
            // what comes at once: with 4 FAST loses 4 % of a path, with an alpha of 200 none with 16.
            ack_requests: 2,
            loss_detection: LossDetection::Rack,
            rto_min: Span::from_millis(200),
            pacing: Pacing::Always,
            // That of poll and of tokio.
            timer: Span::from_millis(1),
            nagle: false,
            timestamps: false,
            keep_alive: None,
            // [rfc-9293] sec. 3.8.3: at least 100 s.
            user_timeout: Some(Span::from_secs(300)),
            // [rfc-9000] sec. 10.1 leaves it to both ends, and common servers take half a minute to some; a peer that has vanished
            // holds memory for no longer than this.
            idle_timeout: Some(Span::from_secs(600)),
            // [rfc-9293] sec. 3.4.2 has two minutes for the lifetime of a segment; common systems take half a minute.
            time_wait: Span::from_secs(60),
        }
    }
}
