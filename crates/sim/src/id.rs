//! Identifiers of the parts of a world: small numbers in the order of declaration, of different types.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $repr:ty, $word:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(crate) $repr);

        impl $name {
            /// Its place in the order of declaration, from 0.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($word, "{}"), self.0)
            }
        }
    };
}

id!(
    /// A node: it forwards packets and carries hosts.
    NodeId, u16, "n"
);
id!(
    /// One direction of a link.
    LinkId, u32, "l"
);
id!(
    /// A host: it sends and receives packets at a node.
    HostId, u32, "h"
);
id!(
    /// A flow: the packets between two hosts, in both directions.
    FlowId, u32, "f"
);
id!(
    /// A destination of packets: a node, or a node through one of its links.
    Address, u16, "a"
);
id!(
    /// A host's own number for a flow: its first flow has port 0.
    Port, u16, "p"
);

impl Port {
    /// The only port of a host that has one flow.
    pub const FIRST: Self = Self(0);

    /// The port of the host's flow number `index`.
    pub const fn new(index: u16) -> Self {
        Self(index)
    }
}
