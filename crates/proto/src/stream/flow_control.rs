//! Flow-control credit of streams: it keeps an unread stream from blocking the others.
//!
//! All streams share one receive window, and unread data fills it. If the buffer (`rbuf`) has room for all granted credit, a
//! sender that stays within its streams' credit always finds the window open. So credit divides the buffer:
//!
//! ```text
//! rbuf  =  a reserve for the control stream, which needs no credit
//!       +  streams × initial credit, which each stream always gets back: at most a quarter of rbuf for the first 255, and as much for all others
//!       +  a pool, of which a stream gets at most two thirds of what the others leave
//! ```
//!
//! Granted credit cannot be revoked. But credit for data that was read, and that is not granted again, returns to the pool.
//! Credit belongs to a SID and outlives its stream. So if a SID has more credit than an unused one, the receiver announces the
//! end of its stream, and the sender reuses that SID. An unread stream keeps its credit, which is at most about half of rbuf.
//! After many concurrent streams the pool is granted to their SIDs, and a single later stream would have no more than one of
//! them: then rbuf grows by the credit of idle SIDs ([`FlowControl::shortage`]). A stream starts with its initial credit and gets
//! four bytes for each byte read, so its credit doubles when a quarter was read. That suffices for slow start, which doubles once
//! per round, and a stream with little data is granted little.
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
    /// The size of the pool, and the granted part of it.
    pool: u64,
    promised: u64,
    /// Whether a stream was refused credit since the last query; and by how much the buffer was asked to grow because of idle
    /// SIDs.
    is_short: bool,
    lent: u64,
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
            is_short: false,
            lent: 0,
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
    #[inline]
    fn account(&mut self, sid: Sid) -> &mut Account {
        let credit = self.credit;
        self.accounts.get_or_make(sid, |sid| Account::new(initial(sid, credit)))
    }

    /// The buffer has grown by `bytes` bytes, which the pool may grant.
    pub(crate) fn grow(&mut self, bytes: u64) {
        self.pool += bytes;
    }

    /// By how much the buffer should grow: the credit beyond the initial one of SIDs whose streams are over, if a stream was
    /// refused more credit. That credit cannot be revoked. The growth returned by earlier calls is not returned again.
    #[cold]
    pub(crate) fn shortage(&mut self) -> u64 {
        if !std::mem::take(&mut self.is_short) || !self.is_open {
            return 0;
        }
        let credit = self.credit;
        let idle = self.accounts.iter().filter(|(_, account)| account.arrived_then == Some(account.arrived));
        let beyond = idle.map(|(sid, account)| (account.limit - account.consumed).saturating_sub(initial(sid, credit)));
        let shortage = beyond.sum::<u64>().saturating_sub(self.lent);
        self.lent += shortage;
        shortage
    }

    /// Limits no longer apply.
    pub(crate) fn close(&mut self) {
        self.is_open = false;
    }

    /// Bytes of a stream arrived for the first time. Returns whether they are within its limit; if not, they are dropped.
    #[inline(always)]
    pub(crate) fn take(&mut self, sid: Sid, bytes: u32) -> bool {
        let (is_open, bytes) = (self.is_open, u64::from(bytes));
        let is_within = |account: &Account| !is_open || account.arrived + bytes <= account.limit;
        // The account of an unused SID is created only if the bytes are within its limit.
        if self.accounts.get(sid).is_none() && !is_within(&Account::new(initial(sid, self.credit))) {
            return false;
        }
        let account = self.account(sid);
        let is_taken = is_within(account);
        account.arrived += if is_taken { bytes } else { 0 };
        is_taken
    }

    /// Bytes of a stream no longer occupy the buffer. Returns the record to send to the peer, if one is due.
    #[inline]
    pub(crate) fn consume(&mut self, sid: Sid, bytes: u64) -> Option<Record> {
        if !self.is_open {
            return None;
        }
        let initial = initial(sid, self.credit);
        let account = self.account(sid);
        account.consumed += bytes;
        debug_assert!(account.consumed <= account.arrived, "nothing is read that has not come: {account:?}");
        let held = account.limit - account.consumed;
        let allotment = account.allotment;
        self.promised -= (held + bytes).saturating_sub(initial) - held.saturating_sub(initial);
        let is_due = held + step(allotment, self.step_least) <= allotment;
        if is_due { self.renew(sid, held, GROWTH) } else { None }
    }

    /// The application is done with a stream of this SID. Returns a record if the SID has more credit than an unused one. The
    /// record grants what was read, even less than a step, as far as the pool allows, but no more than the SID had.
    pub(crate) fn end(&mut self, sid: Sid) -> Option<Record> {
        if !self.is_open {
            return None;
        }
        let initial = initial(sid, self.credit);
        let account = self.account(sid);
        account.over = account.over.wrapping_add(1);
        account.arrived_then = Some(account.arrived);
        let Account { limit, consumed, allotment, over, .. } = *account;
        if allotment <= initial {
            return None;
        }
        let same = Record::MaxStreamData { sid, limit: limit as u32, over };
        self.renew(sid, limit - consumed, 0).or((limit - consumed > initial).then_some(same))
    }

    /// Renews the credit of a stream that has `held` bytes left: adds `growth` times what was read. Returns the record for the
    /// peer.
    #[inline(never)]
    fn renew(&mut self, sid: Sid, held: u64, growth: u64) -> Option<Record> {
        // There is only one stream besides the control stream, so it need not share.
        let (initial, is_alone) = (initial(sid, self.credit), self.streams == 1);
        let account = self.accounts.get_mut(sid).expect("it has been read");
        let ceiling = match self.buffer {
            StreamBuffer::Bytes(bytes) => bytes.clamp(1, MOST),
            StreamBuffer::Shared => {
                let left = self.pool.saturating_sub(self.promised - held.saturating_sub(initial));
                let most = if is_alone { left } else { left / 3 * 2 };
                (initial + most).min(MOST)
            }
        };
        let read = account.allotment.saturating_sub(held);
        let wanted = account.allotment.saturating_add(read.saturating_mul(growth));
        self.is_short |= wanted > ceiling && self.buffer == StreamBuffer::Shared;
        let allotment = wanted.min(ceiling);
        let limit = (account.consumed + allotment).min(account.acked + HALF - 1);
        let allotment = limit.saturating_sub(account.consumed);
        let least = if growth == 0 { 1 } else { step(allotment, self.step_least) };
        if held + least > allotment || limit <= account.limit {
            return None;
        }
        self.promised += allotment.saturating_sub(initial) - held.saturating_sub(initial);
        (account.limit, account.allotment) = (limit, allotment);
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
        let beyond = |(sid, account): (Sid, &Account)| {
            (account.limit - account.consumed).saturating_sub(initial(sid, self.credit))
        };
        assert!(!self.is_open || accounts().map(beyond).sum::<u64>() == self.promised, "{self:?}");
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
        }
    }
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

