//! Unreliable datagrams: what waits to be sent, and what waits to be read.
//!
//! ```text
//! send ──> queue ──its turn──> segment of SID 4095 ──arrives──> queue ──> read
//!            │                        │
//!  oldest dropped, or expired         └──lost──> void, SID 4094: the same sequence space without the data
//! ```
//!
//! A datagram is a segment with sequence space of its own, so acknowledgements, nonces, loss detection, congestion control, pacing, paths and failover treat it
//! as any segment. Two things differ. It is delivered when it arrives, whatever is missing. And if it is lost, its place is filled by a *void*: a stream
//! header that says how many bytes it stands for. So the cumulative acknowledgement goes on, and the law learns of the loss, but nothing is repaired.
//!
//! The alternative, numbers outside of the sequence space as QUIC has them, needs a second scoreboard, acknowledgement, proof of receipt and loss detection,
//! and the law would have to be told of both in one order. A void costs a packet of 56 bytes for each lost datagram.
//!
//! A late datagram whose void came first is a duplicate, and is dropped: no datagram is delivered twice.
//!
//! **Sharing with streams.** Records go first. While both streams and datagrams wait, each gets half of the bytes: the turn belongs to the datagrams unless
//! they are ahead. Whoever has less than half to send gets all it needs, and the other the rest. A turn passes on if the peer's window or a stream's credit
//! keeps its owner from sending, but not if the congestion window does, for which a shorter segment of the other must not overtake.
//!
//! **Urgency.** [`Urgency::Urgent`] datagrams have a short queue of their own, which goes before the other by the same rule: each gets half while both wait. So
//! few urgent ones wait for nobody, and a flood of them gets no more than half. What finds their queue full waits with the others.

use std::collections::VecDeque;

use anabranch_units::Time;

use crate::payload::Payload;

/// Counters of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramStats {
    /// Datagrams that were sent, each once.
    pub sent: u64,
    /// Sent datagrams that have certainly arrived: they were acknowledged before a void was sent for them.
    pub delivered: u64,
    /// Sent datagrams that count as lost: a void was sent in the place of each. A few may have arrived late nevertheless.
    pub lost: u64,
    /// Datagrams that were dropped before they were sent because newer ones needed their room in the send queue.
    pub dropped_unsent: u64,
    /// Datagrams that were dropped before they were sent because they had expired.
    pub expired: u64,
    /// Datagrams that arrived.
    pub received: u64,
    /// Datagrams of the peer that did not arrive: their voids did.
    pub missed: u64,
    /// Arrived datagrams that were dropped because newer ones needed their room before they were read.
    pub dropped_unread: u64,
}

/// Why a datagram cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendDatagramError {
    /// The connection is not yet, or no longer, open for sending.
    NotOpen,
    /// This end has switched datagrams off, by [`crate::Config::datagram_receive_buffer`] or
    /// [`crate::Config::datagram_send_buffer`].
    Disabled,
    /// The peer does not take datagrams: it does not have [`crate::Features::DATAGRAMS`]. Nor does a connection in the TCP form
    /// or without streams.
    Unsupported,
    /// The datagram is too large for a packet of any path, or for the send queue.
    TooLarge {
        /// The bytes of the datagram.
        len: u32,
        /// The most that can be sent now.
        max: u32,
    },
}

/// How a datagram is sent. The peer does not learn of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Urgency {
    /// In order, on the path with the least RTT among those with room.
    #[default]
    Usual,
    /// Before those that are not urgent, and on the path on which it is expected to arrive first: it waits for room on a quick path rather than take
    /// a slow one, for at most the difference of their delays.
    Urgent,
}

/// Datagrams that wait to be sent.
#[derive(Debug)]
pub(crate) struct Outgoing<P> {
    queue: Queue<Waiting<P>>,
    urgent: Queue<Waiting<P>>,
    /// The weight of both; zero if nothing waits.
    weight: u64,
    /// Whether both ends have the feature.
    is_agreed: bool,
    /// How far datagrams are ahead of streams, and urgent datagrams of others.
    lead: Lead,
    lead_of_urgent: Lead,
    /// Large datagrams lost in a row.
    large_lost: u32,
    pub(crate) stats: OutgoingStats,
}

