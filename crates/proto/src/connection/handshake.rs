//! The three-way handshake, and what it settles ([rfc-9293] sec. 3.5; [mfast-2019] sec. IV.C for the streams).

use anabranch_units::{Span, Time};

use super::Connection;
use super::send_memory;
use crate::config::{Config, Form};
use crate::ecn::PathEcn;
use crate::event::Event;
use crate::options::{Features, HandshakeOptions, Multistream, Timestamps};
use crate::path::PathId;
use crate::payload::Payload;
use crate::receive::window::{SHIFT_MAX, Window};
use crate::recovery::control::dup_acks::Detection;
use crate::segment::{Flags, Segment};
use crate::stream::flow_control::FlowControl;
use crate::stream::inbound::Inbound;
use crate::stream::outbound::{Framing, Outbound};

/// The SYN of this side.
#[derive(Clone, Debug)]
pub(super) struct Handshake {
    progress: Progress,
    /// When the SYN left, the first time.
    sent_at: Time,
    /// How often it has left.
    transmissions: u32,
    /// What the peer's SYN said.
    offer: HandshakeOptions,
    /// Whether the peer's SYN had the flag MSE.
    has_flag: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// No SYN is out.
    Idle,
    /// One is to leave.
    Due,
    /// It is sent again at this time.
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

    /// A SYN is to leave.
    pub(super) fn send(&mut self) {
        self.progress = Progress::Due;
    }

    pub(super) fn is_due(&self) -> bool {
        self.progress == Progress::Due
    }

    /// It left.
    pub(super) fn on_sent(&mut self, now: Time) {
        if self.transmissions == 0 {
            self.sent_at = now;
        }
        // [rfc-6298] sec. 5.5 and 2.1.
        let timeout = Span::from_secs(1).saturating_mul(1 << self.transmissions.min(6));
        self.transmissions += 1;
        self.progress = Progress::Out(now.saturating_add(timeout.min(Span::from_secs(60))));
    }

    /// It was acknowledged. Returns how long that took, if it left once.
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
    /// The peer's SYN came.
    pub(super) fn on_syn(&mut self, now: Time, segment: &Segment<P>) {
        self.initial_peer = segment.header.seq;
        self.handshake.offer = segment.options.handshake();
        self.handshake.has_flag = segment.has(Flags::MSE);
        if let Some(timestamps) = self.handshake.offer.timestamps {
            self.clock.on_syn(now, timestamps);
        }
        self.peer_window.on_syn(segment.header.window);
    }

    /// What our SYN says. In an answer nothing is offered that the peer has not offered.
    pub(super) fn handshake_options(&self, is_answer: bool) -> HandshakeOptions {
        let offer = &self.handshake.offer;
        HandshakeOptions {
            mss: Some(self.config.mss),
            window_scale: (!is_answer || offer.window_scale.is_some())
                .then(|| Window::scale(self.config.receive_buffer)),
            sack_permitted: !is_answer || offer.sack_permitted,
            multistream: self.grant(is_answer),
            timestamps: (self.config.timestamps && (!is_answer || offer.timestamps.is_some()))
                .then(|| self.clock.timestamps()),
        }
    }

    /// Streams wanted, or granted in an answer.
    fn grant(&self, is_answer: bool) -> Option<Multistream> {
        let paths = if self.config.paths_max > 1 { Features::PATHS } else { Features::default() };
        let features = if self.config.form == Form::Sealed { paths.or(Features::NONCES) } else { paths };
        let (streams, credit) = (self.config.streams, self.credit());
        let wanted = Multistream { version: Multistream::VERSION, streams, features, credit };
        let granted = if is_answer {
            let Multistream { streams, features: theirs, .. } = self.handshake.understood()?;
            Multistream { streams: wanted.streams.min(streams), features: features.and(theirs), ..wanted }
        } else {
            wanted
        };
        (granted.streams > 0).then_some(granted)
    }

