//! The settings of an endpoint.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anabranch_cc::{Settings, registry};
use anabranch_proto::endpoint::{self, EndpointConfig, SHARDS_MAX, ServerConfig, Shares};
use anabranch_proto::seal::{Cipher, CipherPreference, ListenerConfig, SealConfig};
use anabranch_proto::{AckPolicy, KeepAlive, PathMtu, Repair, Scheduling};
use anabranch_units::{Rate, Span};

use crate::clock::span;
use crate::error::BindError;
use crate::key::PublicKey;
use crate::socket::PACKET_MAX;

/// The settings of an endpoint. The defaults suit most programs.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which peers may connect; `None` accepts no connections.
    pub admission: Option<Admission>,
    /// The largest number of connections. If it is reached, the address that has most gives up its idlest connection for a new one
    /// of another.
    pub connections_max: usize,
    /// Incoming connections of one public key. Beyond them, one that was idle for 30 s gives way, or the new one is refused:
    /// [`crate::ConnectError::Full`].
    pub connections_per_key: usize,
    /// The same for one IPv4 address, or the first 64 bits of an IPv6 address.
    pub connections_per_address: usize,
    /// The congestion law of each path, and its parameters.
    pub law: Settings,
    /// Concurrent streams of a connection in each direction: up to 4,080, in steps of 16 above 255. The first 255 have more
    /// initial credit than the others.
    pub streams: u16,
    /// Paths of a connection, 1 to 8. With one path, several paths are not negotiated, and the connection survives a change of
    /// neither end's address.
    pub paths: u8,
    /// The initial receive window of a connection in bytes. If the application does not read, the sender stops at this size. Data
    /// that is read at once takes no memory.
    pub receive_buffer: u64,
    /// The largest receive window in bytes. The window grows to four times the bytes read in a round trip, and doubles if a stream
    /// has less credit than its reader needs. It never shrinks, so an application that reads fast and then stops may hold this many
    /// bytes.
    pub receive_buffer_max: u64,
    /// Bytes that may wait to be sent on a stream. When they are reached, writes wait. Without flow-control credit only 16 kB may
    /// wait, so that an unread stream does not hold the memory of others.
    pub send_buffer: u64,
    /// The size up to which the send buffer grows. It grows if the paths carry more than the send buffer in 10 ms.
    pub send_buffer_max: u64,
    /// The largest memory of a connection for written and unacknowledged data, in bytes.
    pub send_memory: u64,
    /// Bytes of datagrams that may wait to be sent, each with 128 more than it has. A new one that needs room takes it from the
    /// oldest, which are dropped.
    pub datagram_send_buffer: u64,
    /// The same for datagrams that have arrived and wait to be read. With 0 this end takes no datagrams, and can send none.
    pub datagram_receive_buffer: u64,
    /// The timeout of a handshake, and of the validation of a path.
    pub connect_timeout: Duration,
    /// The silence of the peer after which the connection is given up.
    pub idle_timeout: Duration,
    /// The idle time before a keep-alive probe; at most half of the idle timeout. `None` sends no probes, so the idle timeout
    /// ends an idle connection.
    pub keep_alive: Option<Duration>,
    /// The requested size of the socket's buffers in bytes; the system may give less.
    pub socket_buffer: usize,
    /// The largest packet in bytes, with its IP header, that path MTU discovery looks for, from 1,280 to 9,000. With 9,000, networks
    /// with jumbo frames carry a byte for less processor time. A connection has the smaller value of its two ends; each path then has
    /// what probes find on it.
    pub packet_max: u32,
    /// The largest rate at which this end sends data on a connection, on all its paths together, in bytes of IP packets; retransmissions count. At least
    /// 10 kbit/s. `None` is no limit. Acknowledgements, handshakes and probes are neither delayed nor counted.
    pub rate_max: Option<Rate>,
    /// The cipher that this end prefers for connections that it opens, if the other end supports it. `None` takes AES-128-GCM if both
    /// machines have instructions for it, otherwise ChaCha20-Poly1305. AEGIS-128L takes about half of the time of AES-128-GCM; fewer
    /// have studied it.
    pub cipher: Option<Cipher>,
    /// How data is distributed over several paths; [`Scheduling::Redundant`] and [`Scheduling::Latency`] send it twice, for who fears
    /// delay more than cost. Each end decides for what it sends.
    pub scheduling: Scheduling,
    /// The number of engines among which connections are divided, at most 64. Each has a lock and a task of its own, so that as many
    /// cores can work for different connections. `None`: as many as the runtime has threads. An endpoint with logs has one.
    pub shards: Option<usize>,
    /// The folder for qlogs of all connections; see [`crate::QlogReport`]. `None` writes no logs.
    pub qlog: Option<PathBuf>,
}

/// Which peers may open a connection to an endpoint. Other peers get no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Every peer with a ticket, which contains the public key.
    Ticket,
    /// Peers that have a ticket and prove one of these keys.
    Keys(BTreeSet<PublicKey>),
}

