//! Carries packets over a connection, in both directions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anabranch::{Connection, DatagramError, Path, PathState, RecvStream, SendStream};
use bytes::{BufMut as _, Bytes, BytesMut};
use tokio::sync::mpsc;
use tokio::time::{interval, sleep, sleep_until};

use super::lane::{HEAD_LEN, Lane, take_place};
use super::order::{Numbers, Order};
use super::packet::Header;
use super::queue::Taken;
use super::{MTU_MIN, PACKET_MAX};
use crate::flow::{self, FlowNumber};

/// What carries the packets of one client.
pub(crate) struct Streams<'a> {
    pub(crate) connection: &'a Connection,
    /// The number in our datagrams.
    pub(crate) number: FlowNumber,
    /// The other end's datagrams.
    pub(crate) inbox: mpsc::Receiver<Bytes>,
    pub(crate) out: SendStream,
    pub(crate) back: RecvStream,
}

/// A queue for the other end's datagrams, until they are put in order.
pub(crate) fn inbox() -> (mpsc::Sender<Bytes>, mpsc::Receiver<Bytes>) {
    mpsc::channel(INBOX_MAX)
}

impl Streams<'_> {
    /// Moves packets until an end stops, or the lane is closed. `admit` tells whether the other end may send a packet; what it may goes to `sink`, and is
    /// lost if that is full. `on_mtu` is told the largest packet that a datagram carries.
    pub(crate) async fn carry(
        self,
        lane: &Lane,
        admit: impl Fn(&Header) -> bool,
        sink: &mpsc::Sender<Bytes>,
        on_mtu: impl Fn(u16),
    ) {
        let Self { connection, number, mut inbox, mut out, mut back } = self;
        let hold = AtomicU64::new(0);
        let (large, mut larges) = mpsc::channel::<Bytes>(LARGE_MAX);
        let take = |packet: Bytes| {
            if Header::read(&packet).is_some_and(|header| admit(&header)) {
                _ = sink.try_send(packet);
            }
        };
        let up = async {
            let (mut numbers, mut room) = (Numbers::new(), Room::new(Instant::now()));
            loop {
                room.wait(connection).await;
                let Some(Taken { packet, is_sparse }) = lane.next().await else { return };
                let place = numbers.next(packet.row());
                let datagram = packet.framed(number.bits(), place);
                match flow::send_datagram(connection, datagram.clone(), EXPIRES, is_sparse) {
                    Ok(()) => room.queued += 1,
                    Err(DatagramError::TooLarge { .. } | DatagramError::Disabled | DatagramError::Unsupported) => {
                        _ = large.try_send(datagram.slice(HEAD_LEN..));
                    }
                    Err(_) => return,
                }
            }
        };
        let large = async {
            while let Some(packet) = larges.recv().await {
                let mut framed = BytesMut::with_capacity(2 + packet.len());
                // A packet of IP is never longer.
                framed.put_u16_le(packet.len().min(PACKET_MAX) as u16);
                framed.put_slice(&packet[..packet.len().min(PACKET_MAX)]);
                if out.write_all_bytes(framed.freeze()).await.is_err() {
                    return;
                }
            }
        };
        let down = async {
            let mut order = Order::new();
            loop {
                let span = Duration::from_nanos(hold.load(Ordering::Relaxed));
                let deadline = order.deadline(span);
                let due = async {
                    match deadline {
                        Some(at) => sleep_until(at.into()).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    datagram = inbox.recv() => {
                        let Some(mut datagram) = datagram else { return };
                        if let Some(place) = take_place(&mut datagram) {
                            order.put(Instant::now(), span, place, datagram, take);
                        }
                    }
                    () = due => {}
                }
                order.release(Instant::now(), span, take);
            }
        };
        let streamed = async {
            loop {
                let mut len = [0; 2];
                if back.read_exact(&mut len).await.is_err() {
                    return;
                }
                let mut packet = vec![0; u16::from_le_bytes(len).into()];
                if back.read_exact(&mut packet).await.is_err() {
                    return;
                }
                take(packet.into());
            }
        };
        let watched = async {
            let (mut looks, mut last) = (interval(LOOK_EACH), None);
            for look in 0_u64.. {
                looks.tick().await;
                if look < SEARCHES_FIRST || look % SEARCH_EACH == 0 {
                    // It is refused, and begins a search for the largest packet: what the device sends is never too large, so it begins none.
                    flow::search(connection);
                }
                let paths = connection.paths();
                hold.store(held_for(&paths).as_nanos() as u64, Ordering::Relaxed);
                let now = connection.max_datagram_size().ok().map(|len| mtu(&paths, len));
                if let Some(mtu) = now.filter(|_| now != last) {
                    last = now;
                    on_mtu(mtu);
                }
            }
        };
        tokio::select! {
            () = up => {}
            () = large => {}
            () = down => {}
            () = streamed => {}
            () = watched => {}
        }
        _ = out.finish();
    }
}

/// How many datagrams may wait in the connection. More would wait there in one row, and not in the fair queue.
#[derive(Debug)]
struct Room {
    /// Datagrams that were queued, and those of them that have left or were dropped.
    queued: u64,
    left: u64,
    most: u64,
    /// When the rate was measured last, and what had left by then.
    since: Instant,
    left_since: u64,
}

impl Room {
    fn new(now: Instant) -> Self {
        Self { queued: 0, left: 0, most: WAITING_LEAST, since: now, left_since: 0 }
    }

