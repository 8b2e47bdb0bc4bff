//! Paths.

/// Which path of a connection; stable while it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathId(u8);

impl PathId {
    /// The path on which the connection is opened.
    pub const FIRST: Self = Self(0);

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One end of a path. The address is a driver's business: IPv6, IPv4 mapped into it, or the number of a simulated node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// Which host, and by which of its interfaces.
    pub address: u128,
    /// Which port there.
    pub port: u16,
}

/// Both ends of a path, as the local engine sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FourTuple {
    /// Our end.
    pub local: Endpoint,
    /// The peer's end.
    pub remote: Endpoint,
}

impl FourTuple {
    /// The same path as the peer sees it.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { local: self.remote, remote: self.local }
    }
}