/// A datagram in the queue.
#[derive(Debug)]
struct Waiting<P> {
    payload: P,
    since: Time,
    expires: Time,
}

/// Bytes by which one of two is ahead of the other since both wait.
#[derive(Clone, Copy, Debug, Default)]
struct Lead(i64);

/// The counters of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutgoingStats {
    pub(crate) sent: u64,
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    pub(crate) dropped: u64,
    pub(crate) expired: u64,
}

/// Datagrams that have arrived.
#[derive(Debug)]
pub(crate) struct Incoming<P> {
    queue: Queue<P>,
    /// Whether the application was informed that there is something to read.
    is_told: bool,
    pub(crate) received: u64,
    pub(crate) missed: u64,
    pub(crate) dropped: u64,
}

/// A queue of limited weight.
#[derive(Debug)]
struct Queue<T> {
    items: VecDeque<T>,
    /// The weight of all items; at most `limit`.
    weight: u64,
    limit: u64,
}

impl<P: Payload> Outgoing<P> {
    /// A queue of at most `limit` bytes, each datagram with [`WEIGHT`] bytes more than it has.
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            queue: Queue::new(limit),
            urgent: Queue::new(limit.min(URGENT_MAX)),
            weight: 0,
            is_agreed: false,
            lead: Lead::default(),
            lead_of_urgent: Lead::default(),
            large_lost: 0,
            stats: OutgoingStats::default(),
        }
    }

    /// The handshake is over.
    pub(crate) fn agree(&mut self, is_agreed: bool) {
        self.is_agreed = is_agreed;
    }

    /// Whether both ends have the feature.
    pub(crate) fn is_agreed(&self) -> bool {
        self.is_agreed
    }

    /// The largest datagram that the queue takes.
    pub(crate) fn len_max(&self) -> u32 {
        u32::try_from(self.queue.limit.saturating_sub(WEIGHT)).unwrap_or(u32::MAX)
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.weight == 0
    }

    /// Queues a datagram, which is not sent after `expires`. Drops the oldest ones if there is no room for it, first those that are not urgent.
    pub(crate) fn push(&mut self, now: Time, payload: P, expires: Time, urgency: Urgency) {
        debug_assert!(payload.len() <= self.len_max(), "it was checked");
        self.expire(now);
        let weight = weigh(&payload);
        while self.weight + weight > self.queue.limit
            && self.take(Urgency::Usual).or_else(|| self.take(Urgency::Urgent)).is_some()
        {
            self.stats.dropped += 1;
        }
        let is_urgent = urgency == Urgency::Urgent && self.urgent.has_room(weight);
        let queue = if is_urgent { &mut self.urgent } else { &mut self.queue };
        queue.push(Waiting { payload, since: now, expires }, weight);
        self.weight += weight;
    }

    /// Drops the expired datagrams in front.
    pub(crate) fn expire(&mut self, now: Time) {
        for urgency in [Urgency::Usual, Urgency::Urgent] {
            while self.of(urgency).items.front().is_some_and(|waiting| waiting.expires < now) {
                self.take(urgency);
                self.stats.expired += 1;
            }
        }
    }

    /// Bytes of the next datagram of an urgency.
    pub(crate) fn peek(&self, urgency: Urgency) -> Option<u32> {
        self.of(urgency).items.front().map(|waiting| waiting.payload.len())
    }

    /// Since when the next urgent datagram waits.
    pub(crate) fn urgent_since(&self) -> Option<Time> {
        self.urgent.items.front().map(|waiting| waiting.since)
    }

    /// Takes the next datagram of an urgency, which is sent now, while streams wait or not. `framing` bytes of sequence space are sent with it.
    pub(crate) fn pop(&mut self, urgency: Urgency, framing: u32, do_streams_wait: bool) -> Option<P> {
        let Waiting { payload, .. } = self.take(urgency)?;
        self.stats.sent += 1;
        let space = payload.len() + framing;
        self.lead.on_first(space, do_streams_wait);
        match urgency {
            Urgency::Usual => self.lead_of_urgent.on_second(space, !self.urgent.items.is_empty()),
            Urgency::Urgent => self.lead_of_urgent.on_first(space, !self.queue.items.is_empty()),
        }
        Some(payload)
    }

    /// Whether it is the turn of the datagrams, if streams wait, too.
    pub(crate) fn has_turn(&self) -> bool {
        self.lead.is_turn_of_first()
    }

    /// Whether it is the turn of an urgent datagram, if one waits.
    pub(crate) fn has_urgent_turn(&self) -> bool {
        self.lead_of_urgent.is_turn_of_first() || self.queue.items.is_empty()
    }

    /// New data of streams was sent.
    pub(crate) fn on_stream_sent(&mut self, space: u32) {
        if self.lead.0 != 0 || !self.is_empty() {
            self.lead.on_second(space, !self.is_empty());
        }
    }

    fn take(&mut self, urgency: Urgency) -> Option<Waiting<P>> {
        let queue = match urgency {
            Urgency::Usual => &mut self.queue,
            Urgency::Urgent => &mut self.urgent,
        };
        let taken = queue.pop(Waiting::weigh)?;
        self.weight -= taken.weigh();
        Some(taken)
    }

    fn of(&self, urgency: Urgency) -> &Queue<Waiting<P>> {
        match urgency {
            Urgency::Usual => &self.queue,
            Urgency::Urgent => &self.urgent,
        }
    }

    /// A void is sent for a datagram, which counts as lost from now on. Returns whether that casts doubt on the path MTU.
    pub(crate) fn on_lost(&mut self, is_large: bool) -> bool {
        self.stats.lost += 1;
        self.large_lost += u32::from(is_large);
        let is_doubtful = self.large_lost >= LARGE_LOST_MAX;
        if is_doubtful {
            self.large_lost = 0;
        }
        is_doubtful
    }

    /// A datagram was acknowledged for which no void was sent.
    pub(crate) fn on_delivered(&mut self, is_large: bool) {
        self.stats.delivered += 1;
        if is_large {
            self.large_lost = 0;
        }
    }
}

