//! What a module exports, and whether it is a controller's.

use crate::hook::{HOOKS, MEMORY, MEMORY_MAX, TABLE, no_table};

/// An export of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name, which may be anything.
    pub name: String,
    /// What it is.
    pub kind: Kind,
}

/// What an export is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A memory, which has at least so many bytes.
    Memory {
        /// Bytes at the beginning.
        least: u64,
    },
    /// A function without parameters and results.
    Plain,
    /// A function without parameters that returns an address.
    Address,
    /// A memory, a table or a global, which a law may export and nobody uses.
    Other,
}

/// Checks the names and types of exports.
pub(crate) fn check(exports: &[Export]) -> Result<(), String> {
    let find = |name: &str| exports.iter().find(|export| export.name == name).map(|export| export.kind);
    let Some(Kind::Memory { least }) = find(MEMORY) else {
        return Err(format!("exports no memory `{MEMORY}`; linkers export it unless they are told to import one"));
    };
    if least > MEMORY_MAX as u64 {
        return Err(format!(
            "wants {least} bytes of memory at once; at most {MEMORY_MAX} are possible: make its stack or its tables smaller"
        ));
    }
    if find(TABLE) != Some(Kind::Address) {
        return Err(no_table());
    }
    for Export { name, kind } in exports {
        let is_hook = HOOKS.contains(&name.as_str());
        if is_hook && *kind != Kind::Plain {
            return Err(format!(
                "exports `{name}` with parameters or results; a hook has none, and finds the facts in the table"
            ));
        }
        if name.starts_with("on_") && !is_hook {
            return Err(format!(
                "exports `{}`, which is no hook and would never be called; there are {}",
                shown(name),
                HOOKS.join(", ")
            ));
        }
    }
    let grows = ["on_ack", "on_round", "on_group"];
    match grows.iter().any(|hook| find(hook).is_some()) {
        true => Ok(()),
        false => Err(format!("exports no hook in which a window could grow; define one of {}", grows.join(", "))),
    }
}

pub(crate) fn table_outside(base: usize) -> String {
    format!("has its table at {base}, and its memory ends before the table does")
}

/// The number of letters of a name that a message has.
const NAME_SHOWN: usize = 60;

/// A name of a module, as messages show it: short, and without characters that a terminal would obey.
pub(crate) fn shown(name: &str) -> String {
    let escaped: String = name.chars().take(NAME_SHOWN).flat_map(char::escape_debug).collect();
    if name.chars().nth(NAME_SHOWN).is_some() { escaped + "…" } else { escaped }
}
