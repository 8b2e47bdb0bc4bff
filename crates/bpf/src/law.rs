//! The laws that exist in C.

use std::fmt;
use std::str::FromStr;

use anabranch_cc::registry::{self, Row};

/// A law of the kernel. Its name is that of the law in [`anabranch_cc`], and the one that programs ask the kernel for (`TCP_CONGESTION`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    /// The default law of the project.
    Anabranch,
    /// FAST TCP (fast-2006).
    Fast,
    /// FAST that refills the pipe after fast recovery (emfast-2019).
    Emfast,
    /// FAST that recognises a longer route (rrfast-2017).
    Rrfast,
    /// Standard TCP that ignores random losses (ctcp-2019).
    Composite,
}

impl Law {
    /// Every law, in the order for readers.
    pub const ALL: [Self; 5] = [Self::Anabranch, Self::Fast, Self::Emfast, Self::Rrfast, Self::Composite];

    /// The name in the registry and in the kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anabranch => "anabranch",
            Self::Fast => "fast",
            Self::Emfast => "emfast",
            Self::Rrfast => "rrfast",
            Self::Composite => "composite",
        }
    }

    /// The law in Rust.
    pub fn row(self) -> &'static Row {
        registry::find(self.name()).expect("every law of the kernel is one of the registry")
    }
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no law of the kernel has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLaw(String);

impl fmt::Display for UnknownLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Law::ALL.into_iter().map(Law::name).collect();
        write!(f, "`{}` is no law of the kernel; there are {}", self.0.escape_debug(), names.join(", "))
    }
}

impl std::error::Error for UnknownLaw {}

impl FromStr for Law {
    type Err = UnknownLaw;

    fn from_str(name: &str) -> Result<Self, UnknownLaw> {
        Self::ALL.into_iter().find(|law| law.name() == name).ok_or_else(|| UnknownLaw(name.to_owned()))
    }
}
