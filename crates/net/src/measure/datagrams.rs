//! Measures datagrams: how many arrive, and how evenly.
//!
//! ```text
//! datagram   number 8 | time 8 | filling          the time at the sender, in nanoseconds of its own clock
//! told       1 | sent 8 | unsent 8 | zero 8       a sender: datagrams that have left, and those that were dropped before; and when its clock
//!                                                 was zero, in nanoseconds since 1970
//!            2 | received, bytes, out of order, unread, jitter, and of the variation: count, mean, least, p50, p95, p99, largest, and the least
//!                delay, signed; 8 each
//!            3 | size 8                           a sender: this is the largest datagram, so none was sent
//! ```
//!
//! What is told is a stream each, behind the datagrams. The receiver takes what is late for [`GRACE`].
//!
//! The jitter is that of [rfc-3550] sec. 6.4.1: J ← J + (|D| − J)/16, where D is the difference of the transit times of two datagrams that arrive one after
//! the other. The variation is the packet delay variation of [rfc-5481] sec. 4.2: the transit time above the least one. Both need no common clock, as the
//! offset of the clocks cancels; their drift, some 10 µs a second, does not. The one-way delay itself is that by the system clocks of both ends, so it
//! is right only where these agree.
//!
//! A time of arrival is that at which this task reads the datagram, so it includes what a busy machine delays it.

use std::time::{Duration, Instant, SystemTime};

use bytes::{BufMut as _, Bytes, BytesMut};
use tokio::sync::oneshot;

use super::samples::{Quantiles, Samples};
use super::{Direction, LATE_MAX, MeasureError, Plan, Request, Throttle, Traffic};
use crate::DatagramStats;
use crate::connection::Connection;
use crate::error::DatagramError;

/// What became of the datagrams of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramReport {
    /// Datagrams that have left the sender.
    pub sent: u64,
    /// Datagrams that the sender has dropped before: the network took less than the rate.
    pub unsent: u64,
    /// Datagrams that have arrived.
    pub received: u64,
    /// The bytes of the datagrams that have arrived, without any headers.
    pub bytes: u64,
    /// Of them, those that came after one that was sent later.
    pub out_of_order: u64,
    /// Datagrams that have arrived and were dropped, because the receiver was too slow to read them. They are not in `received`.
    pub unread: u64,
    /// The jitter of [rfc-3550] sec. 6.4.1 at the end.
    pub jitter: Duration,
    /// How much longer than the fastest one the datagrams were on their way.
    pub variation: Quantiles,
    /// How long the fastest one was on its way by the system clocks of both ends, in nanoseconds: the one-way delay, if these agree, as after PTP or on
    /// one computer. Of other clocks it may be negative. `None` if nothing has arrived.
    pub delay_least_ns: Option<i64>,
}

/// The results of both directions; `None` for one that was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramReports {
    /// What this end has sent, as the other end has seen it.
    pub up: Option<DatagramReport>,
    /// What the other end has sent.
    pub down: Option<DatagramReport>,
}

impl DatagramReport {
    /// Datagrams that have left the sender, and that the receiver did not get.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }
}

/// Measures datagrams with an end that [serves](super::serve): each sender sends datagrams of `size` bytes at the rate of the plan, or as many as congestion
/// control lets through. The plan's number of streams does not matter.
///
/// # Errors
/// If the other end does not serve, is older, or is lost; if an end takes no datagrams, or none of this size.
pub async fn measure_datagrams(
    connection: &Connection,
    plan: Plan,
    size: u16,
) -> Result<DatagramReports, MeasureError> {
    connection.max_datagram_size()?;
    let request = Request { plan, traffic: Traffic::Datagrams { size } };
    super::begin(connection, request).await?;
    let measured = exchange(connection, plan, size, Role::of_measuring(plan.direction));
    let measured = tokio::time::timeout(plan.time.saturating_add(TOLD_WITHIN), measured).await;
    let measured = measured.unwrap_or(Err(MeasureError::NoReport));
    // A refusal still has to arrive.
    super::end(connection, !matches!(measured, Err(MeasureError::Protocol | MeasureError::NoReport))).await;
    measured
}

