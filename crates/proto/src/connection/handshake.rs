//! The three-way handshake and its negotiation ([rfc-9293] sec. 3.5; [mfast-2019] sec. IV.C for streams).

use anabranch_units::{Span, Time};

use super::{Connection, Peer, send_memory};
use crate::config::{Config, Form};
use crate::event::Event;
use crate::options::{Features, HandshakeOptions, Multistream, Options};
use crate::path::PathId;
use crate::payload::Payload;
use crate::receive::window::{SHIFT_MAX, Window};
use crate::recovery::detection::Detection;
use crate::segment::{Flags, Segment, Sid};
use crate::stream::flow_control::FlowControl;
use crate::stream::inbound::Inbound;
use crate::stream::outbound::{Framing, Outbound};

/// The state of this end's SYN.
#[derive(Clone, Debug)]
pub(super) struct Handshake {
    progress: Progress,
    /// When the SYN was first sent.
    sent_at: Time,
    /// The number of transmissions.
    transmissions: u32,
    /// The options of the peer's SYN.
    offer: HandshakeOptions,
    /// Whether the peer's SYN had the MSE flag.
    has_flag: bool,
}

/// The result of the negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Agreement {
    /// The largest sequence space of a segment.
    mss: u32,
    /// The window scale of the peer; `None` if the peer offered none, and then neither end scales.
    shift: Option<u8>,
    has_timestamps: bool,
    has_sack: bool,
    has_nonces: bool,
    has_paths: bool,
    has_extents: bool,
    has_datagrams: bool,
    /// Streams in each direction; `None` in plain TCP.
    streams: Option<u16>,
    /// The initial flow-control credit of each stream in bytes.
    credit: u64,
}

/// The parts of a connection that exist once it is established.
struct Core<P> {
    outbound: Outbound<P>,
    inbound: Inbound<P>,
    flow_control: FlowControl,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// No SYN is in flight.
    Idle,
    /// A SYN is due.
    Due,
    /// A SYN is in flight; at this time it is retransmitted.
    Out(Time),
}

impl Handshake {
    pub(super) fn new() -> Self {
        Self {
            progress: Progress::Idle,
            sent_at: Time::ZERO,
            transmissions: 0,
            offer: HandshakeOptions::default(),
            has_flag: false,
        }
    }

    /// A SYN is due.
    pub(super) fn send(&mut self) {
        self.progress = Progress::Due;
    }

    pub(super) fn is_due(&self) -> bool {
        self.progress == Progress::Due
    }

    /// The SYN was sent.
    pub(super) fn on_sent(&mut self, now: Time) {
        if self.transmissions == 0 {
            self.sent_at = now;
        }
        // [rfc-6298] sec. 5.5 and 2.1.
        let timeout = Span::from_secs(1).saturating_mul(1 << self.transmissions.min(6));
        self.transmissions += 1;
        self.progress = Progress::Out(now.saturating_add(timeout.min(Span::from_secs(60))));
    }

    /// Whether the SYN, counted as sent, asks for plain TCP because earlier ones that asked for streams had no answer.
    pub(super) fn has_withdrawn(&self, config: &Config) -> bool {
        self.transmissions > config.stream_offers
    }

    /// The peer has acknowledged our SYN-ACK by a segment that has the MSE flag or not. Without it, the peer has not seen our grant of streams.
    pub(super) fn confirm(&mut self, has_flag: bool) {
        self.has_flag &= has_flag;
    }

    /// The SYN was acknowledged. Returns its RTT if it was sent only once.
    pub(super) fn on_acked(&mut self, now: Time) -> Option<Span> {
        self.progress = Progress::Idle;
        (self.transmissions == 1).then(|| now.since(self.sent_at))
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        if self.deadline() <= now {
            self.progress = Progress::Due;
        }
    }

    pub(super) fn deadline(&self) -> Time {
        match self.progress {
            Progress::Out(at) => at,
            Progress::Idle | Progress::Due => Time::NEVER,
        }
    }
}

