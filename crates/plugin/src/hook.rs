//! The hooks of a module, the limits of a call, and how a call fails.

/// The hooks that a module may export, each without parameters and results.
pub const HOOKS: [&str; 9] =
    ["init", "on_sent", "on_ack", "on_round", "on_loss", "on_recovered", "on_undo", "on_restart", "on_group"];

/// The position of a hook in [`HOOKS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookIndex {
    Init,
    Sent,
    Ack,
    Round,
    Loss,
    Recovered,
    Undo,
    Restart,
    Group,
}

/// The exported function that returns the address of the table.
pub(crate) const TABLE: &str = "anabranch";

/// The name of the exported memory.
pub(crate) const MEMORY: &str = "memory";

/// The limit of a call in fuel, about one unit an instruction: some milliseconds. A law's hook takes some dozen.
pub const FUEL_CALL: u64 = 1_000_000;

/// The limit of an instance's memory in bytes. A module in Rust has 1.1 MB with the default stack.
pub const MEMORY_MAX: usize = 4 << 20;

/// The limit of the call depth.
pub(crate) const DEPTH_MAX: usize = 500;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It did not end within [`FUEL_CALL`].
    OutOfFuel,
    /// Its calls are deeper than allowed.
    TooDeep,
    /// It trapped, for this reason.
    Trapped(String),
}

impl Failure {
    /// As a message about the function that was called.
    pub(crate) fn told(&self, hook: &str) -> String {
        match self {
            Self::OutOfFuel => format!(
                "`{hook}` did not end within {FUEL_CALL} instructions; look for a loop without an end, or let it compute less at once"
            ),
            Self::TooDeep => {
                format!("`{hook}` calls itself more than {DEPTH_MAX} deep; look for a recursion without an end")
            }
            Self::Trapped(reason) => format!(
                "`{hook}` trapped: {reason}; a panic, a division by zero and an access outside of the memory do that"
            ),
        }
    }
}

pub(crate) fn no_table() -> String {
    format!(
        "exports no function `{TABLE}` that returns the address of its table; include anabranch_cc.h or anabranch_cc.rs"
    )
}
