//! A segment as a script writes it, and as bytes.
//!
//! ```text
//! S. 0:0(0) ack 1 win 65535 <mss 1460,sackOK,TS val 7 ecr 100,nop,wscale 8>
//! ```

use std::fmt;
use std::net::Ipv4Addr;

use anabranch_proto::wire::internet_checksum;
use etherparse::{IpNumber, Ipv4Header, Ipv4HeaderSlice};

use crate::text::{Reader, Wrong};

/// A segment. The numbers of a script count from the initial numbers; those of a captured segment are those on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) flags: u8,
    pub(crate) seq: u32,
    pub(crate) len: u32,
    pub(crate) ack: Option<u32>,
    pub(crate) window: Option<u16>,
    /// The urgent pointer; zero without one.
    pub(crate) urgent: u16,
    /// `None` where a script says `<...>`: any.
    pub(crate) options: Option<Vec<TcpOption>>,
    /// The ECN codepoint, if a script says it.
    pub(crate) ecn: Option<u8>,
}

/// The flags and their letters, as scripts have them. The letter of ACK is a dot.
const LETTERS: [(u8, char); 8] =
    [(FIN, 'F'), (SYN, 'S'), (RST, 'R'), (PSH, 'P'), (ACK, '.'), (URG, 'U'), (ECE, 'E'), (CWR, 'W')];

pub(crate) const FIN: u8 = 0x01;
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const PSH: u8 = 0x08;
pub(crate) const ACK: u8 = 0x10;
pub(crate) const URG: u8 = 0x20;
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TcpOption {
    Nop,
    End,
    Mss(u16),
    Scale(u8),
    SackPermitted,
    Sack(Vec<(u32, u32)>),
    Stamps {
        value: u32,
        echo: u32,
    },
    /// TCP Fast Open ([rfc-7413]), or its experiment ([rfc-6994]).
    FastOpen {
        is_experiment: bool,
        cookie: Vec<u8>,
    },
    /// A signature with MD5 (RFC 2385), which we do not have.
    Signature([u8; 16]),
    Other(u8),
}

impl Packet {
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Reads what follows `<` or `>`.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Wrong> {
        let mut packet = Self { options: Some(vec![]), ..Self::default() };
        reader.spaces();
        if reader.take("[") {
            let name = reader.until(']')?;
            packet.ecn = match name.as_str() {
                "noecn" => Some(0),
                "ect1" => Some(1),
                "ect0" => Some(2),
                "ce" => Some(3),
                "ect01" => None,
                _ => return Err(reader.wrong(&format!("[{name}] is no codepoint"))),
            };
            reader.spaces();
        }
        let letters = reader.word();
        if ["icmp", "udp", "ipv4", "ipv6", "gre", "mpls"].contains(&letters.as_str()) {
            return Err(reader.wrong(&format!("a packet of {letters} cannot be played")));
        }
        for letter in letters.chars().filter(|letter| *letter != '-') {
            let Some((flag, _)) = LETTERS.iter().find(|(_, known)| *known == letter) else {
                return Err(reader.wrong(&format!("flag {letter} cannot be played")));
            };
            packet.flags |= flag;
        }
        reader.spaces();
        packet.seq = reader.number()?;
        reader.expect(":")?;
        let end: u32 = reader.number()?;
        reader.expect("(")?;
        packet.len = reader.number()?;
        reader.expect(")")?;
        if end.wrapping_sub(packet.seq) != packet.len {
            return Err(reader.wrong(&format!("{}:{end} are not {} bytes", packet.seq, packet.len)));
        }
        loop {
            reader.spaces();
            if reader.take("ack") {
                reader.spaces();
                packet.ack = Some(reader.number()?);
            } else if reader.take("win") {
                reader.spaces();
                packet.window = Some(reader.number()?);
            } else if reader.take("urg") {
                reader.spaces();
                packet.urgent = reader.number()?;
            } else if reader.take("<") {
                let text = reader.until('>')?;
                packet.options = if text.trim() == "..." { None } else { Some(read_options(reader, &text)?) };
            } else {
                return Ok(packet);
            }
        }
    }

