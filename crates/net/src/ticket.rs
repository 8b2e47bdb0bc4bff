//! Tickets: they tell a client where a server is and which key it has.
//!
//! ```text
//! ab1 | base32(kind 1 = 0 | public key 32 | addresses | checksum 4)        address  family 1 = 4 or 6 | ip 4 or 16 | port 2
//! ```

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use crate::base32::{self, Base32Error};
use crate::key::{CHECKSUM, PublicKey, checksum};

/// The addresses and the public key of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    key: PublicKey,
    addresses: Vec<SocketAddr>,
}

/// Why a text is not a valid ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TicketError {
    /// It does not begin with `ab1`: it is no ticket, or one of a later version.
    Beginning,
    /// The letter at this position, counted from 0, is not base32.
    Letter(usize),
    /// It is too short.
    Short,
    /// The checksum is wrong: a letter is wrong or missing.
    Checksum,
    /// Its kind is unknown to this version.
    Kind(u8),
    /// Its addresses are malformed or missing, or there are too many.
    Addresses,
}

impl Ticket {
    /// A ticket for the endpoint with this key at these addresses.
    ///
    /// # Errors
    /// If there is no address, more than [`Ticket::ADDRESSES_MAX`], or an address without a port or host.
    pub fn new(key: PublicKey, addresses: Vec<SocketAddr>) -> Result<Self, TicketError> {
        let can_be_called = |address: &SocketAddr| !address.ip().is_unspecified() && address.port() != 0;
        let is_good = (1..=Self::ADDRESSES_MAX).contains(&addresses.len()) && addresses.iter().all(can_be_called);
        let plain = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        if is_good {
            Ok(Self { key, addresses: addresses.into_iter().map(plain).collect() })
        } else {
            Err(TicketError::Addresses)
        }
    }

    /// The public key of the endpoint.
    pub fn key(&self) -> PublicKey {
        self.key
    }

    /// The addresses, the preferred one first.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The limit on addresses.
    pub const ADDRESSES_MAX: usize = 16;
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![KIND];
        bytes.extend(self.key.bytes());
        for address in &self.addresses {
            match address.ip() {
                IpAddr::V4(ip) => {
                    bytes.push(4);
                    bytes.extend(ip.octets());
                }
                IpAddr::V6(ip) => {
                    bytes.push(6);
                    bytes.extend(ip.octets());
                }
            }
            bytes.extend(address.port().to_be_bytes());
        }
        bytes.extend(checksum(&[BEGINNING.as_bytes(), &bytes]));
        write!(f, "{BEGINNING}{}", base32::encode(&bytes))
    }
}

impl FromStr for Ticket {
    type Err = TicketError;

    fn from_str(text: &str) -> Result<Self, TicketError> {
        let text = text.trim();
        let begins = text.get(..BEGINNING.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(BEGINNING));
        if !begins {
            return Err(TicketError::Beginning);
        }
        let at = BEGINNING.len();
        let bytes = base32::decode(&text[at..]).map_err(|error| match error {
            Base32Error::Letter(place) => TicketError::Letter(at + place),
            Base32Error::Length => TicketError::Checksum,
        })?;
        let (said, sum) = bytes.split_last_chunk::<CHECKSUM>().ok_or(TicketError::Short)?;
        if *sum != checksum(&[BEGINNING.as_bytes(), said]) {
            return Err(TicketError::Checksum);
        }
        let (&kind, said) = said.split_first().ok_or(TicketError::Short)?;
        if kind != KIND {
            return Err(TicketError::Kind(kind));
        }
        let (key, mut rest) = said.split_first_chunk::<32>().ok_or(TicketError::Short)?;
        let mut addresses = vec![];
        while !rest.is_empty() {
            let (address, after) = read_address(rest).ok_or(TicketError::Addresses)?;
            addresses.push(address);
            rest = after;
        }
        Self::new(PublicKey::new(*key), addresses)
    }
}

fn read_address(bytes: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let (family, rest) = bytes.split_first()?;
    let (ip, rest) = match family {
        4 => rest.split_first_chunk::<4>().map(|(ip, rest)| (IpAddr::from(*ip), rest))?,
        6 => rest.split_first_chunk::<16>().map(|(ip, rest)| (IpAddr::from(*ip), rest))?,
        _ => return None,
    };
    let (port, rest) = rest.split_first_chunk::<2>()?;
    Some((SocketAddr::new(ip, u16::from_be_bytes(*port)), rest))
}

