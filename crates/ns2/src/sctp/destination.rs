//! A destination: an address of the peer with its window and its timer (RFC 4960, section 7).
//!
//! ```text
//! slow start           w <= ssthresh:  w += min(newly acked, packet)         if the window was full
//! congestion avoidance w > ssthresh:   partial += newly acked; w += 1 packet per window of it    if the window was full
//! missing reports      ssthresh = w = max(w/2, 4 packets)                    CMT: max(w/2, 2 packets)
//! timeout              ssthresh = max(w/2, 4 packets), w = 1 packet          CMT: max(w/2, 2 packets)
//! ```

use super::config::{DestinationConfig, EndpointConfig};
use super::rto::Rto;

#[derive(Clone, Debug)]
pub(crate) struct Destination {
    /// The local interface that reaches it.
    pub(crate) interface: u8,
    pub(crate) loss_rate: f32,
    /// Congestion window in bytes (`iCwnd`).
    pub(crate) window: i32,
    pub(crate) ssthresh: i32,
    /// Bytes acknowledged since the last growth in congestion avoidance (`iPartialBytesAcked`).
    pub(crate) partial: i32,
    /// Bytes sent and not acknowledged. Chunks marked as lost count until they are retransmitted.
    pub(crate) outstanding: i32,
    pub(crate) rto: Rto,
    /// Whether an RTT measurement is in progress (`eRtoPending`).
    pub(crate) is_measuring: bool,
    /// Whether the module believes that the timer runs (`eRtxTimerIsRunning`).
    pub(crate) is_timer_running: bool,
    pub(crate) status: Status,
    /// Consecutive timeouts.
    pub(crate) errors: u32,
    /// When data was last sent to it, in seconds.
    pub(crate) idle_since: f64,
    /// CMT: packets of the current burst.
    pub(crate) burst: u32,
    pub(crate) sacked: SackNews,
    pub(crate) cmt: CmtState,
}

/// Whether a destination can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Active,
    Inactive,
    /// It has not yet answered a heartbeat after the handshake.
    Unconfirmed,
}

/// What the SACK being processed says about a destination; reset with the next SACK.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SackNews {
    pub(crate) newly_acked: i32,
    /// TSN of the first outstanding chunk (`spFirstOutstanding`).
    pub(crate) first_outstanding: Option<u32>,
    /// CMT: least TSN newly acknowledged, 0 if none.
    pub(crate) lowest: u32,
    /// CMT: highest TSN newly acknowledged in a gap, or the cumulative one.
    pub(crate) highest: u32,
    /// CMT: a chunk in a gap was newly acknowledged.
    pub(crate) has_new_gap: bool,
    /// CMT: the least unacknowledged TSN of this destination (pseudo-cumulative TSN) has moved.
    pub(crate) has_new_pseudo_cumulative: bool,
}

/// CMT's state of a destination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CmtState {
    /// Least TSN that was sent once to this destination and is not acknowledged (`uiExpectedPseudoCum`).
    pub(crate) expected: u32,
    pub(crate) is_expected_sought: bool,
    /// As `expected`, of chunks that were sent more than once.
    pub(crate) expected_again: u32,
    pub(crate) is_expected_again_sought: bool,
    /// CMT: losses up to this TSN cause no second reduction.
    pub(crate) recover: u32,
    pub(crate) highest_sent: u32,
    /// Whether one packet may be sent to it regardless of its window, because a chunk was reported missing there (`eRtxLimit`).
    pub(crate) may_exceed: bool,
    /// Packets retransmitted to it in the current call.
    pub(crate) retransmitted: u32,
}

/// RFC 4960, section 7.2.1: an initial window of 4 packets, but at most 4380 bytes unless two packets are more.
const WINDOW_INITIAL: i32 = 4380;

impl Destination {
    pub(crate) fn new(config: &EndpointConfig, destination: DestinationConfig) -> Self {
        let packet = config.room() as i32;
        Self {
            interface: destination.interface,
            loss_rate: destination.loss_rate,
            window: (4 * packet).min(WINDOW_INITIAL.max(2 * packet)),
            ssthresh: i32::try_from(config.ssthresh).unwrap_or(i32::MAX),
            partial: 0,
            outstanding: 0,
            rto: Rto::new(config.rto_initial, config.rto_min, config.rto_max),
            is_measuring: false,
            is_timer_running: false,
            status: Status::Active,
            errors: 0,
            idle_since: 0.0,
            burst: 0,
            sacked: SackNews::default(),
            cmt: CmtState {
                expected: 0,
                is_expected_sought: true,
                expected_again: 0,
                is_expected_again_sought: true,
                recover: 0,
                highest_sent: 0,
                may_exceed: false,
                retransmitted: 0,
            },
        }
    }

    /// Whether a packet may be sent. It may exceed the window by up to one packet minus one byte.
    pub(crate) fn has_room(&self) -> bool {
        self.outstanding < self.window
    }

    pub(crate) fn is_avoiding_congestion(&self) -> bool {
        self.window > self.ssthresh
    }

    /// Opens the window for what the current SACK acknowledges. Call it before these bytes are subtracted from the outstanding
    /// ones.
    pub(crate) fn open_window(&mut self, packet: i32) {
        let is_full = self.outstanding >= self.window;
        if !self.is_avoiding_congestion() {
            if is_full {
                self.window += self.sacked.newly_acked.min(packet);
            }
        } else if is_full && self.partial >= self.window {
            self.partial -= self.window;
            self.window += packet;
        }
    }

    /// Reacts to a reported loss, at most once per round trip.
    pub(crate) fn halve(&mut self, floor: i32) {
        self.ssthresh = (self.window / 2).max(floor);
        self.window = self.ssthresh;
        self.partial = 0;
        // Packets sent before the loss give no RTT samples.
        self.is_measuring = false;
    }

    /// Subtracts what is acknowledged from the outstanding bytes.
    pub(crate) fn settle(&mut self) {
        self.outstanding = (self.outstanding - self.sacked.newly_acked).max(0);
        if self.outstanding == 0 {
            self.partial = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sctp::config::Variant;

    fn destination(mtu: u32) -> Destination {
        let config = EndpointConfig { mtu, ..EndpointConfig::new(Variant::Plain) };
        Destination::new(&config, DestinationConfig::default())
    }

    /// RFC 4960, section 7.2.1, for an MTU of 1500, 1000 and 4000.
    #[test]
    fn initial_window() {
        assert_eq!(destination(1500).window, 4380);
        assert_eq!(destination(1000).window, 4 * 968);
        assert_eq!(destination(4000).window, 2 * 3968);
    }

    #[test]
    fn a_window_that_was_not_full_stays() {
        let mut it = destination(1500);
        it.sacked.newly_acked = 1468;
        it.outstanding = it.window - 1;
        it.open_window(1468);
        assert_eq!(it.window, 4380);
        it.outstanding += 1;
        it.open_window(1468);
        assert_eq!(it.window, 4380 + 1468);
    }
}