impl<P: Payload> Incoming<P> {
    /// A queue of at most `limit` bytes, each datagram with [`WEIGHT`] bytes more than it has.
    pub(crate) fn new(limit: u64) -> Self {
        Self { queue: Queue::new(limit), is_told: false, received: 0, missed: 0, dropped: 0 }
    }

    /// A datagram arrived for the first time. Drops the oldest ones if there is no room for it. Returns whether the application
    /// must be informed.
    pub(crate) fn push(&mut self, mut payload: P) -> bool {
        self.received += 1;
        let weight = weigh(&payload);
        if weight > self.queue.limit {
            self.dropped += 1;
            return false;
        }
        while !self.queue.has_room(weight) && self.queue.pop(weigh).is_some() {
            self.dropped += 1;
        }
        if self.queue.items.len() >= SHARED_MAX {
            payload.detach();
        }
        self.queue.push(payload, weight);
        !std::mem::replace(&mut self.is_told, true)
    }

    /// The oldest datagram.
    pub(crate) fn pop(&mut self) -> Option<P> {
        let payload = self.queue.pop(weigh);
        self.is_told &= payload.is_some();
        payload
    }

    /// For tests: the weight of what waits.
    #[cfg(test)]
    pub(crate) fn weight(&self) -> u64 {
        self.queue.weight
    }
}

impl<P: Payload> Waiting<P> {
    fn weigh(&self) -> u64 {
        weigh(&self.payload)
    }
}

impl Lead {
    fn is_turn_of_first(self) -> bool {
        self.0 <= 0
    }

    /// The first one has sent `space` bytes, while the second waits or not. Who waits alone saves nothing up.
    fn on_first(&mut self, space: u32, does_second_wait: bool) {
        self.0 = if does_second_wait { (self.0 + i64::from(space)).min(LEAD_MAX) } else { self.0.min(0) };
    }

    /// As [`Self::on_first`], the other way round.
    fn on_second(&mut self, space: u32, does_first_wait: bool) {
        self.0 = (self.0 - i64::from(space)).max(if does_first_wait { -LEAD_MAX } else { 0 });
    }
}