impl Default for Config {
    fn default() -> Self {
        Self {
            admission: None,
            connections_max: 1024,
            connections_per_key: Shares::default().key_max,
            connections_per_address: Shares::default().network_max,
            law: Settings::default_for(registry::find("anabranch").expect("the project's own law is in the table")),
            streams: anabranch_proto::Sid::STREAMS_MAX,
            paths: 8,
            // 32 kB for each of 255 streams before anything is read.
            receive_buffer: 32 << 20,
            // Four times the bandwidth-delay product of 10 Gbit/s and 100 ms; one stream may have a third of it.
            receive_buffer_max: 512 << 20,
            send_buffer: 1 << 20,
            // For 10 Gbit/s.
            send_buffer_max: 12 << 20,
            // For the same path: three quarters hold unacknowledged data, of which an eighth is bookkeeping.
            send_memory: 512 << 20,
            // 84 ms at 100 Mbit/s.
            datagram_send_buffer: 1 << 20,
            datagram_receive_buffer: 1 << 20,
            // The initiation is retransmitted after 1, 2 and 4 seconds.
            connect_timeout: Duration::from_secs(10),
            // The value of common QUIC endpoints.
            idle_timeout: Duration::from_secs(30),
            keep_alive: Some(Duration::from_secs(10)),
            // 20 ms at 1.6 Gbit/s: the longest that a busy machine may delay the driver.
            socket_buffer: 4 << 20,
            // Ethernet's MTU. On most paths a search for more would only cost probes.
            packet_max: 1500,
            rate_max: None,
            cipher: None,
            scheduling: Scheduling::default(),
            shards: None,
            qlog: None,
        }
    }
}

impl Config {
    /// The least [`Config::rate_max`]: at 10 kbit/s a full packet takes 1.2 s, and timers begin at a second.
    pub const RATE_MIN: Rate = anabranch_proto::Config::RATE_MIN;

    /// The same settings for a server that admits these peers.
    #[must_use]
    pub fn admit(self, admission: Admission) -> Self {
        Self { admission: Some(admission), ..self }
    }

    /// The settings of all engines together.
    pub(crate) fn endpoint(&self) -> EndpointConfig {
        let seal = SealConfig { ciphers: ciphers(self.cipher), ..SealConfig::default() };
        let server = self.admission.as_ref().map(|admission| ServerConfig {
            listener: ListenerConfig { connection: seal, ..ListenerConfig::default() },
            admission: admission.engine(),
            shares: Shares {
                key_max: self.connections_per_key,
                network_max: self.connections_per_address,
                ..Shares::default()
            },
            connection: self.connection(),
        });
        EndpointConfig { connections_max: self.connections_max, seal, server }
    }

    /// Whether an endpoint can work with these settings.
    pub(crate) fn check(&self) -> Result<(), BindError> {
        if let Some(count) = self.shards.filter(|count| !(1..=SHARDS_MAX).contains(count)) {
            return Err(BindError::Shards(count));
        }
        if !(PathMtu::PACKET_MIN..=PACKET_MAX).contains(&self.packet_max) {
            return Err(BindError::PacketMax(self.packet_max));
        }
        if let Some(rate) = self.rate_max.filter(|&rate| rate < Self::RATE_MIN) {
            return Err(BindError::RateMax(rate));
        }
        self.connection().check().map_err(BindError::Config)
    }

    pub(crate) fn connection(&self) -> anabranch_proto::Config {
        let idle_timeout = span(self.idle_timeout);
        let keep_alive = self.keep_alive.map(|idle| {
            let idle = span(idle.min(self.idle_timeout / 2));
            // The rest of the idle timeout suffices for three probes, or for more if they are frequent.
            let interval = Span::from_ticks(idle_timeout.saturating_sub(idle).ticks() / 4).min(idle);
            KeepAlive { idle, interval, probes_max: u32::MAX }
        });
        anabranch_proto::Config {
            streams: self.streams,
            paths_max: self.paths,
            // Data lost on a dead or slow path arrives earlier on another.
            repair: Repair::AnyPath,
            receive_buffer: self.receive_buffer,
            receive_buffer_max: self.receive_buffer_max,
            send_buffer: self.send_buffer,
            send_buffer_max: self.send_buffer_max,
            send_memory: self.send_memory,
            datagram_send_buffer: self.datagram_send_buffer,
            datagram_receive_buffer: self.datagram_receive_buffer,
            acks: ACKS,
            idle_timeout: Some(idle_timeout),
            user_timeout: Some(idle_timeout),
            keep_alive,
            rate_max: self.rate_max,
            scheduling: self.scheduling,
            time_wait: TIME_WAIT,
            ..anabranch_proto::Config::new(self.law.clone()).with_packet_max(self.packet_max)
        }
    }
}

impl Admission {
    fn engine(&self) -> endpoint::Admission {
        match self {
            Self::Ticket => endpoint::Admission::Anyone,
            Self::Keys(keys) => endpoint::Admission::Keys(keys.iter().map(|key| key.0).collect()),
        }
    }
}

/// The preferred one, then AES if the machine has instructions for it.
fn ciphers(preferred: Option<Cipher>) -> CipherPreference {
    let usual = if has_fast_aes() { CipherPreference::fast_aes() } else { CipherPreference::default() };
    preferred.map_or(usual, |cipher| usual.preferring(cipher))
}

/// Whether this machine has instructions for AES-GCM. If the peer's machine has them, too, data is encrypted with AES-GCM,
/// otherwise with ChaCha20-Poly1305.
pub fn has_fast_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    let is_fast = std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    let is_fast = std::arch::is_aarch64_feature_detected!("aes") && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let is_fast = false;
    is_fast
}

/// [rfc-9293] sec. 3.8.6.3 requires an ACK for at least every second segment; a delay-based law needs ACKs early.
const ACKS: AckPolicy = AckPolicy { every: 2, delay: Span::from_millis(5) };

/// How long the end that closes first answers a retransmitted FIN. An old segment cannot enter a new connection, which has other
/// keys, so this only has to cover two retransmissions on a path of half a second.
const TIME_WAIT: Span = Span::from_secs(2);

#[cfg(test)]
mod tests;
