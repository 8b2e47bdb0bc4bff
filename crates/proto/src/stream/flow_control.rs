//! Flow-control credit of streams: it keeps an unread stream from blocking the others.
//!
//! All streams share one receive window, and unread data fills it. If the buffer (`rbuf`) has room for all granted credit, a
//! sender that stays within its streams' credit always finds the window open. So credit divides the buffer:
//!
//! ```text
//! rbuf  =  a reserve for the control stream, which needs no credit
//!       +  streams × base: what each stream may always have, whatever the others hold
//!       +  a pool, of which a stream gets a part of what the others leave
//! ```
//!
//! At first the base is the initial credit: a quarter of rbuf for the first 255 streams, and as much for all others. When rbuf
//! grows, half of the growth is added to the bases and half to the pool. So the sum of granted and unread bytes never exceeds
//! rbuf, and every stream can go on.
//!
//! **Credit follows what the reader takes.** A stream starts with its initial credit, and has four times what was read of it in a
//! round trip: so its credit doubles with slow start, and a stream that is read slowly, or no longer, is granted no more than it
//! needs. Granted credit cannot be revoked. So a stream whose reader stops keeps what it had: four round trips of its own rate at
//! most, and at most 2/(3 + 2n) of what others leave of the pool, where n other streams hold parts of it. A single stream may have
//! two thirds. After n streams that took all they could and stopped, 1/(2n + 1) of the pool is left for the next; a fixed share of
//! two thirds would leave 1/3^n.
//!
//! If a stream's credit is less than two round trips of its rate because others hold the rest, rbuf doubles, up to its ceiling
//! ([`FlowControl::take_is_short`]).
//!
//! Credit for data that was read, and that is not granted again, returns to the pool. Credit belongs to a SID and outlives its
//! stream. So if a SID has more credit than an unused one, the receiver announces the end of its stream, and the sender reuses that
//! SID. Such an idle SID is none of the n.
//!
//! Limits are announced in steps. Credit that was read but not announced is missing at the sender, so a step is a sixteenth of a
//! stream's credit. But a step of less than eight segments must be a quarter of the credit, because a record takes a segment.
//!
//! A limit counts the bytes of payload on all streams of a SID since the handshake; dropped data counts as read. On the wire it
//! is modulo 2^32, so no limit may be 2^31 or more above the last one that the peer is known to have.

use crate::config::StreamBuffer;
use crate::segment::{Record, Sid};
use crate::stream::by_name::ByName;

/// The credit that this end grants.
#[derive(Clone, Debug)]
pub(crate) struct FlowControl {
    /// Accounts of the used SIDs. The control stream needs no credit.
    accounts: ByName<Account>,
    /// The number of SIDs, without the control stream.
    streams: u16,
    buffer: StreamBuffer,
    /// The initial credit of each SID of the first page.
    credit: u64,
    /// The step of announcements in bytes, unless a quarter of the credit is less.
    step_least: u64,
    /// The size of the pool, and the part of it that streams hold: their credit beyond their bases.
    pool: u64,
    promised: u64,
    /// The number of streams that hold a part of the pool, without idle SIDs.
    holders: u64,
    /// By how much the buffer has grown; and the part of it that each base has.
    grown: u64,
    base_more: u64,
    /// The number of round trips so far.
    round: u64,
    /// Whether a stream had less credit than its reader needs since the last query.
    is_short: bool,
    /// Whether limits apply. They do not in plain TCP, and not after our FIN, which no record can follow.
    is_open: bool,
}

#[derive(Clone, Copy, Debug)]
struct Account {
    /// Bytes that arrived, and how many of them were read or dropped.
    arrived: u64,
    consumed: u64,
    /// The announced limit; at least `arrived`.
    limit: u64,
    /// A limit that the peer is known to have received.
    acked: u64,
    /// The last announced limit minus the bytes consumed at that time.
    allotment: u64,
    /// Streams that are over for the application, modulo 256.
    over: u8,
    /// Bytes that had arrived when the last of these streams ended. If nothing arrived since, the SID is idle.
    arrived_then: Option<u64>,
    /// The round trip of the last read; the bytes read in it, and in the one before.
    round: u64,
    read: [u64; 2],
}

impl FlowControl {
    /// The exponent of the initial credit that the handshake announces.
    pub(crate) fn exponent(buffer: StreamBuffer, capacity: u64, streams: u16) -> u8 {
        let initial = match buffer {
            StreamBuffer::Shared => capacity / INITIAL_PART / u64::from(streams.clamp(1, Sid::FIRST_PAGE_MAX)),
            StreamBuffer::Bytes(bytes) => bytes,
        };
        // The exponent is below 32.
        initial.clamp(1, MOST).ilog2() as u8
    }

