//! Encodes and decodes TCP options: kind, length, value.

use super::Fault;
use super::content::{number, stream_header};
use crate::options::{
    AcknowledgementOptions, EcnCounts, Extent, Features, HandshakeOptions, Multistream, Options, PathOption,
    SackBlocks, Timestamps,
};
use crate::segment::{Flags, StreamHeader};
use crate::seq::SeqNumber;

/// Appends the options, padded to words, after the extent.
pub(super) fn encode(options: &Options, extent: Option<Extent>, out: &mut Vec<u8>) {
    let start = out.len();
    if let Some(extent) = extent {
        extent.write(out);
    }
    match options {
        Options::Handshake(options) => handshake(options, out),
        Options::Acknowledgement(options) => acknowledgement(options, out),
        Options::Path(PathOption::Challenge(token)) => path(CHALLENGE, token, out),
        Options::Path(PathOption::Response(token)) => path(RESPONSE, token, out),
        Options::Path(PathOption::Leave(token)) => path(LEAVE, token, out),
    }
    let len = (out.len() - start).next_multiple_of(4);
    out.resize(start + len, NO_OPERATION);
    debug_assert_eq!(len as u32, options.space(extent.is_some()), "what is counted is what is written");
}

fn handshake(options: &HandshakeOptions, out: &mut Vec<u8>) {
    if let Some(mss) = options.mss {
        out.extend([MSS, 4]);
        out.extend(mss.to_be_bytes());
    }
    if let Some(shift) = options.window_scale {
        out.extend([WINDOW_SCALE, 3, shift]);
    }
    if options.sack_permitted {
        out.extend([SACK_PERMITTED, 2]);
    }
    if let Some(Multistream { version, streams, features, credit }) = options.multistream {
        experiment(8, out);
        out.extend([version, streams, features.0, credit]);
    }
    if let Some(timestamps) = options.timestamps {
        clocks(timestamps, out);
    }
}

fn acknowledgement(options: &AcknowledgementOptions, out: &mut Vec<u8>) {
    let sack = options.sack();
    let blocks = sack.as_slice();
    if !blocks.is_empty() {
        out.extend([SACK, 2 + 8 * blocks.len() as u8]);
        for (left, right) in blocks {
            out.extend(left.0.to_be_bytes());
            out.extend(right.0.to_be_bytes());
        }
    }
    if let Some(expected) = options.expected() {
        let len = options.expected_len();
        experiment(len as u8, out);
        out.extend(stream_header(expected));
        if len > EXPECTED {
            let units = options.delay().ticks() / AcknowledgementOptions::DELAY_UNIT.ticks();
            out.extend((units as u16).to_be_bytes());
        }
        if let Some(EcnCounts { ce, ect0, ect1 }) = options.counts() {
            [ce, ect0, ect1].iter().for_each(|count| out.extend(count.to_be_bytes()));
        }
    }
    if let Some(timestamps) = options.timestamps() {
        clocks(timestamps, out);
    }
}

fn path(what: u8, token: &[u8; 8], out: &mut Vec<u8>) {
    experiment(5 + token.len() as u8, out);
    out.push(what);
    out.extend_from_slice(token);
}

fn experiment(len: u8, out: &mut Vec<u8>) {
    out.extend([EXPERIMENT, len, EXPERIMENT_ID[0], EXPERIMENT_ID[1]]);
}

fn clocks(timestamps: Timestamps, out: &mut Vec<u8>) {
    out.extend([TIMESTAMPS, Timestamps::LEN as u8]);
    out.extend(timestamps.value.to_be_bytes());
    out.extend(timestamps.echo.to_be_bytes());
}

