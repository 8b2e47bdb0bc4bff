//! The tokens of the challenges sent on one path. A response with the token proves that its sender received the challenge.

use anabranch_units::Time;

/// The token of a challenge.
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
    /// Bytes of the challenge's datagram.
    len: u32,
    /// Whether a response still counts.
    is_open: bool,
}

impl Tokens {
    /// A challenge with this token is sent, in a datagram of `len` bytes.
    pub(super) fn on_sent(&mut self, now: Time, token: Token, len: u32) {
        self.sent.rotate_right(1);
        self.sent[0] = Some(Sent { token, at: now, len, is_open: true });
    }

    /// A response arrived. If it still counts, returns when its challenge was sent, and the size of the challenge's datagram.
    /// Afterwards, responses to earlier challenges no longer count. Later ones may probe something else, and are still awaited.
    pub(super) fn on_answer(&mut self, token: Token) -> Option<(Time, u32)> {
        let place = self.sent.iter().flatten().position(|sent| sent.is_open && sent.token == token)?;
        let Sent { at, len, .. } = self.sent[place]?;
        self.sent[place..].iter_mut().flatten().for_each(|sent| sent.is_open = false);
        Some((at, len))
    }

    /// Whether one of these challenges, answered or not, has this token.
    pub(super) fn has(&self, token: Token) -> bool {
        self.iter().any(|sent| sent.token == token)
    }

    fn iter(&self) -> impl Iterator<Item = &Sent> {
        self.sent.iter().flatten()
    }
}

/// The number of challenges whose responses count. A response may arrive as late as three challenges later, which are sent at
/// doubling intervals.
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
        assert_eq!(tokens.on_answer([3; 8]), Some((at(3), 1203)));
        assert_eq!((tokens.on_answer([2; 8]), tokens.has([2; 8])), (None, true), "it is not asked any more");
        assert_eq!((tokens.on_answer([5; 8]), tokens.on_answer([5; 8])), (Some((at(5), 1205)), None));
        tokens.on_sent(at(6), [6; 8], 1200);
        assert_eq!((tokens.on_answer([5; 8]), tokens.on_answer([6; 8])), (None, Some((at(6), 1200))));
    }
}