    /// Credit for `streams` streams, each of which starts with `2^exponent` bytes.
    pub(crate) fn new(buffer: StreamBuffer, capacity: u64, mss: u64, streams: u16, exponent: u8) -> Self {
        let credit = 1 << exponent;
        let first = u64::from(streams.min(Sid::FIRST_PAGE_MAX));
        let initial = first * credit + (u64::from(streams) - first) * further(credit);
        // At least two segments, since the window opens in steps of one; but at most a quarter of a tiny buffer.
        let reserve = (capacity / RESERVE_PART).max(2 * mss).min(capacity / INITIAL_PART);
        Self {
            accounts: ByName::new(),
            streams,
            buffer,
            credit,
            step_least: STEP_SEGMENTS * mss,
            pool: (capacity - reserve).saturating_sub(initial),
            promised: 0,
            holders: 0,
            grown: 0,
            base_more: 0,
            round: 0,
            is_short: false,
            is_open: true,
        }
    }

    /// No flow control, as in plain TCP.
    pub(crate) fn none() -> Self {
        let mut flow_control = Self::new(StreamBuffer::Bytes(MOST), 0, 0, 1, 0);
        flow_control.close();
        flow_control
    }

    /// The account of a stream, created on its first use.
    fn account(&mut self, sid: Sid) -> &mut Account {
        let credit = self.credit;
        self.accounts.get_or_make(sid, |sid| Account::new(initial(sid, credit)))
    }

    /// The base of a stream.
    fn base(&self, sid: Sid) -> u64 {
        initial(sid, self.credit).saturating_add(self.base_more)
    }

    /// A round trip has passed.
    pub(crate) fn on_round(&mut self) {
        self.round += 1;
    }

    /// The buffer has grown by `bytes` bytes: half of them are added to the bases, the rest to the pool.
    pub(crate) fn grow(&mut self, bytes: u64) {
        self.grown += bytes;
        let more_before = self.base_more;
        // A single stream has the pool for itself, and a fixed buffer of each stream needs no base.
        if self.streams > 1 && self.buffer == StreamBuffer::Shared {
            self.base_more = self.grown / BASES_PART / u64::from(self.streams);
        }
        self.pool += bytes - (self.base_more - more_before) * u64::from(self.streams);
        let held = self.accounts.iter().map(|(sid, account)| (account.beyond(self.base(sid)), account.is_idle()));
        let held = held.filter(|(beyond, _)| *beyond > 0);
        (self.promised, self.holders) =
            held.fold((0, 0), |(sum, count), (beyond, is_idle)| (sum + beyond, count + u64::from(!is_idle)));
    }

    /// Whether a stream had less credit than its reader needs, since the last query: because others hold the rest, or because the
    /// buffer is small. Then it should double.
    pub(crate) fn take_is_short(&mut self) -> bool {
        std::mem::take(&mut self.is_short) && self.is_open
    }

    /// Limits no longer apply.
    pub(crate) fn close(&mut self) {
        self.is_open = false;
    }

    /// Bytes of a stream arrived for the first time. Returns whether they are within its limit; if not, they are dropped.
    pub(crate) fn take(&mut self, sid: Sid, bytes: u32) -> bool {
        let (is_open, bytes) = (self.is_open, u64::from(bytes));
        let is_within = |account: &Account| !is_open || account.arrived + bytes <= account.limit;
        // The account of an unused SID is created only if the bytes are within its limit.
        if self.accounts.get(sid).is_none() && !is_within(&Account::new(initial(sid, self.credit))) {
            return false;
        }
        let base = self.base(sid);
        let account = self.account(sid);
        let is_taken = is_within(account);
        let is_woken = is_taken && account.is_idle() && account.beyond(base) > 0;
        account.arrived += if is_taken { bytes } else { 0 };
        self.holders += u64::from(is_woken);
        is_taken
    }

    /// Bytes of a stream no longer occupy the buffer. Returns the record to send to the peer, if one is due.
    pub(crate) fn consume(&mut self, sid: Sid, bytes: u64) -> Option<Record> {
        if !self.is_open {
            return None;
        }
        let (base, round) = (self.base(sid), self.round);
        let account = self.account(sid);
        let before = account.beyond(base);
        account.consumed += bytes;
        account.on_read(round, bytes);
        debug_assert!(account.consumed <= account.arrived, "nothing is read that has not come: {account:?}");
        let (held, allotment, after) = (account.limit - account.consumed, account.allotment, account.beyond(base));
        if before > 0 {
            let has_left = after == 0 && !account.is_idle();
            self.promised -= before - after;
            self.holders -= u64::from(has_left);
        }
        let is_due = held + step(allotment, self.step_least) <= allotment;
        if is_due { self.renew(sid, Growth::WithReads) } else { None }
    }

