//! The settings of a connection.

use anabranch_cc::Settings;
use anabranch_units::{Rate, Span};

use crate::options::Options;
use crate::path::PATHS_MAX;
use crate::receive::acks::AckPolicy;
use crate::receive::arrival_buffer::ArrivalBuffer;
use crate::recovery::detection::LossDetection;
use crate::recovery::pacer::Pacing;
use crate::recovery::timing::Timing;
use crate::scheduler::Scheduling;
use crate::segment::{HEADERS, StreamHeader};

/// The settings of a connection. They are checked once, when a connection is made.
#[derive(Clone, Debug)]
pub struct Config {
    /// The form in which segments are sent.
    pub form: Form,
    /// The congestion law of each path, and its parameters.
    pub law: Settings,
    /// Streams requested or granted in each direction, at most [`crate::Sid::STREAMS_MAX`]; 0 means plain TCP. The TCP form has at
    /// most 255 streams, and so has a connection to a peer without [`crate::Features::MANY_STREAMS`].
    pub streams: u16,
    /// So many of our SYNs, or SYN-ACKs, request or grant streams, as a middlebox may drop those that do; later ones ask for plain TCP.
    pub stream_offers: u32,
    /// Whether segments of streams tell their extent, if the peer agrees, so that they arrive whole where a middlebox splits or joins segments. In the TCP
    /// form only. It takes nine bytes of each segment.
    pub extents: bool,
    /// The largest sequence space of a segment in bytes, the stream header included; at least [`Config::MSS_MIN`]. In the sealed
    /// form a path with a smaller MTU has shorter segments.
    pub mss: u16,
    /// The size of datagrams in the sealed form. In the TCP form segments have [`Config::mss`] on every path, and the host must
    /// know the MTU of its paths.
    pub path_mtu: PathMtu,
    /// Size of the receive buffer in bytes (rbuf): data that has arrived and was not read. At least one segment.
    pub receive_buffer: u64,
    /// The size up to which the receive buffer grows. It grows while the application reads more than a quarter of it in a round
    /// trip, or a stream has less credit than its reader needs. The buffer is constant if this is at most [`Config::receive_buffer`].
    pub receive_buffer_max: u64,
    /// What this host can hold of data between its arrival and the engine, in the buffer of a socket. If the RTT of every path has been
    /// below a millisecond within the last ten seconds, the peer may send no more than this connection's part of it beyond what has arrived: a
    /// path that short holds little, so all of it may wait in the socket at once, and what does not fit there is lost.
    pub arrival_buffer: ArrivalBuffer,
    /// The share of the receive buffer that one stream may take.
    pub stream_buffer: StreamBuffer,
    /// Bytes that may wait to be sent on each stream. At least one byte. Without flow-control credit less may wait: an equal share
    /// of an eighth of [`Config::send_memory`].
    pub send_buffer: u64,
    /// The size up to which the send buffer grows. It grows if the paths carry [`Config::send_buffer`] in less than 10 ms, the
    /// time for which a busy machine may delay an application. The buffer is constant if this is at most [`Config::send_buffer`].
    pub send_buffer_max: u64,
    /// The largest memory for written and unacknowledged data of all streams, including the bookkeeping. At most a quarter of it
    /// may wait to be sent. Sent data takes what its paths need, but never more than the rest, whatever window the peer
    /// announces.
    pub send_memory: u64,
    /// Bytes of datagrams that wait to be sent, each with 128 more than it has. If there is no room for a new one, the oldest ones are dropped.
    pub datagram_send_buffer: u64,
    /// The same for datagrams that have arrived and wait to be read. With 0 datagrams are not negotiated, and neither end can send any.
    pub datagram_receive_buffer: u64,
    /// The largest number of paths at a time, 1 to [`crate::PATHS_MAX`]. With one, the connection does not negotiate paths and
    /// cannot change its address.
    pub paths_max: u8,
    /// How the scheduler spreads data over the paths.
    pub scheduling: Scheduling,
    /// Whether segments in the sealed form are sent as ECN-capable, so that routers mark them instead of dropping them
    /// ([rfc-3168]). ECN is switched off on a path that does not preserve marks.
    pub ecn: bool,
    /// The path on which a lost segment is retransmitted.
    pub repair: Repair,
    /// Whether other paths take over from a silent one.
    pub failover: Failover,
    /// When to acknowledge, unless the peer requests another acknowledgement frequency.
    pub acks: AckPolicy,
    /// The largest number of segments per ACK that is requested from the peer, if a round trip has many segments; 1 requests
    /// nothing. While the window grows fast, and where the way back is narrow, it may be more. In the sealed form only.
    pub ack_requests: u8,
    /// Segments that arrive within this time may share an ACK, too, but at most 32 of them: a path of 100 Mbit/s has one of 1,420 bytes in
    /// 114 us, one of 10 Gbit/s 88 in 100 us.
    pub ack_interval: Span,
    /// How losses are detected.
    pub loss_detection: LossDetection,
    /// The least variance term of the retransmission timeout. The term is added to SRTT.
    pub rto_min: Span,
    /// How the departures of segments are spread over time.
    pub pacing: Pacing,
    /// The largest rate of the data that is sent, on all paths together, in bytes of IP packets; retransmissions count. `None` is no limit.
    /// Acknowledgements, handshakes and probes are neither delayed nor counted.
    pub rate_max: Option<Rate>,
    /// The largest delay of the host's timers when the machine is not busy. It sets the size of a paced burst, and the time for
    /// which the pacer makes up after a late timer.
    pub timer: Span,
    /// Whether a short segment waits for more data while data is unacknowledged (Nagle's algorithm, [rfc-9293] sec. 3.7.4).
    pub nagle: bool,
    /// Whether segments carry timestamps, if the peer agrees. They take twelve bytes of each segment ([rfc-7323]).
    pub timestamps: bool,
    /// The time without progress after which the connection is given up; `None` is never. Every new acknowledgement is progress,
    /// and so is an answer to a zero-window probe.
    pub user_timeout: Option<Span>,
    /// The time without any segment from the peer after which the connection is given up, idle or not; `None` is never. With
    /// [`Config::keep_alive`] a live peer answers keep-alive probes. FIN-WAIT-2, which only the peer can end, always has a limit.
    pub idle_timeout: Option<Span>,
    /// The schedule of keep-alive probes to a silent peer; `None` sends none.
    pub keep_alive: Option<KeepAlive>,
    /// How long the end that closes first keeps the connection in TIME-WAIT: two maximum segment lifetimes.
    pub time_wait: Span,
}

