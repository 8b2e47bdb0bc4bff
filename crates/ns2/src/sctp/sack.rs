//! The sender's reaction to an acknowledgement (RFC 4960, sections 6.2.1, 6.3.2, 7.2).
//!
//! ```text
//! cumulative part: chunks leave the send buffer       gap blocks: chunks become acknowledged, or no longer are
//! chunks below the highest new one: a missing report  third report: marked for retransmission
//! windows open, timers stop and start                 marked chunks are sent first
//! ```
//!
//! Quirks of ns-2:
//! * The highest newly acknowledged TSN is remembered from SACK to SACK. A cumulative acknowledgement sets it, even to a lower
//!   value.
//! * In plain SCTP, a SACK without gaps leaves the state of chunks in gaps as it is. CMT revokes their acknowledgement.
//! * A chunk can give an RTT sample, and its timer be stopped, although it was since sent to another destination. A stopped timer
//!   is restarted for any outstanding chunk.
//! * CMT omits a rule of RFC 4960 (section 7.2.4): a partial acknowledgement in recovery is a missing report.

use super::destination::{Destination, SackNews, Status};
use super::endpoint::Endpoint;
use super::packet::Sack;
use super::retransmission::Limit;
use super::send_buffer::{Mark, Outstanding};

/// Whether the cumulative TSN has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cumulative {
    Same,
    Moved,
}

impl Endpoint {
    /// A SACK arrived (`ProcessSackChunk`).
    pub(super) fn on_sack(&mut self, sack: &Sack) {
        let cmt = self.config.cmt();
        for it in &mut self.destinations {
            it.sacked = SackNews::default();
            if cmt.is_some() {
                it.burst = 0;
            }
        }
        if sack.cumulative < self.cumulative {
            return;
        }
        let mut moved = Cumulative::Same;
        if sack.cumulative > self.cumulative {
            moved = Cumulative::Moved;
            self.dequeue_up_to(sack.cumulative);
            self.cumulative = sack.cumulative;
        }
        let has_reported_lost = if cmt.is_some() || !sack.gaps.is_empty() {
            self.read_gaps(sack, moved);
            self.count_missing(sack, moved)
        } else {
            false
        };
        self.settle_destinations(sack, moved);
        self.peer_window_said = sack.window;
        if has_reported_lost {
            self.counters.fast_retransmits += 1;
            self.fast_retransmit();
        } else {
            self.is_any_marked = self.buffer.is_any_marked();
            if self.is_any_marked {
                self.retransmit_marked(Limit::Window);
            }
        }
        self.update_peer_window();
    }

    /// Removes the chunks that are cumulatively acknowledged (`SendBufferDequeueUpTo`).
    fn dequeue_up_to(&mut self, tsn: u32) {
        let is_cmt = self.config.cmt().is_some();
        self.association_errors = 0;
        while let Some(chunk) = self.buffer.pop_up_to(tsn) {
            let tsn = chunk.data.tsn;
            let it = &mut self.destinations[chunk.destination];
            if !chunk.is_gap_acked() {
                self.highest_newly_acked = tsn;
                it.sacked.newly_acked += chunk.length();
                if it.sacked.lowest == 0 {
                    it.sacked.lowest = tsn;
                }
                it.cmt.is_expected_sought = true;
                it.cmt.is_expected_again_sought = true;
                it.sacked.has_new_pseudo_cumulative = true;
                if it.is_avoiding_congestion() && !it.has_room() {
                    it.partial += chunk.length();
                }
            }
            // The acknowledgement of a retransmitted chunk may allow a burst.
            self.is_burst_limited |= chunk.is_ineligible;
            if !chunk.is_gap_acked() {
                measure(it, &chunk, self.clock.seconds());
            }
            // CMT does not touch a timer that runs for a later chunk.
            let is_due = !is_cmt || it.cmt.expected <= tsn;
            if (it.is_timer_running && is_due) || (is_cmt && it.cmt.expected_again <= tsn) {
                self.stop_timer(chunk.destination);
            }
            if !chunk.is_gap_acked() {
                self.note_alive(&chunk);
            }
        }
    }

