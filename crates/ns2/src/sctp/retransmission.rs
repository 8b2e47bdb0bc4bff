//! Retransmission of lost chunks (RFC 4960, sections 6.3.3 and 7.2.4).
//!
//! Lost chunks are marked. When a loss is detected, one packet of marked chunks is sent at once, whatever the window. The others
//! are sent as the window allows. Meanwhile the marked chunks do not count as outstanding.
//!
//! Plain SCTP sends all chunks of a call to one destination; by default that is the one after the destination of the first chunk.
//! CMT asks its policy for each packet.
//!
//! Quirks of ns-2:
//! * The recovery point is the highest TSN ever found outstanding. In CMT it is zero if the current one is lower than that, so
//!   the window can be halved again at once.
//! * In CMT every retransmitted chunk is ineligible for fast retransmission, even if it did not fit the packet. A timer that
//!   should run for a destination is started for the destination of the last chunk examined.

use super::config::Alternate;
use super::destination::Status;
use super::endpoint::Endpoint;
use super::packet::Chunk;
use super::send_buffer::Mark;
use super::timers::Timer;

/// How much may be retransmitted at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    OnePacket,
    Window,
}

impl Endpoint {
    /// Marks a chunk as lost. Its bytes count as free room at the receiver again.
    pub(super) fn mark(&mut self, index: usize, mark: Mark) {
        self.buffer.mark(index, mark);
        self.peer_window = self.peer_window.wrapping_add(self.buffer.get(index).data.length);
        self.is_any_marked = true;
    }

    /// Some chunks have enough missing reports: halves the windows, and sends one packet (`FastRtx`).
    pub(super) fn fast_retransmit(&mut self) {
        let is_cmt = self.config.cmt().is_some();
        let packets = if is_cmt { self.config.window_floor as i32 } else { WINDOW_FLOOR };
        let floor = packets * self.config.room() as i32;
        for it in &mut self.destinations {
            it.cmt.may_exceed = false;
        }
        let mut is_reduced = vec![false; self.destinations.len()];
        for index in 0..self.buffer.len() {
            let chunk = self.buffer.get(index);
            if !chunk.is_marked() {
                continue;
            }
            let (destination, tsn, mark) = (chunk.destination, chunk.data.tsn, chunk.mark());
            let recover = if is_cmt { self.destinations[destination].cmt.recover } else { self.recover };
            if !is_reduced[destination] && tsn > recover {
                is_reduced[destination] = true;
                self.destinations[destination].halve(floor);
                if is_cmt {
                    self.destinations[destination].cmt.recover = self.highest_outstanding_at(destination);
                } else {
                    self.recover = self.highest_outstanding();
                }
            }
            self.destinations[destination].cmt.may_exceed |= mark == Mark::Reported;
        }
        self.is_any_marked = self.buffer.is_any_marked();
        if self.is_any_marked {
            self.retransmit_marked(Limit::OnePacket);
        }
    }

    /// A destination timed out: its outstanding chunks are lost (`TimeoutRtx`).
    pub(super) fn retransmit_timed_out(&mut self, destination: usize) {
        for index in 0..self.buffer.len() {
            let chunk = self.buffer.get_mut(index);
            if chunk.destination == destination && !chunk.is_gap_acked() {
                chunk.missing_reports = 0;
                self.mark(index, Mark::TimedOut);
            }
        }
        if self.is_any_marked {
            self.retransmit_marked(Limit::OnePacket);
        }
    }

    /// Retransmits marked chunks (`RtxMarkedChunks`).
    pub(super) fn retransmit_marked(&mut self, limit: Limit) {
        self.burst = 0;
        for it in &mut self.destinations {
            it.sacked.first_outstanding = None;
            it.cmt.retransmitted = 0;
            if self.config.cmt().is_some() {
                it.burst = 0;
            }
        }
        self.discount_marked();
        if self.config.cmt().is_some() {
            self.retransmit_everywhere(limit);
        } else if let Some(target) = self.alternate() {
            self.retransmit_to(target, limit);
        }
        self.count_marked();
        self.is_any_marked = self.buffer.is_any_marked();
    }

    /// Subtracts the marked chunks from the outstanding bytes.
    pub(super) fn discount_marked(&mut self) {
        for chunk in self.buffer.marked() {
            self.destinations[chunk.destination].outstanding -= chunk.length();
        }
    }

    /// Adds the marked chunks to the outstanding bytes again.
    pub(super) fn count_marked(&mut self) {
        for chunk in self.buffer.marked() {
            self.destinations[chunk.destination].outstanding += chunk.length();
        }
    }

    /// Plain SCTP: the destination of the marked chunks, if there are any.
    fn alternate(&self) -> Option<usize> {
        let chunk = self.buffer.marked().next()?;
        let is_active = self.destinations[chunk.destination].status == Status::Active;
        let stays = match self.config.alternate {
            Alternate::Never => is_active,
            Alternate::Always => false,
            Alternate::Timeouts => is_active && chunk.mark() == Mark::Reported,
        };
        Some(if stays { chunk.destination } else { self.next_destination(chunk.destination) })
    }

