//! Measures a network: one end or both send at full rate, and received data is discarded; or datagrams, round trips, or set-ups of
//! connections are measured.
//!
//! One stream of the measuring end is the request. It is recognised by the eight bytes that it begins with, since a stream of data
//! may arrive before it:
//!
//! ```text
//! ab-bench  direction  streams  milliseconds          the first version: which end sends, how many streams, for how long
//! 8 bytes   1          1        4                     direction 0: the measuring end sends, 1: the other end
//! ab-bench  direction  streams  milliseconds  rate    direction 2: both ends; rate: bits per second of each sender, 0 without a limit
//! 8 bytes   1          1        4             8
//! ab-bench  direction  streams  milliseconds  rate  traffic  size
//! 8 bytes   1          1        4             8     1        4         traffic 1: datagrams of so many bytes, 2: round trips
//! ab-bench  direction  streams  milliseconds  rate  traffic  law
//! 8 bytes   1          1        4             8     1        16        traffic 3: the kernel's TCP; law: of the serving end, if that sends
//! ```
//!
//! The longest forms are answered by a stream with `ab-ready`; `datagrams`, `ping_pong` and `tcp` say what follows. Of streams, when the time is over, each sender resets its streams: what has not arrived is not waited for. Numbers are little endian. A longer form is sent only if the shorter one cannot express the
//! request. An end that knows only the shorter form then closes, which is [`MeasureError::Older`].

mod datagrams;
mod ping_pong;
mod samples;
mod set_ups;
mod tcp;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anabranch_units::{Bytes as Count, Rate};
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

pub use self::datagrams::{DatagramReport, DatagramReports, measure_datagrams};
pub use self::ping_pong::{SIZE_MAX, measure_round_trips};
pub use self::samples::Quantiles;
pub use self::set_ups::{SetUpError, SetUpReport, measure_set_ups};
use self::tcp::LawName;
pub use self::tcp::{TCP_CONNECTIONS_MAX, TcpPlan, TcpReport, measure_tcp};
use crate::connection::Connection;
use crate::error::{DatagramError, Lost, ReadError, StreamError, WriteError};
use crate::stream::RecvStream;

/// The parameters of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Which end sends.
    pub direction: Direction,
    /// Concurrent streams in each direction.
    pub streams: u8,
    /// How long each end sends.
    pub time: Duration,
    /// The rate limit of each sending end, over all its streams; `None` sends at full rate. A sender that falls behind makes up
    /// for at most a tenth of a second.
    pub rate: Option<Rate>,
}

/// Which end sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// This end sends.
    Up,
    /// The other end sends.
    Down,
    /// Both ends send.
    Both,
}

/// Why a measurement failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasureError {
    /// The other end does not speak the measurement protocol.
    Protocol,
    /// The other end has an older version, which does not measure this: both directions at once, with a rate limit, datagrams, round trips or TCP.
    Older,
    /// No datagrams can be sent or read, or none of this size.
    Datagram(DatagramError),
    /// The kernel's TCP does not get through to this address of the other end.
    Tcp(SocketAddr, io::ErrorKind),
    /// The kernel of the end that sends by TCP has no congestion law of this name, or its user may not use it.
    TcpLaw,
    /// The other end can open no TCP port.
    TcpPort,
    /// The other end did not tell its results in time.
    NoReport,
    /// The connection is lost.
    Lost(Lost),
}

/// Measures with an end that [serves](serve). [`Connection::stats`] and [`Connection::paths`] show the progress. The call returns
/// when the time of the plan is over and both ends have closed. If that takes longer than [`LATE_MAX`] more, as on a slow path with
/// a long queue, the connection is aborted.
///
/// # Errors
/// If the other end does not speak the protocol, does not support this request, or is lost.
pub async fn measure(connection: &Connection, plan: Plan) -> Result<(), MeasureError> {
    let refused = if plan.is_extended() { MeasureError::Older } else { MeasureError::Protocol };
    let received = Received::default();
    let work = async {
        let mut stream = connection.open_stream().await?;
        stream.write_all(&plan.request()).await?;
        stream.finish()?;
        match plan.direction {
            Direction::Up => tokio::select! {
                filled = fill(connection, plan) => filled?,
                // The other end has nothing to send, and should not close yet.
                early = connection.accept_stream() => {
                    return Err(early.err().map_or(MeasureError::Protocol, Into::into));
                }
            },
            Direction::Down => received.all(connection).await?,
            Direction::Both => {
                let send = async {
                    fill(connection, plan).await?;
                    Ok(connection.close().await?)
                };
                tokio::try_join!(send, received.all(connection))?;
            }
        }
        connection.close().await?;
        Ok(connection.closed().await?)
    };
    let ended = tokio::time::timeout(plan.time.saturating_add(LATE_MAX), work).await.unwrap_or_else(|_| {
        connection.abort();
        Ok(())
    });
    match ended {
        Err(MeasureError::Protocol) => Err(refused),
        Ok(()) if plan.direction != Direction::Up && received.count() == 0 => Err(refused),
        ended => ended,
    }
}

