//! Rekeying: the initiator requests new keys and the responder answers, both within the session that is replaced.

use anabranch_units::{Span, Time};

use super::datagram::word;
use super::noise::{self, Handshake, MESSAGE_1, MESSAGE_2, TAG};
use super::reset::{Given, Tokens, token};
use super::session::Session;
use super::{Previous, Refusal, Role, Seal};
use crate::path::Address;

/// A replacement of keys in progress.
#[derive(Debug)]
pub(super) enum Renewal {
    None,
    /// The initiator has sent a request, and repeats it at this time.
    Asking {
        handshake: Handshake,
        message: Vec<u8>,
        index: u32,
        at: Time,
        wait: Span,
    },
    /// The responder has answered; the initiator has not yet used the new keys.
    Answered {
        session: Box<Session>,
        answer: Vec<u8>,
        tag: [u8; TAG],
        /// The address whose reset token it has.
        to: Address,
        is_due: bool,
    },
}

/// Which session of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    Previous,
    Current,
    Next,
}

impl Seal {
    /// The session that an index identifies.
    pub(super) fn age(&self, receiver: u32) -> Option<Age> {
        if self.current.as_ref().is_some_and(|session| session.local == receiver) {
            return Some(Age::Current);
        }
        if self.previous.as_ref().is_some_and(|previous| previous.session.local == receiver) {
            return Some(Age::Previous);
        }
        match &self.renewal {
            Renewal::Answered { session, .. } if session.local == receiver => Some(Age::Next),
            _ => None,
        }
    }

    /// The initiator has used the next session: it becomes the current one.
    pub(super) fn promote(&mut self, now: Time) {
        if let Renewal::Answered { session, to, .. } = std::mem::replace(&mut self.renewal, Renewal::None) {
            self.given = Given::to(to);
            let until = now.saturating_add(self.config.limits.keep_previous);
            self.previous = self.current.replace(*session).map(|session| Previous { session, until });
            self.tally.rekeyed += 1;
        }
    }

    /// Requests new keys if the current ones are worn. Only the initiator does so.
    pub(super) fn renew(&mut self, now: Time) {
        let Some(current) = &self.current else { return };
        let limits = &self.config.limits;
        // The responder has proved that it has the current keys, so it no longer needs the previous ones.
        let is_confirmed = self.previous.as_ref().is_none_or(|previous| previous.until < Time::NEVER);
        let is_free = matches!(self.renewal, Renewal::None) && is_confirmed;
        let is_early = now.since(current.since) < limits.rekey_interval;
        if self.role != Role::Initiator || !is_free || is_early || !current.is_worn(now, limits) {
            return;
        }
        let wait = limits.rekey_retry;
        let binding = current.binding;
        let index = self.next_index();
        let mut message = Vec::from(index.to_be_bytes());
        let ephemeral = self.entropy.draw();
        let prologue = renewal_prologue(&binding);
        let Self { secret, remote, .. } = &*self;
        // The inputs are our own, so this never fails.
        if let Ok(handshake) = Handshake::initiate(secret, remote, &prologue, ephemeral, &[], &mut message) {
            self.renewal = Renewal::Asking { handshake, message, index, at: now, wait };
        }
    }

    /// Answers the initiator's request for new keys.
    pub(super) fn answer(&mut self, now: Time, message: &[u8]) -> Result<(), Refusal> {
        let (Role::Responder, Some(current)) = (self.role, &self.current) else { return Err(Refusal::Unexpected) };
        let (sender, noise) = word(message).ok_or(Refusal::Malformed)?;
        let noise = noise.get(..MESSAGE_1).ok_or(Refusal::Malformed)?;
        let tag = *noise.last_chunk().ok_or(Refusal::Malformed)?;
        if let Renewal::Answered { tag: before, is_due, .. } = &mut self.renewal
            && noise::is_equal(before, &tag)
        {
            *is_due = true;
            return Ok(());
        }
        // A handshake is expensive, and no correct initiator sends requests so often.
        let is_early = self.answered.is_some_and(|last| now.since(last) < self.config.limits.rekey_interval);
        if is_early {
            return Err(Refusal::TooMany);
        }
        self.answered = Some(now);
        let prologue = renewal_prologue(&current.binding);
        let cipher = current.cipher;
        let received = Handshake::receive(&self.secret, &prologue, self.entropy.draw(), noise);
        let (mut handshake, remote, _) = received.map_err(|_| Refusal::Forged)?;
        if remote != self.remote {
            return Err(Refusal::Forged);
        }
        let local = self.next_index();
        let mut answer = Vec::from(local.to_be_bytes());
        answer.extend(sender.to_be_bytes());
        handshake.respond(&[], &mut answer).map_err(|_| Refusal::Forged)?;
        let to = self.path.remote;
        answer.extend(self.resets.token(local, to));
        let session = Session::new(now, local, sender, cipher, handshake)?;
        self.renewal = Renewal::Answered { session: Box::new(session), answer, tag, to, is_due: true };
        Ok(())
    }

    /// The responder's answer arrived.
    pub(super) fn conclude(&mut self, now: Time, message: &[u8]) -> Result<(), Refusal> {
        let (sender, rest) = word(message).ok_or(Refusal::Malformed)?;
        let (receiver, noise) = word(rest).ok_or(Refusal::Malformed)?;
        let (noise, rest) = noise.split_at_checked(MESSAGE_2).ok_or(Refusal::Malformed)?;
        let cipher = self.current.as_ref().ok_or(Refusal::Unexpected)?.cipher;
        match &mut self.renewal {
            Renewal::Asking { handshake, index, .. } if *index == receiver => {
                handshake.conclude(noise).map_err(|_| Refusal::Forged)?;
            }
            Renewal::None | Renewal::Asking { .. } | Renewal::Answered { .. } => return Err(Refusal::Unexpected),
        }
        if let Renewal::Asking { handshake, .. } = std::mem::replace(&mut self.renewal, Renewal::None) {
            let session = Session::new(now, receiver, sender, cipher, handshake)?;
            self.tokens = Tokens::new(token(rest));
            // The responder seals with the old keys until it has seen a datagram under the new ones.
            let previous = self.current.replace(session);
            self.previous = previous.map(|session| Previous { session, until: Time::NEVER });
            self.tally.rekeyed += 1;
        }
        Ok(())
    }
}

/// New keys are bound to those that they replace.
fn renewal_prologue(binding: &[u8; 32]) -> Vec<u8> {
    [RENEWAL_PROLOGUE, binding].concat()
}

/// The name and version, as for the first keys.
const RENEWAL_PROLOGUE: &[u8] = b"anabranch rekey 2";
