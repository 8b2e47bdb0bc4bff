//! New data is sent as long as a destination's window and the peer's receive buffer have room (RFC 4960, section 6.1).
//!
//! Plain SCTP serves the current destination. CMT serves all active destinations, each until its window is full. It begins after
//! the one that it served last.
//!
//! Quirks of ns-2:
//! * Bursts are limited after the acknowledgement of a retransmitted chunk. Plain SCTP lifts the limit once it has applied; CMT
//!   never does.
//! * Retransmissions triggered by the same SACK count towards the burst.

use super::destination::Status;
use super::endpoint::{Endpoint, Supply};
use super::packet::{Chunk, Data};
use super::send_buffer::Outstanding;
use super::timers::Timer;

impl Endpoint {
    /// Sends what may be sent (`SendMuch`).
    pub(super) fn send_much(&mut self) {
        if self.config.cmt().is_none() {
            self.serve(self.current);
            self.burst = 0;
            return;
        }
        let count = self.destinations.len();
        let first = self.served.map_or(0, |served| (served + 1) % count);
        for destination in (first..count).chain(0..first) {
            if self.destinations[destination].status == Status::Active && self.serve(destination) {
                self.served = Some(destination);
            }
        }
        self.destinations.iter_mut().for_each(|it| it.burst = 0);
    }

    /// Counts one more packet of a burst. Returns whether the burst limit is reached.
    pub(super) fn is_burst_over(&mut self, destination: usize) -> bool {
        if !(self.config.limits_bursts && self.is_burst_limited) {
            return false;
        }
        let is_cmt = self.config.cmt().is_some();
        let burst = if is_cmt { &mut self.destinations[destination].burst } else { &mut self.burst };
        let is_over = *burst >= BURST_MAX;
        *burst += 1;
        self.is_burst_limited = !is_over || is_cmt;
        is_over
    }

    /// Fills the window of a destination. Returns whether anything was sent.
    fn serve(&mut self, destination: usize) -> bool {
        let mut has_sent = false;
        while self.destinations[destination].has_room() {
            let Some(size) = self.next_size() else { break };
            let mut chunks = vec![];
            if size <= self.peer_window {
                if self.is_burst_over(destination) {
                    break;
                }
                self.fill(destination, &mut chunks);
            } else if self.outstanding() == 0 {
                // RFC 4960, section 6.1 A: one chunk may be sent as a zero-window probe.
                chunks.push(self.new_chunk(destination));
            } else {
                break;
            }
            self.emit(destination, chunks);
            has_sent = true;
        }
        if has_sent {
            let now = self.clock.seconds();
            let it = &mut self.destinations[destination];
            if self.config.heartbeat_s.is_some() {
                it.idle_since = now;
            }
            self.timers.set(Timer::Idle(destination), &self.clock, it.rto.timeout_s());
        }
        has_sent
    }

    /// Bundles new chunks as long as they fit in the packet and in the peer's receive buffer.
    fn fill(&mut self, destination: usize, chunks: &mut Vec<Chunk>) {
        let mut room = self.config.room();
        while let Some(size) = self.next_size().filter(|&size| size <= room && size <= self.peer_window) {
            chunks.push(self.new_chunk(destination));
            room -= size;
        }
    }

    /// Bytes of the next new chunk with padding, if there is one.
    fn next_size(&self) -> Option<u32> {
        let length = match &self.supply {
            Supply::Endless => self.config.chunk,
            Supply::Messages(messages) => messages.front()?.1 + Data::HEADER,
        };
        Some(length.next_multiple_of(4))
    }

    /// Takes the next chunk from the application and records it as outstanding.
    fn new_chunk(&mut self, destination: usize) -> Chunk {
        let (stream, length) = match &mut self.supply {
            Supply::Endless => {
                let stream = self.turn % self.config.streams;
                self.turn = self.turn.wrapping_add(1);
                (stream, self.config.chunk)
            }
            Supply::Messages(messages) => {
                let (stream, bytes) = messages.pop_front().expect("the caller has seen the next chunk");
                (stream, bytes + Data::HEADER)
            }
        };
        self.tsn += 1;
        let unordered = self.config.unordered;
        let next = &mut self.ssn[usize::from(stream)];
        let ssn = if unordered { 0 } else { *next };
        *next = next.wrapping_add(u16::from(!unordered));
        let data = Data { tsn: self.tsn, stream, ssn, length, unordered, first_sent_at: self.clock.now };
        self.book(data, destination);
        Chunk::Data(data)
    }

    fn book(&mut self, data: Data, destination: usize) {
        let sent_s = self.clock.seconds();
        let it = &mut self.destinations[destination];
        // RFC 4960, section 6.3.1 C4: one RTT measurement per round trip.
        let is_measuring = !it.is_measuring;
        it.is_measuring = true;
        it.outstanding += data.length as i32;
        self.buffer.push(Outstanding::new(data, destination, sent_s, is_measuring));
        self.counters.sent_chunks += 1;
        self.peer_window = self.peer_window.saturating_sub(data.size());
        if !it.is_timer_running {
            self.start_timer(destination);
        }
    }

    /// Starts the retransmission timer of a destination, or restarts it (`StartT3RtxTimer`).
    pub(super) fn start_timer(&mut self, destination: usize) {
        let it = &mut self.destinations[destination];
        it.is_timer_running = true;
        self.timers.set(Timer::Retransmission(destination), &self.clock, it.rto.timeout_s());
    }

    /// Stops the retransmission timer of a destination.
    pub(super) fn stop_timer(&mut self, destination: usize) {
        self.destinations[destination].is_timer_running = false;
        self.timers.cancel(Timer::Retransmission(destination));
    }
}

/// Packets in a burst (Max.Burst of RFC 4960, section 15).
const BURST_MAX: u32 = 4;
