//! A host's turn: it gets an event, and the network takes its packets.

use std::any::Any;

use anabranch_ns2::random::Mrg32k3a;
use anabranch_units::SimTime;

use crate::account::Account;
use crate::host::{Arrival, Due, Host, Input};
use crate::id::{FlowId, LinkId, Port};
use crate::network::{Attachment, Network};
use crate::packet::Flight;

/// The driver's contract as one call, compiled once for each kind of host: one dynamic call per event, not four.
pub(crate) trait Turn: Any + Send {
    /// Passes an event to the host, takes its packets, and returns its deadline.
    fn turn(&mut self, now: SimTime, event: Event, network: &mut Network, attachment: &Attachment) -> SimTime;

    /// Details of the deadline, from a host that has them.
    fn due(&self) -> Option<Due>;

    /// The host's account.
    fn account(&self) -> &dyn Account;
}

/// An event of a host.
pub(crate) enum Event {
    Arrival(Landing),
    Timeout,
    Input(Input),
}

/// An [`Arrival`] whose body is still in its slot.
#[derive(Clone, Copy)]
pub(crate) struct Landing {
    pub(crate) flight: Flight,
    pub(crate) link: LinkId,
    pub(crate) port: Port,
}

impl<H: Host> Turn for H {
    fn turn(&mut self, now: SimTime, event: Event, network: &mut Network, attachment: &Attachment) -> SimTime {
        if network.is_like_ns2 {
            if network.has_float_clock {
                self.handle_clock(network.moment.seconds);
            }
            exchange(self.random(), &mut network.random);
        }
        match event {
            Event::Arrival(Landing { flight, link, port }) => {
                let (size, flow, address) = (flight.size(), FlowId(flight.flow()), flight.to());
                let (ecn, body) = (flight.ecn(), network.body_mut(flight));
                self.handle(now, Arrival { port, flow, size, link, address, at: now, ecn, body });
                // Before the host answers, so that the answer reuses the slot, which is in the cache.
                network.release(flight);
            }
            Event::Timeout => self.handle_timeout(now),
            Event::Input(input) => self.handle_input(now, input),
        }
        while let Some(transmit) = self.poll_transmit(now) {
            network.depart(attachment, transmit);
        }
        if network.is_like_ns2 {
            exchange(self.random(), &mut network.random);
        }
        self.poll_timeout()
    }

    fn due(&self) -> Option<Due> {
        self.poll_due()
    }

    fn account(&self) -> &dyn Account {
        Host::account(self)
    }
}

/// Swaps a host's random stream with the world's; a second call swaps them back.
fn exchange(host: Option<&mut Mrg32k3a>, world: &mut Option<Mrg32k3a>) {
    if let (Some(host), Some(world)) = (host, world) {
        std::mem::swap(host, world);
    }
}
