//! The tokens of the challenges that left on one path. Who answers one has seen it, and so is where it went.

use anabranch_units::Time;

/// What a challenge asks back.
pub(super) type Token = [u8; 8];

/// The tokens of the latest challenges, the latest first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tokens {
    sent: [Option<Sent>; KEPT],
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    token: Token,
    at: Time,
    /// Bytes of its datagram.
    len: u32,
    /// Whether an answer is still of use.
    is_open: bool,
}

impl Tokens {
    /// A challenge with this token leaves, in a datagram of so many bytes.
    pub(super) fn on_sent(&mut self, now: Time, token: Token, len: u32) {
        self.sent.rotate_right(1);
        self.sent[0] = Some(Sent { token, at: now, len, is_open: true });
    }

    /// An answer came. When the challenge left that it answers, and how long it was, if that is still of use; nothing that left before
    /// is then.
    pub(super) fn on_answer(&mut self, token: Token) -> Option<(Time, u32)> {
        let Sent { at, len, .. } = *self.iter().find(|sent| sent.is_open && sent.token == token)?;
        self.sent.iter_mut().flatten().for_each(|sent| sent.is_open = false);
        Some((at, len))
    }

    /// Whether one of these challenges had this token, answered or not.
    pub(super) fn has(&self, token: Token) -> bool {
        self.iter().any(|sent| sent.token == token)
    }

    fn iter(&self) -> impl Iterator<Item = &Sent> {
        self.sent.iter().flatten()
    }
}

/// Challenges whose answers count: an answer may be as late as the next three challenges, which are sent at twice the distance
/// each time.
const KEPT: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_of_the_latest_challenges_may_be_answered_once() {
        let at = |number: u8| Time::from_ticks(number.into());
        let mut tokens = Tokens::default();
        (1..=5).for_each(|number| tokens.on_sent(at(number), [number; 8], 1200 + u32::from(number)));
        assert_eq!((tokens.has([1; 8]), tokens.on_answer([1; 8])), (false, None), "four are kept");
        assert_eq!(tokens.on_answer([2; 8]), Some((at(2), 1202)));
        assert_eq!((tokens.on_answer([5; 8]), tokens.has([5; 8])), (None, true), "it is not asked any more");
        tokens.on_sent(at(6), [6; 8], 1200);
        assert_eq!((tokens.on_answer([5; 8]), tokens.on_answer([6; 8])), (None, Some((at(6), 1200))));
    }
}
