//! In what packets a segment of the transport goes, and when it has come.

use std::collections::VecDeque;

use anabranch_proto::{Form, Segment, Transmit as Leaving, Virtual};

use crate::host::Transmit;
use crate::packet::{Body, Fragment};

/// One end's packets. In the sealed form they are as long as sealed datagrams are, over UDP, and a segment that was cut for a path with longer
/// ones goes in several.
#[derive(Debug)]
pub(crate) struct Datagrams {
    form: Form,
    /// What is left of the segment that leaves.
    leaving: VecDeque<Transmit>,
    /// Segments that left in several.
    fragmented: u64,
    /// What has come of segments that go in several: their number, and how many packets are missing; the oldest first.
    missing: VecDeque<(u64, u32)>,
}

impl Datagrams {
    pub(crate) fn new(form: Form) -> Self {
        Self { form, leaving: VecDeque::new(), fragmented: 0, missing: VecDeque::new() }
    }

    /// Segments that left in several packets.
    pub(crate) fn fragmented(&self) -> u64 {
        self.fragmented
    }

    /// The next packet of a segment that was [sent](Self::send).
    pub(crate) fn poll(&mut self) -> Option<Transmit> {
        self.leaving.pop_front()
    }

    /// A segment leaves; `on` says where its packets go. Returns the first.
    pub(crate) fn send(&mut self, leaving: Leaving<Virtual>, on: impl Fn(Transmit) -> Transmit) -> Transmit {
        let Leaving { segment, ecn, .. } = leaving;
        let on = |transmit: Transmit| on(Transmit { ecn, ..transmit });
        if self.form == Form::Tcp {
            return on(Transmit::from(segment));
        }
        let sizes: Vec<u32> = leaving.packets().collect();
        if let [size] = *sizes {
            return on(Transmit { size, ..Transmit::from(segment) });
        }
        let fragment = Fragment { id: self.fragmented, count: sizes.len() as u32, segment };
        self.fragmented += 1;
        self.leaving.extend(sizes.into_iter().map(|size| on(Transmit::new(size, Body::Fragment(Box::new(fragment))))));
        self.leaving.pop_front().expect("there are several")
    }

    /// The segment that has come with a packet, if all of it has.
    pub(crate) fn receive(&mut self, body: &Body) -> Option<Segment<Virtual>> {
        let Fragment { id, count, segment } = match body {
            Body::Segment(segment) => return Some(**segment),
            Body::Fragment(fragment) => **fragment,
            Body::Raw(_) | Body::Ns2(_) | Body::Sctp(_) => return None,
        };
        let place = self.missing.iter().position(|(known, _)| *known == id).unwrap_or_else(|| {
            // A segment of which a packet is lost comes again as another.
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

/// As many as a seal keeps that are not whole.
const SEGMENTS_MAX: usize = 16;
