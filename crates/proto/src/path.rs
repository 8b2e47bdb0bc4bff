//! Identifiers, states and addresses of paths.

/// The identifier of a path of a connection; stable while the path exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathId(u8);

impl PathId {
    /// The path on which the connection is opened.
    pub const FIRST: Self = Self(0);

    /// The number of the path. Numbers are small, because those of closed paths are reused.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// No path: used for segments whose path is gone, in memory and on the wire.
    pub(crate) const NOWHERE: Self = Self(15);

    pub(crate) const fn new(index: usize) -> Self {
        Self(index as u8)
    }

    /// The identifier with this number, if it is in range.
    pub const fn of_index(index: usize) -> Option<Self> {
        if index < SLOTS_MAX { Some(Self::new(index)) } else { None }
    }

    /// The number of the path, from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of paths of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathSet(u16);

impl PathSet {
    pub(crate) const fn only(path: PathId) -> Self {
        Self(1 << path.0)
    }

    pub(crate) const fn insert(&mut self, path: PathId) {
        self.0 |= 1 << path.0;
    }

    pub(crate) const fn remove(&mut self, path: PathId) {
        self.0 &= !(1 << path.0);
    }

    pub(crate) const fn contains(self, path: PathId) -> bool {
        self.0 & 1 << path.0 != 0
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn has_several(self) -> bool {
        self.0.count_ones() > 1
    }

    /// The paths in ascending order.
    pub(crate) fn iter(mut self) -> impl Iterator<Item = PathId> {
        std::iter::from_fn(move || {
            let first = self.first()?;
            self.0 &= self.0 - 1;
            Some(first)
        })
    }

    /// The lowest identifier.
    pub(crate) fn first(self) -> Option<PathId> {
        (self.0 != 0).then(|| PathId(self.0.trailing_zeros() as u8))
    }
}

// One bit per identifier, and one for no path.
const _: () = assert!(SLOTS_MAX < u16::BITS as usize && SLOTS_MAX <= PathId::NOWHERE.index());

/// The largest number of paths of a connection at a time.
pub const PATHS_MAX: usize = 8;

/// The largest number of paths that the peer set up and has not yet answered on. They have their own places, so that an attacker
/// cannot displace a path.
pub(crate) const UNINVITED_MAX: usize = 2;

/// The number of path identifiers.
pub(crate) const SLOTS_MAX: usize = PATHS_MAX + UNINVITED_MAX;

/// The state of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// Set up, but not yet answered by the peer. It carries no data.
    Validating,
    /// Validated; it carries data.
    Live,
    /// Suspected: silent for too long while other paths were not. It carries no data until it answers.
    Suspect,
}

/// When a path is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathStatus {
    /// The scheduler may use it at any time.
    #[default]
    Active,
    /// It is used only if no active path is live.
    Standby,
}

/// Why a path cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddPathError {
    /// The connection is not yet established, or several paths were not negotiated.
    NotNegotiated,
    /// The limit of paths is reached.
    TooMany,
    /// The path exists already.
    InUse,
}

/// Why a path cannot be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovePathError {
    /// There is no such path.
    Unknown,
    /// No other path is live.
    OnlyPath,
}

/// One end of a path. The driver defines addresses: IPv6, IPv4 mapped into IPv6, or the number of a simulated node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The host and its interface.
    pub address: u128,
    /// The port on that host.
    pub port: u16,
}

impl Address {
    /// Whether it is an IPv4 address, mapped into IPv6 ([rfc-4291] sec. 2.5.5.2).
    pub const fn is_ipv4(&self) -> bool {
        self.address >> 32 == 0xffff
    }
}

/// Both ends of a path, as the local engine sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FourTuple {
    /// The local end.
    pub local: Address,
    /// The peer's end.
    pub remote: Address,
}

impl FourTuple {
    /// The same path as the peer sees it.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { local: self.remote, remote: self.local }
    }
}