    fn retransmit_to(&mut self, target: usize, limit: Limit) {
        let (mut index, mut is_first) = (0, true);
        while index < self.buffer.len() {
            let may_send = match limit {
                Limit::OnePacket => is_first,
                Limit::Window => self.destinations[target].has_room(),
            };
            if !may_send {
                break;
            }
            let mut chunks = vec![];
            let mut room = self.config.room();
            while index < self.buffer.len() {
                self.note_first_outstanding(index);
                if self.buffer.get(index).is_marked() {
                    if self.buffer.get(index).data.length > room {
                        break;
                    }
                    room = room.saturating_sub(self.buffer.get(index).data.size());
                    chunks.push(self.resend(index, target));
                }
                index += 1;
            }
            if chunks.is_empty() {
                break;
            }
            is_first = false;
            if self.send_again(target, chunks) {
                break;
            }
        }
    }

    fn retransmit_everywhere(&mut self, limit: Limit) {
        let (mut index, mut last) = (0, None);
        'packets: while index < self.buffer.len() {
            let mut target = None;
            let mut chunks = vec![];
            let mut room = self.config.room();
            while index < self.buffer.len() {
                last = Some(index);
                self.note_first_outstanding(index);
                if !self.buffer.get(index).is_marked() {
                    index += 1;
                    continue;
                }
                target = target.or_else(|| self.select_destination(index, limit));
                let Some(target) = target else {
                    // No destination has room for this chunk now; a later one may go elsewhere.
                    index += 1;
                    continue 'packets;
                };
                let chunk = self.buffer.get_mut(index);
                if chunk.destination != target {
                    let it = &mut self.destinations[chunk.destination].cmt;
                    it.is_expected_sought = true;
                    it.is_expected_again_sought = true;
                }
                chunk.is_ineligible = true;
                if chunk.data.length > room {
                    break;
                }
                room = room.saturating_sub(chunk.data.size());
                chunks.push(self.resend(index, target));
                index += 1;
            }
            let Some(target) = target else { break };
            if self.send_again(target, chunks) {
                break;
            }
        }
        let Some(last) = last.map(|last| self.buffer.get(last).destination) else { return };
        for destination in 0..self.destinations.len() {
            let it = &self.destinations[destination];
            if !it.is_timer_running && it.outstanding > 0 {
                self.start_timer(last);
            }
        }
    }

    /// Takes a marked chunk into a packet to `target`.
    fn resend(&mut self, index: usize, target: usize) -> Chunk {
        let chunk = self.buffer.get_mut(index);
        let (tsn, before) = (chunk.data.tsn, chunk.destination);
        let it = &mut self.destinations[before];
        if it.is_measuring && chunk.is_measuring {
            chunk.is_measuring = false;
            it.is_measuring = false;
        }
        // RFC 4960, sections 7.2.4 and 6.1: if the earliest outstanding chunk is retransmitted, the timer restarts.
        if it.sacked.first_outstanding == Some(tsn) && it.outstanding > 0 {
            self.start_timer(before);
        }
        if self.destinations[target].sacked.first_outstanding.is_none_or(|first| tsn < first) {
            self.destinations[target].sacked.first_outstanding = Some(tsn);
            self.start_timer(target);
        }
        self.buffer.mark(index, Mark::None);
        let chunk = self.buffer.get_mut(index);
        chunk.destination = target;
        chunk.transmissions += 1;
        self.destinations[target].outstanding += chunk.length();
        self.peer_window = self.peer_window.wrapping_sub(chunk.data.length);
        self.counters.sent_chunks += 1;
        self.counters.retransmitted_chunks += 1;
        Chunk::Data(chunk.data)
    }

    /// Sends a packet of retransmitted chunks. Returns whether it is the last one that the burst limit allows.
    fn send_again(&mut self, target: usize, chunks: Vec<Chunk>) -> bool {
        self.emit(target, chunks);
        if !self.destinations[target].is_timer_running {
            self.start_timer(target);
        }
        self.destinations[target].cmt.retransmitted += 1;
        self.timers.set(Timer::Idle(target), &self.clock, self.destinations[target].rto.timeout_s());
        self.is_burst_over(target)
    }

    /// Highest outstanding TSN that is not marked; the result never decreases (`GetHighestOutstandingTsn`).
    fn highest_outstanding(&mut self) -> u32 {
        let highest = self.buffer.iter().rev().find(|chunk| !chunk.is_marked()).map_or(0, |chunk| chunk.data.tsn);
        self.highest_sent = self.highest_sent.max(highest);
        self.highest_sent
    }

    /// As [`Self::highest_outstanding`], for one destination in CMT; zero if the result would decrease.
    fn highest_outstanding_at(&mut self, destination: usize) -> u32 {
        let mut chunks = self.buffer.iter().rev().filter(|chunk| chunk.destination == destination);
        let highest = chunks.find(|chunk| !chunk.is_marked()).map_or(0, |chunk| chunk.data.tsn);
        let before = &mut self.destinations[destination].cmt.highest_sent;
        if highest < *before {
            return 0;
        }
        *before = highest;
        highest
    }
}

/// Least window after a loss, in packets (RFC 4960, section 7.2.3).
pub(super) const WINDOW_FLOOR: i32 = 4;