/// Serves the other end's request.
///
/// # Errors
/// If the other end does not speak the protocol, or is lost.
pub async fn serve(connection: &Connection) -> Result<(), MeasureError> {
    let (tell, mut requests) = mpsc::channel(1);
    let received = Received { requests: Some(tell), ..Received::default() };
    let mut receiving = Box::pin(received.all(connection));
    let request = tokio::select! {
        biased;
        request = requests.recv() => request,
        ended = &mut receiving => {
            ended?;
            requests.try_recv().ok()
        }
        () = tokio::time::sleep(REQUEST_WITHIN) => None,
    };
    let Request { plan, traffic } =
        request.and_then(|request| Request::read(&request)).ok_or(MeasureError::Protocol)?;
    let plan = Plan { time: plan.time.min(TIME_MAX), ..plan };
    if traffic != Traffic::Streams {
        // From now on streams are accepted by those who know their meaning. So the other end opens none before it reads this.
        drop(receiving);
        say(connection, READY).await?;
        return match traffic {
            Traffic::Datagrams { size } => datagrams::serve(connection, plan, size).await,
            Traffic::Tcp { law } => tcp::serve(connection, plan, law).await,
            Traffic::Streams | Traffic::RoundTrips => ping_pong::serve(connection, plan).await,
        };
    }
    let begin = Instant::now();
    let work = async {
        match plan.direction {
            Direction::Up => {
                receiving.await?;
                connection.close().await?;
                // The sender waits until this end has received everything.
                return Ok(());
            }
            Direction::Down => {
                fill(connection, plan).await?;
                connection.close().await?;
            }
            Direction::Both => {
                let send = async {
                    fill(connection, plan).await?;
                    Ok(connection.close().await?)
                };
                tokio::try_join!(send, receiving)?;
            }
        }
        Ok(connection.closed().await?)
    };
    match work.await {
        // The measuring end does not wait for what is late.
        Err(MeasureError::Lost(Lost::Reset)) if begin.elapsed() >= plan.time => Ok(()),
        ended => ended,
    }
}

/// The streams that arrive.
#[derive(Debug, Default)]
struct Received {
    count: Arc<AtomicU64>,
    /// Gets requests, at the end that serves.
    requests: Option<mpsc::Sender<Vec<u8>>>,
}

impl Received {
    /// The number of streams with data.
    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Reads all streams until nothing more can arrive.
    async fn all(&self, connection: &Connection) -> Result<(), MeasureError> {
        let mut readers = JoinSet::new();
        loop {
            tokio::select! {
                stream = connection.accept_stream() => match stream {
                    Ok(stream) => _ = readers.spawn(read(stream, Arc::clone(&self.count), self.requests.clone())),
                    Err(StreamError::Closed) => break,
                    Err(StreamError::Lost(lost)) => return Err(MeasureError::Lost(lost)),
                },
                Some(_) = readers.join_next() => {}
            }
        }
        while readers.join_next().await.is_some() {}
        Ok(())
    }
}

/// Reads a stream to its end. A request is passed on, and data is discarded.
async fn read(
    mut stream: RecvStream,
    count: Arc<AtomicU64>,
    requests: Option<mpsc::Sender<Vec<u8>>>,
) -> Result<(), ReadError> {
    let mut begin = vec![];
    while begin.len() < MAGIC.len() && MAGIC.starts_with(&begin) {
        let Some(piece) = stream.read_chunk(REQUEST_MAX).await? else { break };
        begin.extend_from_slice(&piece);
    }
    match requests.filter(|_| begin.starts_with(MAGIC)) {
        Some(requests) => {
            begin.extend_from_slice(&stream.read_to_end(REQUEST_MAX).await?);
            // A second request is none.
            _ = requests.try_send(begin);
        }
        None => {
            count.fetch_add(1, Ordering::Relaxed);
            while let Some(piece) = stream.read_chunk(BLOCK).await? {
                drop(piece);
            }
        }
    }
    Ok(())
}

