//! Tickets: they tell a client where a server is and which key it has.
//!
//! ```text
//! ab1 | base32(kind 1 | public key 32 | relay | port | addresses | checksum 4)    address  family 1 = 4 or 6 | ip 4 or 16 | port 2
//! kind 0   there is neither relay nor port
//! kind 1   relay   public key 32 | count 1 | addresses, so many
//! kind 2   port 2  the end is a relay that listens at this TCP port, too
//! kind 3   both    the relay does
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
    /// The ticket of a relay, which names no other.
    relay: Option<Box<Ticket>>,
    /// The TCP port of an end that is a relay.
    tcp_port: Option<u16>,
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
            Ok(Self { key, addresses: addresses.into_iter().map(plain).collect(), relay: None, tcp_port: None })
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

    /// The ticket of the relay through which the endpoint can be reached, if there is one.
    pub fn relay(&self) -> Option<&Self> {
        self.relay.as_deref()
    }

    /// The same ticket with a relay.
    #[must_use]
    pub fn with_relay(self, relay: &Self) -> Self {
        let mut relay = Self { relay: None, ..relay.clone() };
        relay.addresses.truncate(RELAY_ADDRESSES_MAX);
        Self { relay: Some(Box::new(relay)), tcp_port: None, ..self }
    }

    /// The port at which the relay with this ticket takes members over TCP, too, if it does.
    pub fn tcp_port(&self) -> Option<u16> {
        self.tcp_port
    }

    /// The same ticket of a relay that takes members over TCP at this port, or does not.
    #[must_use]
    pub fn with_tcp_port(self, port: Option<u16>) -> Self {
        let tcp_port = port.filter(|port| *port != 0 && self.relay.is_none());
        Self { tcp_port, ..self }
    }

    /// The limit on addresses.
    pub const ADDRESSES_MAX: usize = 16;
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.relay.as_ref().map_or(self.tcp_port, |relay| relay.tcp_port);
        let has_relay = if self.relay.is_some() { HAS_RELAY } else { 0 };
        let mut bytes = vec![has_relay | if port.is_some() { HAS_PORT } else { 0 }];
        bytes.extend(self.key.bytes());
        if let Some(relay) = &self.relay {
            bytes.extend(relay.key.bytes());
            bytes.push(relay.addresses.len() as u8);
            relay.addresses.iter().for_each(|address| write_address(address, &mut bytes));
        }
        bytes.extend(port.into_iter().flat_map(u16::to_be_bytes));
        self.addresses.iter().for_each(|address| write_address(address, &mut bytes));
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
        if kind & !(HAS_RELAY | HAS_PORT) != 0 {
            return Err(TicketError::Kind(kind));
        }
        let (key, mut rest) = said.split_first_chunk::<32>().ok_or(TicketError::Short)?;
        let mut relay = None;
        if kind & HAS_RELAY != 0 {
            let (key, after) = rest.split_first_chunk::<32>().ok_or(TicketError::Short)?;
            let (&count, mut after) = after.split_first().ok_or(TicketError::Short)?;
            let mut addresses = vec![];
            for _ in 0..count {
                let (address, then) = read_address(after).ok_or(TicketError::Addresses)?;
                addresses.push(address);
                after = then;
            }
            relay = Some(Self::new(PublicKey::new(*key), addresses)?);
            rest = after;
        }
        let mut port = None;
        if kind & HAS_PORT != 0 {
            let (bytes, after) = rest.split_first_chunk().ok_or(TicketError::Short)?;
            port = Some(u16::from_be_bytes(*bytes)).filter(|port| *port != 0);
            if port.is_none() {
                return Err(TicketError::Addresses);
            }
            rest = after;
        }
        let mut addresses = vec![];
        while !rest.is_empty() {
            let (address, after) = read_address(rest).ok_or(TicketError::Addresses)?;
            addresses.push(address);
            rest = after;
        }
        let ticket = Self::new(PublicKey::new(*key), addresses)?;
        Ok(match relay {
            Some(relay) => ticket.with_relay(&relay.with_tcp_port(port)),
            None => ticket.with_tcp_port(port),
        })
    }
}

/// Family (4 or 6), address, port.
pub(crate) fn write_address(address: &SocketAddr, bytes: &mut Vec<u8>) {
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

/// The address that [`write_address`] wrote, and what follows it.
pub(crate) fn read_address(bytes: &[u8]) -> Option<(SocketAddr, &[u8])> {
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

/// Parts of a ticket besides addresses and key, as bits of its kind.
const HAS_RELAY: u8 = 1;
const HAS_PORT: u8 = 2;

/// Addresses of a relay in a ticket: enough for both families and some interfaces, so that the ticket stays short.
const RELAY_ADDRESSES_MAX: usize = 4;

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

    #[test]
    fn relay_of_a_ticket_comes_back() {
        let relay = Ticket::new(PublicKey::new([9; 32]), vec!["203.0.113.5:443".parse().unwrap()]).unwrap();
        let with = ticket().with_relay(&relay);
        assert_eq!(with.to_string().parse(), Ok(with.clone()));
        assert_eq!((with.relay(), with.key(), with.addresses()), (Some(&relay), ticket().key(), ticket().addresses()));
        let nested = ticket().with_relay(&with);
        assert_eq!(nested.relay().unwrap().relay(), None, "a relay is not behind another one");
    }

    #[test]
    fn tcp_port_of_a_relay_comes_back() {
        let relay = Ticket::new(PublicKey::new([9; 32]), vec!["203.0.113.5:4477".parse().unwrap()]).unwrap();
        let relay = relay.with_tcp_port(Some(443));
        let back: Ticket = relay.to_string().parse().unwrap();
        assert_eq!((&back, back.tcp_port()), (&relay, Some(443)));
        let with = ticket().with_relay(&relay);
        let back: Ticket = with.to_string().parse().unwrap();
        assert_eq!((&back, back.tcp_port(), back.relay().unwrap().tcp_port()), (&with, None, Some(443)));
        assert_eq!(relay.with_tcp_port(Some(0)).tcp_port(), None);
    }

    fn sealed(said: &[u8]) -> String {
        let mut bytes = said.to_vec();
        bytes.extend(checksum(&[BEGINNING.as_bytes(), said]));
        format!("{BEGINNING}{}", base32::encode(&bytes))
    }

    #[test]
    fn a_ticket_with_a_right_checksum_may_be_wrong_all_the_same() {
        let key = [&[0][..], &[5; 32]].concat();
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
        let address = [4, 127, 0, 0, 1, 0, 7];
        let relayed = |rest: &[u8]| sealed(&[&[HAS_RELAY][..], &[5; 32], rest].concat()).parse::<Ticket>();
        assert!(relayed(&[&[6; 32][..], &[1], &address, &address].concat()).is_ok());
        let ported = |rest: &[u8]| sealed(&[&[HAS_PORT][..], &[5; 32], rest].concat()).parse::<Ticket>();
        assert!(ported(&[&[1, 187][..], &address].concat()).is_ok());
        assert_eq!(ported(&[&[0, 0][..], &address].concat()), Err(TicketError::Addresses));
        assert_eq!(ported(&[1]), Err(TicketError::Short));
        assert_eq!(relayed(&[6; 32]), Err(TicketError::Short));
        assert_eq!(relayed(&[&[6; 32][..], &[0], &address].concat()), Err(TicketError::Addresses));
        assert_eq!(relayed(&[&[6; 32][..], &[1], &address].concat()), Err(TicketError::Addresses));
        assert_eq!(relayed(&[&[6; 32][..], &[255], &address.repeat(255)].concat()), Err(TicketError::Addresses));
    }
}