impl fmt::Display for TicketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beginning => write!(f, "a ticket begins with `{BEGINNING}`; copy all of it"),
            Self::Letter(place) => write!(f, "letter {} of the ticket is not one of a to z and 2 to 7", place + 1),
            Self::Short => f.write_str("the ticket is too short; copy all of it"),
            Self::Checksum => {
                f.write_str("a letter of the ticket is wrong or missing: its checksum does not fit; copy it again")
            }
            Self::Kind(kind) => write!(f, "the ticket is of kind {kind}, which a later version of anabranch has made"),
            Self::Addresses => {
                let most = Ticket::ADDRESSES_MAX;
                write!(f, "the ticket has no address at which anybody can be called, or more than {most}")
            }
        }
    }
}

impl std::error::Error for TicketError {}

/// The prefix, which is also the version.
const BEGINNING: &str = "ab1";

/// The kind of tickets with addresses and a key.
const KIND: u8 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket() -> Ticket {
        let addresses = ["192.0.2.1:4433", "[2001:db8::1]:9"].map(|text| text.parse().unwrap());
        Ticket::new(PublicKey::new(std::array::from_fn(|place| 7 * place as u8)), addresses.to_vec()).unwrap()
    }

    #[test]
    fn a_ticket_comes_back() {
        let text = ticket().to_string();
        assert_eq!(text.parse(), Ok(ticket()));
        assert_eq!(format!("  {}\n", text.to_uppercase()).parse(), Ok(ticket()), "read out, with blanks around it");
        assert!(text.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit()), "{text}");
    }

    #[test]
    fn wrong_ticket_error_names_mistake() {
        let text = ticket().to_string();
        for place in BEGINNING.len()..text.len() {
            let mut letters: Vec<char> = text.chars().collect();
            letters[place] = if letters[place] == 'x' { 'y' } else { 'x' };
            let wrong = letters.into_iter().collect::<String>().parse::<Ticket>();
            assert!(matches!(wrong, Err(TicketError::Checksum | TicketError::Letter(_))), "{place}: {wrong:?}");
        }
        for len in 0..text.len() {
            assert!(text[..len].parse::<Ticket>().is_err(), "{len}");
        }
        assert_eq!("https://".parse::<Ticket>(), Err(TicketError::Beginning));
        assert_eq!("ab1ab1cd".parse::<Ticket>(), Err(TicketError::Letter(5)));
        assert_eq!("ab1".parse::<Ticket>(), Err(TicketError::Short));
        assert_eq!("äöü".parse::<Ticket>(), Err(TicketError::Beginning));
    }

    fn sealed(said: &[u8]) -> String {
        let mut bytes = said.to_vec();
        bytes.extend(checksum(&[BEGINNING.as_bytes(), said]));
        format!("{BEGINNING}{}", base32::encode(&bytes))
    }

    #[test]
    fn a_ticket_with_a_right_checksum_may_be_wrong_all_the_same() {
        let key = [&[KIND][..], &[5; 32]].concat();
        let with = |rest: &[u8]| sealed(&[&key[..], rest].concat()).parse::<Ticket>();
        assert_eq!(sealed(&[9; 40]).parse::<Ticket>(), Err(TicketError::Kind(9)));
        assert_eq!(sealed(&key[..20]).parse::<Ticket>(), Err(TicketError::Short));
        for rest in
            [&[][..], &[4, 1, 2, 3, 4, 5], &[5, 1, 2, 3, 4, 5, 6], &[4, 1, 2, 3, 4, 0, 0], &[4, 0, 0, 0, 0, 0, 7]]
        {
            assert_eq!(with(rest), Err(TicketError::Addresses), "{rest:?}");
        }
        assert_eq!(with(&[4, 127, 0, 0, 1, 0, 7].repeat(17)), Err(TicketError::Addresses));
        assert!(with(&[4, 127, 0, 0, 1, 0, 7].repeat(16)).is_ok());
    }
}