impl Plan {
    /// Whether the request needs the longer form.
    fn is_extended(&self) -> bool {
        self.direction == Direction::Both || self.rate.is_some()
    }

    fn request(&self) -> Vec<u8> {
        let direction = match self.direction {
            Direction::Up => 0,
            Direction::Down => 1,
            Direction::Both => 2,
        };
        let mut request = MAGIC.to_vec();
        request.extend([direction, self.streams]);
        request.extend(u32::try_from(self.time.as_millis()).unwrap_or(u32::MAX).to_le_bytes());
        if self.is_extended() {
            request.extend(self.rate.map_or(0, Rate::bits_per_second).to_le_bytes());
        }
        request
    }

    fn read(request: &[u8]) -> Option<Self> {
        let rest = request.strip_prefix(MAGIC)?;
        let (&[direction, streams, a, b, c, d], rest) = rest.split_first_chunk::<6>()?;
        let rate = match rest {
            [] => 0,
            rate => u64::from_le_bytes(rate.try_into().ok()?),
        };
        let direction = match direction {
            0 => Direction::Up,
            1 => Direction::Down,
            2 if !rest.is_empty() => Direction::Both,
            _ => return None,
        };
        let time = Duration::from_millis(u32::from_le_bytes([a, b, c, d]).into());
        let rate = (rate > 0).then(|| Rate::from_bits_per_second(rate));
        Some(Self { direction, streams, time, rate })
    }
}

/// What the measuring end asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    plan: Plan,
    traffic: Traffic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traffic {
    Streams,
    /// Datagrams of so many bytes.
    Datagrams {
        size: u16,
    },
    RoundTrips,
    /// The kernel's TCP, with this law at the serving end.
    Tcp {
        law: LawName,
    },
}

impl Request {
    fn write(&self) -> Vec<u8> {
        let (kind, rest) = match &self.traffic {
            Traffic::Streams => return self.plan.request(),
            Traffic::Datagrams { size } => (1, u32::from(*size).to_le_bytes().to_vec()),
            Traffic::RoundTrips => (2, vec![0; 4]),
            Traffic::Tcp { law } => (3, law.bytes().to_vec()),
        };
        let mut request = self.plan.request();
        if !self.plan.is_extended() {
            request.extend([0; 8]);
        }
        request.push(kind);
        request.extend(rest);
        request
    }

    fn read(request: &[u8]) -> Option<Self> {
        if request.len() <= PLAN_MAX {
            return Some(Self { plan: Plan::read(request)?, traffic: Traffic::Streams });
        }
        let (plan, traffic) = request.split_at(PLAN_MAX);
        let (&kind, rest) = traffic.split_first()?;
        let size = || Some(u32::from_le_bytes(rest.try_into().ok()?));
        let traffic = match kind {
            1 => Traffic::Datagrams { size: size()?.try_into().ok()? },
            2 => size().map(|_| Traffic::RoundTrips)?,
            3 => Traffic::Tcp { law: LawName::read(rest)? },
            _ => return None,
        };
        Some(Self { plan: Plan::read(plan)?, traffic })
    }
}

/// Sends a request of one of the longest forms, and waits until the other end is ready.
async fn begin(connection: &Connection, request: Request) -> Result<(), MeasureError> {
    say(connection, &request.write()).await?;
    let ready = async { Ok::<_, MeasureError>(connection.accept_stream().await?.read_to_end(READY.len()).await?) };
    let refused = match tokio::time::timeout(2 * REQUEST_WITHIN, ready).await {
        Ok(Ok(bytes)) if bytes == READY => return Ok(()),
        Ok(Err(MeasureError::Lost(lost))) => MeasureError::Lost(lost),
        _ => MeasureError::Older,
    };
    connection.abort();
    Err(refused)
}

/// Sends a stream with these bytes.
async fn say(connection: &Connection, bytes: &[u8]) -> Result<(), MeasureError> {
    let mut stream = connection.open_stream().await?;
    stream.write_all(bytes).await?;
    Ok(stream.finish()?)
}

/// Closes, and waits for the other end's close; or ends the connection at once.
async fn end(connection: &Connection, is_done: bool) {
    if is_done {
        let closed = async {
            connection.close().await?;
            connection.closed().await
        };
        _ = tokio::time::timeout(LATE_MAX, closed).await;
    } else {
        connection.abort();
    }
}

/// Limits writers to a rate.
#[derive(Debug)]
struct Throttle {
    rate: Rate,
    /// When the data written so far has used up its time.
    free_at: Mutex<Instant>,
}

impl Throttle {
    fn new(rate: Rate, now: Instant) -> Self {
        Self { rate, free_at: Mutex::new(now) }
    }