    /// Records which chunks the gap blocks acknowledge (first half of `ProcessGapAckBlocks`).
    fn read_gaps(&mut self, sack: &Sack, moved: Cumulative) {
        for it in &mut self.destinations {
            it.sacked.first_outstanding = None;
            it.sacked.highest = sack.cumulative;
        }
        let mut gaps = sack.gaps.iter().map(|&(first, last)| {
            (sack.cumulative.wrapping_add(first.into()), sack.cumulative.wrapping_add(last.into()))
        });
        let mut gap = gaps.next();
        // Those before the present chunk.
        let mut gap_acked = 0;
        for index in 0..self.buffer.len() {
            let Some((first, last)) = gap else {
                if gap_acked == self.buffer.gap_acked() {
                    break;
                }
                self.take_back(index);
                continue;
            };
            let chunk = self.buffer.get(index);
            let tsn = chunk.data.tsn;
            self.seek_expected(index);
            self.note_first_outstanding(index);
            if tsn < first {
                self.take_back(index);
            } else if tsn <= last {
                if !self.buffer.get(index).is_gap_acked() {
                    self.acknowledge(index, moved);
                }
            } else {
                // Blocks are not adjacent: the chunk behind one is not in the next.
                self.take_back(index);
                gap = gaps.next();
            }
            gap_acked += usize::from(self.buffer.get(index).is_gap_acked());
        }
    }

    /// CMT: finds the least unacknowledged TSN of each destination.
    fn seek_expected(&mut self, index: usize) {
        let chunk = self.buffer.get(index);
        let it = &mut self.destinations[chunk.destination].cmt;
        if chunk.is_gap_acked() {
            return;
        }
        if it.is_expected_sought && chunk.transmissions == 1 {
            it.expected = chunk.data.tsn;
            it.is_expected_sought = false;
        }
        if it.is_expected_again_sought && chunk.transmissions > 1 {
            it.expected_again = chunk.data.tsn;
            it.is_expected_again_sought = false;
        }
    }

    /// Remembers a chunk if it is the first outstanding one at its destination.
    pub(super) fn note_first_outstanding(&mut self, index: usize) {
        let chunk = self.buffer.get(index);
        let news = &mut self.destinations[chunk.destination].sacked;
        if news.first_outstanding.is_none() && !chunk.is_gap_acked() {
            news.first_outstanding = Some(chunk.data.tsn);
        }
    }

    /// A chunk that an earlier SACK had in a gap is not in this one: SACKs arrived out of order.
    fn take_back(&mut self, index: usize) {
        let chunk = self.buffer.get(index);
        if chunk.is_gap_acked() {
            self.destinations[chunk.destination].outstanding += chunk.length();
            self.buffer.set_gap_acked(index, false);
        }
    }

    /// A chunk is acknowledged in a gap for the first time.
    fn acknowledge(&mut self, index: usize, moved: Cumulative) {
        let cmt = self.config.cmt();
        let now = self.clock.seconds();
        self.buffer.set_gap_acked(index, true);
        let chunk = self.buffer.get_mut(index);
        let (tsn, destination) = (chunk.data.tsn, chunk.destination);
        let it = &mut self.destinations[destination];
        if tsn == it.cmt.expected {
            it.sacked.has_new_pseudo_cumulative = true;
            it.cmt.is_expected_sought = true;
        }
        if tsn == it.cmt.expected_again {
            it.sacked.has_new_pseudo_cumulative = true;
            it.cmt.is_expected_again_sought = true;
        }
        it.sacked.has_new_gap = true;
        it.sacked.highest = it.sacked.highest.max(tsn);
        if it.sacked.lowest == 0 {
            it.sacked.lowest = tsn;
        }
        self.highest_newly_acked = self.highest_newly_acked.max(tsn);
        it.sacked.newly_acked += chunk.length();
        let opens = match cmt {
            Some(cmt) if cmt.window_update => it.sacked.has_new_pseudo_cumulative,
            _ => moved == Cumulative::Moved,
        };
        if it.is_avoiding_congestion() && opens && !chunk.is_counted {
            chunk.is_counted = true;
            it.partial += chunk.length();
        }
        measure(it, chunk, now);
        let is_first = it.sacked.first_outstanding == Some(tsn);
        let chunk = chunk.clone();
        self.buffer.mark(index, Mark::None);
        if is_first && self.destinations[destination].is_timer_running {
            self.stop_timer(destination);
        }
        self.association_errors = 0;
        self.note_alive(&chunk);
    }

