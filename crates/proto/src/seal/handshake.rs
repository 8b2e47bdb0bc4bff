//! The seal's handshake: an initiation carries the SYN, and a response carries its answer. A cookie may come in between.

use anabranch_units::Time;
use bytes::Bytes;

use super::allowance::Load;
use super::cipher::Cipher;
use super::datagram::{INITIATION, Initiation, RESPONSE, begin};
use super::hello::{Hello, Reply, Timestamp, is_answer};
use super::key::{PublicKey, SecretKey};
use super::noise::{self, Entropy, Handshake, MESSAGE_2, TAG};
use super::reset::{Given, Tokens};
use super::session::Session;
use super::{Outgoing, Refusal, Role, Seal, SealConfig, SealError, State, cookie};
use crate::path::FourTuple;
use crate::segment::{Flags, Segment};
use crate::wire::{self, Checksum, Ports};

#[derive(Debug)]
pub(super) struct Initiating {
    handshake: Handshake,
    /// The initiation up to and including mac1, the same in each transmission.
    message: Vec<u8>,
    mac1: [u8; TAG],
    cookie: Option<([u8; TAG], Time)>,
    /// Whether a cookie has arrived since the last transmission, so that the segment is retransmitted at once.
    pub(super) is_due: bool,
    may_hurry: bool,
}

#[derive(Debug)]
pub(super) struct Responding {
    /// The handshake and the initiator's index, until the response is made.
    handshake: Option<(Handshake, u32)>,
    pub(super) cipher: Cipher,
    response: Vec<u8>,
    /// The last bytes of the initiation, and its segment, to recognise a copy.
    tag: [u8; TAG],
    segment: Segment<Bytes>,
}

/// What the listener knows of a connection that it accepts.
#[derive(Debug)]
pub(super) struct ResponderParts {
    pub(super) secret: SecretKey,
    pub(super) remote: PublicKey,
    pub(super) number: u32,
    pub(super) config: SealConfig,
    pub(super) entropy: Entropy,
    pub(super) path: FourTuple,
    pub(super) handshake: Handshake,
    pub(super) cipher: Cipher,
    /// The initiator's index, and the last bytes of its message.
    pub(super) sender: u32,
    pub(super) tag: [u8; TAG],
    /// Bytes of the initiation's datagram.
    pub(super) len: usize,
    pub(super) is_validated: bool,
}

impl Seal {
    /// The seal of the responder.
    pub(super) fn responder(parts: ResponderParts, segment: Segment<Bytes>) -> Self {
        let ResponderParts { secret, remote, number, config, entropy, path, .. } = parts;
        let ResponderParts { handshake, cipher, sender, tag, len, is_validated, .. } = parts;
        let handshake = Some((handshake, sender));
        let state = State::Responding(Box::new(Responding { handshake, cipher, response: vec![], tag, segment }));
        let mut seal = Self::new(secret, remote, number, config, entropy, Role::Responder, state);
        seal.path = path;
        seal.addresses.on_received(path.remote, len);
        if is_validated {
            seal.addresses.validate(path.remote);
        }
        seal
    }

    /// Seals the segment into the initiation, or repeats the initiation.
    pub(super) fn seal_initiation(
        &mut self,
        now: Time,
        outgoing: &Outgoing,
        segment: &Segment<Bytes>,
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        if !segment.has(Flags::SYN) {
            return Err(SealError::NotReady);
        }
        if let State::Idle(timestamp) = self.state {
            self.state = State::Initiating(Box::new(self.initiate(timestamp, segment)?));
            // The application has named this address.
            self.addresses.validate(outgoing.tuple.remote);
        }
        if let State::Initiating(initiating) = &mut self.state {
            initiating.may_hurry = true;
            initiating.is_due = false;
            initiating.write(now, out);
        }
        self.path = outgoing.tuple;
        Ok(())
    }

    fn initiate(&mut self, timestamp: Timestamp, segment: &Segment<Bytes>) -> Result<Initiating, SealError> {
        let mut message = vec![];
        let index = self.next_index();
        begin(INITIATION, index, &mut message);
        let (mut syn, mut payload) = (vec![], vec![]);
        wire::encode(segment, Ports::default(), Checksum::None, &mut syn);
        Hello::write(&self.config.ciphers, self.entropy.draw()[0], timestamp, &syn, &mut payload);
        let (ephemeral, prologue) = (self.entropy.draw(), prologue(index));
        let handshake = Handshake::initiate(&self.secret, &self.remote, &prologue, ephemeral, &payload, &mut message);
        let handshake = handshake.map_err(|error| match error {
            snow::Error::Dh => SealError::NoKey,
            _ => SealError::TooLong,
        })?;
        let mac1 = cookie::mac1(&self.remote, &message);
        message.extend(mac1);
        Ok(Initiating { handshake, message, mac1, cookie: None, is_due: false, may_hurry: true })
    }

