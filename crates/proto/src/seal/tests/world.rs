//! Engines over a network that loses, repeats, reorders and forges datagrams.

use std::collections::BTreeMap;

use anabranch_cc::{Settings, registry};
use proptest::prelude::*;

use super::*;
use crate::{Config, Connection, Event, Read, Secret, State as ConnectionState};

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// A datagram that was changed in any way is refused.
    #[test]
    fn a_datagram_that_was_changed_is_refused(
        kind in 0..4usize,
        change in prop_oneof![Just(0u8), 1u8..],
        at in any::<prop::sample::Index>(),
    ) {
        let limits = ListenerConfig { unproven: Pace { per_second: 1, burst: 1 }, ..Default::default() };
        let (mut client, mut listener) = (initiator(Limits::default()), listener(limits));
        let mangle = |which: usize, datagram: &[u8]| {
            let mut mangled = datagram.to_vec();
            let at = at.index(mangled.len());
            if which != kind {
                return None;
            }
            if change == 0 { mangled.truncate(at) } else { mangled[at] ^= change }
            Some(mangled)
        };
        let initiation = sealed(&mut client, secs(0), PATH, &syn());
        if let Some(bad) = mangle(0, &initiation) {
            let answer = listener.handle(secs(0), PATH.reversed(), &bad, 9, &mut vec![]);
            // Without load, mac2 is not checked.
            let is_mac2 = bad.len() == initiation.len() && bad[..bad.len() - 16] == initiation[..bad.len() - 16];
            prop_assert!(answer.is_err() || is_mac2);
            return Ok(());
        }
        let (mut server, _) = accepted(&mut listener, secs(0), &initiation, 9);
        let response = sealed(&mut server, secs(0), PATH.reversed(), &syn_ack());
        if let Some(bad) = mangle(1, &response) {
            prop_assert!(opened(&mut client, secs(0), PATH, &bad).is_err());
        }
        opened(&mut client, secs(0), PATH, &response).unwrap();
        let good = sealed(&mut client, secs(0), PATH, &data(1));
        if let Some(bad) = mangle(2, &good) {
            prop_assert!(opened(&mut server, secs(0), PATH.reversed(), &bad).is_err());
        }
        let mut another = client_of(8, 1, 8);
        let asked = sealed(&mut another, secs(0), PATH, &syn());
        let mut cookie = vec![];
        listener.handle(secs(0), PATH.reversed(), &asked, 10, &mut cookie).unwrap();
        if let Some(bad) = mangle(3, &cookie) {
            prop_assert!(opened(&mut another, secs(0), PATH, &bad).is_err());
        }
    }

    /// Two engines exchange sealed datagrams, some of which are lost, repeated, late or changed. No changed datagram is accepted,
    /// and all written data arrives.
    #[test]
    fn engines_talk_through_seals(
        fates in prop::collection::vec(fate(), 1..60),
        rekey_after_messages in 5..50u64,
        handshakes_per_second in 0..2u32,
        ciphers in prop_oneof![Just(CipherPreference::default()), Just(CipherPreference::fast_aes())],
        datagram_max in prop_oneof![Just(65_535u32), 500..1600u32],
        padding in prop_oneof![Just(Padding::None), Just(Padding::Multiple(64)), Just(Padding::Full)],
    ) {
        let (rekey_retry, keep_previous) = (Span::from_millis(20), Span::from_millis(400));
        let rekey_interval = Span::ZERO;
        // Often enough to succeed before all data is written.
        let rekey_retry_max = rekey_retry;
        let limits = Limits { rekey_after_messages, rekey_retry, rekey_retry_max, keep_previous, rekey_interval, ..Limits::default() };
        let unproven = Pace { per_second: handshakes_per_second, burst: 1 };
        let limits = ListenerConfig { connection: SealConfig { ciphers, padding, ..with(limits) }, unproven, ..Default::default() };
        let mut world = World::new(limits, datagram_max, fates);
        let text: Vec<u8> = (0..300_000u32).map(|at| (at % 251) as u8).collect();
        let received = world.transfer(Bytes::from(text.clone()));
        prop_assert!(received == text, "{} of {} bytes", received.len(), text.len());
        prop_assert!(world.client.seal.tally().rekeyed > 0);
    }
}

