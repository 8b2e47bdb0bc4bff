//! Short codes, such as `7-guitar-ocean`: what one person says and another types, in place of a ticket.
//!
//! ```text
//! the end with the code              relay                    the end where it is typed
//! offer ─────────────────────────────> 7
//!                        <── claimed ─┼──────────────────────── claim 7, message of SPAKE2
//! message of SPAKE2 ─────────────────>┼── pass ───────────────>
//!                        <── pass ────┼──────────────────────── its ticket, sealed with the key
//! right or wrong ────────────────────>┼── pass ───────────────>
//! ```
//!
//! SPAKE2 ([rfc-9382], by the crate `spake2`) makes a strong key of a weak password: each run gives one guess, and what was seen of it gives none.
//! The relay sees only that, and could itself guess as anybody. After three runs that did not end with a ticket the code is over. The chance
//! that one of three guesses is right is 3 in 65,536.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use ring::{aead, hmac};
use spake2::{Ed25519Group, Identity, Password, Spake2};
use tokio::sync::mpsc;
use tokio::time::Instant;
use zeroize::Zeroizing;

use crate::error::CodeError;
use crate::key::random;
use crate::membership::{Mail, Membership};
use crate::ticket::Ticket;

/// A short code: the number of an offer at its relay, and two words.
#[derive(Clone, PartialEq, Eq)]
pub struct Code {
    number: u32,
    words: [&'static str; 2],
}

/// Why a text is no code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseCodeError {
    /// It is not a number and two words.
    Form,
    /// This word is in no code; the nearest one that is.
    Word(String, &'static str),
}

impl Code {
    /// A new one, whose words nobody can guess.
    pub(crate) fn new(number: u32) -> Result<Self, CodeError> {
        let bytes = random().map_err(|error| CodeError::Randomness(error.to_string()))?;
        let all: Vec<_> = WORDS.lines().collect();
        let word = |place: usize| all[usize::from(bytes[place])];
        Ok(Self { number, words: [word(0), word(1)] })
    }

    /// The number of the offer.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.words;
        write!(f, "{}-{first}-{second}", self.number)
    }
}

/// A code is a secret until it is used.
impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({}-..)", self.number)
    }
}

impl FromStr for Code {
    type Err = ParseCodeError;

    /// Capitals, and blanks in place of hyphens, do not matter.
    fn from_str(text: &str) -> Result<Self, ParseCodeError> {
        let text = text.trim().to_lowercase();
        let parts: Vec<_> = text.split(|letter: char| letter == '-' || letter.is_whitespace()).collect();
        let [number, first, second] = parts[..] else { return Err(ParseCodeError::Form) };
        let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
        let number = number.parse().ok().filter(|number| is_number && *number > 0).ok_or(ParseCodeError::Form)?;
        let known = |word: &str| {
            let found = WORDS.lines().find(|known| *known == word);
            found.ok_or_else(|| ParseCodeError::Word(word.chars().take(WORD_SHOWN).collect(), nearest(word)))
        };
        Ok(Self { number, words: [known(first)?, known(second)?] })
    }
}

impl fmt::Display for ParseCodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => f.write_str("a code is a number and two words, such as 7-guitar-ocean"),
            Self::Word(word, nearest) => write!(f, "no code has the word `{word}`; is it `{nearest}`?"),
        }
    }
}

impl std::error::Error for ParseCodeError {}

/// An offered code, until somebody has typed it.
#[derive(Debug)]
pub struct CodeOffer {
    code: Code,
    membership: std::sync::Arc<Membership>,
    mail: mpsc::Receiver<Mail>,
}

impl CodeOffer {
    pub(crate) fn new(code: Code, membership: std::sync::Arc<Membership>, mail: mpsc::Receiver<Mail>) -> Self {
        Self { code, membership, mail }
    }

