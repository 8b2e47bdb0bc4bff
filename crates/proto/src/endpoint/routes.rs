//! What the driver knows of the system's routes: from which addresses datagrams can leave.

use anabranch_units::{Span, Time};

use super::Endpoint;
use crate::path::{Address, FourTuple};

impl Endpoint {
    /// Datagrams of this four-tuple cannot leave; see [`crate::Paths::on_unreachable`]. Returns whether a connection has such a
    /// path.
    pub fn on_unreachable(&mut self, now: Time, tuple: FourTuple, instead: Option<Address>) -> bool {
        let found = self.with_path(tuple);
        for &number in &found {
            let Some(slot) = self.slot_mut(number) else { continue };
            slot.connection.paths().on_unreachable(now, tuple, instead);
            self.touch(number);
        }
        !found.is_empty()
    }

    /// The system would send datagrams of this silent four-tuple from another address by now; see [`crate::Paths::on_other_route`].
    pub fn on_other_route(&mut self, now: Time, tuple: FourTuple, instead: Address) {
        for number in self.with_path(tuple) {
            let Some(slot) = self.slot_mut(number) else { continue };
            slot.connection.paths().on_other_route(now, tuple, instead);
            self.touch(number);
        }
    }

    /// Datagrams of this four-tuple can leave again, or should be tried again; see [`crate::Paths::on_reachable`]. Returns whether
    /// a connection has such a path.
    pub fn on_reachable(&mut self, now: Time, tuple: FourTuple) -> bool {
        let found = self.with_path(tuple);
        for &number in &found {
            let Some(slot) = self.slot_mut(number) else { continue };
            slot.connection.paths().on_reachable(now, tuple);
            self.touch(number);
        }
        !found.is_empty()
    }

    /// Something else was sent to the remote port of this four-tuple; see [`crate::Paths::on_asked`].
    pub fn on_asked(&mut self, tuple: FourTuple) {
        for number in self.with_path(tuple) {
            let Some(slot) = self.slot_mut(number).filter(|slot| slot.is_own) else { continue };
            slot.connection.paths().on_asked(tuple);
            self.touch(number);
        }
    }

    /// The network says that the remote port of this four-tuple is closed; see [`crate::Paths::on_refused`]. Returns after which
    /// time to ask for it again, if a connection needs to know.
    pub fn on_refused(&mut self, now: Time, tuple: FourTuple) -> Option<Span> {
        let mut again = None;
        for number in self.with_path(tuple) {
            let Some(slot) = self.slot_mut(number).filter(|slot| slot.is_own) else { continue };
            again = again.max(slot.connection.paths().on_refused(now, tuple));
            self.touch(number);
        }
        again
    }

    /// The four-tuple of a path that got no answer since a retransmission timeout, of a connection that this end opened. The
    /// system may have another route by now: if it would send from another address, call [`Endpoint::on_other_route`]. The remote
    /// port may be closed: if another socket asks for it, call [`Endpoint::on_asked`], and if the network says so,
    /// [`Endpoint::on_refused`].
    pub fn poll_silent(&mut self) -> Option<FourTuple> {
        self.silent.pop_front()
    }

    /// Remembers the silent paths of a connection after a timeout. The end that accepted a connection does not move: its peer
    /// knows it by its address.
    pub(super) fn note_silence(&mut self, number: u32) {
        let Self { slots, silent, .. } = self;
        let Some(slot) = slots.get(number as usize).and_then(Option::as_ref).filter(|slot| slot.is_own) else { return };
        if let Some(tuple) = slot.connection.silent()
            && silent.len() < SILENT_MAX
            && !silent.contains(&tuple)
        {
            silent.push_back(tuple);
        }
    }

    /// The connections with a path of this four-tuple. It is rare that one is looked for, so all are asked.
    fn with_path(&self, tuple: FourTuple) -> Vec<u32> {
        let slots = self.slots.iter().enumerate();
        let found = slots.filter(|(_, slot)| slot.as_ref().is_some_and(|slot| slot.connection.has_path(&tuple)));
        found.map(|(number, _)| number as u32).collect()
    }
}

/// Connections to one peer share their route, so the driver looks at few. The others say so again after their next timeout.
const SILENT_MAX: usize = 64;
