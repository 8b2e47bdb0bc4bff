//! Path MTU discovery: probes confirm a datagram size, and losses cast doubt on it ([rfc-8899]).
//!
//! ```text
//!          a full segment leaves             nothing is left to try
//! Resting ───────────────────────> Searching ───────────────────────> Resting, for 600 s
//!    │                                │  ^
//!    │  a lost flight, a third loss   │  │ 1200 bytes from now on
//!    └──────────────> Doubting <──────┘  │
//!                        └──no answer────┘
//! ```
//!
//! A probe is a padded challenge; its response confirms the size. It takes no sequence space, so its loss is no congestion
//! signal, and it does not count against the window. ICMP messages are ignored, because they can be forged.
//!
//! While a size is in doubt, datagrams have at most 1200 bytes, and longer segments are sent as fragments.
//!
//! Differs from rfc-8899 in:
//! * there are no probes below 1200 bytes, which every path is assumed to carry (sec. 5.1.2 has BASE_PLPMTU and MIN_PLPMTU);
//! * a probe waits one retransmission timeout for its response (sec. 5.1.1 has 15 s if there is no estimate);
//! * the search starts after the path has carried a full segment (sec. 5.3 starts at once);
//! * acknowledged data confirms a size (sec. 5.1.1 has CONFIRMATION_TIMER for protocols without acknowledgements).

use anabranch_units::{Span, Time};

use super::Transmit;
use crate::config::{Config, Form, PathMtu};
use crate::path::FourTuple;
use crate::payload::Payload;
use crate::seal::{Seal, Sealed};
use crate::segment::{HEADERS, TCP_HEADER};

/// The datagram sizes of one path, in bytes of UDP payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mtu {
    /// The largest confirmed size.
    carried: u32,
    /// The smallest failed size; one above the maximum if none failed.
    refused: u32,
    /// The largest size to probe.
    max: u32,
    /// Bytes of the IP and UDP headers.
    headers: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No probe before this time.
    Resting(Time),
    /// Probes a larger size.
    Searching(Probe),
    /// Probes the largest confirmed size again.
    Doubting(Probe),
}

/// A probe of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Probe {
    len: u32,
    /// Probes of this size sent.
    sent: u32,
    /// When the next probe is due, or the last one counts as lost.
    at: Time,
}

impl Mtu {
    /// The initial sizes of a path between these ends.
    pub(super) fn new(config: &Config, tuple: &FourTuple) -> Self {
        let headers = headers(tuple);
        let payload = |packet: u32| packet.min(PathMtu::PACKET_MAX).saturating_sub(headers);
        let (carried, max) = match (config.form, config.path_mtu) {
            (Form::Tcp, _) => (u32::MAX, 0),
            (Form::Sealed, PathMtu::Fixed { packet }) => (payload(packet), 0),
            (Form::Sealed, PathMtu::Searched { packet_max }) => (Seal::DATAGRAM_FIRST, payload(packet_max)),
        };
        Self { carried, refused: max + 1, max, headers, state: State::Resting(Time::ZERO) }
    }

    /// The largest datagram that may be sent now.
    pub(super) fn datagram_max(&self) -> u32 {
        match self.state {
            State::Resting(_) | State::Searching(_) => self.carried,
            State::Doubting(_) => self.carried.min(Seal::DATAGRAM_FIRST),
        }
    }

    /// In the TCP form, where the host knows the path: segments have at most this content, options included.
    pub(super) fn set(&mut self, content: u32) {
        self.carried = content.saturating_add(OVERHEAD);
    }

    /// Segments have at most this content, so larger datagrams are not probed.
    pub(super) fn limit(&mut self, content: u32) {
        self.max = self.max.min(content.saturating_add(OVERHEAD));
        self.refused = self.refused.min(self.max + 1);
    }

    /// A segment filled its datagram, so a larger size would be useful. Returns whether a probe is due.
    pub(super) fn on_full(&mut self, now: Time) -> bool {
        match self.state {
            State::Resting(until) if until <= now && self.carried < self.max => {
                self.refused = self.max + 1;
                self.search(now);
                true
            }
            State::Resting(_) | State::Searching(_) | State::Doubting(_) => false,
        }
    }

    /// Losses indicate that the path MTU has shrunk.
    pub(super) fn on_doubt(&mut self, now: Time) {
        let is_searched = self.max > 0 && self.carried > Seal::DATAGRAM_FIRST;
        if is_searched && !matches!(self.state, State::Doubting(_)) {
            self.state = State::Doubting(Probe { len: self.carried, sent: 0, at: now });
        }
    }

    /// The size of the probe that is due.
    pub(super) fn due(&self, now: Time) -> Option<u32> {
        let probe = self.probe().filter(|probe| probe.at <= now && probe.sent < PROBES_MAX);
        probe.map(|probe| probe.len)
    }