    /// The credit of each stream that we offer, whatever the peer wants: 2 to this power.
    fn credit(&self) -> u8 {
        let Config { stream_buffer, receive_buffer, streams, .. } = self.config;
        FlowControl::exponent(stream_buffer, receive_buffer, streams)
    }

    /// Both SYNs are known and ours was acknowledged.
    pub(super) fn establish(&mut self, now: Time) {
        let sample = self.handshake.on_acked(now);
        let offer = self.handshake.offer;
        let mss = u32::from(offer.mss.unwrap_or(MSS_DEFAULT).min(self.config.mss));
        // A peer that asks for less than a stream header and a byte would never get anything.
        self.peer.mss = mss.max(u32::from(Config::MSS_MIN));
        self.clock.set(self.config.timestamps && offer.timestamps.is_some());
        if self.clock.is_on() {
            // [rfc-9293] sec. 3.7.1: what is agreed on counts no options, and each segment has these, padded to words.
            self.peer.mss -= Timestamps::SPACE;
        }
        self.peer.has_sack = offer.sack_permitted;
        if let Some(shift) = offer.window_scale {
            // [rfc-7323] sec. 2.3: more than 14 is taken for 14.
            self.peer_window.set_shift(shift.min(SHIFT_MAX));
            self.window.set_shift(Window::scale(self.config.receive_buffer));
        }
        let granted = self.grant(true);
        let streams = granted.map(|granted| granted.streams);
        // Without selective acknowledgements nobody could tell what of which path has arrived.
        let features = granted.map_or_else(Features::default, |granted| granted.features);
        self.peer.has_nonces = features.contains(Features::NONCES);
        self.paths.are_negotiated = features.contains(Features::PATHS) && self.peer.has_sack;
        self.peer.framing = if streams.is_some() { Framing::Streams } else { Framing::Plain };
        let count = streams.unwrap_or(1);
        let Config { send_buffer, stream_buffer, receive_buffer, mss, .. } = self.config;
        let credit = self.handshake.understood().map_or(u64::MAX, |offer| 1 << offer.credit.min(CREDIT_MAX));
        self.outbound = Outbound::new(self.peer.framing, count, send_buffer, credit)
            .with_waiting_max(send_memory::waiting_max(&self.config));
        self.flow_control = match streams {
            Some(streams) => FlowControl::new(stream_buffer, receive_buffer, mss.into(), streams, self.credit()),
            None => FlowControl::none(),
        };
        // A stream counts segments from 0, plain TCP bytes from the SYN.
        self.inbound = Inbound::new(count, if streams.is_some() { 0 } else { 1 });
        let (most, options) = (self.peer.mss, self.options_space());
        self.paths[PathId::FIRST].limit_mtu(most + options);
        self.on_mtu(now, PathId::FIRST);
        self.peer.segment = self.paths[PathId::FIRST].mss;
        let ecn = PathEcn::new(self.has_ecn());
        let control = &mut self.paths[PathId::FIRST].control;
        control.ecn = ecn;
        control.establish(now, self.peer.segment.into(), sample);
        control.detect_by(Detection::of(self.config.loss_detection, self.peer.has_sack));
        self.liveness.on_heard(now, true);
        if self.is_closing {
            self.outbound.finish_all();
        }
        self.events.push_back(Event::Established { streams });
    }
}

impl Handshake {
    /// What the peer said about streams, if we speak that version: the flag and the option, both or none.
    fn understood(&self) -> Option<Multistream> {
        let is_known =
            |offer: &Multistream| self.has_flag && offer.version == Multistream::VERSION && offer.streams > 0;
        self.offer.multistream.filter(is_known)
    }
}

/// [rfc-9293] sec. 3.7.1: what a peer takes that does not say.
const MSS_DEFAULT: u16 = 536;

/// More than 2^31 a limit of 32 bits cannot say.
const CREDIT_MAX: u8 = 31;
