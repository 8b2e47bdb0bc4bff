//! The packets of the transport's segments, and their reassembly.

use std::collections::VecDeque;

use anabranch_proto::{Form, Segment, Transmit as Leaving, Virtual};

use crate::host::Transmit;
use crate::packet::{Body, Fragment};

/// The packets of one end. In the sealed form they have the sizes of sealed datagrams over UDP. A segment that is too long for
/// its path is sent as several packets.
#[derive(Debug)]
pub(crate) struct Datagrams {
    form: Form,
    /// The remaining packets of the segment being sent.
    leaving: VecDeque<Transmit>,
    /// Segments sent as several packets.
    fragmented: u64,
    /// Incomplete segments, the oldest first: the segment's number and its count of missing packets.
    missing: VecDeque<(u64, u32)>,
}

impl Datagrams {
    pub(crate) fn new(form: Form) -> Self {
        Self { form, leaving: VecDeque::new(), fragmented: 0, missing: VecDeque::new() }
    }

    /// The number of segments that were sent as several packets.
    pub(crate) fn fragmented(&self) -> u64 {
        self.fragmented
    }

    /// The next packet of a segment that was [sent](Self::send).
    pub(crate) fn poll(&mut self) -> Option<Transmit> {
        self.leaving.pop_front()
    }

    /// Sends a segment; `on` assigns packets to a path. Returns the first packet.
    pub(crate) fn send(&mut self, leaving: Leaving<Virtual>, on: impl Fn(Transmit) -> Transmit) -> Transmit {
        let Leaving { segment, ecn, .. } = leaving;
        let on = |transmit: Transmit| on(Transmit { ecn, ..transmit });
        if self.form == Form::Tcp {
            return on(Transmit::from(segment));
        }
        let mut packets = leaving.packets();
        let (first, second) = (packets.next(), packets.next());
        if let (Some(size), None) = (first, second) {
            return on(Transmit { size, ..Transmit::from(segment) });
        }
        let sizes: Vec<u32> = first.into_iter().chain(second).chain(packets).collect();
        let fragment = Fragment { id: self.fragmented, count: sizes.len() as u32, segment };
        self.fragmented += 1;
        self.leaving.extend(sizes.into_iter().map(|size| on(Transmit::new(size, Body::Fragment(Box::new(fragment))))));
        self.leaving.pop_front().expect("there are several")
    }

    /// The segment that is complete with this packet, if one is.
    pub(crate) fn receive(&mut self, body: &Body) -> Option<Segment<Virtual>> {
        let Fragment { id, count, segment } = match body {
            Body::Segment(segment) => return Some(**segment),
            Body::Fragment(fragment) => **fragment,
            Body::Raw(_) | Body::Ns2(_) | Body::Sctp(_) => return None,
        };
        let place = self.missing.iter().position(|(known, _)| *known == id).unwrap_or_else(|| {
            // A segment that has lost a packet is retransmitted under another number.
            if self.missing.len() == SEGMENTS_MAX {
                self.missing.pop_front();
            }
            self.missing.push_back((id, count));
            self.missing.len() - 1
        });
        let (_, missing) = &mut self.missing[place];
        *missing -= 1;
        if *missing > 0 {
            return None;
        }
        self.missing.remove(place);
        Some(segment)
    }
}

/// The limit of incomplete segments. The seal of a real connection has the same.
const SEGMENTS_MAX: usize = 16;