    /// The IP packet of this segment. Its content counts from its sequence number, so that what is read can be checked.
    pub(crate) fn to_bytes(&self, from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> Vec<u8> {
        let mut options = vec![];
        self.options.iter().flatten().for_each(|option| option.write(&mut options));
        options.resize(options.len().next_multiple_of(4), 0);
        let mut segment = vec![];
        segment.extend(from.1.to_be_bytes());
        segment.extend(to.1.to_be_bytes());
        segment.extend(self.seq.to_be_bytes());
        segment.extend(self.ack.unwrap_or(0).to_be_bytes());
        segment.push((((20 + options.len()) / 4) << 4) as u8);
        segment.push(self.flags);
        segment.extend(self.window.unwrap_or(0).to_be_bytes());
        segment.extend([0; 2]);
        segment.extend(self.urgent.to_be_bytes());
        segment.extend(options);
        segment.extend((0..self.len).map(|at| self.seq.wrapping_add(at) as u8));
        let mut header = Ipv4Header::new(segment.len() as u16, 64, IpNumber::TCP, from.0.octets(), to.0.octets())
            .expect("a segment is shorter than a packet");
        header.ecn = etherparse::IpEcn::try_new(self.ecn.unwrap_or(0)).expect("two bits");
        header.header_checksum = header.calc_header_checksum();
        let pseudo = pseudo(from.0, to.0, segment.len());
        let sum = internet_checksum(&[&pseudo, &segment]);
        segment[16..18].copy_from_slice(&sum.to_be_bytes());
        [&header.to_bytes()[..], &segment].concat()
    }

    /// Reads a captured IP packet: the segment, and its ports.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Result<(Self, u16, u16), String> {
        let header = Ipv4HeaderSlice::from_slice(bytes).map_err(|error| format!("no IPv4 packet: {error}"))?;
        let segment = &bytes[header.slice().len()..];
        if header.protocol() != IpNumber::TCP || segment.len() < 20 {
            return Err("it is no TCP segment".to_owned());
        }
        let pseudo = pseudo(header.source_addr(), header.destination_addr(), segment.len());
        if internet_checksum(&[&pseudo, segment]) != 0 {
            return Err("its checksum is wrong".to_owned());
        }
        let half = |at: usize| u16::from_be_bytes([segment[at], segment[at + 1]]);
        let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
        let head = usize::from(segment[12] >> 4) * 4;
        let packet = Self {
            flags: segment[13],
            seq: word(4),
            len: (segment.len() - head) as u32,
            ack: (segment[13] & ACK != 0).then(|| word(8)),
            window: Some(half(14)),
            urgent: half(18),
            options: Some(TcpOption::all(&segment[20..head])?),
            ecn: Some(header.ecn().value()),
        };
        Ok((packet, half(0), half(2)))
    }
}

fn pseudo(from: Ipv4Addr, to: Ipv4Addr, len: usize) -> Vec<u8> {
    [&from.octets()[..], &to.octets(), &[0, IpNumber::TCP.0], &(len as u16).to_be_bytes()].concat()
}

impl TcpOption {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Nop => out.push(1),
            Self::End => out.push(0),
            Self::Mss(size) => out.extend([&[2, 4][..], &size.to_be_bytes()].concat()),
            Self::Scale(shift) => out.extend([3, 3, *shift]),
            Self::SackPermitted => out.extend([4, 2]),
            Self::Sack(blocks) => {
                out.extend([5, 2 + 8 * blocks.len() as u8]);
                for (left, right) in blocks {
                    out.extend([left.to_be_bytes(), right.to_be_bytes()].concat());
                }
            }
            Self::Stamps { value, echo } => {
                out.extend([&[8, 10][..], &value.to_be_bytes(), &echo.to_be_bytes()].concat());
            }
            Self::FastOpen { is_experiment: false, cookie } => {
                out.extend([34, 2 + cookie.len() as u8]);
                out.extend(cookie);
            }
            Self::FastOpen { is_experiment: true, cookie } => {
                out.extend([254, 4 + cookie.len() as u8, 0xf9, 0x89]);
                out.extend(cookie);
            }
            Self::Signature(digest) => out.extend([&[19, 18][..], digest].concat()),
            Self::Other(kind) => out.extend([*kind, 2]),
        }
    }

    fn all(mut bytes: &[u8]) -> Result<Vec<Self>, String> {
        let mut options = vec![];
        while let Some((&kind, rest)) = bytes.split_first() {
            if kind == 0 && rest.iter().any(|&byte| byte != 0) {
                return Err("what follows the end of the options is not zero".to_owned());
            }
            if kind < 2 {
                options.push(if kind == 0 { Self::End } else { Self::Nop });
                bytes = rest;
                continue;
            }
            let len = rest.first().map_or(0, |len| usize::from(*len));
            let value = bytes.get(2..len).ok_or_else(|| format!("option {kind} has a wrong length"))?;
            let word = |at: usize| u32::from_be_bytes([value[at], value[at + 1], value[at + 2], value[at + 3]]);
            options.push(match (kind, value.len()) {
                (2, 2) => Self::Mss(u16::from_be_bytes([value[0], value[1]])),
                (3, 1) => Self::Scale(value[0]),
                (4, 0) => Self::SackPermitted,
                (5, len) if len % 8 == 0 => {
                    Self::Sack((0..len / 8).map(|at| (word(8 * at), word(8 * at + 4))).collect())
                }
                (8, 8) => Self::Stamps { value: word(0), echo: word(4) },
                (34, _) => Self::FastOpen { is_experiment: false, cookie: value.to_vec() },
                _ => Self::Other(kind),
            });
            bytes = &bytes[len..];
        }
        Ok(options)
    }
}

