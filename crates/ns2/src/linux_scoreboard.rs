//! The scoreboard of ns-2's Linux agent: runs of packets, each in flight, sacked, lost or resent.
//!
//! A packet counts as lost when a packet at least four above it is sacked. A resent packet counts as lost again when a packet
//! sent after it arrives, or a packet whose retransmission is at least four later.

use crate::packet::SackBlocks;

/// The effect of an ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Report {
    /// Packets were newly sacked.
    pub(crate) sacked: bool,
    /// Packets were newly marked as lost.
    pub(crate) lost: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Scoreboard {
    /// In order and without gaps.
    runs: Vec<Run>,
    /// The start of the search for the next packet to resend; `None` if none is to be resent.
    next_lost: Option<usize>,
    /// Highest sacked packet.
    forward_ack: i32,
    lost: i32,
    sacked: i32,
    /// Number of the next retransmission, and of the last one that is known to have arrived (`resend_acked`).
    resend_next: i32,
    resend_acked: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: i32,
    last: i32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    Sacked,
    Lost,
    /// A run of one packet. `next` is the next new packet when this one was resent, `number` counts retransmissions.
    Resent {
        next: i32,
        number: i32,
    },
}

/// `dupack_threshold` plus one.
const THRESHOLD: i32 = 3 + 1;

impl Default for Scoreboard {
    fn default() -> Self {
        Self { runs: vec![], next_lost: None, forward_ack: 0, lost: 0, sacked: 0, resend_next: 0, resend_acked: -1 }
    }
}

