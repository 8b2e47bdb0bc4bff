//! SOCKS5 ([rfc-1928]): each TCP connection, or each packet of UDP, names its own target. CONNECT and UDP ASSOCIATE are supported, without
//! authentication, since it listens on this computer for its own users.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::forward::each;
use crate::header::Answer;
use crate::pipe;
use crate::target::Target;
use crate::tunnel::{OpenError, Opened, Tunnel};

mod associate;

/// What a client asks for.
#[derive(Debug)]
enum Request {
    /// A TCP connection to this target.
    Connect(Target),
    /// A port for packets.
    Associate,
}

/// Why a TCP connection or a flow of packets failed.
#[derive(Debug)]
pub enum SocksError {
    /// The client does not speak SOCKS5, requests something other than CONNECT and UDP ASSOCIATE, or is gone.
    Client(io::Error),
    /// The other end does not connect to the target, for this reason.
    Open(Target, OpenError),
}

/// Serves each incoming TCP connection. Calls `failed` for each failure. Never returns.
pub async fn serve(listener: &TcpListener, tunnel: &Tunnel, failed: impl Fn(SocksError)) {
    let (failures, mut of_flows) = mpsc::channel(FAILURES_MAX);
    let carry = |tcp: TcpStream| {
        let (tunnel, failures) = (tunnel.clone(), failures.clone());
        async move { carry(tcp, &tunnel, &failures).await }
    };
    tokio::select! {
        () = each(listener, carry, &failed) => {}
        () = async { while let Some(error) = of_flows.recv().await { failed(error) } } => {}
    }
}

/// Reads a client's request for a TCP connection, and returns its target. [`answer`] comes next.
///
/// # Errors
/// If the client does not speak SOCKS5, requests something else, which it is told, is gone, or takes more than ten seconds.
pub async fn target(tcp: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<Target> {
    let asked = timeout(REQUEST_WITHIN, ask(tcp)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    match asked? {
        Request::Connect(target) => Ok(target),
        Request::Associate => {
            reply(tcp, COMMAND_UNKNOWN, NOWHERE).await?;
            Err(wrong("it requests packets of UDP, and only TCP is passed on"))
        }
    }
}

/// Answers a request for a TCP connection: it is open, or it failed for this reason.
///
/// # Errors
/// If the client is gone.
pub async fn answer(tcp: &mut (impl AsyncWrite + Unpin), failure: Option<io::ErrorKind>) -> io::Result<()> {
    let code = match failure {
        None => SUCCEEDED,
        Some(io::ErrorKind::NetworkUnreachable) => NETWORK_UNREACHABLE,
        Some(io::ErrorKind::HostUnreachable | io::ErrorKind::NotFound) => HOST_UNREACHABLE,
        Some(io::ErrorKind::ConnectionRefused) => REFUSED,
        Some(io::ErrorKind::TimedOut) => TIMED_OUT,
        Some(_) => FAILED,
    };
    reply(tcp, code, NOWHERE).await
}

async fn carry(mut tcp: TcpStream, tunnel: &Tunnel, failures: &mpsc::Sender<SocksError>) -> Result<(), SocksError> {
    let asked = timeout(REQUEST_WITHIN, ask(&mut tcp)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let target = match asked.map_err(SocksError::Client)? {
        Request::Connect(target) => target,
        Request::Associate => {
            // More failures than anybody reads are of no use.
            let failed = |error| _ = failures.try_send(error);
            return associate::carry(tcp, tunnel, failed).await.map_err(SocksError::Client);
        }
    };
    match tunnel.open(&target).await {
        Ok(Opened { out, back }) => {
            reply(&mut tcp, SUCCEEDED, NOWHERE).await.map_err(SocksError::Client)?;
            pipe::join(tcp, out, back).await;
            Ok(())
        }
        Err(error) => {
            let code = match error {
                OpenError::Refused(Answer::Forbidden) => FORBIDDEN,
                OpenError::Refused(Answer::Unreachable) => NETWORK_UNREACHABLE,
                OpenError::Refused(Answer::NoHost) => HOST_UNREACHABLE,
                OpenError::Refused(Answer::Refused) => REFUSED,
                OpenError::Refused(Answer::TimedOut) => TIMED_OUT,
                OpenError::Refused(Answer::Done | Answer::Failed | Answer::Full)
                | OpenError::NoAnswer
                | OpenError::Gone => FAILED,
            };
            // If the client is gone, it cannot be informed.
            _ = reply(&mut tcp, code, NOWHERE).await;
            Err(SocksError::Open(target, error))
        }
    }
}

/// What the client requests.
async fn ask(tcp: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<Request> {
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
            reply(tcp, FAMILY_UNKNOWN, NOWHERE).await?;
            return Err(wrong("its type of address is unknown"));
        }
    };
    let port = u16::from_be_bytes(take(tcp).await?);
    match command {
        CONNECT => {}
        // The address from which packets will come: clients mostly do not know it, and send zeros.
        ASSOCIATE => return Ok(Request::Associate),
        _ => {
            reply(tcp, COMMAND_UNKNOWN, NOWHERE).await?;
            return Err(wrong("it requests something other than CONNECT and UDP ASSOCIATE"));
        }
    }
    match Target::new(&host, port) {
        Ok(target) => Ok(Request::Connect(target)),
        Err(error) => {
            reply(tcp, FAILED, NOWHERE).await?;
            Err(wrong(&error.to_string()))
        }
    }
}

async fn take<const N: usize>(tcp: &mut (impl AsyncRead + Unpin)) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    tcp.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Sends a reply with the bound address, which clients need for packets only.
async fn reply(tcp: &mut (impl AsyncWrite + Unpin), code: u8, bound: SocketAddr) -> io::Result<()> {
    tcp.write_all(&[&[VERSION, code, 0][..], &associate::encoded(bound)].concat()).await
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
const ASSOCIATE: u8 = 3;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
const SUCCEEDED: u8 = 0;
const FAILED: u8 = 1;
const FORBIDDEN: u8 = 2;
const NETWORK_UNREACHABLE: u8 = 3;
const HOST_UNREACHABLE: u8 = 4;
const REFUSED: u8 = 5;
/// The constant's name in the RFC is "TTL expired".
const TIMED_OUT: u8 = 6;
const COMMAND_UNKNOWN: u8 = 7;
const FAMILY_UNKNOWN: u8 = 8;

/// Time limit for a request. Clients send it at once.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);

/// The address of a reply that has none.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Failures of packets' flows that wait to be reported.
const FAILURES_MAX: usize = 16;
