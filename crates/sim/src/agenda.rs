//! Timed actions of the scenario: starts and stops, offers, route changes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::event_queue::Key;
use crate::host::Input;
use crate::id::{Address, HostId, LinkId, NodeId};

/// A timed action of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Passes an input to a host.
    Input {
        /// The host that gets it.
        host: HostId,
        /// The input that it gets.
        input: Input,
    },
    /// From now on `node` sends packets for `to` by the link `via`, or drops them if it is `None`. Packets in flight keep their
    /// route.
    Route {
        /// The node whose table changes.
        node: NodeId,
        /// The destination address.
        to: Address,
        /// A link that starts at `node`, or none.
        via: Option<LinkId>,
    },
    /// From now on a link accepts packets of at most this size. Packets already accepted pass.
    Mtu {
        /// The link whose MTU changes.
        link: LinkId,
        /// The MTU in bytes.
        mtu: u32,
    },
}

/// An item of the agenda.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Control(Control),
    /// The next offer of this workload.
    Workload(usize),
}

/// Items ordered by time, then by insertion. A heap suffices, since it is rarely used.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    items: BinaryHeap<Reverse<Entry>>,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    item: Item,
}

impl Agenda {
    pub(crate) fn insert(&mut self, key: Key, item: Item) {
        self.items.push(Reverse(Entry { key, item }));
    }

    /// Gives every item its time in seconds, for a world with ns-2's clock.
    pub(crate) fn use_float_clock(&mut self) {
        let timed = |Reverse(Entry { key, item })| Reverse(Entry { key: key.at_seconds(key.time.as_secs_f64()), item });
        self.items = self.items.drain().map(timed).collect();
    }

    /// When the next item is due.
    pub(crate) fn next(&self) -> Key {
        self.items.peek().map_or(Key::NONE, |Reverse(entry)| entry.key)
    }

    pub(crate) fn pop(&mut self) -> Option<Item> {
        self.items.pop().map(|Reverse(entry)| entry.item)
    }
}

// Keys are unique, so comparing them is comparing entries.
impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}