    /// The application is done with a stream of this SID. Returns a record if the SID has more credit than an unused one. The
    /// record grants what was read, even less than a step, as far as the pool allows, but no more than the SID had.
    pub(crate) fn end(&mut self, sid: Sid) -> Option<Record> {
        if !self.is_open {
            return None;
        }
        let (initial, base) = (initial(sid, self.credit), self.base(sid));
        let account = self.account(sid);
        let has_rested = !account.is_idle() && account.beyond(base) > 0;
        account.over = account.over.wrapping_add(1);
        account.arrived_then = Some(account.arrived);
        let Account { limit, consumed, allotment, over, .. } = *account;
        self.holders -= u64::from(has_rested);
        if allotment <= initial {
            return None;
        }
        let same = Record::MaxStreamData { sid, limit: limit as u32, over };
        self.renew(sid, Growth::None).or((limit - consumed > initial).then_some(same))
    }

    /// Renews the credit of a stream. Returns the record for the peer.
    fn renew(&mut self, sid: Sid, growth: Growth) -> Option<Record> {
        let (base, buffer, round) = (self.base(sid), self.buffer, self.round);
        // There is only one stream besides the control stream, so it need not share.
        let is_alone = self.streams == 1;
        let account = self.accounts.get_mut(sid).expect("it has been read");
        let (held, before, is_idle) = (account.limit - account.consumed, account.beyond(base), account.is_idle());
        let ceiling = match buffer {
            StreamBuffer::Bytes(bytes) => bytes.clamp(1, MOST),
            StreamBuffer::Shared => {
                let left = self.pool.saturating_sub(self.promised - before);
                let others = self.holders - u64::from(before > 0 && !is_idle);
                let most = if is_alone { left } else { left / (3 + 2 * others) * 2 };
                (base + most).min(MOST)
            }
        };
        let read = account.allotment.saturating_sub(held);
        let wanted = match (growth, buffer) {
            (Growth::None, _) => account.allotment,
            (Growth::WithReads, StreamBuffer::Bytes(_)) => account.allotment.saturating_add(read * ROUNDS),
            (Growth::WithReads, StreamBuffer::Shared) => {
                let in_round = account.in_round(round);
                self.is_short |= in_round.saturating_mul(ROUNDS_LEAST) > ceiling;
                account.allotment.saturating_add(read * ROUNDS).min(in_round.saturating_mul(ROUNDS)).max(base)
            }
        };
        let allotment = wanted.min(ceiling);
        let limit = (account.consumed + allotment).min(account.acked + HALF - 1);
        let allotment = limit.saturating_sub(account.consumed);
        let least = if growth == Growth::None { 1 } else { step(allotment, self.step_least) };
        if held + least > allotment || limit <= account.limit {
            return None;
        }
        (account.limit, account.allotment) = (limit, allotment);
        let after = account.beyond(base);
        self.promised += after - before;
        self.holders += u64::from(before == 0 && after > 0 && !is_idle);
        Some(Record::MaxStreamData { sid, limit: limit as u32, over: account.over })
    }

    /// The peer has received this limit. Returns a record that had to wait for that.
    pub(crate) fn on_acked(&mut self, sid: Sid, limit: u32) -> Option<Record> {
        let account = self.account(sid);
        account.acked = account.acked.max(later(account.acked, limit)?);
        self.consume(sid, 0)
    }

    /// For tests: the limit of a stream since the handshake.
    #[cfg(test)]
    pub(crate) fn limit(&self, sid: Sid) -> u64 {
        if !self.is_open {
            return u64::MAX;
        }
        self.accounts.get(sid).map_or(initial(sid, self.credit), |account| account.limit)
    }

