//! Paths.

/// Which path of a connection; stable while it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathId(u8);

impl PathId {
    /// The path on which the connection is opened.
    pub const FIRST: Self = Self(0);

    /// Its number: a small one, as the name of a path that is gone is used again.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// No path: that of what has none any more. It is the wire's number for that, too.
    pub(crate) const NOWHERE: Self = Self(15);

    pub(crate) const fn new(index: usize) -> Self {
        Self(index as u8)
    }

    /// The name with this number, if there can be one.
    pub const fn of_index(index: usize) -> Option<Self> {
        if index < SLOTS_MAX { Some(Self::new(index)) } else { None }
    }

    /// Its number, from 0 on.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Some of the paths of a connection.
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

    /// From the lowest name on.
    pub(crate) fn iter(mut self) -> impl Iterator<Item = PathId> {
        std::iter::from_fn(move || {
            let first = self.first()?;
            self.0 &= self.0 - 1;
            Some(first)
        })
    }

    /// The one with the lowest name.
    pub(crate) fn first(self) -> Option<PathId> {
        (self.0 != 0).then(|| PathId(self.0.trailing_zeros() as u8))
    }
}

// A bit for each name, and for none.
const _: () = assert!(SLOTS_MAX < u16::BITS as usize && SLOTS_MAX <= PathId::NOWHERE.index());

/// The most paths that a connection has at a time.
pub const PATHS_MAX: usize = 8;

/// Paths that the peer asked for and that it has not answered on, at most. They have room of their own, so that nobody loses a path to
/// a stranger.
pub(crate) const UNINVITED_MAX: usize = 2;

/// Names of paths.
pub(crate) const SLOTS_MAX: usize = PATHS_MAX + UNINVITED_MAX;

/// What a path is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// Nobody has answered on it yet. It carries no data.
    Validating,
    /// It carries data.
    Live,
    /// It was silent for too long while others were not. It carries no data until it answers.
    Suspect,
}

/// When a path is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathStatus {
    /// Whenever the scheduler likes.
    #[default]
    Active,
    /// Only if no active path is live.
    Standby,
}

/// What can be wrong with a new path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddPathError {
    /// The connection is not established, or the peer does not speak of paths.
    NotNegotiated,
    /// There are as many as there may be.
    TooMany,
    /// There is such a path.
    InUse,
}

/// What can be wrong with giving up a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovePathError {
    /// There is no such path.
    Unknown,
    /// No other path is live.
    OnlyPath,
}

/// One end of a path. The address is a driver's business: IPv6, IPv4 mapped into it, or the number of a simulated node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// Which host, and by which of its interfaces.
    pub address: u128,
    /// Which port there.
    pub port: u16,
}

impl Address {
    /// Whether it is an IPv4 address, mapped into IPv6 ([rfc-4291] sec. 2.5.5.2).
    pub const fn is_ipv4(&self) -> bool {
        self.address >> 32 == 0xffff
    }
}

/// Both ends of a path, as the local engine sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FourTuple {
    /// Our end.
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
