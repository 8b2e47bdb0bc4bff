//! Packet events at links: ns-2's trace and our record.

use std::collections::BTreeMap;

use super::case::Clock;

/// The kind of an event of a packet at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Enqueued,
    Dropped,
    Received,
}

/// An event of a packet, at a time in steps of the case's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) at_steps: u64,
    pub(crate) ack: bool,
    pub(crate) flow: u32,
    pub(crate) seq: i64,
    pub(crate) size: u32,
    /// The chunk, for SCTP, which has an event for each chunk.
    pub(crate) chunk: Option<Chunk>,
}

/// A chunk in ns-2's trace: the letter of its kind, its stream and its number there; 65535 if it is not data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) kind: char,
    pub(crate) stream: u16,
    pub(crate) ssn: u16,
}

/// Events by link (the numbers of its ends) and kind, each in order.
pub(crate) type Trace = BTreeMap<(u32, u32, Kind), Vec<Event>>;

/// Reads a trace of ns-2.
pub(crate) fn parse(text: &str, clock: Clock) -> Result<Trace, String> {
    let mut trace = Trace::new();
    for (number, line) in text.lines().enumerate() {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let kind = match fields.first() {
            Some(&"+") => Kind::Enqueued,
            Some(&"d") => Kind::Dropped,
            Some(&"r") => Kind::Received,
            _ => continue,
        };
        let parsed = (|| {
            let (at, from, to, what, size, flow, seq, chunk) = match fields[..] {
                [_, at, from, to, what, size, _, flow, _, _, seq, _] => (at, from, to, what, size, flow, seq, None),
                [_, at, from, to, what, size, flags, flow, _, _, _, seq, _, stream, ssn] => {
                    let kind = flags.chars().last()?;
                    let chunk = Chunk { kind, stream: stream.parse().ok()?, ssn: ssn.parse().ok()? };
                    (at, from, to, what, size, flow, seq, Some(chunk))
                }
                _ => return None,
            };
            let at_steps = (at.parse::<f64>().ok()? * clock.steps_per_second()).round() as u64;
            let event = Event {
                at_steps,
                ack: what == "ack",
                flow: flow.parse().ok()?,
                seq: seq.parse().ok()?,
                size: size.parse().ok()?,
                chunk,
            };
            Some(((from.parse().ok()?, to.parse().ok()?, kind), event))
        })();
        let (key, event) = parsed.ok_or_else(|| format!("line {}: not a packet event: {line}", number + 1))?;
        trace.entry(key).or_default().push(event);
    }
    Ok(trace)
}

/// A description of the earliest event in which the two differ; `None` if they are equal.
pub(crate) fn first_difference(theirs: &Trace, ours: &Trace, clock: Clock) -> Option<String> {
    let mut found: Option<(u64, String)> = None;
    let mut keys: Vec<_> = theirs.keys().chain(ours.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        let (a, b) = (theirs.get(key).map_or(&[][..], Vec::as_slice), ours.get(key).map_or(&[][..], Vec::as_slice));
        let length = a.len().max(b.len());
        let same = |a: &Event, b: &Event| {
            a.at_steps.abs_diff(b.at_steps) <= clock.tolerance() && Event { at_steps: a.at_steps, ..*b } == *a
        };
        let differs = |index: &usize| match (a.get(*index), b.get(*index)) {
            (Some(a), Some(b)) => !same(a, b),
            _ => true,
        };
        let Some(index) = (0..length).find(differs) else {
            continue;
        };
        let at = a.get(index).into_iter().chain(b.get(index)).map(|event| event.at_steps).min().unwrap_or(0);
        if found.as_ref().is_none_or(|(earliest, _)| at < *earliest) {
            let (from, to, kind) = key;
            let text = format!(
                "link {from}->{to}, {kind:?} number {index}: ns-2 has {:?}, we have {:?}",
                a.get(index),
                b.get(index)
            );
            found = Some((at, text));
        }
    }
    found.map(|(_, text)| text)
}