/// Serves the request of the other end.
pub(super) async fn serve(connection: &Connection, plan: Plan, size: u16) -> Result<(), MeasureError> {
    let served = exchange(connection, plan, size, Role::of_serving(plan.direction));
    let served = tokio::time::timeout(plan.time.saturating_add(TOLD_WITHIN), served).await;
    let served = served.unwrap_or(Err(MeasureError::NoReport));
    // What was told still has to arrive.
    _ = tokio::time::timeout(LATE_MAX, connection.close()).await;
    served.map(|_| ())
}

/// What an end does.
#[derive(Clone, Copy, Debug)]
struct Role {
    sends: bool,
    receives: bool,
}

impl Role {
    fn of_measuring(direction: Direction) -> Self {
        Self { sends: direction != Direction::Down, receives: direction != Direction::Up }
    }

    fn of_serving(direction: Direction) -> Self {
        Self { sends: direction != Direction::Up, receives: direction != Direction::Down }
    }
}

/// What only the sender knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sent {
    sent: u64,
    unsent: u64,
    /// When its clock was zero, in nanoseconds since 1970.
    zero: u64,
}

/// What the ends tell each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CountMessage {
    Sent(Sent),
    /// Without what only the sender knows.
    Received(DatagramReport),
    /// The size of the largest datagram that can be sent.
    Refused(u64),
}

/// Sends, receives, and reports.
async fn exchange(connection: &Connection, plan: Plan, size: u16, role: Role) -> Result<DatagramReports, MeasureError> {
    let (tell_sent, sent) = oneshot::channel();
    let (tell_received, received) = oneshot::channel();
    let hear = async {
        let (mut tell_sent, mut tell_received) =
            (role.receives.then_some(tell_sent), role.sends.then_some(tell_received));
        while tell_sent.is_some() || tell_received.is_some() {
            let bytes = connection.accept_stream().await?.read_to_end(TOLD_MAX).await?;
            match CountMessage::read(&bytes).ok_or(MeasureError::Protocol)? {
                // Without a receiver of it this end has failed.
                CountMessage::Sent(sent) => _ = tell_sent.take().ok_or(MeasureError::Protocol)?.send(sent),
                CountMessage::Received(report) => _ = tell_received.take().ok_or(MeasureError::Protocol)?.send(report),
                CountMessage::Refused(max) => {
                    return Err(DatagramError::TooLarge { len: size.into(), max: max as usize }.into());
                }
            }
        }
        Ok(())
    };
    let send = async {
        if !role.sends {
            return Ok(None);
        }
        let sent = match send(connection, plan, size).await {
            Err(MeasureError::Datagram(DatagramError::TooLarge { len, max })) => {
                super::say(connection, &CountMessage::Refused(max as u64).write()).await?;
                return Err(DatagramError::TooLarge { len, max }.into());
            }
            sent => sent?,
        };
        super::say(connection, &CountMessage::Sent(sent).write()).await?;
        let received = received.await.map_err(|_| MeasureError::Protocol)?;
        Ok(Some(DatagramReport { sent: sent.sent, unsent: sent.unsent, ..received }))
    };
    let receive = async {
        if !role.receives {
            return Ok(None);
        }
        let report = receive(connection, sent).await?;
        super::say(connection, &CountMessage::Received(report).write()).await?;
        Ok::<_, MeasureError>(Some(report))
    };
    let (up, down, ()) = tokio::try_join!(send, receive, hear)?;
    Ok(DatagramReports { up, down })
}