    /// Waits until another one may be queued.
    async fn wait(&mut self, connection: &Connection) {
        let mut has_slept = false;
        while self.queued >= self.left + self.most {
            let stats = connection.stats().datagrams;
            let left = stats.sent + stats.dropped_unsent + stats.expired;
            if has_slept && left >= self.queued {
                self.on_starved(Instant::now(), left);
            } else {
                self.on_left(Instant::now(), left);
            }
            if self.queued >= self.left + self.most {
                sleep(AGAIN).await;
                has_slept = true;
            }
        }
    }

    /// So many have left.
    fn on_left(&mut self, now: Instant, left: u64) {
        // Other flows of the connection count there, too.
        self.queued = self.queued.max(left);
        self.left = left;
        let span = now.duration_since(self.since);
        if span >= RATE_OVER {
            let rate = (left - self.left_since) as f64 / span.as_secs_f64();
            let wanted = ((rate * WAITING.as_secs_f64()) as u64).clamp(WAITING_LEAST, WAITING_MOST);
            self.most = if wanted > self.most { wanted } else { self.most - (self.most - wanted).div_ceil(8) };
            (self.since, self.left_since) = (now, left);
        }
    }

    /// All had left during a pause, which was longer than they lasted, as on a busy computer: more may wait.
    fn on_starved(&mut self, now: Instant, left: u64) {
        (self.queued, self.left) = (self.queued.max(left), left);
        (self.since, self.left_since) = (now, left);
        self.most = (2 * self.most).min(WAITING_MOST);
    }
}

/// For how long packets are held that came before their turn: the difference of the paths' RTTs, which is twice that of their delays if both ways are alike.
fn held_for(paths: &[Path]) -> Duration {
    let live = || paths.iter().filter(|path| path.state == PathState::Live);
    if live().count() < 2 {
        return Duration::ZERO;
    }
    let rtts: Vec<_> = live().filter_map(|path| path.report.rtt_smoothed).map(|rtt| rtt.ticks()).collect();
    let difference = rtts.iter().max().unwrap_or(&0) - rtts.iter().min().unwrap_or(&0);
    let least = if rtts.len() < live().count() { HOLD_UNKNOWN } else { Duration::ZERO };
    (Duration::from_nanos(difference).max(least) + HOLD_MORE).min(HOLD_MOST)
}

/// The largest packet that a datagram carries on each path that is in use. `len` is the largest datagram.
fn mtu(paths: &[Path], len: usize) -> u16 {
    let live =
        || paths.iter().filter(|path| path.state == PathState::Live).map(|path| path.report.datagram_max as usize);
    let less = live().max().unwrap_or(0) - live().min().unwrap_or(0);
    let packet = len.saturating_sub(HEAD_LEN).saturating_sub(less);
    packet.clamp(MTU_MIN.into(), MTU_MOST.into()) as u16
}

/// Datagrams of the other end that wait to be put in order: a burst of a fast path.
const INBOX_MAX: usize = 1024;

/// Packets that wait for a stream because they are too large.
const LARGE_MAX: usize = 64;

/// A datagram that the connection has taken leaves in some milliseconds. If the path has failed meanwhile, it is of no use later.
const EXPIRES: Duration = Duration::from_millis(250);

/// How long the datagrams are to wait in the connection: several times the pause between two looks, which the timer makes two milliseconds at least.
const WAITING: Duration = Duration::from_millis(5);
const WAITING_LEAST: u64 = 8;
const WAITING_MOST: u64 = 512;
const RATE_OVER: Duration = Duration::from_millis(20);

/// The pause until the next look whether there is room.
const AGAIN: Duration = Duration::from_millis(1);

/// What the delays of the paths vary.
const HOLD_MORE: Duration = Duration::from_millis(10);
/// The difference as long as the RTT of a path is not known.
const HOLD_UNKNOWN: Duration = Duration::from_millis(50);
const HOLD_MOST: Duration = Duration::from_millis(100);

/// How often paths and their MTU are looked at.
const LOOK_EACH: Duration = Duration::from_millis(100);

/// At the begin a search needs some round trips; later one a minute finds what has changed.
const SEARCHES_FIRST: u64 = 30;
const SEARCH_EACH: u64 = 600;

/// The largest packet of a connection.
const MTU_MOST: u16 = 9000;

#[cfg(test)]
mod tests {
    use super::*;

    /// At 4,000 a second, 20 wait for 5 ms; without any, 8 do after some time.
    #[test]
    fn room_follows_the_rate() {
        let begin = Instant::now();
        let mut room = Room::new(begin);
        room.queued = 16;
        for millis in 1..=100 {
            room.on_left(begin + Duration::from_millis(millis), 4 * millis);
        }
        assert_eq!(room.most, 20);
        for second in 1..20 {
            room.on_left(begin + Duration::from_secs(second), 401);
        }
        assert_eq!((room.most, room.queued, room.left), (WAITING_LEAST, 401, 401));
    }

    /// A pause in which all leave doubles what may wait, up to the limit.
    #[test]
    fn room_of_a_starved_connection_grows() {
        let mut room = Room::new(Instant::now());
        for times in 1..10 {
            room.on_starved(Instant::now(), 100);
            assert_eq!(room.most, (WAITING_LEAST << times).min(WAITING_MOST));
        }
    }
}
