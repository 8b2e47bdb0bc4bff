//! The records of the control stream that wait or are unacknowledged.
//!
//! Several records are sent in one segment. There is at most one record of each kind per stream, and a newer one replaces an
//! older one. So however many records a peer provokes, at most three per stream wait.

use std::collections::VecDeque;

use crate::segment::{Record, RecordList, Sid};
use crate::seq::Ssn;

/// The records of one direction.
#[derive(Debug)]
pub(crate) struct Records {
    /// The waiting records by stream and kind, up to the highest used stream.
    waiting: Vec<[Option<Record>; KINDS]>,
    /// The waiting records in the order of sending.
    order: VecDeque<(Sid, usize)>,
    /// Records in flight, one list per segment. They are stored here so that other segments need no room for records.
    unacked: VecDeque<RecordList>,
    /// The number of acknowledged segments.
    acked: u64,
    /// Whether a FIN was sent, which ends the control stream.
    is_closed: bool,
}

impl Records {
    pub(crate) fn new() -> Self {
        Self { waiting: vec![], order: VecDeque::new(), unacked: VecDeque::new(), acked: 0, is_closed: false }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The number of waiting records.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Queues a record. It replaces an unsent record of the same kind and stream. Returns whether the queue grew.
    pub(crate) fn push(&mut self, record: Record) -> bool {
        if self.is_closed {
            return false;
        }
        let (sid, kind) = record.about();
        if self.waiting.len() <= sid.index() {
            self.waiting.resize(1 + sid.index(), [None; KINDS]);
        }
        let is_new = self.waiting[sid.index()][kind].replace(record).is_none();
        if is_new {
            self.order.push_back((sid, kind));
        }
        is_new
    }

    /// The next record.
    pub(crate) fn pop(&mut self) -> Option<Record> {
        let (sid, kind) = self.order.pop_front()?;
        self.waiting[sid.index()][kind].take()
    }

    /// The next control segment is sent, with these records.
    pub(crate) fn on_sent(&mut self, list: RecordList) {
        self.unacked.push_back(list);
    }

    /// The records of a control segment in flight.
    pub(crate) fn list(&self, ssn: Ssn) -> Option<RecordList> {
        let count = ssn.count_near(self.acked)?.checked_sub(self.acked)?;
        self.unacked.get(count as usize).copied()
    }

    /// The first control segment in flight is acknowledged. The segments of a stream are acknowledged in order.
    pub(crate) fn on_acked(&mut self) -> Option<RecordList> {
        self.acked += 1;
        self.unacked.pop_front()
    }

    /// No more records may be sent.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }
}

impl Record {
    /// The stream of a record, and a number for its kind.
    fn about(&self) -> (Sid, usize) {
        match *self {
            Self::Finish { sid, .. } | Self::Reset { sid, .. } => (sid, 0),
            Self::Stop { sid, .. } => (sid, 1),
            Self::MaxStreamData { sid, .. } => (sid, 2),
            // The control stream has no limit, so its place for this kind is free.
            Self::AcknowledgeEach { .. } => (Sid::CONTROL, 2),
        }
    }
}

/// A stream ends in one way, may be stopped, and gets credit: three kinds.
const KINDS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_record_takes_the_place_of_an_older() {
        let (mut records, sid) = (Records::new(), Sid::new(2));
        let credit = |limit| Record::MaxStreamData { sid, limit, over: 0 };
        let finish = Record::Finish { sid, end: Ssn::of(5) };
        let reset = Record::Reset { sid, end: Ssn::of(3), code: 9 };
        let pushed =
            [credit(10), finish, credit(20), Record::MaxStreamData { sid: Sid::new(1), limit: 7, over: 0 }, reset];
        assert_eq!(pushed.map(|record| records.push(record)), [true, true, false, true, false]);
        let order: Vec<_> = std::iter::from_fn(|| records.pop()).collect();
        assert_eq!(order, [credit(20), reset, Record::MaxStreamData { sid: Sid::new(1), limit: 7, over: 0 }]);
        records.push(credit(30));
        assert_eq!(records.pop(), Some(credit(30)));
    }

    #[test]
    fn sent_record_is_kept_until_acknowledged() {
        let mut records = Records::new();
        let list = |limit| RecordList::from(Record::MaxStreamData { sid: Sid::new(2), limit, over: 0 });
        (0..3).for_each(|limit| records.on_sent(list(limit)));
        assert_eq!(
            (records.on_acked(), records.list(Ssn::of(1)), records.list(Ssn::of(0))),
            (Some(list(0)), Some(list(1)), None)
        );
        assert_eq!((records.list(Ssn::of(2)), records.list(Ssn::of(3))), (Some(list(2)), None));
    }
}
