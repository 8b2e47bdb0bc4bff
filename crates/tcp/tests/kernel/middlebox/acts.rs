//! What middleboxes do.

use super::Memory;
use super::segment::{ACK, EXPERIMENT, MSS, SACK, SEQ, Segment};

pub(crate) fn passes(_: &mut Memory, segment: Segment) -> Vec<Segment> {
    vec![segment]
}

pub(crate) fn loses_hundredth(memory: &mut Memory, segment: Segment) -> Vec<Segment> {
    if memory.chance(100) { vec![] } else { vec![segment] }
}

pub(crate) fn loses_twentieth(memory: &mut Memory, segment: Segment) -> Vec<Segment> {
    if memory.chance(20) { vec![] } else { vec![segment] }
}

pub(crate) fn doubles_twentieth(memory: &mut Memory, segment: Segment) -> Vec<Segment> {
    if memory.chance(20) { vec![segment.clone(), segment] } else { vec![segment] }
}

/// Each twentieth waits until three others have overtaken it.
pub(crate) fn reorders_twentieth(memory: &mut Memory, segment: Segment) -> Vec<Segment> {
    if memory.held.is_none() && memory.chance(20) {
        memory.held = Some((segment, 3));
        return vec![];
    }
    let mut out = vec![segment];
    match memory.held.take() {
        Some((held, 1)) => out.push(held),
        held => memory.held = held.map(|(held, left)| (held, left - 1)),
    }
    out
}

/// Cuts content at a third.
pub(crate) fn splits(memory: &mut Memory, segment: Segment) -> Vec<Segment> {
    let at = segment.content().len() / 3;
    if at == 0 || segment.is_syn() {
        return vec![segment];
    }
    memory.changed += 1;
    segment.split(at)
}

/// Makes segments small, and gives two that follow each other as one.
pub(crate) fn joins(memory: &mut Memory, mut segment: Segment) -> Vec<Segment> {
    if let Some(place) = segment.option(MSS).filter(|_| segment.is_syn()) {
        segment.bytes[place.start + 2..place.end].copy_from_slice(&700u16.to_be_bytes());
        return vec![segment];
    }
    match memory.held.take() {
        Some((mut held, _)) if held.is_before(&segment) => {
            memory.changed += 1;
            held.join(&segment);
            vec![held]
        }
        None if !segment.content().is_empty() && !segment.is_last() => {
            memory.held = Some((segment, 1));
            vec![]
        }
        held => held.into_iter().map(|(held, _)| held).chain([segment]).collect(),
    }
}

/// Moves the numbers of both directions, in SACK blocks, too.
pub(crate) fn shifts(memory: &mut Memory, segment: Segment) -> Vec<Segment> {
    shift(memory, segment, true)
}

/// As some firewalls: blocks have the numbers of before. Some segments are lost, so that there are blocks.
pub(crate) fn shifts_without_sack(memory: &mut Memory, segment: Segment) -> Vec<Segment> {
    if memory.chance(50) { vec![] } else { shift(memory, segment, false) }
}

fn shift(memory: &mut Memory, mut segment: Segment, has_sack: bool) -> Vec<Segment> {
    memory.changed += 1;
    let is_to_server = segment.ports().0 > segment.ports().1;
    let (sent, answered) = if is_to_server { SHIFTS } else { (SHIFTS.1, SHIFTS.0) };
    segment.shift(SEQ, sent);
    if segment.is_ack() {
        segment.shift(ACK, 0u32.wrapping_sub(answered));
    }
    if let Some(place) = segment.option(SACK).filter(|_| has_sack) {
        (place.start + 2..place.end).step_by(4).for_each(|at| segment.shift(at, 0u32.wrapping_sub(answered)));
    }
    vec![segment]
}

/// Of the client's numbers, and of the server's.
const SHIFTS: (u32, u32) = (3_000_000_000, 1_234_567_890);

/// Takes out the option that it does not know.
pub(crate) fn strips_option(memory: &mut Memory, mut segment: Segment) -> Vec<Segment> {
    memory.changed += u32::from(segment.option(EXPERIMENT).is_some());
    segment.strip(EXPERIMENT);
    vec![segment]
}

pub(crate) fn clears_reserved(memory: &mut Memory, mut segment: Segment) -> Vec<Segment> {
    memory.changed += u32::from(segment.asks_for_streams());
    segment.clear_reserved();
    vec![segment]
}

/// Drops SYNs that have one of these.
pub(crate) fn drops_offers(memory: &mut Memory, segment: Segment) -> Vec<Segment> {
    let is_offer = segment.is_syn() && segment.asks_for_streams();
    memory.changed += u32::from(is_offer);
    if is_offer { vec![] } else { vec![segment] }
}

impl Memory {
    /// True once in so many times.
    fn chance(&mut self, one_of: u64) -> bool {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let is_drawn = (self.random >> 33).is_multiple_of(one_of);
        self.changed += u32::from(is_drawn);
        is_drawn
    }
}