/// Sends datagrams until the time is over and none waits.
async fn send(connection: &Connection, plan: Plan, size: u16) -> Result<Sent, MeasureError> {
    wait_for_size(connection, size.into()).await?;
    let size = usize::from(size).max(HEAD);
    let (begin, zero) = (Instant::now(), since_1970());
    let until = begin + plan.time;
    let throttle = plan.rate.map(|rate| Throttle::new(rate, begin));
    let before = connection.stats().datagrams;
    let gone = || gone(&connection.stats().datagrams).saturating_sub(gone(&before));
    let (mut offered, mut gone_last, mut room) = (0_u64, 0, ROOM_LEAST);
    loop {
        if let Some(throttle) = &throttle {
            let at = throttle.reserve(Instant::now(), size).min(until);
            tokio::time::sleep_until(at.into()).await;
        } else if offered.is_multiple_of(ROOM_LEAST) && offered.saturating_sub(gone()) >= room {
            tokio::time::sleep(TICK).await;
            // What leaves in two ticks may wait, so that the time in this end's own queue is short.
            let gone = gone();
            room = (2 * gone.saturating_sub(gone_last)).min(ROOM_BYTES / size as u64).max(ROOM_LEAST);
            gone_last = gone;
            if Instant::now() < until {
                continue;
            }
        }
        if Instant::now() >= until {
            break;
        }
        let mut datagram = BytesMut::with_capacity(size);
        datagram.put_u64_le(offered);
        datagram.put_u64_le(nanos(begin));
        datagram.resize(size, 0x5a);
        connection.send_datagram_within(datagram.freeze(), WITHIN)?;
        offered += 1;
        if offered.is_multiple_of(IN_A_ROW) {
            tokio::task::yield_now().await;
        }
    }
    let drained = async {
        while gone() < offered {
            tokio::time::sleep(TICK).await;
        }
    };
    _ = tokio::time::timeout(2 * WITHIN, drained).await;
    let sent = connection.stats().datagrams.sent.saturating_sub(before.sent);
    Ok(Sent { sent, unsent: offered.saturating_sub(sent), zero })
}

/// Datagrams of which it is known whether they are sent.
fn gone(stats: &DatagramStats) -> u64 {
    stats.sent + stats.dropped_unsent + stats.expired
}

/// Waits until the path is known to carry datagrams of this size. At first it is known for 1,200 bytes of UDP payload.
async fn wait_for_size(connection: &Connection, size: usize) -> Result<(), MeasureError> {
    let until = Instant::now() + SIZE_WITHIN;
    loop {
        let max = connection.max_datagram_size()?;
        if max >= size {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(DatagramError::TooLarge { len: size, max }.into());
        }
        // It begins a search for larger packets. No packet takes it.
        _ = connection.send_datagram(Bytes::from_static(&[0; 1 << 16]));
        tokio::time::sleep(10 * TICK).await;
    }
}

/// Reads datagrams until all that were sent have arrived, or can no longer.
async fn receive(connection: &Connection, mut told: oneshot::Receiver<Sent>) -> Result<DatagramReport, MeasureError> {
    let mut arrivals = Arrivals::new();
    let (begin, zero) = (Instant::now(), since_1970());
    let (mut sent, mut is_open) = (None::<Sent>, true);
    let late = tokio::time::sleep(Duration::MAX);
    tokio::pin!(late);
    while sent.is_none_or(|sent| is_open && arrivals.received < sent.sent) {
        tokio::select! {
            biased;
            datagram = connection.read_datagram(), if is_open => {
                match datagram {
                    Ok(datagram) => arrivals.on_datagram(nanos(begin), &datagram),
                    // A refusal may be on its way.
                    Err(DatagramError::Closed) => is_open = false,
                    Err(error) => return Err(error.into()),
                }
                if arrivals.received.is_multiple_of(IN_A_ROW) {
                    tokio::task::yield_now().await;
                }
            }
            result = &mut told, if sent.is_none() => {
                sent = Some(result.map_err(|_| MeasureError::Protocol)?);
                late.as_mut().reset(tokio::time::Instant::now() + GRACE);
            }
            () = &mut late => break,
        }
    }
    let unread = connection.stats().datagrams.dropped_unread;
    let sent = sent.unwrap_or_default();
    let offset = zero.wrapping_sub(sent.zero).cast_signed();
    let delay_least_ns = arrivals.transits.least().map(|least| least.wrapping_add(offset));
    Ok(DatagramReport { sent: sent.sent, unsent: sent.unsent, unread, delay_least_ns, ..arrivals.report() })
}

/// The datagrams that have arrived.
#[derive(Debug)]
struct Arrivals {
    received: u64,
    bytes: u64,
    out_of_order: u64,
    /// The number after the largest one.
    next: u64,
    /// The transit time of the last one: in itself it means nothing, as the clocks differ.
    last: Option<i64>,
    jitter_ns: f64,
    transits: Samples,
}

impl Arrivals {
    fn new() -> Self {
        let transits = Samples::new();
        Self { received: 0, bytes: 0, out_of_order: 0, next: 0, last: None, jitter_ns: 0.0, transits }
    }