impl<P: Payload> Connection<P> {
    /// The peer's SYN arrived.
    pub(super) fn on_syn(&mut self, now: Time, segment: &Segment<P>) {
        self.receiver.on_syn(segment.header.seq);
        self.handshake.offer = segment.options.handshake();
        if !self.paths[PathId::FIRST].tuple.local.is_ipv4() {
            self.handshake.offer.mss.get_or_insert(MSS_DEFAULT_V6);
        }
        self.handshake.has_flag = segment.has(Flags::MSE);
        if let Some(timestamps) = self.handshake.offer.timestamps {
            self.clock.on_syn(now, timestamps);
        }
        self.sender.peer_window.on_syn(segment.header.window);
    }

    /// The options of our SYN. In a SYN-ACK they include only what the peer has offered.
    pub(super) fn handshake_options(&self, is_answer: bool) -> HandshakeOptions {
        let offer = &self.handshake.offer;
        HandshakeOptions {
            mss: Some(self.config.mss),
            window_scale: (!is_answer || offer.window_scale.is_some())
                .then(|| Window::scale(self.config.receive_buffer_ceiling())),
            sack_permitted: !is_answer || offer.sack_permitted,
            multistream: self
                .handshake
                .grant(&self.config, is_answer)
                .filter(|_| !self.handshake.has_withdrawn(&self.config)),
            timestamps: (self.config.timestamps && (!is_answer || offer.timestamps.is_some()))
                .then(|| self.clock.timestamps()),
        }
    }

    /// Both SYNs are known, and ours was acknowledged.
    pub(super) fn establish(&mut self, now: Time) {
        let sample = self.handshake.on_acked(now - self.late);
        let agreement = self.handshake.agreement(&self.config);
        let Agreement { mss, shift, has_timestamps, has_sack, has_nonces, has_paths, has_extents, streams, .. } =
            agreement;
        self.sender.datagrams.agree(agreement.has_datagrams);
        let framing = if streams.is_some() { Framing::Streams } else { Framing::Plain };
        let options = Options::of_data(has_timestamps, has_extents);
        self.peer = Peer { mss, has_sack, has_nonces, has_extents, options, framing, ..self.peer };
        self.clock.set(has_timestamps);
        if let Some(shift) = shift {
            self.sender.peer_window.set_shift(shift);
            self.receiver.window.set_shift(Window::scale(self.config.receive_buffer_ceiling()));
        }
        self.paths.are_negotiated = has_paths;
        Core { outbound: self.sender.outbound, inbound: self.receiver.inbound, flow_control: self.flow_control } =
            agreement.core(&self.config);
        let (most, options) = (self.peer.mss, self.options_space());
        self.paths[PathId::FIRST].limit_mtu(most + options);
        self.on_mtu(now, PathId::FIRST);
        self.peer.segment = self.paths[PathId::FIRST].mss;
        let has_ecn = self.has_ecn();
        let control = &mut self.paths[PathId::FIRST].control;
        control.set_ecn(has_ecn);
        control.establish(now, self.peer.segment.into(), sample);
        control.detect_by(Detection::of(self.config.loss_detection, self.peer.has_sack));
        self.limit_ahead(now);
        self.liveness.on_heard(now, true);
        if self.is_closing {
            self.sender.outbound.finish_all();
        }
        self.events.push_back(Event::Established { streams });
    }
}

