//! Measures the kernel's TCP to the same peer, for comparison.
//!
//! The serving end opens a TCP port for one measurement, with the number of its UDP port if that is free, and tells it on a stream:
//!
//! ```text
//! outcome  port  token  law       outcome 0: the port is open, 1: this kernel has no such law, 2: no port can be opened
//! 1        2     16     16 bytes  law: the name of the congestion law of its sockets, filled with zeros
//! ```
//!
//! Each TCP connection begins with the token, so a stranger who finds the port measures nothing. The sender sends for the time of the plan. The receiver counts what arrives in so long a
//! time from the first byte on; the serving end answers with its count, in 8 bytes. Numbers are little endian.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::{Direction, LATE_MAX, MeasureError, Plan, Request, Traffic};
use crate::connection::Connection;

/// A measurement of the kernel's TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpPlan {
    /// Whether the other end sends.
    pub is_reverse: bool,
    /// TCP connections at the same time, 1 to [`TCP_CONNECTIONS_MAX`].
    pub connections: u8,
    /// How long the sender sends.
    pub time: Duration,
    /// The sender's congestion law, by its name in the kernel, such as `cubic`; `None` is the kernel's default.
    pub law: Option<String>,
}

/// What the kernel's TCP carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpReport {
    /// Bytes that the receiver read in the time of the plan, from the first byte on, over all connections.
    pub bytes: u64,
    /// The congestion law of the sender, if its system tells it.
    pub law: Option<String>,
}

/// Measures the kernel's TCP to an end that [serves](super::serve). `connection` agrees on a port and carries nothing else.
///
/// # Errors
/// If the other end does not serve, is older, or is lost; if TCP does not get through; or if the sender's kernel has no such law.
pub async fn measure_tcp(connection: &Connection, plan: &TcpPlan) -> Result<TcpReport, MeasureError> {
    let law = plan.law.as_deref().map_or(Some(LawName::default()), LawName::new).ok_or(MeasureError::TcpLaw)?;
    let (direction, asked) = if plan.is_reverse { (Direction::Down, law) } else { (Direction::Up, LawName::default()) };
    let request =
        Plan { direction, streams: plan.connections.clamp(1, TCP_CONNECTIONS_MAX), time: plan.time, rate: None };
    super::begin(connection, Request { plan: request, traffic: Traffic::Tcp { law: asked } }).await?;
    let work = async {
        let mut offer = [0; OFFER];
        connection.accept_stream().await?.read_exact(&mut offer).await?;
        let offer = Offer::read(&offer)?;
        let remote = connection.paths().first().ok_or(MeasureError::Protocol)?.remote;
        let place = SocketAddr::new(remote.ip(), offer.port);
        let mut all = JoinSet::new();
        for _ in 0..request.streams {
            let (token, time, is_reverse) = (offer.token, plan.time, plan.is_reverse);
            let stream = call(place, if is_reverse { LawName::default() } else { law }).await?;
            let law = if is_reverse { offer.law } else { LawName::of(&stream) };
            all.spawn(async move {
                let bytes = ask(stream, token, is_reverse, time).await;
                bytes.map(|bytes| (bytes, law)).map_err(|error| MeasureError::Tcp(place, error.kind()))
            });
        }
        let mut report = TcpReport { bytes: 0, law: None };
        while let Some(one) = all.join_next().await {
            let (bytes, law) = one.map_err(|_| MeasureError::Protocol)??;
            report = TcpReport { bytes: report.bytes + bytes, law: law.text() };
        }
        Ok(report)
    };
    let limit = plan.time.saturating_add(2 * BEGIN_WITHIN);
    let report = timeout(limit, work).await.unwrap_or(Err(MeasureError::NoReport));
    super::end(connection, report.is_ok()).await;
    report
}

/// Connects to the port of the other end.
async fn call(place: SocketAddr, law: LawName) -> Result<TcpStream, MeasureError> {
    let failed = |error: io::Error| MeasureError::Tcp(place, error.kind());
    let socket = if place.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(failed)?;
    law.set(&SockRef::from(&socket))?;
    let late = |_| MeasureError::Tcp(place, io::ErrorKind::TimedOut);
    timeout(BEGIN_WITHIN, socket.connect(place)).await.map_err(late)?.map_err(failed)
}