    /// A datagram has arrived at this time. One without a head is none of the measurement.
    fn on_datagram(&mut self, now_ns: u64, datagram: &[u8]) {
        let Some((number, rest)) = take(datagram) else { return };
        let Some((sent_ns, _)) = take(rest) else { return };
        // The peer chooses its times: what overflows is wrong, but harms only the result.
        let transit = now_ns.wrapping_sub(sent_ns).cast_signed();
        if let Some(last) = self.last.replace(transit) {
            // [rfc-3550] sec. 6.4.1: J(i) = J(i-1) + (|D(i-1,i)| - J(i-1))/16
            self.jitter_ns += (transit.wrapping_sub(last).unsigned_abs() as f64 - self.jitter_ns) / 16.0;
        }
        self.transits.add(transit);
        self.received += 1;
        self.bytes += datagram.len() as u64;
        self.out_of_order += u64::from(number < self.next);
        self.next = self.next.max(number.saturating_add(1));
    }

    /// Without what only the sender knows.
    fn report(&self) -> DatagramReport {
        DatagramReport {
            received: self.received,
            bytes: self.bytes,
            out_of_order: self.out_of_order,
            jitter: Duration::from_nanos(self.jitter_ns as u64),
            variation: self.transits.variation(),
            ..DatagramReport::default()
        }
    }
}

impl CountMessage {
    fn write(&self) -> Bytes {
        let mut bytes = BytesMut::new();
        let (kind, numbers) = match *self {
            Self::Sent(Sent { sent, unsent, zero }) => (1, vec![sent, unsent, zero]),
            Self::Received(report) => {
                let DatagramReport { received, bytes, out_of_order, unread, jitter, variation, .. } = report;
                let Quantiles { count, mean, least, p50, p95, p99, largest } = variation;
                let times = [mean, least, p50, p95, p99, largest].map(whole_nanos);
                let counts = [received, bytes, out_of_order, unread, whole_nanos(jitter), count];
                let delay = report.delay_least_ns.unwrap_or(UNKNOWN).cast_unsigned();
                (2, [&counts[..], &times, &[delay]].concat())
            }
            Self::Refused(max) => (3, vec![max]),
        };
        bytes.put_u8(kind);
        numbers.into_iter().for_each(|number| bytes.put_u64_le(number));
        bytes.freeze()
    }

    /// `None` if it is malformed.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (&kind, rest) = bytes.split_first()?;
        let (numbers, rest) = rest.as_chunks::<8>();
        let numbers: Vec<u64> = numbers.iter().map(|number| u64::from_le_bytes(*number)).collect();
        match (kind, &numbers[..], rest) {
            (1, &[sent, unsent, zero], []) => Some(Self::Sent(Sent { sent, unsent, zero })),
            (2, &[received, bytes, out_of_order, unread, jitter, count, ref times @ .., delay], []) => {
                let times: [u64; 6] = times.try_into().ok()?;
                let [mean, least, p50, p95, p99, largest] = times.map(Duration::from_nanos);
                let variation = Quantiles { count, mean, least, p50, p95, p99, largest };
                let delay = delay.cast_signed();
                Some(Self::Received(DatagramReport {
                    sent: 0,
                    unsent: 0,
                    received,
                    bytes,
                    out_of_order,
                    unread,
                    jitter: Duration::from_nanos(jitter),
                    variation,
                    delay_least_ns: (delay != UNKNOWN).then_some(delay),
                }))
            }
            (3, &[max], []) => Some(Self::Refused(max)),
            _ => None,
        }
    }
}

fn take(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*number), rest))
}

fn nanos(begin: Instant) -> u64 {
    whole_nanos(begin.elapsed())
}

/// The time of the system's clock.
fn since_1970() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, whole_nanos)
}

fn whole_nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Number and time.
const HEAD: usize = 16;

/// The longest message, a report.
const TOLD_MAX: usize = 1 + 13 * 8;

/// The delay where nothing has arrived.
const UNKNOWN: i64 = i64::MIN;

/// A datagram that the network has not taken within this time is dropped, as by `anabranch tunnel`.
const WITHIN: Duration = Duration::from_millis(250);

