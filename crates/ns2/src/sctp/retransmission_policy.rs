//! CMT's retransmission policies: five rules of its authors that select the destination of a lost chunk.
//!
//! The policy selects a destination first and checks for room afterwards: if the best destination has no room, the chunk waits. A
//! destination has room if its window is not full. Right after a loss was reported there, one packet may exceed the window.
//!
//! Ties are broken by the lowest bit of a draw from ns-2's default stream, from the second destination on. Of three equal
//! destinations, the last is the most likely.

use super::config::RetransmissionPolicy;
use super::destination::{Destination, Status};
use super::endpoint::Endpoint;
use super::retransmission::Limit;
use crate::random::Mrg32k3a;

impl Endpoint {
    /// The destination for the chunk at `index`, if it can be sent now (`SelectRtxDest`).
    pub(super) fn select_destination(&mut self, index: usize, limit: Limit) -> Option<usize> {
        let policy = self.config.cmt()?.policy;
        if policy == RetransmissionPolicy::Same {
            let mut chosen = self.buffer.get(index).destination;
            // ns-2 loops for ever if all destinations have failed.
            for _ in 0..self.destinations.len() {
                if self.destinations[chosen].status != Status::Inactive {
                    break;
                }
                chosen = self.next_destination(chosen);
            }
            return has_room(&self.destinations[chosen], limit).then_some(chosen);
        }
        let Self { destinations, random, .. } = self;
        let chosen = match policy {
            RetransmissionPolicy::Asap => any_with_room(destinations, limit, random),
            RetransmissionPolicy::Ssthresh => best(destinations, random, |it| f64::from(it.ssthresh)),
            RetransmissionPolicy::Window => best(destinations, random, |it| f64::from(it.window)),
            // ns-2 starts with 10 as the least loss rate, so a destination with a rate of 10 or more is never chosen.
            _ => best(destinations, random, |it| 10.0 - f64::from(it.loss_rate)),
        };
        chosen.filter(|&chosen| has_room(&self.destinations[chosen], limit))
    }
}

fn has_room(it: &Destination, limit: Limit) -> bool {
    it.has_room() || (limit == Limit::OnePacket && it.cmt.may_exceed && it.cmt.retransmitted == 0)
}

fn any_with_room(destinations: &[Destination], limit: Limit, random: &mut Mrg32k3a) -> Option<usize> {
    let mut chosen = None;
    for (index, it) in destinations.iter().enumerate() {
        // If the bit is set, the earlier one is kept.
        if has_room(it, limit) && it.status == Status::Active && (chosen.is_none() || !random.coin()) {
            chosen = Some(index);
        }
    }
    chosen
}

/// The destination with the highest merit, which must be positive.
fn best(destinations: &[Destination], random: &mut Mrg32k3a, merit: impl Fn(&Destination) -> f64) -> Option<usize> {
    let (mut chosen, mut highest) = (None, 0.0);
    for (index, it) in destinations.iter().enumerate().filter(|(_, it)| it.status != Status::Inactive) {
        let merit = merit(it);
        if merit > highest {
            (chosen, highest) = (Some(index), merit);
        } else if merit >= highest && random.coin() {
            chosen = Some(index);
        }
    }
    chosen
}