/// Shows the token, and sends or receives. Returns the count of the receiver.
async fn ask(mut stream: TcpStream, token: Token, is_reverse: bool, time: Duration) -> io::Result<u64> {
    stream.write_all(&token).await?;
    if is_reverse {
        return count(&mut stream, time).await;
    }
    send(&mut stream, time).await?;
    let mut count = [0; 8];
    timeout(BEGIN_WITHIN, stream.read_exact(&mut count)).await.map_err(|_| io::ErrorKind::TimedOut)??;
    Ok(u64::from_le_bytes(count))
}

/// Opens a port, and serves the TCP connections of one plan.
pub(super) async fn serve(connection: &Connection, plan: Plan, law: LawName) -> Result<(), MeasureError> {
    let opened = open(connection, law);
    let offer = match &opened {
        Ok((_, offer)) => offer.write(OPEN),
        Err(outcome) => Offer::default().write(*outcome),
    };
    super::say(connection, &offer).await?;
    if let Ok((listener, offer)) = opened {
        let work = answer_all(listener, offer.token, plan);
        tokio::select! {
            () = work => {}
            // The measuring end has ended before, or is gone.
            ended = connection.accept_stream() => if let Err(crate::StreamError::Lost(lost)) = ended {
                return Err(MeasureError::Lost(lost));
            }
        }
    }
    super::end(connection, true).await;
    Ok(())
}

/// The port of a measurement; or the outcome to tell.
fn open(connection: &Connection, law: LawName) -> Result<(TcpListener, Offer), u8> {
    let local = connection.paths().first().map(|path| path.local).ok_or(NO_PORT)?;
    let any: IpAddr = if local.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let listen = |port: u16| {
        let socket = std::net::TcpListener::bind((any, port))?;
        socket.set_nonblocking(true)?;
        TcpListener::from_std(socket)
    };
    let listener = listen(local.port()).or_else(|_| listen(0)).map_err(|_| NO_PORT)?;
    // What it accepts inherits the law.
    law.set(&SockRef::from(&listener)).map_err(|_| NO_LAW)?;
    let mut offer = Offer { law: LawName::of(&listener), ..Offer::default() };
    offer.port = listener.local_addr().map_err(|_| NO_PORT)?.port();
    getrandom::fill(&mut offer.token).map_err(|_| NO_PORT)?;
    Ok((listener, offer))
}

/// Accepts the connections of a plan, each with the token, and serves them to their end.
async fn answer_all(listener: TcpListener, token: Token, plan: Plan) {
    let mut begun = JoinSet::new();
    let (mut serving, mut missing) = (JoinSet::new(), plan.streams.clamp(1, TCP_CONNECTIONS_MAX));
    let late = Instant::now() + BEGIN_WITHIN;
    while missing > 0 {
        tokio::select! {
            accepted = listener.accept(), if begun.len() < STRANGERS_MAX => match accepted {
                Ok((stream, _)) => _ = begun.spawn(timeout_at(late, shown(stream))),
                // Such as too many open files.
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
            Some(shown) = begun.join_next() => {
                if let Ok(Ok(Ok((stream, seen)))) = shown && is_equal(&seen, &token) {
                    missing -= 1;
                    serving.spawn(answer(stream, plan));
                }
            }
            () = tokio::time::sleep_until(late) => break,
        }
    }
    drop((listener, begun));
    while serving.join_next().await.is_some() {}
}

async fn shown(mut stream: TcpStream) -> io::Result<(TcpStream, Token)> {
    let mut token = Token::default();
    stream.read_exact(&mut token).await?;
    Ok((stream, token))
}

/// Takes the same time for each token.
fn is_equal(seen: &Token, token: &Token) -> bool {
    seen.iter().zip(token).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

async fn answer(mut stream: TcpStream, plan: Plan) -> io::Result<()> {
    if plan.direction == Direction::Down {
        send(&mut stream, plan.time).await?;
    } else {
        let count = count(&mut stream, plan.time).await?;
        stream.write_all(&count.to_le_bytes()).await?;
        stream.shutdown().await?;
    }
    // A socket that is dropped with unread data resets its connection, and the count with it.
    let mut block = vec![0; BLOCK];
    let rest = async {
        while stream.read(&mut block).await? > 0 {}
        Ok(())
    };
    timeout(LATE_MAX, rest).await.unwrap_or(Ok(()))
}

/// Sends until the time is over.
async fn send(stream: &mut TcpStream, time: Duration) -> io::Result<()> {
    let block = vec![0x5a; BLOCK];
    let write = async {
        loop {
            stream.write_all(&block).await?;
        }
    };
    match timeout(time, write).await {
        Ok(Err::<(), io::Error>(error)) => Err(error),
        Ok(Ok(())) | Err(_) => timeout(LATE_MAX, stream.shutdown()).await.unwrap_or(Ok(())),
    }
}

/// Counts what arrives in this time from the first byte on.
async fn count(stream: &mut TcpStream, time: Duration) -> io::Result<u64> {
    let mut block = vec![0; BLOCK];
    let first = timeout(BEGIN_WITHIN, stream.read(&mut block)).await.map_err(|_| io::ErrorKind::TimedOut)??;
    let (until, mut count) = (Instant::now() + time, first as u64);
    if first == 0 {
        return Ok(0);
    }
    while let Ok(read) = timeout_at(until, stream.read(&mut block)).await {
        match read? {
            0 => break,
            len => count += len as u64,
        }
    }
    Ok(count)
}

/// The name of a congestion law of the kernel, filled with zeros; empty for the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LawName([u8; LAW]);

impl LawName {
    /// `None` if no kernel has such a name.
    fn new(name: &str) -> Option<Self> {
        let mut law = [0; LAW];
        law.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        Some(Self(law))
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self(bytes.try_into().ok()?))
    }

    pub(super) fn bytes(&self) -> &[u8; LAW] {
        &self.0
    }

    fn name(&self) -> &[u8] {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(LAW);
        &self.0[..end]
    }

    fn text(&self) -> Option<String> {
        let name = std::str::from_utf8(self.name()).ok()?;
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
        is_name.then(|| name.to_owned())
    }

    /// Sets the law of a socket, unless it is the default.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn set(&self, socket: &SockRef<'_>) -> Result<(), MeasureError> {
        if self.name().is_empty() {
            Ok(())
        } else {
            socket.set_tcp_congestion(self.name()).map_err(|_| MeasureError::TcpLaw)
        }
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn set(&self, _: &SockRef<'_>) -> Result<(), MeasureError> {
        if self.name().is_empty() { Ok(()) } else { Err(MeasureError::TcpLaw) }
    }

    /// The law of a socket.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn of(socket: &impl std::os::fd::AsFd) -> Self {
        let name = SockRef::from(socket).tcp_congestion().unwrap_or_default();
        let mut law = [0; LAW];
        law.iter_mut().zip(name).for_each(|(to, from)| *to = from);
        Self(law)
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn of<T>(_: &T) -> Self {
        Self::default()
    }
}

type Token = [u8; 16];

/// What the serving end tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Offer {
    port: u16,
    token: Token,
    law: LawName,
}