/// Datagrams that come so long after the sender's last message count as lost. A network that reorders more would lose calls, too.
const GRACE: Duration = Duration::from_millis(500);

/// Path MTU discovery takes a few round trips, or is in the end as far as it gets.
const SIZE_WITHIN: Duration = Duration::from_secs(2);

/// After the time of a plan both ends tell their results: the times above, and a few round trips of a very slow path.
const TOLD_WITHIN: Duration = Duration::from_secs(10);

/// The resolution of tokio's timers.
const TICK: Duration = Duration::from_millis(1);

/// Without a rate, so many datagrams may wait at least: the initial window of ten, and some more.
const ROOM_LEAST: u64 = 16;

/// Without a rate, so many bytes may wait at most, which is half of the default send buffer.
const ROOM_BYTES: u64 = 512 << 10;

/// Datagrams without a turn for other tasks.
const IN_A_ROW: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(number: u64, sent_ns: u64) -> Vec<u8> {
        [number.to_le_bytes(), sent_ns.to_le_bytes()].concat()
    }

    /// If each transit time differs from the one before by d, the n-th jitter is d (1 − (15/16)^n). The clocks differ by an hour.
    #[test]
    fn jitter_of_equal_differences_is_a_geometric_series() {
        let mut arrivals = Arrivals::new();
        let (difference, hour) = (1_600_000, 3_600_000_000_000);
        for number in 0..=32 {
            let delay = if number % 2 == 0 { 10_000_000 } else { 10_000_000 + difference };
            arrivals.on_datagram(hour + 20_000_000 * number + delay, &datagram(number, 20_000_000 * number));
        }
        // (15/16)^32 = 0.1267888...
        assert!((arrivals.jitter_ns - 1_600_000.0 * (1.0 - 0.126_788_8)).abs() < 2.0, "{}", arrivals.jitter_ns);
        let variation = arrivals.report().variation;
        assert_eq!((variation.least, variation.largest), (Duration::ZERO, Duration::from_nanos(difference)));
        assert_eq!((arrivals.received, arrivals.out_of_order), (33, 0));
    }

    #[test]
    fn datagrams_behind_later_ones_are_counted() {
        let mut arrivals = Arrivals::new();
        [0, 2, 1, 5, 3, 4, 6].into_iter().for_each(|number| arrivals.on_datagram(0, &datagram(number, 0)));
        assert_eq!((arrivals.received, arrivals.out_of_order, arrivals.bytes), (7, 3, 7 * 16));
    }

    /// Times and numbers of a hostile sender, and datagrams that are too short.
    #[test]
    fn senseless_datagrams_do_no_harm() {
        let mut arrivals = Arrivals::new();
        for bytes in [vec![], vec![0; 15], datagram(u64::MAX, 0), datagram(0, u64::MAX), datagram(7, 1 << 63)] {
            arrivals.on_datagram(u64::MAX / 3, &bytes);
        }
        assert_eq!((arrivals.received, arrivals.out_of_order), (3, 2));
        assert!(arrivals.jitter_ns.is_finite());
    }

    #[test]
    fn told_results_come_back_and_cut_ones_are_refused() {
        let spans = [1, 2, 3, 4, 5, 6].map(Duration::from_nanos);
        let [mean, least, p50, p95, p99, largest] = spans;
        let variation = Quantiles { count: 9, mean, least, p50, p95, p99, largest };
        let jitter = Duration::from_millis(5);
        let report = DatagramReport {
            received: 8,
            bytes: 7,
            out_of_order: 6,
            unread: 5,
            jitter,
            variation,
            delay_least_ns: Some(-4),
            ..Default::default()
        };
        let sent = Sent { sent: 5, unsent: 6, zero: 7 };
        let nothing = DatagramReport { delay_least_ns: None, ..report };
        for told in [
            CountMessage::Sent(sent),
            CountMessage::Received(report),
            CountMessage::Received(nothing),
            CountMessage::Refused(1416),
        ] {
            let bytes = told.write();
            assert!(bytes.len() <= TOLD_MAX);
            assert_eq!(CountMessage::read(&bytes), Some(told));
            (0..bytes.len()).for_each(|len| assert_eq!(CountMessage::read(&bytes[..len]), None));
        }
        assert_eq!(CountMessage::read(&[9; 17]), None);
    }
}