    /// For tests: all granted bytes, and those that have arrived; `None` if limits do not apply.
    #[cfg(test)]
    pub(crate) fn totals(&self) -> Option<(u64, u64)> {
        let names = || (1..=self.streams).map(Sid::new).filter(|_| self.is_open);
        let accounts = || names().filter_map(|sid| Some((sid, self.accounts.get(sid)?)));
        assert!(accounts().all(|(_, account)| account.arrived <= account.limit), "{self:?}");
        let beyond = |(sid, account): (Sid, &Account)| account.beyond(self.base(sid));
        assert!(!self.is_open || accounts().map(beyond).sum::<u64>() == self.promised, "{self:?}");
        let holders = accounts().filter(|(sid, account)| account.beyond(self.base(*sid)) > 0 && !account.is_idle());
        assert!(!self.is_open || holders.count() as u64 == self.holders, "{self:?}");
        assert!(self.promised <= self.pool || self.buffer != StreamBuffer::Shared, "{self:?}");
        let promise =
            |sid| self.accounts.get(sid).map_or(initial(sid, self.credit), |account| account.limit - account.consumed);
        let promised = names().map(promise).sum();
        self.is_open.then_some((promised, accounts().map(|(_, account)| account.arrived - account.consumed).sum()))
    }
}

impl Account {
    fn new(initial: u64) -> Self {
        Self {
            arrived: 0,
            consumed: 0,
            limit: initial,
            acked: initial,
            allotment: initial,
            over: 0,
            arrived_then: None,
            round: 0,
            read: [0; 2],
        }
    }

    /// Whether its streams are over and nothing has arrived since.
    fn is_idle(&self) -> bool {
        self.arrived_then == Some(self.arrived)
    }

    /// Its credit beyond the base.
    fn beyond(&self, base: u64) -> u64 {
        (self.limit - self.consumed).saturating_sub(base)
    }

    /// Bytes were read in this round trip.
    fn on_read(&mut self, round: u64, bytes: u64) {
        if self.round != round {
            self.read = [0, if self.round + 1 == round { self.read[0] } else { 0 }];
            self.round = round;
        }
        self.read[0] += bytes;
    }

    /// The bytes read in a round trip: in the present one, or in the one before.
    fn in_round(&self, round: u64) -> u64 {
        let [last, before] = self.read;
        if self.round == round { last.max(before) } else { 0 }
    }
}

/// Whether the credit of a stream grows with what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    None,
    WithReads,
}

/// The initial credit of a SID, if the first page has `credit`.
pub(crate) fn initial(sid: Sid, credit: u64) -> u64 {
    if sid.number() <= Sid::FIRST_PAGE_MAX { credit } else { further(credit) }
}

/// The initial credit of each SID beyond the first 255: a sixteenth, at least one byte. There are fifteen times as many of these
/// SIDs, and they are used only when the first 255 are not enough. If the first page is unlimited, so are they.
fn further(credit: u64) -> u64 {
    if credit == u64::MAX { credit } else { (credit / FURTHER_PART).max(1) }
}

/// How much of `allotment` must be read before a limit is announced.
fn step(allotment: u64, least: u64) -> u64 {
    (allotment / STEP_PART).max(least.min(allotment / STEP_PART_MOST))
}

/// The limit with these 32 bits, if it is above `limit` by less than 2^31.
pub(crate) fn later(limit: u64, bits: u32) -> Option<u64> {
    let ahead = u64::from(bits.wrapping_sub(limit as u32));
    (1..HALF).contains(&ahead).then_some(limit.saturating_add(ahead))
}

const HALF: u64 = 1 << 31;

/// The largest credit of one stream. With it, 32 bits suffice to tell which of two limits is the later one.
const MOST: u64 = HALF;

/// A quarter of the buffer suffices at first. The rest is granted where it is used.
const INITIAL_PART: u64 = 4;

/// So all further streams together have as much as the first 255.
const FURTHER_PART: u64 = 16;

/// A step as a part of a stream's credit: normally a sixteenth, for little credit at most a quarter.
const STEP_PART: u64 = 16;
const STEP_PART_MOST: u64 = 4;

/// A step has at least this many segments, unless that exceeds a quarter of the credit.
const STEP_SEGMENTS: u64 = 8;

/// The credit of a stream in round trips: two because slow start doubles the data of the next one, and as much again because a
/// grant takes a round trip until its data arrives.
const ROUNDS: u64 = 4;

/// A stream with less credit than two round trips of its rate is held up: RFC 9000's common receivers double a window that is
/// consumed in less.
const ROUNDS_LEAST: u64 = 2;

/// Half of the growth of the buffer belongs to all streams alike: 59 kB each with the usual 512 MiB and 4,080 streams.
const BASES_PART: u64 = 2;

/// A sixteenth for the control stream: in any buffer where it matters, that is at least a thousand records.
const RESERVE_PART: u64 = 16;

#[cfg(test)]
mod tests;