    /// The probe was sent. A response after `timeout` does not count.
    pub(super) fn on_probe_sent(&mut self, now: Time, timeout: Span) {
        if let State::Searching(probe) | State::Doubting(probe) = &mut self.state {
            (probe.sent, probe.at) = (probe.sent + 1, now.saturating_add(timeout));
        }
    }

    /// A probe of this size was answered.
    pub(super) fn on_answer(&mut self, now: Time, len: u32) {
        let is_asked = self.probe().is_some_and(|probe| probe.len <= len);
        if is_asked && len < self.refused {
            self.carried = self.carried.max(len);
            self.search(now);
        }
    }

    /// Handles the timeout of a probe: a size whose probes all failed is too large.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        let Some(Probe { len, sent: PROBES_MAX.., at }) = self.probe() else { return };
        if at > now {
            return;
        }
        self.refused = len;
        if matches!(self.state, State::Doubting(_)) {
            self.carried = Seal::DATAGRAM_FIRST;
        }
        self.search(now);
    }

    /// When the next probe is due, or the last one counts as lost.
    pub(super) fn deadline(&self) -> Time {
        self.probe().map_or(Time::NEVER, |probe| probe.at)
    }

    fn probe(&self) -> Option<Probe> {
        match self.state {
            State::Resting(_) => None,
            State::Searching(probe) | State::Doubting(probe) => Some(probe),
        }
    }

    fn search(&mut self, now: Time) {
        self.state = match self.candidate() {
            Some(len) => State::Searching(Probe { len, sent: 0, at: now }),
            None => State::Resting(now.saturating_add(RAISE_AFTER)),
        };
    }

    /// The next size to probe: the next common link MTU above the confirmed size, then the middle of the unknown range.
    fn candidate(&self) -> Option<u32> {
        let Self { carried, refused, max, headers, .. } = *self;
        if refused > max {
            let mut longer =
                PACKETS.iter().map(|packet| packet - headers).filter(|len| (carried + 1..max).contains(len));
            return longer.next().or((carried < max).then_some(max));
        }
        let unknown = refused.saturating_sub(carried);
        (unknown > (carried / WORTH).max(1)).then_some(carried + unknown / 2)
    }
}

/// The content of a segment that fills a datagram of this size.
pub(super) fn content(datagram: u32) -> u32 {
    datagram.saturating_sub(OVERHEAD)
}

/// The size of the datagram for a segment with this content (options and stream header included), if the segment fits into one
/// datagram.
pub(super) fn datagram(content: u32) -> u32 {
    content + OVERHEAD
}

impl<P: Payload> Transmit<P> {
    /// In the sealed form, the sizes of the packets that carry the segment, with IP and UDP headers. This is for network models
    /// that do not encrypt: handshake segments are counted without the keys of the handshake.
    pub fn packets(&self) -> impl Iterator<Item = u32> + use<P> {
        let len = self.segment.wire_size() - HEADERS + TCP_HEADER;
        let headers = headers(&self.tuple);
        let (sealed, bytes) = Seal::layout(len, self.datagram_max, self.pad_to)
            .unwrap_or((Sealed { size: len as usize, count: 1 }, len + Seal::OVERHEAD));
        let (size, count) = (sealed.size as u32, sealed.count as u32);
        (0..count).map(move |place| headers + if count == 1 { bytes } else { size.min(bytes - place * size) })
    }
}

/// Bytes of the IP and UDP headers of a datagram between these ends.
fn headers(tuple: &FourTuple) -> u32 {
    if tuple.local.is_ipv4() && tuple.remote.is_ipv4() { IPV4 } else { IPV6 }
}

/// Bytes of a sealed datagram around the content of its segment.
const OVERHEAD: u32 = Seal::OVERHEAD + TCP_HEADER;

/// Bytes of IP and UDP headers.
pub(super) const IPV4: u32 = 28;
const IPV6: u32 = 48;

/// Common packet limits of links: Ethernet, and jumbo frames.
const PACKETS: [u32; 2] = [1500, 9000];

/// [rfc-8899] sec. 5.1.2: MAX_PROBES.
const PROBES_MAX: u32 = 3;

/// [rfc-8899] sec. 5.1.1: PMTU_RAISE_TIMER.
const RAISE_AFTER: Span = Span::from_secs(600);

/// A gain of less than 1/32 in size saves less than one percent of the cost of sending.
const WORTH: u32 = 32;

#[cfg(test)]
mod tests {
    use anabranch_cc::{Settings, registry};

    use super::*;
    use crate::path::Address;

    fn tuple(is_v4: bool) -> FourTuple {
        let address = if is_v4 { 0xffff_c000_0201 } else { 0x2001_0db8 << 96 };
        let end = |port| Address { address, port };
        FourTuple { local: end(1), remote: end(2) }
    }