/// The form in which segments are sent ([`crate::wire`], [`crate::seal`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// TCP with options. Anyone on the path can manipulate the connection, and the peer can acknowledge data that it has not
    /// received.
    #[default]
    Tcp,
    /// Sealed datagrams. Each segment has a nonce, and an acknowledgement carries the sum of the nonces that it acknowledges. If
    /// a peer acknowledges data that it has not received, this is detected with probability 65,535/65,536, and the connection
    /// ends.
    Sealed,
}

/// The path MTU, in bytes of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathMtu {
    /// Packets have at most this size on every path; nothing is probed.
    Fixed {
        /// Bytes, including the IP header.
        packet: u32,
    },
    /// 1200 bytes of UDP payload at first, then what probes have confirmed ([rfc-8899]). The driver must prevent IP
    /// fragmentation.
    Searched {
        /// The largest packet that is probed, in bytes.
        packet_max: u32,
    },
}

impl PathMtu {
    /// The smallest packet limit of any path: IPv6's minimum MTU ([rfc-8200] sec. 5).
    pub const PACKET_MIN: u32 = 1280;

    /// The largest IP packet, in bytes.
    pub const PACKET_MAX: u32 = 65_535;

    /// Probes sizes up to Ethernet's MTU.
    pub const USUAL: Self = Self::Searched { packet_max: 1500 };
}