impl<T> Queue<T> {
    fn new(limit: u64) -> Self {
        Self { items: VecDeque::new(), weight: 0, limit }
    }

    fn has_room(&self, weight: u64) -> bool {
        self.weight + weight <= self.limit
    }

    fn push(&mut self, item: T, weight: u64) {
        self.weight += weight;
        self.items.push_back(item);
        debug_assert!(self.weight <= self.limit, "room is made before");
    }

    fn pop(&mut self, weigh: impl FnOnce(&T) -> u64) -> Option<T> {
        let item = self.items.pop_front()?;
        self.weight -= weigh(&item);
        Some(item)
    }
}

fn weigh<P: Payload>(payload: &P) -> u64 {
    u64::from(payload.len()) + WEIGHT
}

/// What a datagram takes in a queue in addition to its bytes: an entry of 40 bytes in a ring that grows to twice its length, and an allocation.
pub(crate) const WEIGHT: u64 = 128;

/// How far one side can be ahead of the other: the longest segment. While one cannot send for lack of credit or window, the other goes on, and does not pay
/// for that later.
const LEAD_MAX: i64 = 1 << 16;

/// Weight of the urgent datagrams that may wait. A quarter of a second of a call; what comes faster than it leaves waits with the others.
const URGENT_MAX: u64 = 1 << 15;

/// So many unread datagrams may share memory with the batch in which they arrived; later ones are copied. At 64 kB each this is 4 MB.
const SHARED_MAX: usize = 64;