/// What the network does to a datagram.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    Arrive,
    Lose,
    Repeat,
    Delay,
    /// The byte at this position is changed by this value, which is not zero.
    Corrupt(prop::sample::Index, u8),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => Just(Fate::Arrive),
        2 => Just(Fate::Lose),
        1 => Just(Fate::Repeat),
        1 => Just(Fate::Delay),
        2 => (any::<prop::sample::Index>(), 1..=255u8).prop_map(|(at, change)| Fate::Corrupt(at, change)),
    ]
}

/// A datagram in the network.
struct Flying {
    to_server: bool,
    datagram: Vec<u8>,
    is_corrupt: bool,
}

/// One end of the connection.
struct End {
    engine: Connection<Bytes>,
    seal: Seal,
    path: FourTuple,
    /// The first segment that arrived.
    first: Option<Segment<Bytes>>,
}

pub(super) struct World {
    now: Time,
    client: End,
    server: Option<End>,
    listener: Listener,
    config: Config,
    /// The path's limit; segments are made for 1460 bytes.
    datagram_max: u32,
    /// Datagrams in the network, by arrival time.
    flying: BTreeMap<(Time, u64), Flying>,
    count: u64,
    fates: Vec<Fate>,
    /// The datagrams that arrived, and whether at the server.
    pub(super) capture: Vec<(bool, Vec<u8>)>,
}

impl World {
    pub(super) fn new(limits: ListenerConfig, datagram_max: u32, fates: Vec<Fate>) -> Self {
        let law = Settings::default_for(registry::find("reno").unwrap());
        let config = Config { user_timeout: None, form: crate::Form::Sealed, ..Config::new(law) };
        let engine = Connection::connect(Time::ZERO, config.clone(), PATH, Secret::predictable(SeqNumber(5))).unwrap();
        let client = End { engine, seal: initiator_with(limits.connection), path: PATH, first: None };
        let listener = listener(limits);
        Self {
            now: Time::ZERO,
            client,
            server: None,
            listener,
            config,
            datagram_max,
            flying: Default::default(),
            count: 0,
            fates,
            capture: vec![],
        }
    }

    fn send(&mut self, to_server: bool, mut datagram: Vec<u8>) {
        let fate = self.fates.get(self.count as usize).copied().unwrap_or(Fate::Arrive);
        self.count += 1;
        let (late, copies) = match fate {
            Fate::Lose => return,
            Fate::Repeat => (20, 2),
            Fate::Delay => (300, 1),
            Fate::Arrive | Fate::Corrupt(..) => (20, 1),
        };
        let is_corrupt = if let Fate::Corrupt(at, change) = fate {
            // Without load, the last field of an initiation, mac2, is not checked.
            let is_initiation = Seal::recipient(&datagram) == Some(Recipient::Listener);
            let len = datagram.len() - if is_initiation { 16 } else { 0 };
            datagram[at.index(len)] ^= change;
            true
        } else {
            false
        };
        for copy in 0..copies {
            let at = self.now.saturating_add(Span::from_millis(late));
            let flying = Flying { to_server, datagram: datagram.clone(), is_corrupt };
            self.flying.insert((at, self.count * 2 + copy), flying);
        }
    }

    /// A datagram was changed on its way: its receiver must refuse it.
    fn refuse(&mut self, to_server: bool, datagram: &[u8]) {
        let now = self.now;
        // A changed index identifies another connection, or none.
        let is_refused = match Seal::recipient(datagram) {
            Some(Recipient::Listener) if to_server => {
                self.listener.handle(now, PATH.reversed(), datagram, 9, &mut vec![]).is_err()
            }
            Some(Recipient::Connection(9)) if to_server => self.server.as_mut().unwrap().refuses(now, datagram),
            Some(_) if !to_server => self.client.refuses(now, datagram),
            Some(_) | None => true,
        };
        assert!(is_refused, "{datagram:?}");
    }

    /// Sends everything that both ends have to send.
    fn drain(&mut self) {
        let mut out = vec![];
        let now = self.now;
        for (to_server, end) in [(true, Some(&mut self.client)), (false, self.server.as_mut())] {
            let Some(end) = end else { continue };
            while let Some(transmit) = end.engine.poll_transmit(now) {
                let mut datagram = vec![];
                let outgoing = Outgoing { path: transmit.path, datagram_max: self.datagram_max, ..on(transmit.tuple) };
                if let Ok(sealed) = end.seal.seal(now, &outgoing, &transmit.segment, &mut datagram) {
                    out.extend(datagram.chunks(sealed.size).map(|datagram| (to_server, datagram.to_vec())));
                }
            }
            let mut datagram = vec![];
            while end.seal.poll_transmit(now, &mut datagram).is_some() {
                out.push((to_server, std::mem::take(&mut datagram)));
            }
        }
        out.into_iter().for_each(|(to_server, datagram)| self.send(to_server, datagram));
    }

