//! Chooses the SID of a new stream.
//!
//! The remaining credit of a SID outlives its stream. So the first choice is a SID that has more credit than an unused one, if
//! the peer reports that all its streams are over; among several, the one with the most credit. The second choice is an unused
//! SID. The last choice is the SID whose stream ended longest ago, because the peer may not have read that stream to its end, and
//! a new one would wait behind it. The first 255 SIDs come before all others, which have less initial credit.

use std::collections::VecDeque;

use crate::segment::Sid;

/// The SIDs of one direction that have no open stream.
#[derive(Debug)]
pub(super) struct Names {
    /// The first 255 SIDs, and the others.
    pages: [Page; 2],
    /// SIDs whose streams are over and that have more credit than an unused one of their page: credit and SID, in ascending
    /// order.
    rich: Vec<(u64, u16)>,
    /// The initial credit of a SID of the first page.
    credit: u64,
}

#[derive(Debug)]
struct Page {
    /// The range of SIDs that were never used.
    unused: (u16, u16),
    /// All other SIDs, in the order in which their streams ended.
    idle: VecDeque<u16>,
}

impl Names {
    /// `count` SIDs. Those of the first page have the initial credit `credit`.
    pub(super) fn new(count: u16, credit: u64) -> Self {
        let page = |first: u16, last: u16| Page { unused: (first, last.max(first - 1) + 1), idle: VecDeque::new() };
        let (near, far) = (count.min(Sid::FIRST_PAGE_MAX), count);
        Self { pages: [page(1, near), page(Sid::FIRST_PAGE_MAX + 1, far)], rich: vec![], credit }
    }

    /// Takes the SID for a new stream; `None` if all are in use.
    pub(super) fn take(&mut self) -> Option<Sid> {
        let [near, far] = &self.pages;
        let richest = self.rich.last();
        // A SID with less credit than an unused one of the first page belongs to the other page.
        let richer = richest.filter(|(left, _)| *left > self.credit).map(|(_, name)| *name);
        let name = richer.or_else(|| near.next()).or(richest.map(|(_, name)| *name)).or_else(|| far.next())?;
        self.page(Sid::new(name)).take(name);
        if let Some(place) = self.rich.iter().rposition(|(_, other)| *other == name) {
            self.rich.remove(place);
        }
        Some(Sid::new(name))
    }

    /// A stream has ended and its SID may be reused. `rich` is its remaining credit, if that exceeds the credit of an unused SID.
    pub(super) fn release(&mut self, sid: Sid, rich: Option<u64>) {
        self.page(sid).idle.push_back(sid.number());
        self.on_credit(sid, None, rich);
    }

    /// The remaining credit of a SID without a stream has changed.
    pub(super) fn on_credit(&mut self, sid: Sid, before: Option<u64>, rich: Option<u64>) {
        if before == rich {
            return;
        }
        if let Some(before) = before
            && let Ok(place) = self.rich.binary_search(&(before, sid.number()))
        {
            self.rich.remove(place);
        }
        if let Some(left) = rich {
            let key = (left, sid.number());
            let place = self.rich.partition_point(|other| *other < key);
            self.rich.insert(place, key);
        }
    }

    /// Limits no longer apply, so credit does not count.
    pub(super) fn lift_credit(&mut self) {
        self.rich.clear();
    }

    fn page(&mut self, sid: Sid) -> &mut Page {
        &mut self.pages[if sid.number() <= Sid::FIRST_PAGE_MAX { NEAR } else { FAR }]
    }
}

impl Page {
    /// A SID that was never used, or else the one unused for the longest time.
    fn next(&self) -> Option<u16> {
        let (next, end) = self.unused;
        if next < end { Some(next) } else { self.idle.front().copied() }
    }

    /// This SID has a stream from now on.
    fn take(&mut self, name: u16) {
        if name == self.unused.0 {
            self.unused.0 += 1;
        } else if let Some(place) = self.idle.iter().position(|other| *other == name) {
            self.idle.remove(place);
        }
    }
}

const NEAR: usize = 0;
const FAR: usize = 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// The first 255 SIDs have 100 bytes of initial credit, the others 6.
    fn names(count: u16) -> Names {
        Names::new(count, 100)
    }

    fn take(names: &mut Names) -> Option<u16> {
        names.take().map(Sid::number)
    }

    fn take_all(names: &mut Names) -> Vec<u16> {
        std::iter::from_fn(|| take(names)).collect()
    }

    #[test]
    fn unused_names_precede_those_that_ended_first() {
        let mut names = names(4);
        assert_eq!([take(&mut names), take(&mut names)], [Some(1), Some(2)]);
        names.release(Sid::new(2), None);
        names.release(Sid::new(1), None);
        assert_eq!(take_all(&mut names), [3, 4, 2, 1]);
        assert_eq!((take(&mut names), take(&mut Names::new(0, 100))), (None, None));
    }

    #[test]
    fn the_richest_comes_first_and_each_once() {
        let mut names = names(5);
        take_all(&mut names);
        for (name, rich) in [(1, None), (2, Some(300)), (3, Some(500)), (4, Some(300)), (5, None)] {
            names.release(Sid::new(name), rich);
        }
        names.on_credit(Sid::new(5), None, Some(400));
        names.on_credit(Sid::new(2), Some(300), Some(600));
        names.on_credit(Sid::new(3), Some(500), None);
        assert_eq!(take_all(&mut names), [2, 5, 4, 1, 3]);
    }

    /// With 256 or more SIDs: as long as the first page has an unused SID, a SID of the other page is chosen only if it has more
    /// credit.
    #[test]
    fn further_names_are_compared_with_the_first() {
        let mut names = names(260);
        assert_eq!(take_all(&mut names), (1..=260).collect::<Vec<_>>());
        for (name, rich) in [(258, None), (257, Some(7)), (259, Some(101)), (7, None), (256, Some(90))] {
            names.release(Sid::new(name), rich);
        }
        assert_eq!(take_all(&mut names), [259, 7, 256, 257, 258]);
    }

    #[test]
    fn credit_that_counts_no_more_makes_none_rich() {
        let mut names = names(3);
        take_all(&mut names);
        for name in [2, 3, 1] {
            names.release(Sid::new(name), Some(200 + u64::from(name)));
        }
        names.lift_credit();
        assert_eq!(take_all(&mut names), [2, 3, 1]);
    }
}