    /// The bytes of one write: those of a fiftieth of a second, within limits.
    fn piece(&self) -> usize {
        usize::try_from(self.rate.bits_per_second() / 8 / 50).unwrap_or(BLOCK).clamp(PIECE_LEAST, BLOCK)
    }

    /// When `len` more bytes may be written.
    fn reserve(&self, now: Instant, len: usize) -> Instant {
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        let behind = now.checked_sub(BEHIND_MAX).unwrap_or(now);
        let at = (*free_at).max(behind);
        let span: anabranch_units::Span = self.rate.transmission(Count::new(len as u64));
        *free_at = at + Duration::from_nanos(span.ticks());
        at
    }
}

/// Writes on all streams until the time is over, then resets them, so that what has not left is not sent.
async fn fill(connection: &Connection, plan: Plan) -> Result<(), MeasureError> {
    let until = tokio::time::Instant::now() + plan.time;
    let throttle = plan.rate.map(|rate| Arc::new(Throttle::new(rate, Instant::now())));
    let block = Bytes::from(vec![0x5a; throttle.as_ref().map_or(BLOCK, |throttle| throttle.piece())]);
    let mut streams = JoinSet::new();
    for _ in 0..plan.streams.max(1) {
        let (mut stream, block, throttle) = (connection.open_stream().await?, block.clone(), throttle.clone());
        streams.spawn(async move {
            let write = async {
                loop {
                    if let Some(throttle) = &throttle {
                        tokio::time::sleep_until(throttle.reserve(Instant::now(), block.len()).into()).await;
                    }
                    stream.write_all_bytes(block.clone()).await?;
                }
            };
            match tokio::time::timeout_at(until, write).await {
                Ok(Err(WriteError::Stopped(_))) => Ok(()),
                Ok(Err(error)) => Err::<(), WriteError>(error),
                Ok(Ok(())) => Ok(()),
                Err(_) => {
                    stream.reset(0);
                    Ok(())
                }
            }
        });
    }
    while let Some(ended) = streams.join_next().await {
        ended.map_err(|_| MeasureError::Protocol)??;
    }
    Ok(())
}

impl From<StreamError> for MeasureError {
    fn from(error: StreamError) -> Self {
        if let StreamError::Lost(lost) = error { Self::Lost(lost) } else { Self::Protocol }
    }
}

impl From<WriteError> for MeasureError {
    fn from(error: WriteError) -> Self {
        if let WriteError::Lost(lost) = error { Self::Lost(lost) } else { Self::Protocol }
    }
}

impl From<ReadError> for MeasureError {
    fn from(error: ReadError) -> Self {
        if let ReadError::Lost(lost) = error { Self::Lost(lost) } else { Self::Protocol }
    }
}

impl From<DatagramError> for MeasureError {
    fn from(error: DatagramError) -> Self {
        match error {
            DatagramError::Lost(lost) => Self::Lost(lost),
            DatagramError::Closed => Self::Protocol,
            error => Self::Datagram(error),
        }
    }
}

impl From<Lost> for MeasureError {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost)
    }
}

impl std::fmt::Display for MeasureError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Protocol => f.write_str("the other end does not measure: is it `anabranch bench serve`?"),
            Self::Older => f.write_str(
                "the other end does not measure like that: an older `anabranch bench serve` does not know both directions at once, a rate, datagrams, round trips or TCP",
            ),
            Self::Tcp(place, kind) => write!(
                f,
                "TCP to {place}: {kind}; the other end opens this port for the measurement, so a firewall, a NAT or a relay is in between, or the connection was lost"
            ),
            Self::TcpLaw => f.write_str(
                "the kernel of the sender has no such congestion law for this user: `sysctl net.ipv4.tcp_available_congestion_control` lists them, and ..._allowed_... those that need no root",
            ),
            Self::TcpPort => f.write_str("the other end can open no TCP port"),
            Self::Datagram(error) => error.fmt(f),
            Self::NoReport => f.write_str("the other end has not told its results in time"),
            Self::Lost(lost) => lost.fmt(f),
        }
    }
}

impl std::error::Error for MeasureError {}

const MAGIC: &[u8] = b"ab-bench";

/// The answer to a request of one of the longest forms.
const READY: &[u8] = b"ab-ready";

/// The length of a request.
const REQUEST_MAX: usize = PLAN_MAX + 1 + tcp::LAW;

/// The length of the second form.
const PLAN_MAX: usize = MAGIC.len() + 6 + 8;

