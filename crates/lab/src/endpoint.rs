//! The agents of ns-2 as hosts of the simulator.

use anabranch_ns2::{Sender, Sink};
use anabranch_sim::{Arrival, Body, Host, Input, Transmit};
use anabranch_units::SimTime;

/// The variables of a sender at one time: a row of `flow.<id>.csv`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FlowRow {
    pub(crate) time: SimTime,
    pub(crate) gauges: anabranch_ns2::Gauges,
}

/// An agent of ns-2 that always has data.
pub(crate) struct Ns2Source {
    pub(crate) sender: Sender,
    /// What its variables were, at each change; `None` if nobody wants to know.
    pub(crate) rows: Option<Vec<FlowRow>>,
}

impl Host for Ns2Source {
    fn handle(&mut self, now: SimTime, arrival: Arrival<'_>) {
        if let Body::Ns2(packet) = arrival.body {
            self.sender.handle(now, packet);
        }
    }

    fn handle_timeout(&mut self, now: SimTime) {
        self.sender.handle_timeout(now);
    }

    fn handle_input(&mut self, now: SimTime, input: Input) {
        match input {
            Input::Start => self.sender.produce(now, None),
            Input::Stop => self.sender.stop(now),
            Input::Offer(_) => {}
        }
    }

    fn poll_transmit(&mut self, now: SimTime) -> Option<Transmit> {
        let packet = self.sender.poll_transmit();
        // Everything that an event changes has changed when there is nothing more to send.
        if let (None, Some(rows)) = (packet, &mut self.rows) {
            let gauges = self.sender.gauges();
            if rows.last().is_none_or(|last| last.gauges != gauges) {
                rows.push(FlowRow { time: now, gauges });
            }
        }
        packet.map(Transmit::from)
    }

    fn poll_timeout(&self) -> SimTime {
        self.sender.poll_timeout()
    }
}

/// A sink of ns-2.
pub(crate) struct Ns2Sink(pub(crate) Sink);

impl Host for Ns2Sink {
    fn handle(&mut self, now: SimTime, arrival: Arrival<'_>) {
        if let Body::Ns2(packet) = arrival.body {
            self.0.handle(now, packet);
        }
    }

    fn handle_timeout(&mut self, now: SimTime) {
        self.0.handle_timeout(now);
    }

    fn poll_transmit(&mut self, _now: SimTime) -> Option<Transmit> {
        self.0.poll_transmit().map(Transmit::from)
    }

    fn poll_timeout(&self) -> SimTime {
        self.0.poll_timeout()
    }
}