impl Offer {
    fn write(&self, outcome: u8) -> [u8; OFFER] {
        let mut bytes = [0; OFFER];
        bytes[0] = outcome;
        bytes[1..3].copy_from_slice(&self.port.to_le_bytes());
        bytes[3..19].copy_from_slice(&self.token);
        bytes[19..].copy_from_slice(self.law.bytes());
        bytes
    }

    fn read(bytes: &[u8; OFFER]) -> Result<Self, MeasureError> {
        let (&[outcome, low, high], rest) = bytes.split_first_chunk::<3>().ok_or(MeasureError::Protocol)?;
        let (token, law) = rest.split_first_chunk::<16>().ok_or(MeasureError::Protocol)?;
        match (outcome, u16::from_le_bytes([low, high])) {
            (NO_LAW, _) => return Err(MeasureError::TcpLaw),
            (NO_PORT, _) => return Err(MeasureError::TcpPort),
            (OPEN, 1..) => {}
            _ => return Err(MeasureError::Protocol),
        }
        let law = LawName::read(law).ok_or(MeasureError::Protocol)?;
        Ok(Self { port: u16::from_le_bytes([low, high]), token: *token, law })
    }
}

/// The TCP connections of one measurement: each needs a buffer at both ends.
pub const TCP_CONNECTIONS_MAX: u8 = 64;

/// The outcomes.
const OPEN: u8 = 0;
const NO_LAW: u8 = 1;
const NO_PORT: u8 = 2;

/// The length of what the serving end tells.
const OFFER: usize = 1 + 2 + 16 + LAW;

/// The length of a law's name, `TCP_CA_NAME_MAX` of Linux.
pub(super) const LAW: usize = 16;

/// A TCP connection must be there, show its token, and bring its first byte: three repetitions of a SYN.
const BEGIN_WITHIN: Duration = Duration::from_secs(10);

/// Connections that have not shown their token.
const STRANGERS_MAX: usize = 256;

/// Before the next attempt to accept.
const PAUSE: Duration = Duration::from_millis(10);

/// The bytes of one read or write.
const BLOCK: usize = 128 << 10;