/// The path on which a lost segment is retransmitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repair {
    /// Its own path ([multihoming-2010] Table 1), unless that path is given up.
    #[default]
    SamePath,
    /// Any path with room in its window, such as a faster one.
    AnyPath,
}

/// Whether other paths take over from a silent one. It has no effect with a single path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Failover {
    /// A path is suspected ("potentially failed", [rfc-7829]) if it has not answered for about two probe timeouts ([rfc-9002]
    /// sec. 6.2.1), a probe included. It carries no data until it answers a challenge, and its data in flight is retransmitted on
    /// other paths. If a slow path blocks the peer's window, its data in flight is also retransmitted on a faster path, without
    /// waiting for silence.
    #[default]
    OnSilence,
    /// Never. Data in flight on a silent path waits for that path's own retransmissions, and later data of the same stream waits,
    /// too ([multihoming-2010] Table 1). If the path stays dead, the connection stops when the peer's buffer is full, and
    /// [`Config::user_timeout`] ends it. Other paths still retransmit lost segments with [`Repair::AnyPath`]. They take over
    /// everything once either end removes the path, or the peer's address changes. The backup paths of
    /// [`Scheduling::Backup`](crate::Scheduling::Backup) are not used.
    Never,
}

/// The schedule of keep-alive probes ([rfc-9293] sec. 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// The silence before the first probe.
    pub idle: Span,
    /// The time between two probes.
    pub interval: Span,
    /// The number of unanswered probes after which the connection is given up.
    pub probes_max: u32,
}

impl KeepAlive {
    /// [rfc-9293] sec. 3.8.4: at least two hours by default. The other values are those of common systems.
    pub const USUAL: Self = Self { idle: Span::from_secs(7200), interval: Span::from_secs(75), probes_max: 9 };
}

/// The share of the receive buffer that unread data of one stream may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamBuffer {
    /// A dynamic share that always leaves room for every other stream, so an unread stream never blocks another one. A quarter of
    /// the initial buffer, and half of its growth, is divided evenly among the streams. Of the rest, a stream may have four round
    /// trips of what is read of it, and at most two thirds of what the others leave; less if several hold parts of it. If there is
    /// no other stream, it may have all of the buffer.
    Shared,
    /// A fixed number of bytes, at most 2^31. If the sum over all streams exceeds the buffer, unread streams can block the
    /// others.
    Bytes(u64),
}

/// Why a configuration is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// The segment size is below [`Config::MSS_MIN`].
    SegmentTooSmall,
    /// A buffer is smaller than a segment.
    BufferTooSmall,
    /// The acknowledgement policy acknowledges nothing.
    NoAcks,
    /// The number of paths is zero or above [`PATHS_MAX`].
    NoPaths,
    /// The packet size is below [`PathMtu::PACKET_MIN`] bytes.
    PacketTooSmall,
    /// The rate limit is below [`Config::RATE_MIN`].
    RateTooSmall,
}

impl Config {
    /// The least rate limit: at 10 kbit/s a full packet of Ethernet takes 1.2 s, and retransmission timeouts begin at a second.
    pub const RATE_MIN: Rate = Rate::from_bits_per_second(10_000);

    /// The least MSS that is useful: [rfc-9293] sec. 3.7.1 has 536, and a record with its header needs twelve bytes.
    pub const MSS_MIN: u16 = 64;

    /// The largest size that the receive buffer can have.
    pub(crate) fn receive_buffer_ceiling(&self) -> u64 {
        self.receive_buffer.max(self.receive_buffer_max)
    }

    pub(crate) fn timing(&self) -> Timing {
        Timing { rto_min: self.rto_min, pacing: self.pacing, timer: self.timer }
    }

    /// Bytes of payload in a full segment between two ends with these settings.
    pub fn payload(&self) -> u32 {
        let stream_header = if self.streams > 0 { StreamHeader::LEN } else { 0 };
        let options = Options::of_data(self.timestamps, self.extents && self.form == Form::Tcp && self.streams > 0);
        u32::from(self.mss).saturating_sub(stream_header + options)
    }