/// Decodes all options of a header. If a kind occurs twice, the second counts. An error states its position in the options.
pub(super) fn decode(bytes: &[u8], flags: Flags) -> Result<Options, (Fault, usize)> {
    let is_syn = flags.contains(Flags::SYN);
    let mut handshake = HandshakeOptions::default();
    let (mut sack, mut expected, mut timestamps) = (SackBlocks::default(), None, None);
    let (mut delay, mut counts) = (0, None);
    let mut path = None;
    let mut at = 0;
    while let Some(&kind) = bytes.get(at) {
        match kind {
            END => break,
            NO_OPERATION => {
                at += 1;
                continue;
            }
            _ => {}
        }
        // [rfc-9293] sec. 3.1: the length includes kind and length.
        let len = bytes.get(at + 1).map_or(0, |&len| usize::from(len));
        let value = bytes.get(at + 2..at + len).ok_or((Fault::OptionLength { kind }, at))?;
        match (kind, value) {
            (MSS, &[high, low]) => handshake.mss = Some(u16::from_be_bytes([high, low])),
            (WINDOW_SCALE, &[shift]) => handshake.window_scale = Some(shift),
            (SACK_PERMITTED, []) => handshake.sack_permitted = true,
            (SACK, blocks) if !blocks.is_empty() && blocks.len() % 8 == 0 => sack = read_sack(blocks),
            (TIMESTAMPS, value) if value.len() == 8 => {
                let (value, echo) = (number(value), number(&value[4..]));
                timestamps = Some(Timestamps { value, echo });
            }
            (MSS | WINDOW_SCALE | SACK_PERMITTED | SACK | TIMESTAMPS, _) => {
                return Err((Fault::OptionSize { kind }, at));
            }
            (EXPERIMENT, value) => match value.split_first_chunk::<2>() {
                Some((&EXPERIMENT_ID, &[version, streams, features, credit])) if is_syn => {
                    let features = Features(features);
                    handshake.multistream = Some(Multistream { version, streams, features, credit });
                }
                Some((&EXPERIMENT_ID, &[sid, a, b, c, ref more @ ..])) if matches!(more.len(), 0 | 2 | 8) => {
                    expected = Some(StreamHeader::from_bytes([sid, a, b, c]));
                    let mut halves = more.as_chunks().0.iter().map(|half| u16::from_be_bytes(*half));
                    delay = halves.next().unwrap_or(0);
                    counts = match (halves.next(), halves.next(), halves.next()) {
                        (Some(ce), Some(ect0), Some(ect1)) => Some(EcnCounts { ce, ect0, ect1 }),
                        _ => None,
                    };
                }
                Some((&EXPERIMENT_ID, &[what, ref token @ ..])) => path = read_path(what, token).or(path),
                // Another experiment, or a later version: skipped.
                _ => {}
            },
            _ => {}
        }
        at += len;
    }
    if is_syn {
        return Ok(Options::Handshake(HandshakeOptions { timestamps, ..handshake }));
    }
    if let Some(path) = path {
        return Ok(Options::Path(path));
    }
    let delay = AcknowledgementOptions::DELAY_UNIT.saturating_mul(delay.into());
    let options = AcknowledgementOptions::new(sack, expected).with_delay(delay);
    let options = counts.map_or(options, |counts| options.with_counts(counts));
    Ok(Options::Acknowledgement(match timestamps {
        Some(timestamps) => options.with_timestamps(timestamps),
        None => options,
    }))
}

/// Reads SACK blocks. Empty blocks, and blocks beyond the limit, are skipped.
fn read_sack(bytes: &[u8]) -> SackBlocks {
    let mut sack = SackBlocks::default();
    for block in bytes.chunks_exact(8) {
        let (left, right) = (SeqNumber(number(block)), SeqNumber(number(&block[4..])));
        if left.is_before(right) {
            sack.push(left, right);
        }
    }
    sack
}

fn read_path(what: u8, token: &[u8]) -> Option<PathOption> {
    let token = token.try_into().ok()?;
    match what {
        CHALLENGE => Some(PathOption::Challenge(token)),
        RESPONSE => Some(PathOption::Response(token)),
        LEAVE => Some(PathOption::Leave(token)),
        _ => None,
    }
}

/// The kinds: [rfc-9293] sec. 3.2, [rfc-7323], [rfc-2018], [rfc-6994].
pub(super) const END: u8 = 0;
pub(super) const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
pub(super) const EXPERIMENT: u8 = 253;

/// [rfc-6994]: the two bytes that identify the experiment: the letters MS, for multistream.
pub(super) const EXPERIMENT_ID: [u8; 2] = *b"MS";

/// Bytes of the option *expected* with a stream but no counts or delay.
const EXPECTED: u32 = 8;

/// The types of path options; the next one is that of the extent.
const CHALLENGE: u8 = 1;
const RESPONSE: u8 = 2;
const LEAVE: u8 = 3;
