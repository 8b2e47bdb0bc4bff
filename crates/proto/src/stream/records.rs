//! Records that wait to be sent on the control stream.
//!
//! Several leave in one segment. There is one of each kind for each stream at most, and a newer one takes the place of an older: so a peer can provoke as many
//! as it likes, and no more wait than three times the streams.

use std::collections::VecDeque;

use crate::segment::{Record, Sid};

/// Records that wait.
#[derive(Debug)]
pub(crate) struct Records {
    /// By stream and kind.
    waiting: Vec<[Option<Record>; KINDS]>,
    /// Those that wait, in the order in which they leave.
    order: VecDeque<(Sid, usize)>,
    /// Whether none can leave any more, because a FIN has.
    is_closed: bool,
}

impl Records {
    /// None, of so many streams.
    pub(crate) fn new(streams: u8) -> Self {
        Self { waiting: vec![[None; KINDS]; 1 + usize::from(streams)], order: VecDeque::new(), is_closed: false }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// A record is to leave; in the place of one of its kind about the same stream, if that has not left. Whether that makes
    /// one more.
    pub(crate) fn push(&mut self, record: Record) -> bool {
        if self.is_closed {
            return false;
        }
        let (sid, kind) = record.about();
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

    /// Nothing leaves any more.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }
}

impl Record {
    /// Which stream it is about, and a number for its kind.
    fn about(&self) -> (Sid, usize) {
        match *self {
            Self::Finish { sid, .. } | Self::Reset { sid, .. } => (sid, 0),
            Self::Stop { sid, .. } => (sid, 1),
            Self::MaxStreamData { sid, .. } => (sid, 2),
        }
    }
}

/// A stream ends in one way, may be stopped, and gets credit.
const KINDS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seq::Ssn;

    #[test]
    fn a_newer_record_takes_the_place_of_an_older() {
        let (mut records, sid) = (Records::new(2), Sid::new(2));
        let credit = |limit| Record::MaxStreamData { sid, limit };
        let finish = Record::Finish { sid, end: Ssn::of(5) };
        let reset = Record::Reset { sid, end: Ssn::of(3), code: 9 };
        let pushed = [credit(10), finish, credit(20), Record::MaxStreamData { sid: Sid::new(1), limit: 7 }, reset];
        assert_eq!(pushed.map(|record| records.push(record)), [true, true, false, true, false]);
        let order: Vec<_> = std::iter::from_fn(|| records.pop()).collect();
        assert_eq!(order, [credit(20), reset, Record::MaxStreamData { sid: Sid::new(1), limit: 7 }]);
        records.push(credit(30));
        assert_eq!(records.pop(), Some(credit(30)));
    }
}
