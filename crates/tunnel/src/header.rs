//! The header of a stream.
//!
//! ```text
//! open     01 | number 4 | port 2 | length 1 | host
//! listen   02 | number 4 | port 2 | length 1 | address to listen on
//! arrival  03 | number 4 | number of the listen request 4
//! flow     04 | number 4 | port 2 | length 1 | host
//! vpn      05 | number 4
//! answer   10 | number of the request 4 | 00 done, or the reason | port 2
//! ```
//!
//! Numbers are little-endian. The end that sends an open, listen, arrival, flow or vpn header chooses its number.

use anabranch::{ReadError, RecvStream};

use crate::target::Target;

/// The purpose of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Header {
    /// Connect to this target, and answer.
    Open {
        /// The opener's number.
        number: u32,
        /// The target to connect to.
        target: Target,
    },
    /// Listen for TCP connections on this address and port (0: any port), and answer.
    Listen {
        /// The requester's number.
        number: u32,
        /// The address to listen on.
        address: String,
        /// The port to listen on.
        port: u16,
    },
    /// A TCP connection has arrived at a requested listener.
    Arrival {
        /// The listening end's number.
        number: u32,
        /// The number of the listen request.
        listen: u32,
    },
    /// Send packets of UDP to this target, and answer.
    Flow {
        /// The opener's number, which its datagrams bear.
        number: u32,
        /// The target of the packets.
        target: Target,
    },
    /// Give addresses in the virtual network, and answer.
    Vpn {
        /// The client's number, which its datagrams bear.
        number: u32,
    },
    /// The answer to the request with this number. For a TCP connection, its data in the opposite direction follows.
    Answer {
        /// The number of the request.
        number: u32,
        /// The result of the request.
        answer: Answer,
        /// For a listen request, the bound port.
        port: u16,
    },
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was done.
    Done,
    /// The other end does not permit it.
    Forbidden,
    /// The host name cannot be resolved.
    NoHost,
    /// There is no route to the target.
    Unreachable,
    /// The target refuses connections at that port; or the listener cannot be bound.
    Refused,
    /// The target does not answer.
    TimedOut,
    /// Another error at the other end.
    Failed,
    /// The other end has no room for another TCP connection or UDP flow of this client, or for another client of its virtual network.
    Full,
}

/// Why a header is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// The stream ended or failed.
    Read(ReadError),
    /// The type is unknown, or the header is malformed.
    Unknown,
}

impl Header {
    /// Encodes the header.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![];
        let mut word = |kind: u8, number: u32| {
            bytes.push(kind);
            bytes.extend(number.to_le_bytes());
        };
        match self {
            Self::Open { number, target } => {
                word(OPEN, *number);
                push_host(&mut bytes, target.host(), target.port());
            }
            Self::Listen { number, address, port } => {
                word(LISTEN, *number);
                push_host(&mut bytes, address, *port);
            }
            Self::Arrival { number, listen } => {
                word(ARRIVAL, *number);
                bytes.extend(listen.to_le_bytes());
            }
            Self::Flow { number, target } => {
                word(FLOW, *number);
                push_host(&mut bytes, target.host(), target.port());
            }
            Self::Vpn { number } => word(VPN, *number),
            Self::Answer { number, answer, port } => {
                word(ANSWER, *number);
                bytes.push(answer.code());
                bytes.extend(port.to_le_bytes());
            }
        }
        bytes
    }

    /// Reads a header from the start of a stream, and no further bytes.
    ///
    /// # Errors
    /// If the header is invalid, or the stream fails.
    pub async fn read(stream: &mut RecvStream) -> Result<Self, HeaderError> {
        let [kind, number @ ..] = take::<5>(stream).await?;
        let number = u32::from_le_bytes(number);
        match kind {
            OPEN => Ok(Self::Open { number, target: read_target(stream).await? }),
            FLOW => Ok(Self::Flow { number, target: read_target(stream).await? }),
            VPN => Ok(Self::Vpn { number }),
            LISTEN => {
                let (address, port) = read_host(stream).await?;
                Ok(Self::Listen { number, address, port })
            }
            ARRIVAL => Ok(Self::Arrival { number, listen: u32::from_le_bytes(take(stream).await?) }),
            ANSWER => {
                let [code, port @ ..] = take::<3>(stream).await?;
                let answer = Answer::of(code).ok_or(HeaderError::Unknown)?;
                Ok(Self::Answer { number, answer, port: u16::from_le_bytes(port) })
            }
            _ => Err(HeaderError::Unknown),
        }
    }
}

impl Answer {
    const ALL: [Self; 8] = [
        Self::Done,
        Self::Forbidden,
        Self::NoHost,
        Self::Unreachable,
        Self::Refused,
        Self::TimedOut,
        Self::Failed,
        Self::Full,
    ];

    fn code(self) -> u8 {
        self as u8
    }

    fn of(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Done => "done",
            Self::Forbidden => "the other end does not allow it",
            Self::NoHost => "the other end cannot resolve the host",
            Self::Unreachable => "the other end has no route to the target",
            Self::Refused => "refused at the other end",
            Self::TimedOut => "the target does not answer",
            Self::Failed => "the other end failed",
            Self::Full => {
                "the other end has no room for another TCP connection, UDP flow or virtual network's client, so that others get some, too"
            }
        })
    }
}

impl std::fmt::Display for HeaderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Unknown => {
                f.write_str("the other end does not speak as a tunnel: is it `anabranch tunnel`, and of this version?")
            }
        }
    }
}

impl std::error::Error for HeaderError {}

impl From<ReadError> for HeaderError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

fn push_host(bytes: &mut Vec<u8>, host: &str, port: u16) {
    bytes.extend(port.to_le_bytes());
    // The host of a target is never longer; an address to listen on was parsed or formatted.
    let host = &host.as_bytes()[..host.len().min(u8::MAX.into())];
    bytes.push(host.len() as u8);
    bytes.extend(host);
}

async fn read_target(stream: &mut RecvStream) -> Result<Target, HeaderError> {
    let (host, port) = read_host(stream).await?;
    Target::new(&host, port).map_err(|_| HeaderError::Unknown)
}

async fn read_host(stream: &mut RecvStream) -> Result<(String, u16), HeaderError> {
    let [low, high, len] = take::<3>(stream).await?;
    let mut host = vec![0; len.into()];
    stream.read_exact(&mut host).await?;
    let host = String::from_utf8(host).map_err(|_| HeaderError::Unknown)?;
    Ok((host, u16::from_le_bytes([low, high])))
}

async fn take<const N: usize>(stream: &mut RecvStream) -> Result<[u8; N], HeaderError> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

const OPEN: u8 = 1;
const LISTEN: u8 = 2;
const ARRIVAL: u8 = 3;
const FLOW: u8 = 4;
const VPN: u8 = 5;
const ANSWER: u8 = 16;