fn read_options(reader: &Reader<'_>, text: &str) -> Result<Vec<TcpOption>, Wrong> {
    let wrong = |part: &str| reader.wrong(&format!("option `{part}` cannot be played"));
    let mut options = vec![];
    for part in text.split(',').map(str::trim) {
        let words: Vec<&str> = part.split_whitespace().collect();
        let number = |word: &str| word.parse::<u32>().map_err(|_| wrong(part));
        options.push(match words[..] {
            ["nop"] => TcpOption::Nop,
            ["eol"] => TcpOption::End,
            ["mss", size] => TcpOption::Mss(size.parse().map_err(|_| wrong(part))?),
            ["wscale", shift] => TcpOption::Scale(shift.parse().map_err(|_| wrong(part))?),
            ["sackOK"] => TcpOption::SackPermitted,
            ["TS", "val", value, "ecr", echo] => TcpOption::Stamps { value: number(value)?, echo: number(echo)? },
            ["sack", ..] => {
                let block = |text: &&str| {
                    let (left, right) = text.split_once(':').ok_or_else(|| wrong(part))?;
                    Ok((number(left)?, number(right)?))
                };
                TcpOption::Sack(words[1..].iter().map(block).collect::<Result<_, Wrong>>()?)
            }
            ["FO" | "FOEXP", ref cookie @ ..] => TcpOption::FastOpen {
                is_experiment: words[0] == "FOEXP",
                cookie: bytes_of(cookie.first().copied().unwrap_or_default()).ok_or_else(|| wrong(part))?,
            },
            ["md5", digits] => {
                let digest = bytes_of(digits).and_then(|digest| digest.try_into().ok());
                TcpOption::Signature(digest.ok_or_else(|| wrong(part))?)
            }
            _ => return Err(wrong(part)),
        });
    }
    Ok(options)
}

/// Bytes in hexadecimal digits.
fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let byte = |at: usize| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// As a script writes it.
impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters: String = LETTERS.iter().filter(|(flag, _)| self.has(*flag)).map(|(_, letter)| letter).collect();
        let end = self.seq.wrapping_add(self.len);
        write!(f, "{} {}:{end}({})", if letters.is_empty() { "-" } else { &letters }, self.seq, self.len)?;
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        let options = self.options.iter().flatten().filter(|option| !option.is_padding()).map(ToString::to_string);
        let options: Vec<String> = options.collect();
        if options.is_empty() { Ok(()) } else { write!(f, " <{}>", options.join(",")) }
    }
}

impl TcpOption {
    pub(crate) fn is_padding(&self) -> bool {
        matches!(self, Self::Nop | Self::End)
    }
}

impl fmt::Display for TcpOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nop => f.write_str("nop"),
            Self::End => f.write_str("eol"),
            Self::Mss(size) => write!(f, "mss {size}"),
            Self::Scale(shift) => write!(f, "wscale {shift}"),
            Self::SackPermitted => f.write_str("sackOK"),
            Self::Sack(blocks) => {
                f.write_str("sack")?;
                blocks.iter().try_for_each(|(left, right)| write!(f, " {left}:{right}"))
            }
            Self::Stamps { value, echo } => write!(f, "TS val {value} ecr {echo}"),
            Self::FastOpen { is_experiment, cookie } => {
                f.write_str(if *is_experiment { "FOEXP " } else { "FO " })?;
                cookie.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Self::Signature(_) => f.write_str("md5"),
            Self::Other(kind) => write!(f, "option {kind}"),
        }
    }
}
