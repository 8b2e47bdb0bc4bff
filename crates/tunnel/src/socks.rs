//! SOCKS5 ([rfc-1928]): each TCP connection names its own target. Only CONNECT without authentication is supported, since it
//! listens on this computer for its own users.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::forward::each;
use crate::header::Answer;
use crate::pipe;
use crate::target::Target;
use crate::tunnel::{OpenError, Opened, Tunnel};

/// Why a TCP connection failed.
#[derive(Debug)]
pub enum SocksError {
    /// The client does not speak SOCKS5, requests something other than CONNECT, or is gone.
    Client(io::Error),
    /// The other end does not connect to the target, for this reason.
    Open(Target, OpenError),
}

/// Serves each incoming TCP connection. Calls `failed` for each failure. Never returns.
pub async fn serve(listener: &TcpListener, tunnel: &Tunnel, failed: impl Fn(SocksError)) {
    let carry = |tcp: TcpStream| {
        let tunnel = tunnel.clone();
        async move { carry(tcp, &tunnel).await }
    };
    each(listener, carry, failed).await;
}

async fn carry(mut tcp: TcpStream, tunnel: &Tunnel) -> Result<(), SocksError> {
    let asked = timeout(REQUEST_WITHIN, ask(&mut tcp)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let target = asked.map_err(SocksError::Client)?;
    match tunnel.open(&target).await {
        Ok(Opened { out, back }) => {
            reply(&mut tcp, SUCCEEDED).await.map_err(SocksError::Client)?;
            pipe::join(tcp, out, back).await;
            Ok(())
        }
        Err(error) => {
            let code = match error {
                OpenError::Refused(Answer::Forbidden) => 2,
                OpenError::Refused(Answer::Unreachable) => 3,
                OpenError::Refused(Answer::NoHost) => 4,
                OpenError::Refused(Answer::Refused) => 5,
                OpenError::Refused(Answer::TimedOut) => 6,
                OpenError::Refused(Answer::Done | Answer::Failed | Answer::Full)
                | OpenError::NoAnswer
                | OpenError::Gone => 1,
            };
            // If the client is gone, it cannot be informed.
            _ = reply(&mut tcp, code).await;
            Err(SocksError::Open(target, error))
        }
    }
}

/// The target that the client requests.
async fn ask(tcp: &mut TcpStream) -> io::Result<Target> {
    let [version, count] = take(tcp).await?;
    if version != VERSION {
        return Err(wrong("it does not speak SOCKS5"));
    }
    let mut methods = vec![0; count.into()];
    tcp.read_exact(&mut methods).await?;
    if !methods.contains(&NO_AUTHENTICATION) {
        tcp.write_all(&[VERSION, NO_METHOD]).await?;
        return Err(wrong("it demands authentication"));
    }
    tcp.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    let [version, command, _, family] = take(tcp).await?;
    if version != VERSION {
        return Err(wrong("it does not speak SOCKS5"));
    }
    let host = match family {
        IPV4 => Ipv4Addr::from(take::<4>(tcp).await?).to_string(),
        IPV6 => Ipv6Addr::from(take::<16>(tcp).await?).to_string(),
        NAME => {
            let [len] = take(tcp).await?;
            let mut name = vec![0; len.into()];
            tcp.read_exact(&mut name).await?;
            String::from_utf8(name).map_err(|_| wrong("the host's name has invalid characters"))?
        }
        _ => {
            reply(tcp, FAMILY_UNKNOWN).await?;
            return Err(wrong("its type of address is unknown"));
        }
    };
    let port = u16::from_be_bytes(take(tcp).await?);
    if command != CONNECT {
        reply(tcp, COMMAND_UNKNOWN).await?;
        return Err(wrong("it requests something other than CONNECT"));
    }
    match Target::new(&host, port) {
        Ok(target) => Ok(target),
        Err(error) => {
            reply(tcp, FAILED).await?;
            Err(wrong(&error.to_string()))
        }
    }
}

async fn take<const N: usize>(tcp: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    tcp.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Sends a reply without the bound address, which clients do not need.
async fn reply(tcp: &mut TcpStream, code: u8) -> io::Result<()> {
    tcp.write_all(&[VERSION, code, 0, IPV4, 0, 0, 0, 0, 0, 0]).await
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl fmt::Display for SocksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(error) => write!(f, "a client of SOCKS: {error}"),
            Self::Open(target, error) => write!(f, "{target}: {error}"),
        }
    }
}

impl std::error::Error for SocksError {}

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
const SUCCEEDED: u8 = 0;
const FAILED: u8 = 1;
const COMMAND_UNKNOWN: u8 = 7;
const FAMILY_UNKNOWN: u8 = 8;

/// Time limit for a request. Clients send it at once.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);