    fn arrive(&mut self, to_server: bool, datagram: &[u8]) {
        let now = self.now;
        self.capture.push((to_server, datagram.to_vec()));
        if !to_server {
            return self.client.arrive(now, datagram);
        }
        match Seal::recipient(datagram) {
            Some(Recipient::Reset) => panic!("nobody restarts"),
            Some(Recipient::Listener) => {
                let mut reply = vec![];
                match self.listener.handle(now, PATH.reversed(), datagram, 9, &mut reply) {
                    Ok(Answer::Accept { seal, segment, .. }) => {
                        let path = PATH.reversed();
                        let mut engine =
                            Connection::listen(now, self.config.clone(), path, Secret::predictable(SeqNumber(900)))
                                .unwrap();
                        engine.handle_segment(now, path, segment);
                        // An initiation that arrives late, when the first was answered long ago, opens another connection, which
                        // is never used.
                        let is_used = |server: &End| server.engine.state() == ConnectionState::Established;
                        if !self.server.as_ref().is_some_and(is_used) {
                            self.server = Some(End { engine, seal: *seal, path, first: None });
                        }
                    }
                    Ok(Answer::Again { .. }) => self.server.as_mut().unwrap().arrive(now, datagram),
                    Ok(Answer::Reply) => self.send(false, reply),
                    Err(_) => {}
                }
            }
            Some(Recipient::Connection(number)) => {
                assert_eq!(number, 9);
                self.server.as_mut().unwrap().arrive(now, datagram);
            }
            None => panic!("only our datagrams are here"),
        }
    }

    /// Writes all of `text` at the client. Returns what the server reads.
    pub(super) fn transfer(&mut self, mut text: Bytes) -> Vec<u8> {
        let (mut sid, mut received, whole) = (None, vec![], text.len());
        self.drain();
        while received.len() < whole {
            let flying = self.flying.keys().next().map_or(Time::NEVER, |key| key.0);
            let timers = [Some(&self.client), self.server.as_ref()].into_iter().flatten();
            let next = timers.map(|end| end.engine.poll_timeout().min(end.seal.poll_timeout())).min().unwrap();
            let next = next.min(flying);
            // After sixty consecutive losses, retransmissions are sent once a minute.
            if next > secs(3600) {
                break;
            }
            self.now = self.now.max(next);
            if flying <= self.now {
                let (_, Flying { to_server, datagram, is_corrupt }) = self.flying.pop_first().unwrap();
                if is_corrupt { self.refuse(to_server, &datagram) } else { self.arrive(to_server, &datagram) }
            }
            for end in [Some(&mut self.client), self.server.as_mut()].into_iter().flatten() {
                end.engine.handle_timeout(self.now);
                end.seal.handle_timeout(self.now);
            }
            if sid.is_none() && self.client.engine.state() == ConnectionState::Established {
                sid = self.client.engine.streams().open().ok();
            }
            if let Some(sid) = sid {
                self.client.engine.streams().write(sid, &mut text).unwrap();
                if let Some(server) = &mut self.server {
                    while let Ok(Read::Data(part)) = server.engine.streams().read(sid, u32::MAX) {
                        received.extend_from_slice(&part);
                    }
                }
            }
            self.drain();
        }
        received
    }
}

impl End {
    /// Whether the receiver ignores all of a datagram's content. A repeated response of a handshake is recognised by its tag:
    /// whatever else it contains, it stands for the segment of the first response.
    fn refuses(&mut self, now: Time, datagram: &[u8]) -> bool {
        match self.seal.open(now, self.path, datagram.into()) {
            Err(_) => true,
            Ok(segment) => segment.is_some() && segment == self.first,
        }
    }

    fn arrive(&mut self, now: Time, datagram: &[u8]) {
        if let Ok(Some(segment)) = self.seal.open(now, self.path, datagram.into()) {
            self.first.get_or_insert_with(|| segment.clone());
            self.engine.handle_segment(now, self.path, segment);
        }
        while let Some(event) = self.engine.poll_event() {
            assert!(!matches!(event, Event::Closed(_)), "nothing ends it: {event:?}");
        }
    }
}