    /// Counts missing reports and marks the chunks that have enough. Returns whether there are any (second half of
    /// `ProcessGapAckBlocks`).
    fn count_missing(&mut self, sack: &Sack, moved: Cumulative) -> bool {
        let cmt = self.config.cmt();
        let highest_gap = sack.gaps.last().map_or(0, |&(_, last)| sack.cumulative.wrapping_add(last.into()));
        let highest = self.highest_newly_acked.max(highest_gap);
        let is_recovering = moved == Cumulative::Moved && self.highest_newly_acked <= self.recover;
        let reporting = self.destinations.iter().filter(|it| it.sacked.has_new_gap).count();
        // Nothing from here on is missing, by any of the rules below.
        let end = self.destinations.iter().map(|it| it.sacked.highest).fold(highest, u32::max);
        let mut has_lost = false;
        for index in 0..self.buffer.len() {
            let chunk = self.buffer.get_mut(index);
            if chunk.data.tsn >= end {
                break;
            }
            if chunk.is_gap_acked() {
                continue;
            }
            let tsn = chunk.data.tsn;
            let news = &self.destinations[chunk.destination].sacked;
            let is_missing = match cmt {
                None => tsn < self.highest_newly_acked || (is_recovering && tsn < highest),
                Some(cmt) if cmt.split_fast_retransmit => news.has_new_gap && tsn < news.highest,
                Some(_) => tsn < self.highest_newly_acked,
            };
            if !is_missing {
                continue;
            }
            chunk.missing_reports += match cmt {
                // A SACK for several packets counts as so many reports, unless one of them was sent before the chunk or to
                // another destination.
                Some(cmt) if cmt.delayed_ack && reporting <= 1 && news.lowest >= tsn => {
                    if reporting == 1 {
                        sack.packets.into()
                    } else {
                        0
                    }
                }
                _ => 1,
            };
            if chunk.missing_reports >= self.config.missing_reports && !chunk.is_ineligible {
                chunk.is_ineligible = true;
                self.mark(index, Mark::Reported);
                has_lost = true;
            }
        }
        has_lost
    }

    /// Opens windows, subtracts what is acknowledged from the outstanding bytes, and sets the timers.
    fn settle_destinations(&mut self, sack: &Sack, moved: Cumulative) {
        let cmt = self.config.cmt();
        if cmt.is_some() {
            // In CMT, marked chunks do not keep a timer running.
            self.discount_marked();
        }
        let packet = self.config.room() as i32;
        for destination in 0..self.destinations.len() {
            let it = &mut self.destinations[destination];
            let opens = match cmt {
                None => moved == Cumulative::Moved && sack.cumulative >= self.recover,
                Some(cmt) if cmt.window_update => it.sacked.has_new_pseudo_cumulative,
                Some(_) => moved == Cumulative::Moved,
            };
            if opens && it.sacked.newly_acked > 0 {
                it.open_window(packet);
            }
            it.settle();
            match (it.outstanding > 0, it.is_timer_running) {
                (false, true) if it.outstanding == 0 => self.stop_timer(destination),
                (true, false) => self.start_timer(destination),
                _ => {}
            }
        }
        if cmt.is_some() {
            self.count_marked();
        }
    }

    /// An acknowledged chunk shows that its destination is reachable, unless the chunk timed out: its first transmission may be
    /// what arrived.
    fn note_alive(&mut self, chunk: &Outstanding) {
        let it = &mut self.destinations[chunk.destination];
        if it.errors != 0 && chunk.mark() != Mark::TimedOut {
            it.errors = 0;
            it.status = Status::Active;
            self.return_to_primary(chunk.destination);
        }
    }
}

/// Takes the RTT sample of a destination if this chunk was to give it. A chunk that timed out gives none, but another chunk may
/// then be measured.
fn measure(it: &mut Destination, chunk: &Outstanding, now_s: f64) {
    if it.is_measuring && chunk.is_measuring && chunk.transmissions == 1 {
        if chunk.mark() != Mark::TimedOut {
            it.rto.sample(now_s - chunk.sent_s);
        }
        it.is_measuring = false;
    }
}
