//! The packets on links within a part of a run, for an animation.

use std::collections::VecDeque;

use anabranch_sim::{Direction, FlowId, Happening, LinkId, Observer, PacketEvent};
use anabranch_units::SimTime;

/// A packet on one link, from its arrival at the queue on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The position of the link's direction.
    pub link: usize,
    /// The position of the flow.
    pub flow: usize,
    /// Whether it goes back to the source.
    pub is_answer: bool,
    /// The time at which it came.
    pub came: SimTime,
    /// The time at which its last bit left the transmitter; `None` if it did not, or not yet.
    pub left: Option<SimTime>,
    /// The time at which it was received or lost; `None` if it is still on its way.
    pub gone: Option<SimTime>,
    /// Whether it was lost.
    pub is_lost: bool,
}

/// The part of a run to record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    pub(crate) from: SimTime,
    pub(crate) to: SimTime,
}

/// The trace of packets. Queues and wires are taken as first in, first out: with another order the picture shows the right number of packets,
/// and some of them in each other's places.
pub(crate) struct PacketTrace {
    watch: Watch,
    links: Vec<OnLink>,
    /// Each flow, by the position of the flow that it is for.
    flows: Vec<FlowId>,
    hops: Vec<Hop>,
}

/// The packets on a link.
struct OnLink {
    link: LinkId,
    waiting: VecDeque<Hop>,
    /// Those that have a time of departure.
    moving: VecDeque<Hop>,
}

impl PacketTrace {
    pub(crate) fn new(watch: Watch, links: &[LinkId], flows: Vec<FlowId>) -> Self {
        let of_link = |&link| OnLink { link, waiting: VecDeque::new(), moving: VecDeque::new() };
        Self { watch, links: links.iter().map(of_link).collect(), flows, hops: Vec::new() }
    }

    /// The packets that were on a link within the time, in the order in which they left it; at most [`HOPS_MAX`].
    pub(crate) fn hops(&self) -> Vec<Hop> {
        let under_way = self.links.iter().flat_map(|link| link.moving.iter().chain(&link.waiting));
        let seen = under_way.filter(|hop| hop.came <= self.watch.to);
        self.hops.iter().chain(seen).take(HOPS_MAX).copied().collect()
    }

    fn keep(&mut self, hop: Option<Hop>, gone: SimTime, is_lost: bool) {
        let Watch { from, to } = self.watch;
        if let Some(hop) = hop.filter(|hop| from <= gone && hop.came <= to && self.hops.len() < HOPS_MAX) {
            self.hops.push(Hop { gone: Some(gone), is_lost, ..hop });
        }
    }
}

impl Observer for PacketTrace {
    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        let Some(link) = self.links.iter().position(|on| on.link == event.link) else { return };
        let Some(flow) = self.flows.iter().position(|&flow| flow == event.flow) else { return };
        let is_answer = event.direction == Direction::Backward;
        let hop = Hop { link, flow, is_answer, came: event.time, left: None, gone: None, is_lost: false };
        let on = &mut self.links[link];
        match event.happening {
            Happening::Enqueued => on.waiting.push_back(hop),
            Happening::Received => {
                let hop = on.moving.pop_front();
                self.keep(hop, event.time, false);
            }
            Happening::Discarded => {
                let hop = on.waiting.pop_front();
                self.keep(hop, event.time, true);
            }
            Happening::Dropped(_) => self.keep(Some(hop), event.time, true),
        }
    }

    fn on_departure(&mut self, link: LinkId, at: SimTime) {
        let Some(on) = self.links.iter_mut().find(|on| on.link == link) else { return };
        if let Some(hop) = on.waiting.pop_front() {
            on.moving.push_back(Hop { left: Some(at), ..hop });
        }
    }
}

/// The limit of packets: more are no picture.
const HOPS_MAX: usize = 20_000;