/// The longest time that a peer can request.
const TIME_MAX: Duration = Duration::from_secs(86_400);

/// After the time of a plan: longer than the queue of most paths, and short enough to count as the end of the time.
pub const LATE_MAX: Duration = Duration::from_secs(2);

/// When a request must have arrived. It is the first data of a connection, and is retransmitted after one second, then two and four.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);

/// The bytes of one write.
const BLOCK: usize = 256 << 10;

/// The delay for which writers make up.
const BEHIND_MAX: Duration = Duration::from_millis(100);

/// At a low rate, at least about a segment is written at once.
const PIECE_LEAST: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Plan =
        Plan { direction: Direction::Up, streams: 3, time: Duration::from_millis(0x0102_0304), rate: None };

    #[test]
    fn request_known_to_older_ends_is_unchanged() {
        assert_eq!(PLAIN.request(), b"ab-bench\x00\x03\x04\x03\x02\x01");
        let down = Plan { direction: Direction::Down, ..PLAIN };
        assert_eq!(down.request(), b"ab-bench\x01\x03\x04\x03\x02\x01");
        for plan in [PLAIN, down] {
            assert_eq!(Plan::read(&plan.request()), Some(plan));
        }
    }

    /// An older end reads 14 bytes, and rejects a longer request.
    #[test]
    fn request_unknown_to_older_ends_is_longer() {
        let both = Plan { direction: Direction::Both, ..PLAIN };
        assert_eq!(both.request(), b"ab-bench\x02\x03\x04\x03\x02\x01\0\0\0\0\0\0\0\0");
        let capped = Plan { rate: Some(Rate::from_bits_per_second(0x0908)), ..PLAIN };
        assert_eq!(capped.request(), b"ab-bench\x00\x03\x04\x03\x02\x01\x08\x09\0\0\0\0\0\0");
        for plan in [both, capped] {
            assert_eq!(Plan::read(&plan.request()), Some(plan));
        }
        let short = &both.request()[..14];
        for wrong in [&b""[..], b"ab-bench", b"ab-bensh\x00\x03\x04\x03\x02\x01", short, &capped.request()[..20]] {
            assert_eq!(Plan::read(wrong), None, "{wrong:?}");
        }
        assert_eq!(Plan::read(&[&both.request()[..], b"x"].concat()), None);
    }

    /// An end that knows the second form reads 22 bytes, and rejects a longer request.
    #[test]
    fn request_of_datagrams_or_round_trips_is_the_longest() {
        let request = Request { plan: PLAIN, traffic: Traffic::Datagrams { size: 0x0b0a } };
        assert_eq!(request.write(), b"ab-bench\x00\x03\x04\x03\x02\x01\0\0\0\0\0\0\0\0\x01\x0a\x0b\0\0");
        let rate = Some(Rate::from_bits_per_second(7));
        let law = LawName::read(b"cubic\0\0\0\0\0\0\0\0\0\0\0").unwrap();
        for traffic in [Traffic::Datagrams { size: 1 }, Traffic::RoundTrips, Traffic::Tcp { law }, Traffic::Streams] {
            for plan in [PLAIN, Plan { rate, direction: Direction::Both, ..PLAIN }] {
                let request = Request { plan, traffic };
                let bytes = request.write();
                assert!(bytes.len() <= REQUEST_MAX);
                assert_eq!(Request::read(&bytes), Some(request));
            }
        }
        let bytes = request.write();
        (PLAN_MAX + 1..bytes.len()).for_each(|len| assert_eq!(Request::read(&bytes[..len]), None));
        let mut other = bytes.clone();
        other[PLAN_MAX] = 4;
        assert_eq!(Request::read(&other), None);
        other[PLAN_MAX..].copy_from_slice(&[1, 0, 0, 1, 0]);
        assert_eq!(Request::read(&other), None, "no datagram has 65,536 bytes");
    }

    /// 8 Mbit/s are a byte per microsecond. After a delay of a second, the throttle makes up for a tenth of it.
    #[test]
    fn a_throttle_lets_through_what_the_rate_takes() {
        let begin = Instant::now();
        let throttle = Throttle::new(Rate::from_bits_per_second(8_000_000), begin);
        assert_eq!(throttle.piece(), 20_000);
        let at = |now: u64| {
            let now = begin + Duration::from_millis(now);
            throttle.reserve(now, 50_000).duration_since(begin).as_millis()
        };
        assert_eq!(
            [at(0), at(0), at(60), at(1200), at(1200), at(1200), at(1200)],
            [0, 50, 100, 1100, 1150, 1200, 1250]
        );
    }
}