    /// Seals the segment into the response. A repetition is identical.
    pub(super) fn seal_response(
        &mut self,
        now: Time,
        outgoing: &Outgoing,
        segment: &Segment<Bytes>,
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        let local = self.index();
        let token = self.resets.token(local, outgoing.tuple.remote);
        let State::Responding(responding) = &mut self.state else { return Err(SealError::NotReady) };
        if !is_answer(segment) {
            return Err(SealError::NotReady);
        }
        let mut payload = vec![];
        if responding.handshake.is_some() {
            let mut answer = vec![];
            wire::encode(segment, Ports::default(), Checksum::None, &mut answer);
            Reply::write(local, responding.cipher, &answer, &token, &mut payload);
            if let Some(full) = self.full.filter(|_| segment.has(Flags::RST)) {
                full.write(&mut payload);
            }
        }
        let len = responding.response.len().max(8 + MESSAGE_2 + payload.len());
        if !self.addresses.allows(outgoing.tuple.remote, Load::one(len)) {
            return Err(SealError::NotAllowed);
        }
        if let Some((mut handshake, sender)) = responding.handshake.take() {
            begin(RESPONSE, sender, &mut responding.response);
            handshake.respond(&payload, &mut responding.response).map_err(|_| SealError::TooLong)?;
            self.given = Given::to(outgoing.tuple.remote);
            self.current = Session::new(now, local, sender, responding.cipher, handshake).ok();
        }
        out.extend_from_slice(&responding.response);
        Ok(())
    }

    /// A copy of the initiation arrived, so the response was lost.
    pub(super) fn open_again(
        &mut self,
        path: FourTuple,
        initiation: &Initiation<'_>,
        len: usize,
    ) -> Result<Option<Segment<Bytes>>, Refusal> {
        let State::Responding(responding) = &self.state else { return Err(Refusal::Unexpected) };
        let is_same = initiation.noise.last_chunk().is_some_and(|tag| noise::is_equal(tag, &responding.tag));
        if !is_same || path != self.path {
            return Err(Refusal::Unexpected);
        }
        self.addresses.on_received(path.remote, len);
        Ok(Some(responding.segment.clone()))
    }

    pub(super) fn open_response(
        &mut self,
        now: Time,
        receiver: u32,
        noise: &[u8],
    ) -> Result<Option<Segment<Bytes>>, Refusal> {
        let tag = *noise.last_chunk().ok_or(Refusal::Malformed)?;
        if receiver != self.index() {
            return Err(Refusal::UnknownSession);
        }
        match &mut self.state {
            State::Initiating(initiating) => {
                let payload = Bytes::from(initiating.handshake.conclude(noise).map_err(|_| Refusal::Forged)?);
                let State::Initiating(initiating) = std::mem::replace(&mut self.state, State::Established(None)) else {
                    return Err(Refusal::Unexpected);
                };
                let Reply { index, cipher, answer, token, full } = Reply::read(payload)?;
                (self.tokens, self.full) = (Tokens::new(token), full);
                let cipher = Cipher::of(cipher).filter(|cipher| self.config.ciphers.has(*cipher));
                let cipher = cipher.ok_or(Refusal::NoCipher)?;
                self.current = Some(Session::new(now, receiver, index, cipher, initiating.handshake)?);
                self.state = State::Established(Some(Box::new((tag, answer.clone()))));
                Ok(Some(answer))
            }
            // The connection's SYN-ACK was lost.
            State::Established(Some(first)) if noise::is_equal(&first.0, &tag) => Ok(Some(first.1.clone())),
            State::Idle(_) | State::Responding(_) | State::Established(_) => Err(Refusal::Unexpected),
        }
    }

    pub(super) fn open_cookie(
        &mut self,
        now: Time,
        receiver: u32,
        cookie: [u8; TAG],
        mac: &[u8; TAG],
    ) -> Result<Option<Segment<Bytes>>, Refusal> {
        let index = self.index();
        let State::Initiating(initiating) = &mut self.state else { return Err(Refusal::Unexpected) };
        if receiver != index {
            return Err(Refusal::UnknownSession);
        }
        if !noise::is_equal(&cookie::cookie_mac(&self.remote, &initiating.mac1, &cookie), mac) {
            return Err(Refusal::Forged);
        }
        initiating.cookie = Some((cookie, now));
        // Only once per transmission, as anyone who sees the initiation can send any number of cookies.
        initiating.is_due |= std::mem::take(&mut initiating.may_hurry);
        Ok(None)
    }
}

impl Initiating {
    /// Appends the initiation, with a cookie if there is one.
    pub(super) fn write(&self, now: Time, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.message);
        let cookie = self.cookie.filter(|(_, since)| now.since(*since) < cookie::LIFETIME);
        let mac2 = cookie.map_or([0; TAG], |(cookie, _)| cookie::with_cookie(&cookie, &out[start..]));
        out.extend(mac2);
    }
}

/// The keys are bound to the initiator's index, which the responder reads unencrypted.
pub(super) fn prologue(sender: u32) -> Vec<u8> {
    [PROLOGUE, &sender.to_be_bytes()].concat()
}

/// The name and version of this protocol, equal at both ends.
const PROLOGUE: &[u8] = b"anabranch seal 2";
