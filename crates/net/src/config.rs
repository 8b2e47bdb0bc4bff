//! What an endpoint can be set to.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anabranch_cc::{Settings, registry};
use anabranch_proto::endpoint::{self, EndpointConfig, ServerConfig};
use anabranch_proto::seal::{CipherPreference, ListenerConfig, SealConfig};
use anabranch_proto::{AckPolicy, KeepAlive, Repair};
use anabranch_units::Span;

use crate::clock::span;
use crate::key::PublicKey;

/// What an endpoint can be set to. The default is good for most.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who may call; nobody if none.
    pub admission: Option<Admission>,
    /// The most connections at a time.
    pub connections_max: usize,
    /// The congestion law of each path, and its parameters.
    pub law: Settings,
    /// Streams of a connection at a time, in each direction: up to 4,080, in steps of 16 above 255. The first 255 that are open begin with more credit.
    pub streams: u16,
    /// Paths of a connection at a time, 1 to 8. With one it speaks of none, and cannot follow a peer whose address changes.
    pub paths: u8,
    /// Bytes of a connection that may arrive and wait to be read, at first. What is not read stops the sender at so much; what is read at once
    /// takes none of it.
    pub receive_buffer: u64,
    /// So large it may become: it grows to four times what is read in a round trip, and by what names of streams have that are over where others lack it.
    /// What the sender may send is promised and not taken back, so an application that reads fast and then stops may have so many bytes waiting.
    pub receive_buffer_max: u64,
    /// Bytes that may wait to be sent on a stream. What is written beyond that waits.
    pub send_buffer: u64,
    /// So many they may become where the paths carry more than that in 10 ms.
    pub send_buffer_max: u64,
    /// The most bytes of a connection that have been written and not been acknowledged.
    pub send_memory: u64,
    /// How long a call may take, and a new path.
    pub connect_timeout: Duration,
    /// How long the peer may say nothing before the connection is given up.
    pub idle_timeout: Duration,
    /// How long nothing is said before the peer is asked whether it is there; at most half of the idle timeout. Never if none: then a
    /// connection on which nothing is sent ends by the idle timeout.
    pub keep_alive: Option<Duration>,
    /// The socket's buffers in bytes, as far as the system gives them.
    pub socket_buffer: usize,
    /// A folder for logs of all connections, in qlog; see [`crate::QlogReport`]. None are written if there is none.
    pub qlog: Option<PathBuf>,
}

/// Who may open a connection to an endpoint. Others hear nothing: for them nobody is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Whoever has a ticket: nobody can call who does not know the public key.
    Ticket,
    /// Those who prove one of these keys, and have a ticket.
    Keys(BTreeSet<PublicKey>),
}

impl Default for Config {
    fn default() -> Self {
        Self {
            admission: None,
            connections_max: 1024,
            law: Settings::default_for(registry::find("anabranch").expect("the project's own law is in the table")),
            streams: anabranch_proto::Sid::STREAMS_MAX,
            paths: 8,
            // 32 kB for each of 255 streams before any is read.
            receive_buffer: 32 << 20,
            // Four times the bandwidth-delay product of 10 Gbit/s and 100 ms, of which one stream may have about half.
            receive_buffer_max: 512 << 20,
            send_buffer: 1 << 20,
            // 10 Gbit/s.
            send_buffer_max: 12 << 20,
            // Likewise: three quarters are for what is not acknowledged, and an eighth of that is what it costs to keep it.
            send_memory: 512 << 20,
            // The handshake is sent again after 1, 2 and 4 seconds.
            connect_timeout: Duration::from_secs(10),
            // As common QUIC endpoints.
            idle_timeout: Duration::from_secs(30),
            keep_alive: Some(Duration::from_secs(10)),
            // 20 ms at 1.6 Gbit/s: as long as a busy machine may leave us waiting.
            socket_buffer: 4 << 20,
            qlog: None,
        }
    }
}

impl Config {
    /// The same for a server that lets them in.
    #[must_use]
    pub fn admit(self, admission: Admission) -> Self {
        Self { admission: Some(admission), ..self }
    }

    pub(crate) fn endpoint(&self) -> EndpointConfig {
        let seal = SealConfig { ciphers: ciphers(), ..SealConfig::default() };
        let server = self.admission.as_ref().map(|admission| ServerConfig {
            listener: ListenerConfig { connection: seal, ..ListenerConfig::default() },
            admission: admission.engine(),
            connection: self.connection(),
        });
        EndpointConfig { connections_max: self.connections_max, seal, server }
    }

    pub(crate) fn connection(&self) -> anabranch_proto::Config {
        let idle_timeout = span(self.idle_timeout);
        let keep_alive = self.keep_alive.map(|idle| {
            let idle = span(idle.min(self.idle_timeout / 2));
            // What is left of the idle timeout is enough for three questions.
            let interval = Span::from_ticks(idle_timeout.saturating_sub(idle).ticks() / 4);
            KeepAlive { idle, interval, probes_max: u32::MAX }
        });
        anabranch_proto::Config {
            streams: self.streams,
            paths_max: self.paths,
            // What is lost on a path that has died, or is slow, comes sooner on another.
            repair: Repair::AnyPath,
            receive_buffer: self.receive_buffer,
            receive_buffer_max: self.receive_buffer_max,
            send_buffer: self.send_buffer,
            send_buffer_max: self.send_buffer_max,
            send_memory: self.send_memory,
            acks: ACKS,
            idle_timeout: Some(idle_timeout),
            user_timeout: Some(idle_timeout),
            keep_alive,
            time_wait: TIME_WAIT,
            ..anabranch_proto::Config::new(self.law.clone())
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

/// AES where the machine has instructions for it.
fn ciphers() -> CipherPreference {
    if has_fast_aes() { CipherPreference::fast_aes() } else { CipherPreference::default() }
}

/// Whether this machine has instructions for AES-GCM: then data is encrypted with it, else with ChaCha20-Poly1305, if the peer says the same.
pub fn has_fast_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    let is_fast = std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    let is_fast = std::arch::is_aarch64_feature_detected!("aes") && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let is_fast = false;
    is_fast
}

/// [rfc-9293] sec. 3.8.6.3 asks for one for two segments at least; a law that looks at delays wants them soon.
const ACKS: AckPolicy = AckPolicy { every: 2, delay: Span::from_millis(5) };

/// How long the end that closes first answers a FIN that comes again. No segment of an old connection can come into a new one, whose keys
/// are others, so that this is all there is to wait for: two retransmissions on a path of half a second.
const TIME_WAIT: Span = Span::from_secs(2);

#[cfg(test)]
mod tests;