impl Handshake {
    /// The negotiated values, once both SYNs are known.
    fn agreement(&self, config: &Config) -> Agreement {
        let HandshakeOptions { mss, window_scale, sack_permitted, timestamps, .. } = self.offer;
        let mss = u32::from(mss.unwrap_or(MSS_DEFAULT).min(config.mss));
        // With an MSS that has no room for a stream header and a byte, nothing could be sent.
        let mss = mss.max(u32::from(Config::MSS_MIN));
        let has_timestamps = config.timestamps && timestamps.is_some();
        let granted = self.grant(config, true);
        let features = granted.map_or_else(Features::default, |granted| granted.features);
        let has_extents = features.contains(Features::EXTENTS);
        Agreement {
            // [rfc-9293] sec. 3.7.1: the MSS does not count options.
            mss: mss - Options::of_data(has_timestamps, has_extents),
            // [rfc-7323] sec. 2.3: a shift above 14 counts as 14.
            shift: window_scale.map(|shift| shift.min(SHIFT_MAX)),
            has_timestamps,
            has_sack: sack_permitted,
            has_nonces: features.contains(Features::NONCES),
            // Without SACK, the arrivals on different paths cannot be told apart.
            has_paths: features.contains(Features::PATHS) && sack_permitted,
            has_extents,
            has_datagrams: features.contains(Features::DATAGRAMS),
            streams: granted.map(|granted| granted.count()),
            credit: self.understood().map_or(u64::MAX, |offer| 1 << offer.credit.min(CREDIT_MAX)),
        }
    }

    /// The streams to request, or in an answer the streams to grant.
    fn grant(&self, config: &Config, is_answer: bool) -> Option<Multistream> {
        let paths = if config.paths_max > 1 { Features::PATHS } else { Features::default() };
        let datagrams = if config.datagram_receive_buffer > 0 { Features::DATAGRAMS } else { Features::default() };
        let ours = match config.form {
            Form::Sealed if config.streams > Sid::FIRST_PAGE_MAX => {
                paths.or(Features::NONCES).or(datagrams).or(Features::MANY_STREAMS)
            }
            Form::Sealed => paths.or(Features::NONCES).or(datagrams),
            Form::Tcp if config.extents => paths.or(Features::EXTENTS),
            Form::Tcp => paths,
        };
        let version = Multistream::VERSION;
        let wants = |features: Features| {
            let is_many = features.contains(Features::MANY_STREAMS);
            let streams = if is_many { config.streams.div_ceil(Multistream::MANY) } else { config.streams };
            let streams = u8::try_from(streams).unwrap_or(u8::MAX);
            Multistream { version, streams, features, credit: credit(config) }
        };
        let granted = if is_answer {
            let Multistream { streams, features: theirs, .. } = self.understood()?;
            let wanted = wants(ours.and(theirs));
            Multistream { streams: wanted.streams.min(streams), ..wanted }
        } else {
            wants(ours)
        };
        (granted.streams > 0).then_some(granted)
    }

    /// The peer's request for streams, if its version is ours. It needs both the flag and the option.
    fn understood(&self) -> Option<Multistream> {
        let is_known =
            |offer: &Multistream| self.has_flag && offer.version == Multistream::VERSION && offer.streams > 0;
        self.offer.multistream.filter(is_known)
    }
}

impl Agreement {
    /// The sending and receiving parts that follow from this agreement.
    fn core<P: Payload>(&self, config: &Config) -> Core<P> {
        let Config { send_buffer, stream_buffer, receive_buffer, mss, .. } = *config;
        let count = self.streams.unwrap_or(1);
        let framing = if self.streams.is_some() { Framing::Streams } else { Framing::Plain };
        let outbound = Outbound::new(framing, count, send_buffer, self.credit);
        let outbound = outbound.with_waiting_max(send_memory::waiting_max(config), count);
        let flow_control = match self.streams {
            Some(streams) => FlowControl::new(stream_buffer, receive_buffer, mss.into(), streams, credit(config)),
            None => FlowControl::none(),
        };
        // A stream counts segments from 0. Plain TCP counts bytes, and its SYN is byte 0.
        let inbound = Inbound::new(count, if self.streams.is_some() { 0 } else { 1 });
        Core { outbound, inbound, flow_control }
    }
}

/// The exponent of the credit offered for each stream; it does not depend on the peer's request.
fn credit(config: &Config) -> u8 {
    let Config { stream_buffer, receive_buffer, streams, .. } = *config;
    FlowControl::exponent(stream_buffer, receive_buffer, streams)
}

/// [rfc-9293] sec. 3.7.1: the MSS if the peer announces none, over IPv4 and over IPv6.
const MSS_DEFAULT: u16 = 536;
const MSS_DEFAULT_V6: u16 = 1220;