    /// The code, for the other end.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// Waits until the code is typed at another end, and returns the ticket of that end.
    ///
    /// # Errors
    /// If three attempts have failed, or the relay is lost.
    pub async fn ticket(mut self) -> Result<Ticket, CodeError> {
        let result = self.wait().await;
        self.membership.withdraw().await;
        result
    }

    async fn wait(&mut self) -> Result<Ticket, CodeError> {
        let mut runs: Vec<Run> = vec![];
        let mut claims = 0;
        loop {
            let now = Instant::now();
            runs.retain(|run| run.until > now);
            if runs.is_empty() && claims >= GUESSES_MAX {
                return Err(CodeError::Guessed);
            }
            let deadline = runs.iter().map(|run| run.until).min();
            let mail = async {
                match deadline {
                    Some(deadline) => tokio::time::timeout_at(deadline, self.mail.recv()).await.ok(),
                    None => Some(self.mail.recv().await),
                }
            };
            let Some(mail) = mail.await else { continue };
            match mail.ok_or(CodeError::RelayGone)? {
                // The first message gives the guesser nothing; but the answer to it does, so each counts.
                Mail::Claimed { claim, bytes } if claims < GUESSES_MAX => {
                    claims += 1;
                    let (spake, message) =
                        Spake2::<Ed25519Group>::start_b(&password(&self.code), &typing(), &offering());
                    let Ok(key) = spake.finish(&bytes).map(Zeroizing::new) else { continue };
                    runs.push(Run { claim, key, until: now + RUN });
                    self.membership.pass(claim, message).await;
                }
                Mail::Passed { claim, bytes } => {
                    let Some(place) = runs.iter().position(|run| run.claim == claim) else { continue };
                    let run = runs.swap_remove(place);
                    let ticket = open(&run.key, bytes).and_then(|text| text.parse().ok());
                    self.membership.pass(claim, vec![u8::from(ticket.is_some())]).await;
                    if let Some(ticket) = ticket {
                        return Ok(ticket);
                    }
                }
                Mail::Claimed { .. } | Mail::Offered(_) | Mail::NotThere => {}
            }
        }
    }
}

/// A run of SPAKE2.
struct Run {
    claim: u64,
    key: Zeroizing<Vec<u8>>,
    until: Instant,
}

/// Gives this ticket to the end that offers the code.
pub(crate) async fn redeem(membership: &Membership, code: &Code, ticket: &Ticket) -> Result<(), CodeError> {
    let claim = random().map_err(|error| CodeError::Randomness(error.to_string()))?;
    let claim = claim.first_chunk().copied().map_or(0, u64::from_be_bytes);
    let (spake, message) = Spake2::<Ed25519Group>::start_a(&password(code), &typing(), &offering());
    let mut mail = membership.claim(claim, code.number(), message).await.ok_or(CodeError::RelayGone)?;
    let mut next = async || match tokio::time::timeout(RUN, mail.recv()).await {
        Ok(Some(Mail::Passed { bytes, .. })) => Ok(bytes),
        Ok(Some(_)) => Err(CodeError::NotThere),
        Ok(None) => Err(CodeError::RelayGone),
        Err(_) => Err(CodeError::Silent),
    };
    let answer = next().await?;
    let key = spake.finish(&answer).map(Zeroizing::new).map_err(|_| CodeError::Wrong)?;
    membership.pass(claim, seal(&key, &ticket.to_string()).ok_or(CodeError::Wrong)?).await;
    match next().await?[..] {
        [1] => Ok(()),
        _ => Err(CodeError::Wrong),
    }
}

/// The whole code, so that the answer to one number is none to another.
fn password(code: &Code) -> Password {
    Password::new(code.to_string())
}

fn typing() -> Identity {
    Identity::new(b"anabranch code 1: typed")
}

fn offering() -> Identity {
    Identity::new(b"anabranch code 1: offered")
}

/// The key of the one text that is sealed in a run.
fn sealing(key: &[u8]) -> Option<aead::LessSafeKey> {
    let own = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), b"anabranch code ticket");
    aead::UnboundKey::new(&aead::CHACHA20_POLY1305, own.as_ref()).ok().map(aead::LessSafeKey::new)
}

