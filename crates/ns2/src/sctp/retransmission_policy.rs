//! CMT's retransmission policies: the five of its authors select the destination of a lost chunk.
//!
//! A destination is chosen first and asked for room afterwards: if the best one is full, the chunk waits. Room is a window that
//! is not full, or, right after a loss was reported there, one packet in excess.
//!
//! Ties are broken by the lowest bit of a draw from ns-2's default stream, from the second destination on; with three equal
//! ones the last is the likeliest.

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
            // ns-2 goes round for ever if all have failed.
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
            // From 10 on nothing is taken: ns-2 starts with it as the least loss rate.
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
        // The earlier one is kept if the bit is set.
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