impl Scoreboard {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        let runs = std::mem::take(&mut self.runs);
        *self = Self { runs, ..Self::default() };
        self.runs.clear();
    }

    /// Packets above the cumulative ACK that are not in flight: sacked or lost.
    pub(crate) fn out_of_network(&self) -> i32 {
        self.lost + self.sacked
    }

    /// Processes an ACK.
    pub(crate) fn update(&mut self, acked: i32, sack: &SackBlocks) -> Report {
        let mut report = Report::default();
        let mut thorough = self.advance(acked);
        if self.runs.is_empty() {
            self.clear();
            thorough = false;
        }
        // The blocks in ascending order. A block that begins below the ACK reports a duplicate.
        let mut blocks = [(0, 0); SackBlocks::MAX];
        let mut count = 0;
        for &block in sack.as_slice().iter().filter(|block| block.0 >= acked) {
            blocks[count] = block;
            count += 1;
        }
        let blocks = &mut blocks[..count];
        blocks.sort_by_key(|block| block.0);
        if !thorough && blocks.is_empty() {
            return report;
        }
        if let Some(&(_, right)) = blocks.last()
            && self.forward_ack < right - 1
        {
            self.forward_ack = right - 1;
            thorough = true;
        }
        if self.runs.is_empty() {
            self.runs.push(Run { first: acked + 1, last: self.forward_ack, state: State::InFlight });
        }
        self.next_lost = None;
        self.walk(blocks, thorough, &mut report);
        report
    }

    /// Passes over the runs once: marks what `blocks` sack and what is lost, merges runs, and extends the scoreboard to the
    /// highest sacked packet. Unless `thorough`, it stops at the last block.
    fn walk(&mut self, blocks: &[(i32, i32)], mut thorough: bool, report: &mut Report) {
        let mut block = 0;
        let mut index = 0;
        let mut previous: Option<usize> = None;
        while index < self.runs.len() && (block < blocks.len() || thorough) {
            if self.runs[index].state != State::Sacked {
                while block < blocks.len() && blocks[block].1 <= self.runs[index].first {
                    block += 1;
                }
                if let Some(&(left, right)) = blocks.get(block)
                    && left <= self.runs[index].last
                {
                    if left > self.runs[index].first {
                        self.split(index, left);
                    } else {
                        if right <= self.runs[index].last {
                            self.split(index, right);
                        }
                        let run = &mut self.runs[index];
                        let packets = run.last + 1 - run.first;
                        match run.state {
                            State::Lost => self.lost -= packets,
                            State::Resent { number, .. } => {
                                self.resend_acked = number;
                                thorough = true;
                            }
                            State::InFlight | State::Sacked => {}
                        }
                        run.state = State::Sacked;
                        self.sacked += packets;
                        report.sacked = true;
                    }
                }
                // After a split, the rest of the run may end below the block.
                if blocks.get(block).is_none_or(|&(left, _)| left > self.runs[index].last) {
                    report.lost |= self.detect_loss(index);
                }
            }
            let current = match previous {
                Some(previous) if self.mergeable(previous, index) => {
                    self.merge_next(previous);
                    previous
                }
                _ => index,
            };
            previous = Some(current);
            let run = self.runs[current];
            if current + 1 == self.runs.len() && run.last < self.forward_ack {
                let state = State::InFlight;
                self.runs.push(Run { first: run.last + 1, last: self.forward_ack, state });
            }
            index = current + 1;
        }
    }

    /// Marks the run, or a part of it, as lost. Returns whether anything was newly marked.
    fn detect_loss(&mut self, index: usize) -> bool {
        let threshold = self.forward_ack - THRESHOLD;
        let run = self.runs[index];
        let news = match run.state {
            State::Resent { next, number } => next <= self.forward_ack || number + THRESHOLD < self.resend_acked,
            State::InFlight => run.first <= threshold,
            State::Sacked | State::Lost => false,
        };
        if news {
            if threshold < run.last && run.state == State::InFlight {
                self.split(index, threshold + 1);
            }
            let run = &mut self.runs[index];
            run.state = State::Lost;
            self.lost += run.last + 1 - run.first;
        }
        if self.runs[index].state == State::Lost && self.next_lost.is_none() {
            self.next_lost = Some(index);
        }
        news
    }

    /// Removes the packets that are cumulatively acknowledged. Returns whether this shows that a later retransmission arrived.
    fn advance(&mut self, acked: i32) -> bool {
        let mut told = false;
        let mut gone = 0;
        for run in &mut self.runs {
            if acked < run.first {
                break;
            }
            let whole = acked >= run.last;
            let packets = acked.min(run.last) + 1 - run.first;
            match run.state {
                State::Sacked => self.sacked -= packets,
                State::Lost => self.lost -= packets,
                State::Resent { number, .. } if number > self.resend_acked => {
                    told = true;
                    self.resend_acked = number;
                }
                State::InFlight | State::Resent { .. } => {}
            }
            if !whole {
                run.first = acked + 1;
                break;
            }
            gone += 1;
        }
        self.runs.drain(..gone);
        self.next_lost = self.next_lost.map(|index| index.saturating_sub(gone));
        told
    }

    /// The next packet to resend.
    pub(crate) fn next_lost(&mut self) -> Option<i32> {
        let from = self.next_lost?;
        self.next_lost = (from..self.runs.len()).find(|&index| self.runs[index].state == State::Lost);
        self.next_lost.map(|index| self.runs[index].first)
    }

    /// Records that the packet of [`Scoreboard::next_lost`] is resent, while `next` is the next new packet.
    pub(crate) fn mark_resent(&mut self, next: i32) {
        let Some(index) = self.next_lost else { return };
        if self.runs[index].last > self.runs[index].first {
            self.split(index, self.runs[index].first + 1);
        }
        self.lost -= 1;
        self.runs[index].state = State::Resent { next, number: self.resend_next };
        self.resend_next += 1;
    }

    /// After a timeout: marks every packet in `first..next` that is not sacked as lost.
    pub(crate) fn mark_all_lost(&mut self, first: i32, next: i32) {
        let last = self.runs.last().map_or(first - 1, |run| run.last);
        if last + 1 < next {
            self.runs.push(Run { first: last + 1, last: next - 1, state: State::InFlight });
        }
        let mut merged: Vec<Run> = Vec::with_capacity(self.runs.len());
        for mut run in self.runs.drain(..) {
            if run.state != State::Sacked {
                if run.state != State::Lost {
                    self.lost += run.last + 1 - run.first;
                }
                run.state = State::Lost;
                if let Some(before) = merged.last_mut()
                    && before.state == State::Lost
                {
                    before.last = run.last;
                    continue;
                }
            }
            merged.push(run);
        }
        self.runs = merged;
        self.next_lost = self.runs.iter().position(|run| run.state == State::Lost);
        self.resend_next = 0;
        self.resend_acked = -1;
    }

    fn split(&mut self, index: usize, at: i32) {
        let run = &mut self.runs[index];
        let rest = Run { first: at, ..*run };
        run.last = at - 1;
        self.runs.insert(index + 1, rest);
        if let Some(next) = &mut self.next_lost
            && *next > index
        {
            *next += 1;
        }
    }

    fn mergeable(&self, index: usize, next: usize) -> bool {
        let same = self.runs[index].state == self.runs[next].state;
        same && !matches!(self.runs[index].state, State::Resent { .. })
    }

    fn merge_next(&mut self, index: usize) {
        self.runs[index].last = self.runs[index + 1].last;
        self.runs.remove(index + 1);
        if let Some(next) = &mut self.next_lost
            && *next > index
        {
            *next -= 1;
        }
    }
}