    /// The same settings, with path MTU discovery up to packets of `packet_max` bytes, such as 9000, or 65,535 within one
    /// machine.
    #[must_use]
    pub fn with_packet_max(self, packet_max: u32) -> Self {
        let mss = packet_max.saturating_sub(HEADERS).clamp(Self::MSS_MIN.into(), u16::MAX.into());
        Self { mss: mss as u16, path_mtu: PathMtu::Searched { packet_max }, ..self }
    }

    /// Checks the settings as [`crate::Connection::connect`] and [`crate::Connection::listen`] do.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.mss < Self::MSS_MIN {
            return Err(ConfigError::SegmentTooSmall);
        }
        let (PathMtu::Fixed { packet } | PathMtu::Searched { packet_max: packet }) = self.path_mtu;
        if packet < PathMtu::PACKET_MIN {
            return Err(ConfigError::PacketTooSmall);
        }
        if self.receive_buffer < u64::from(self.mss) || self.send_buffer == 0 {
            return Err(ConfigError::BufferTooSmall);
        }
        if !(1..=PATHS_MAX).contains(&self.paths_max.into()) {
            return Err(ConfigError::NoPaths);
        }
        if self.rate_max.is_some_and(|rate| rate < Self::RATE_MIN) {
            return Err(ConfigError::RateTooSmall);
        }
        if self.acks.every == 0 { Err(ConfigError::NoAcks) } else { Ok(()) }
    }

    /// The default settings with this law.
    pub fn new(law: Settings) -> Self {
        Self {
            form: Form::Tcp,
            law,
            streams: 16,
            stream_offers: u32::MAX,
            extents: false,
            // A packet of 1500 B.
            mss: 1500 - HEADERS as u16,
            path_mtu: PathMtu::USUAL,
            ecn: true,
            receive_buffer: 16 << 20,
            receive_buffer_max: 0,
            arrival_buffer: ArrivalBuffer::default(),
            stream_buffer: StreamBuffer::Shared,
            send_buffer: 1 << 20,
            send_buffer_max: 0,
            // Unacknowledged data may be three times the bandwidth-delay product of 10 Gbit/s and 200 ms.
            send_memory: 1 << 30,
            // 84 ms at 100 Mbit/s.
            datagram_send_buffer: 1 << 20,
            datagram_receive_buffer: 1 << 20,
            paths_max: 1,
            scheduling: Scheduling::default(),
            repair: Repair::default(),
            failover: Failover::default(),
            acks: AckPolicy::EACH,
            // [rfc-9293] sec. 3.8.6.3. A law that keeps alpha segments queued needs an alpha several times the segments per ACK,
            // to distinguish the queue from a burst of ACKs. With an ACK for 4 segments FAST loses 4 % of a path's capacity; with
            // an alpha of 200 it loses nothing even with 16.
            ack_requests: 2,
            // The times of arrivals are not finer where the rate is high: network cards and kernels deliver trains of up to 64 segments.
            ack_interval: Span::from_micros(100),
            loss_detection: LossDetection::Rack,
            rto_min: Span::from_millis(200),
            pacing: Pacing::Always,
            rate_max: None,
            // The granularity of poll and of tokio.
            timer: Span::from_millis(1),
            nagle: false,
            timestamps: false,
            keep_alive: None,
            // [rfc-9293] sec. 3.8.3: at least 100 s.
            user_timeout: Some(Span::from_secs(300)),
            // [rfc-9000] sec. 10.1 leaves the value to both ends; common servers use half a minute to a few minutes. It bounds
            // how long a vanished peer occupies memory.
            idle_timeout: Some(Span::from_secs(600)),
            // [rfc-9293] sec. 3.4.2: a segment lives for two minutes; common systems assume half a minute.
            time_wait: Span::from_secs(60),
        }
    }
}