/// The credit granted per byte read.
const GROWTH: u64 = 4;

/// A sixteenth for the control stream: in any buffer where it matters, that is at least a thousand records.
const RESERVE_PART: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const SID: Sid = Sid::new(1);

    fn limit(record: Option<Record>) -> Option<u32> {
        record.map(|record| match record {
            Record::MaxStreamData { limit, .. } => limit,
            record => panic!("{record:?} is no credit"),
        })
    }

    fn read(flow_control: &mut FlowControl, sid: Sid, bytes: u32) -> Option<u32> {
        assert!(flow_control.take(sid, bytes));
        let record = flow_control.consume(sid, bytes.into());
        flow_control.totals();
        limit(record)
    }

    #[test]
    fn a_quarter_that_was_read_is_given_back_at_once() {
        let mut flow_control = FlowControl::new(StreamBuffer::Bytes(1000), 9000, 100, 2, 9);
        assert_eq!(read(&mut flow_control, SID, 127), None);
        // 512 were granted before: the first read grants 1000.
        assert_eq!(read(&mut flow_control, SID, 1), Some(1128));
        assert_eq!(read(&mut flow_control, SID, 249), None);
        assert_eq!(read(&mut flow_control, SID, 1), Some(1378));
        assert!(!flow_control.take(SID, 1001) && flow_control.take(SID, 1000));
    }

    /// A sixteenth of 64 kB is 4 kB, five segments of 800 B. Eight of them are less than a quarter of 64 kB, but more than a
    /// quarter of 3 kB.
    #[test]
    fn a_step_is_a_sixteenth_but_worth_eight_segments_or_a_quarter() {
        let step = |bytes: u64, mss| {
            let mut flow_control = FlowControl::new(StreamBuffer::Bytes(bytes), 1 << 20, mss, 1, bytes.ilog2() as u8);
            (1..=bytes).find(|_| read(&mut flow_control, SID, 1).is_some())
        };
        assert_eq!(
            [(1 << 16, 100), (1 << 16, 800), (1 << 11, 800)].map(|(bytes, mss)| step(bytes, mss)),
            [4096, 6400, 512].map(Some)
        );
    }

    /// 2^20 bytes and 4 streams: an initial credit of 2^16 each, a reserve of 2^16, and a pool of 11 × 2^16.
    #[test]
    fn a_stream_gets_two_thirds_of_what_the_others_leave() {
        let unit = 1 << 16;
        assert_eq!(FlowControl::exponent(StreamBuffer::Shared, 1 << 20, 4), 16);
        let mut flow_control = FlowControl::new(StreamBuffer::Shared, 1 << 20, 1000, 4, 16);
        let mut fill = |sid| {
            // Reads until the credit no longer grows.
            let mut most = 0;
            for _ in 0..1000 {
                most = read(&mut flow_control, sid, 8192).unwrap_or(most);
            }
            let account = *flow_control.accounts.get(sid).unwrap();
            (account.allotment * 10 / unit, flow_control.promised * 10 / unit)
        };
        // 1 + 11 × 2/3, then 1 + (11 − 22/3) × 2/3. Bytes consumed since the last record are not granted yet.
        let (allotment, promised) = fill(Sid::new(1));
        assert_eq!(allotment, 83);
        assert!((55..=73).contains(&promised), "{promised}");
        let (allotment, _) = fill(Sid::new(2));
        assert!((34..=47).contains(&allotment), "{allotment}");
        let (total, unread) = flow_control.totals().unwrap();
        assert!(total <= (1 << 20) * 15 / 16 && unread == 0, "{total}");
    }

    #[test]
    fn the_only_stream_gets_all_but_the_reserve() {
        let mut flow_control = FlowControl::new(StreamBuffer::Shared, 1 << 20, 1000, 1, 18);
        let mut last = None;
        for _ in 0..1000 {
            last = read(&mut flow_control, SID, 8192).map(u64::from).or(last);
        }
        assert_eq!(flow_control.accounts.get(SID).unwrap().allotment, (1 << 20) * 15 / 16);
        assert_eq!(last, Some(flow_control.accounts.get(SID).unwrap().limit));
    }

    fn end(flow_control: &mut FlowControl) -> Option<(u32, u8)> {
        let record = flow_control.end(SID);
        flow_control.totals();
        record.map(|record| match record {
            Record::MaxStreamData { limit, over, .. } => (limit, over),
            record => panic!("{record:?} is no credit"),
        })
    }

    /// 512 bytes initially, and 1000 later. At the end of a stream even less than a step is granted, as far as the pool allows.
    #[test]
    fn the_end_of_a_stream_is_told_where_its_name_has_more_than_a_new_one() {
        let mut flow_control = FlowControl::new(StreamBuffer::Bytes(1000), 9000, 100, 2, 9);
        assert_eq!(read(&mut flow_control, SID, 100), None);
        assert_eq!(end(&mut flow_control), None, "no step was read, and the name has no more than a new one");
        assert_eq!(read(&mut flow_control, SID, 100), Some(1200));
        assert_eq!(end(&mut flow_control), Some((1200, 2)), "the same limit");
        assert_eq!(read(&mut flow_control, SID, 7), None);
        assert_eq!(end(&mut flow_control), Some((1207, 3)));
        let told: Vec<_> = (4..=300).map(|_| end(&mut flow_control)).collect();
        assert_eq!(told, (4..=300).map(|count: u32| Some((1207, count as u8))).collect::<Vec<_>>());
        flow_control.on_acked(SID, 1207);
        flow_control.on_acked(SID, 1207);
        assert_eq!(read(&mut flow_control, SID, 250), Some(1457));
        flow_control.close();
        assert_eq!(end(&mut flow_control), None);
    }

    /// Meanwhile another stream has taken the pool. For a SID with less credit than an unused one, no end is announced.
    #[test]
    fn the_end_of_a_stream_promises_no_more_than_there_is() {
        let mut flow_control = FlowControl::new(StreamBuffer::Shared, 1 << 20, 1000, 4, 16);
        for sid in [SID, Sid::new(2)] {
            (0..1000).for_each(|_| _ = read(&mut flow_control, sid, 8192));
        }
        let before = flow_control.limit(SID);
        let held = before - flow_control.accounts.get(SID).unwrap().consumed;
        for rest in [held / 2, held / 2 - 70_000] {
            assert!(flow_control.take(SID, rest as u32));
        }
        flow_control.consume(SID, 100);
        let (limit, over) = end(&mut flow_control).unwrap();
        assert!(over == 1 && u64::from(limit) >= before, "{limit}");
        let (total, _) = flow_control.totals().unwrap();
        assert!(total <= (1 << 20) * 15 / 16, "{total}");
    }

    /// A pool of 11 × 2^16 for 4 SIDs. Two streams take what they can get, and end. Their credit beyond 2^16 each is the
    /// shortage, which is reported once.
    #[test]
    fn what_idle_names_have_is_missing_where_a_stream_would_take_more() {
        let mut flow_control = FlowControl::new(StreamBuffer::Shared, 1 << 20, 1000, 4, 16);
        let (first, second, third) = (Sid::new(1), Sid::new(2), Sid::new(3));
        for sid in [first, second] {
            (0..1000).for_each(|_| _ = read(&mut flow_control, sid, 8192));
        }
        assert_eq!(flow_control.shortage(), 0, "both are in use");
        flow_control.end(first);
        flow_control.end(second);
        // No stream wants more credit than there is.
        flow_control.is_short = false;
        assert_eq!(flow_control.shortage(), 0);
        let most = |flow_control: &mut FlowControl| {
            (0..1000).for_each(|_| _ = read(flow_control, third, 8192));
            flow_control.accounts.get(third).unwrap().allotment
        };
        let before = most(&mut flow_control);
        let beyond_initial = |flow_control: &FlowControl, sid| {
            let account = flow_control.accounts.get(sid).unwrap();
            account.limit - account.consumed - (1 << 16)
        };
        let beyond = beyond_initial(&flow_control, first) + beyond_initial(&flow_control, second);
        assert_eq!((flow_control.shortage(), flow_control.shortage()), (beyond, 0));
        flow_control.grow(beyond);
        let after = most(&mut flow_control);
        // With the buffer grown by the shortage, it gets as much as the very first stream: 1 + 11 × 2/3.
        assert!(before < 3 << 16 && after * 10 / (1 << 16) == 83, "{before}, then {after}");
        // A reused SID is not idle. Its earlier shortage covers the third stream.
        assert!(flow_control.take(first, 1));
        flow_control.is_short = true;
        assert_eq!(flow_control.shortage(), 0);
    }

    /// The 32-bit limit wraps many times.
    #[test]
    fn limits_wrap() {
        let mut flow_control = FlowControl::new(StreamBuffer::Bytes(u64::MAX), 1 << 20, 1000, 1, 31);
        let (mut known, mut records) = (1 << 31, 0);
        for _ in 0..1 << 12 {
            let new = read(&mut flow_control, SID, 1 << 24);
            if let Some(bits) = new {
                known = later(known, bits).unwrap();
                records += 1;
                assert_eq!((known, later(known, bits)), (flow_control.limit(SID), None));
                flow_control.on_acked(SID, bits);
            }
        }
        assert_eq!(records, 1 << 9, "2^36 bytes, a record for 2^27 of them");
    }

    #[test]
    fn no_limit_runs_half_of_its_bits_away_from_one_that_the_peer_has() {
        let mut flow_control = FlowControl::new(StreamBuffer::Bytes(u64::MAX), 1 << 20, 1000, 1, 31);
        let told: Vec<u32> = (0..255).filter_map(|_| read(&mut flow_control, SID, 1 << 24)).collect();
        // 2^31 from the start, then 2^27 more fifteen times, then all but the amount that would make it half.
        let expected: Vec<u32> = (17..32).map(|steps| steps << 27).chain([u32::MAX]).collect();
        assert_eq!(told, expected);
        assert_eq!(limit(flow_control.on_acked(SID, 17 << 27)), Some((1 << 27) - 1), "33 × 2^27 - 1, modulo 2^32");
    }
}