/// A limit is a 32-bit field that cannot express more than 2^31.
const CREDIT_MAX: u8 = 31;

#[cfg(test)]
mod tests {
    use anabranch_cc::{Settings, registry};

    use super::*;
    use crate::options::Timestamps;

    fn config() -> Config {
        let law = Settings::default_for(registry::find("reno").unwrap());
        Config { mss: 1460, streams: 5, paths_max: 2, timestamps: true, ..Config::new(law) }
    }

    /// An offer with every option.
    fn offer() -> HandshakeOptions {
        let multistream =
            Multistream { version: Multistream::VERSION, streams: 3, features: Features::PATHS, credit: 16 };
        HandshakeOptions {
            mss: Some(1400),
            window_scale: Some(7),
            sack_permitted: true,
            multistream: Some(multistream),
            timestamps: Some(Timestamps { value: 1, echo: 0 }),
        }
    }

    /// The agreement with a peer that sent this offer. `has_flag` says whether its SYN had the MSE flag.
    fn agreed(config: &Config, offer: HandshakeOptions, has_flag: bool) -> Agreement {
        Handshake { offer, has_flag, ..Handshake::new() }.agreement(config)
    }

    #[test]
    fn common_options_are_negotiated() {
        let expected = Agreement {
            mss: 1400 - 12,
            shift: Some(7),
            has_timestamps: true,
            has_sack: true,
            has_nonces: false,
            has_paths: true,
            has_extents: false,
            has_datagrams: false,
            streams: Some(3),
            credit: 1 << 16,
        };
        assert_eq!(agreed(&config(), offer(), true), expected);
        let modest = Config { mss: 1000, streams: 2, paths_max: 1, timestamps: false, ..config() };
        let expected = Agreement { mss: 1000, streams: Some(2), has_paths: false, has_timestamps: false, ..expected };
        assert_eq!(agreed(&modest, offer(), true), expected);
    }

    /// Without the flag or the option, or with another version, the result is plain TCP with all other options.
    #[test]
    fn an_offer_that_lacks_something_of_streams_is_plain_tcp() {
        let other = offer().multistream.map(|offer| Multistream { version: Multistream::VERSION + 1, ..offer });
        let none = offer().multistream.map(|offer| Multistream { streams: 0, ..offer });
        let offers = [(offer().multistream, false), (None, true), (other, true), (none, true)];
        for (multistream, has_flag) in offers {
            let agreement = agreed(&config(), HandshakeOptions { multistream, ..offer() }, has_flag);
            let plain =
                Agreement { streams: None, has_paths: false, credit: u64::MAX, ..agreed(&config(), offer(), true) };
            assert_eq!(agreement, plain, "{multistream:?}, flag {has_flag}");
        }
    }

    #[test]
    fn strange_values_are_taken_for_the_nearest_sane_one() {
        let mss = |mss| agreed(&config(), HandshakeOptions { mss, timestamps: None, ..offer() }, true).mss;
        assert_eq!([mss(None), mss(Some(0)), mss(Some(u16::MAX))], [536, Config::MSS_MIN.into(), 1460]);
        let strange = HandshakeOptions { window_scale: Some(200), sack_permitted: false, ..offer() };
        let agreement = agreed(&config(), strange, true);
        assert_eq!((agreement.shift, agreement.has_sack, agreement.has_paths), (Some(14), false, false));
        let multistream = offer().multistream.map(|offer| Multistream { credit: 255, ..offer });
        assert_eq!(agreed(&config(), HandshakeOptions { multistream, ..offer() }, true).credit, 1 << 31);
    }

    #[test]
    fn nonces_are_for_sealed_datagrams() {
        let features = Features::PATHS.or(Features::NONCES);
        let multistream = offer().multistream.map(|offer| Multistream { features, ..offer });
        let has_nonces =
            |form| agreed(&Config { form, ..config() }, HandshakeOptions { multistream, ..offer() }, true).has_nonces;
        assert_eq!([has_nonces(Form::Tcp), has_nonces(Form::Sealed)], [false, true]);
    }
}
