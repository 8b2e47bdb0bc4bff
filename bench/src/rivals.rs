//! The transports that are measured.

pub mod ours;
pub mod quic;
pub mod s2n;
pub mod tls;

use clap::ValueEnum;

/// A transport with one of its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rival {
    Anabranch,
    AnabranchAegis,
    Quinn,
    QuinnBbr,
    QuinnAnabranch,
    S2n,
    Tls,
    Udp,
}

impl Rival {
    /// The name on the command line.
    pub fn word(self) -> Option<String> {
        Some(self.to_possible_value()?.get_name().to_owned())
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Anabranch => "anabranch",
            Self::AnabranchAegis => "anabranch, AEGIS-128L",
            Self::Quinn => "quinn 0.11, CUBIC",
            Self::QuinnBbr => "quinn 0.11, BBR",
            Self::QuinnAnabranch => "quinn 0.11, anabranch's law",
            Self::S2n => "s2n-quic 1, CUBIC",
            Self::Tls => "TLS 1.3 on the kernel's TCP",
            Self::Udp => "UDP in batches, not encrypted",
        }
    }
}

/// The flow-control credit of a stream and of a connection. `anabranch` begins with less and may grow to more.
pub const WINDOW: u64 = 64 << 20;

/// The same for quinn's BBR over the emulated link: twice its bandwidth-delay product. With `WINDOW` there were so many losses that quinn's receiver,
/// which allows 1,024 gaps in a stream, ended the connection each time. CUBIC was faster with `WINDOW`.
pub const WINDOW_OF_BBR: u64 = 2_500_000;

/// The limit of concurrent streams.
const STREAMS_MAX: u32 = 4096;