/// So many lost datagrams in a row that are longer than every path carries, and none that arrived: the path MTU may have shrunk. Their voids are short, so
/// the losses of retransmissions, which tell it otherwise, do not occur. With a random loss of 10 % this happens once in 10^8 datagrams; it costs a probe.
const LARGE_LOST_MAX: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;
    use crate::testing::at;

    /// Room for ten datagrams of 100 bytes.
    fn outgoing() -> Outgoing<Virtual> {
        Outgoing::new(10 * (100 + WEIGHT))
    }

    fn push(queue: &mut Outgoing<Virtual>, len: u32, expires: Time) {
        queue.push(at(0), Virtual(len), expires, Urgency::Usual);
    }

    #[test]
    fn full_send_queue_drops_the_oldest() {
        let mut queue = outgoing();
        (0..12).for_each(|_| push(&mut queue, 100, Time::NEVER));
        push(&mut queue, 101, Time::NEVER);
        assert_eq!((queue.stats.dropped, queue.queue.items.len()), (4, 9), "two of 100 make room for one of 101");
        assert_eq!(queue.len_max(), 10 * 228 - 128);
    }

    /// The time limit is inclusive. An expired datagram behind one that is not waits for its turn to be dropped.
    #[test]
    fn expired_datagrams_are_not_sent() {
        let mut queue = outgoing();
        for (len, expires) in [(1, at(5)), (2, at(9)), (3, at(7)), (4, Time::NEVER)] {
            push(&mut queue, len, expires);
        }
        queue.expire(at(5));
        assert_eq!((queue.peek(Urgency::Usual), queue.stats.expired), (Some(1), 0));
        queue.expire(at(6));
        assert_eq!((queue.peek(Urgency::Usual), queue.stats.expired), (Some(2), 1));
        queue.expire(at(10));
        assert_eq!(
            (queue.pop(Urgency::Usual, 4, false), queue.stats.expired, queue.stats.sent),
            (Some(Virtual(4)), 3, 1)
        );
        assert!(queue.is_empty() && queue.queue.weight == 0);
    }

    /// Both wait all the time: bytes differ by at most one segment, whatever the sizes.
    #[test]
    fn both_get_half_of_the_bytes() {
        for (datagram, stream) in [(100, 1400), (1400, 100), (1000, 1000), (4, 65_000)] {
            let mut queue = outgoing();
            push(&mut queue, 1, Time::NEVER);
            let mut sent = [0_u64; 2];
            for _ in 0..10_000 {
                if queue.has_turn() {
                    queue.lead.on_first(datagram, true);
                    sent[0] += u64::from(datagram);
                } else {
                    queue.on_stream_sent(stream);
                    sent[1] += u64::from(stream);
                }
                assert!(sent[0].abs_diff(sent[1]) <= u64::from(datagram.max(stream)), "{datagram}, {stream}: {sent:?}");
            }
        }
    }

    /// A side that waited alone has saved nothing up for later.
    #[test]
    fn side_that_waits_alone_saves_nothing_up() {
        let mut queue = outgoing();
        (0..100).for_each(|_| queue.on_stream_sent(1000));
        assert_eq!(queue.lead.0, 0);
        push(&mut queue, 1, Time::NEVER);
        (0..100).for_each(|_| queue.lead.on_first(1000, false));
        assert_eq!(queue.lead.0, 0);
        queue.lead.on_first(1000, true);
        assert!(!queue.has_turn(), "the next is a stream's, also after a while");
        queue.on_stream_sent(1000);
        assert!(queue.has_turn());
    }

    #[test]
    fn unread_datagrams_make_room_for_newer_ones() {
        let mut queue = Incoming::new(3 * (10 + WEIGHT));
        assert!(queue.push(Virtual(10)));
        (0..4).for_each(|_| assert!(!queue.push(Virtual(10)), "it is told once"));
        assert_eq!((queue.received, queue.dropped, queue.weight()), (5, 2, 3 * 138));
        assert!(!queue.push(Virtual(4000)), "there is never room for it");
        assert_eq!(queue.dropped, 3);
        (0..3).for_each(|_| assert_eq!(queue.pop(), Some(Virtual(10))));
        assert_eq!((queue.pop(), queue.weight()), (None, 0));
        assert!(queue.push(Virtual(0)) && queue.pop() == Some(Virtual(0)) && queue.pop().is_none());
        assert!(queue.push(Virtual(7)), "told again after nothing was left");
    }

    /// 28 of 1000 bytes fill the short queue; later ones wait with the others, and none is lost.
    #[test]
    fn urgent_datagrams_beyond_their_queue_wait_with_others() {
        let mut queue = Outgoing::new(1 << 20);
        (0..100).for_each(|_| queue.push(at(0), Virtual(1000), Time::NEVER, Urgency::Urgent));
        assert_eq!((queue.urgent.items.len(), queue.queue.items.len()), (29, 71));
        let taken = |queue: &mut Outgoing<_>, urgency| {
            std::iter::from_fn(|| queue.pop(urgency, 4, false)).map(|_: Virtual| ()).count()
        };
        assert_eq!((taken(&mut queue, Urgency::Urgent), taken(&mut queue, Urgency::Usual)), (29, 71));
        assert!(queue.is_empty() && queue.stats.dropped == 0);
    }

    /// Room for ten in all: an eleventh takes the place of one that is not urgent, and only then of urgent ones.
    #[test]
    fn full_send_queue_drops_urgent_datagrams_last() {
        let mut queue = outgoing();
        (0..3).for_each(|_| queue.push(at(0), Virtual(100), Time::NEVER, Urgency::Urgent));
        (0..12).for_each(|_| push(&mut queue, 100, Time::NEVER));
        assert_eq!((queue.urgent.items.len(), queue.queue.items.len(), queue.stats.dropped), (3, 7, 5));
        (0..9).for_each(|_| queue.push(at(0), Virtual(100), Time::NEVER, Urgency::Urgent));
        assert_eq!((queue.urgent.items.len(), queue.queue.items.len(), queue.stats.dropped), (10, 0, 14));
    }

    #[test]
    fn only_large_losses_in_a_row_cast_doubt() {
        let mut queue = outgoing();
        let lose = |queue: &mut Outgoing<_>, count| (0..count).filter(|_| queue.on_lost(true)).count();
        assert_eq!(lose(&mut queue, 7), 0);
        queue.on_delivered(false);
        assert!(!queue.on_lost(false));
        queue.on_delivered(true);
        assert_eq!(lose(&mut queue, 7), 0);
        assert_eq!((lose(&mut queue, 1), lose(&mut queue, 8)), (1, 1));
    }
}