fn seal(key: &[u8], text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.as_bytes().to_vec();
    let nonce = aead::Nonce::assume_unique_for_key([0; 12]);
    sealing(key)?.seal_in_place_append_tag(nonce, aead::Aad::empty(), &mut bytes).ok()?;
    Some(bytes)
}

fn open(key: &[u8], mut bytes: Vec<u8>) -> Option<String> {
    let nonce = aead::Nonce::assume_unique_for_key([0; 12]);
    let text = sealing(key)?.open_in_place(nonce, aead::Aad::empty(), &mut bytes).ok()?;
    String::from_utf8(text.to_vec()).ok()
}

/// The word of codes that differs least: by the letters at the beginning, then by the length.
fn nearest(word: &str) -> &'static str {
    let alike = |known: &str| known.chars().zip(word.chars()).take_while(|(one, other)| one == other).count();
    let rank = |known: &&str| (alike(known), std::cmp::Reverse(known.len().abs_diff(word.len())));
    WORDS.lines().max_by_key(rank).unwrap_or_default()
}

/// 256 words that differ in their first four letters.
const WORDS: &str = include_str!("code/words.txt");

/// Letters of a wrong word that are shown.
const WORD_SHOWN: usize = 20;

/// Attempts at a code.
const GUESSES_MAX: u32 = 3;

/// How long an attempt may take: some round trips over the relay.
const RUN: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn words_are_256_with_other_beginnings() {
        let words: Vec<_> = WORDS.lines().collect();
        let beginnings: BTreeSet<_> = words.iter().map(|word| &word[..word.len().min(4)]).collect();
        assert_eq!((words.len(), beginnings.len()), (256, 256));
        assert!(words.iter().all(|word| word.bytes().all(|letter| letter.is_ascii_lowercase())));
    }

    #[test]
    fn code_comes_back_however_it_is_typed() {
        let code = Code { number: 7, words: ["guitar", "ocean"] };
        for text in ["7-guitar-ocean", " 7-Guitar-OCEAN\n", "7 guitar ocean", "07-guitar-ocean"] {
            assert_eq!(text.parse(), Ok(code.clone()), "{text}");
        }
        assert_eq!((code.to_string(), format!("{code:?}")), ("7-guitar-ocean".to_owned(), "Code(7-..)".to_owned()));
        for text in
            ["", "7", "7-guitar", "guitar-7-ocean", "0-guitar-ocean", "-1-guitar-ocean", "+7-guitar-ocean", "7-a-b-c"]
        {
            assert_eq!(text.parse::<Code>(), Err(ParseCodeError::Form), "{text}");
        }
        let wrong = "7-guitar-ocaen".parse::<Code>().unwrap_err();
        assert_eq!(wrong, ParseCodeError::Word("ocaen".to_owned(), "ocean"));
    }

    /// A ticket that was sealed with the key of one code opens with that alone.
    #[test]
    fn keys_of_two_codes_differ() {
        let run = |here: &str, there: &str| {
            let (here, there) = (here.parse().unwrap(), there.parse().unwrap());
            let (a, to_b) = Spake2::<Ed25519Group>::start_a(&password(&here), &typing(), &offering());
            let (b, to_a) = Spake2::<Ed25519Group>::start_b(&password(&there), &typing(), &offering());
            let (a, b) = (a.finish(&to_a).unwrap(), b.finish(&to_b).unwrap());
            open(&b, seal(&a, "a ticket").unwrap())
        };
        assert_eq!(run("7-guitar-ocean", "7-guitar-ocean"), Some("a ticket".to_owned()));
        assert_eq!(run("7-guitar-ocean", "7-guitar-olive"), None);
        assert_eq!(run("8-guitar-ocean", "7-guitar-ocean"), None);
        assert_eq!(open(&[1; 32], vec![]), None);
    }
}