    fn searched(packet_max: u32, is_v4: bool) -> Mtu {
        let law = Settings::default_for(registry::find("reno").unwrap());
        let config = Config { form: Form::Sealed, path_mtu: PathMtu::Searched { packet_max }, ..Config::new(law) };
        Mtu::new(&config, &tuple(is_v4))
    }

    const TIMEOUT: Span = Span::from_millis(300);

    /// Runs for `span` on a path with this MTU. Returns the number of probes.
    fn run(mtu: &mut Mtu, now: &mut Time, path: u32, span: Span) -> u32 {
        let (until, mut probes) = (*now + span, 0);
        mtu.on_full(*now);
        while let Some(len) = mtu.due(*now) {
            probes += 1;
            mtu.on_probe_sent(*now, TIMEOUT);
            if len <= path {
                *now += Span::from_millis(100);
                mtu.on_answer(*now, len);
                continue;
            }
            *now = mtu.deadline();
            if *now > until {
                break;
            }
            mtu.handle_timeout(*now);
        }
        *now = until;
        probes
    }

    #[test]
    fn a_usual_path_is_known_after_one_probe() {
        for (is_v4, len) in [(true, 1472), (false, 1452)] {
            let (mut mtu, mut now) = (searched(1500, is_v4), Time::ZERO);
            assert_eq!(mtu.datagram_max(), 1200);
            let probes = run(&mut mtu, &mut now, len, Span::from_secs(1));
            assert_eq!((mtu.datagram_max(), probes), (len, 1));
        }
    }

    /// The search finds every MTU to within 1/32, and never uses a size that the path does not carry.
    #[test]
    fn path_mtu_is_found() {
        for (packet_max, path) in
            [(1500, 1200), (1500, 1252), (1500, 1372), (9000, 1432), (9000, 8952), (65_535, 30_000)]
        {
            let (mut mtu, mut now) = (searched(packet_max, true), Time::ZERO);
            let probes = run(&mut mtu, &mut now, path, Span::from_secs(60));
            let found = mtu.datagram_max();
            assert!(found <= path && path - found <= found / 32, "{found} of {path}");
            assert!(probes <= 40, "{probes} probes for {path}");
            assert_eq!(run(&mut mtu, &mut now, path, Span::from_secs(500)), 0, "it rests");
        }
    }

    #[test]
    fn a_path_that_carries_more_later_is_found_after_ten_minutes() {
        let (mut mtu, mut now) = (searched(1500, true), Time::ZERO);
        run(&mut mtu, &mut now, 1372, Span::from_secs(60));
        let found = mtu.datagram_max();
        run(&mut mtu, &mut now, 1472, Span::from_secs(530));
        assert_eq!(mtu.datagram_max(), found);
        run(&mut mtu, &mut now, 1472, Span::from_secs(60));
        run(&mut mtu, &mut now, 1472, Span::from_secs(60));
        assert_eq!(mtu.datagram_max(), 1472);
    }

    #[test]
    fn a_doubt_costs_nothing_but_while_it_lasts() {
        let (mut mtu, mut now) = (searched(1500, true), Time::ZERO);
        run(&mut mtu, &mut now, 1472, Span::from_secs(1));
        mtu.on_doubt(now);
        assert_eq!((mtu.datagram_max(), mtu.due(now)), (1200, Some(1472)));
        mtu.on_probe_sent(now, TIMEOUT);
        mtu.on_answer(now, 1200);
        assert_eq!(mtu.datagram_max(), 1200, "that says nothing of 1472");
        mtu.on_answer(now, 1472);
        assert_eq!((mtu.datagram_max(), mtu.due(now)), (1472, None));
    }

    #[test]
    fn smaller_path_mtu_lowers_datagram_size() {
        let (mut mtu, mut now) = (searched(1500, true), Time::ZERO);
        run(&mut mtu, &mut now, 1472, Span::from_secs(1));
        mtu.on_doubt(now);
        run(&mut mtu, &mut now, 1272, Span::from_secs(30));
        assert!((1250..=1272).contains(&mtu.datagram_max()), "{mtu:?}");
        mtu.on_answer(now, 1472);
        assert!(mtu.datagram_max() <= 1272, "an answer from before says nothing");
    }

    #[test]
    fn unfilled_datagram_size_is_not_probed() {
        let mut mtu = searched(1500, true);
        mtu.limit(1148);
        assert!(!mtu.on_full(Time::ZERO));
        mtu.on_doubt(Time::ZERO);
        assert_eq!((mtu.datagram_max(), mtu.due(Time::ZERO), mtu.deadline()), (1200, None, Time::NEVER));
    }
}
