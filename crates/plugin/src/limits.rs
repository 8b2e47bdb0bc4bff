//! The limits of a module's parts, checked on its bytes before anything is compiled. Without them a file of some megabytes could take minutes: each
//! path of each run has an instance, and an instance takes time for each export and each entry of a table.
//!
//! More limits are wasmi's own ([`wasmi::EnforcedLimits::strict`]), and those of memory and instructions in `interpreted.rs`.

use wasmparser::{ElementItems, FunctionBody, Parser, Payload};

use crate::exports::shown;

/// The limit of exports. A module needs a dozen; a linker that exports everything makes some hundred.
pub(crate) const EXPORTS_MAX: u32 = 1000;

/// The limit of function types. A law in Rust without optimisation has about a hundred.
const TYPES_MAX: u32 = 1000;

/// The limit of entries in a module's function tables, and of those that its segments write. A law in Rust without optimisation has some hundred.
pub(crate) const TABLE_ENTRIES_MAX: u32 = 10_000;

/// The limit of local variables of a function, which each call clears.
const LOCALS_MAX: u32 = 1000;

/// The limit of bytes of a name.
const NAME_MAX: usize = 256;

/// Checks the parts of a module. What is no module at all is left to the compiler, which says so.
pub(crate) fn check(bytes: &[u8]) -> Result<(), String> {
    let mut entries = 0_u32;
    for payload in Parser::new(0).parse_all(bytes) {
        let Ok(payload) = payload else { return Ok(()) };
        match payload {
            Payload::TypeSection(types) => within("function types", types.count(), TYPES_MAX)?,
            Payload::ImportSection(imports) => {
                if let Some(Ok(import)) = imports.into_iter().next() {
                    return Err(format!(
                        "imports `{}` of `{}`, and there is nothing to import: no clock, no file, no randomness and no output; remove what \
                         calls it",
                        shown(import.name),
                        shown(import.module)
                    ));
                }
            }
            Payload::ExportSection(exports) => {
                within("exports", exports.count(), EXPORTS_MAX)?;
                let mut names = exports.into_iter().flatten().map(|export| export.name);
                if let Some(name) = names.find(|name| name.len() > NAME_MAX) {
                    let (name, most) = (shown(name), NAME_MAX);
                    return Err(format!("exports `{name}`, a name of more than {most} bytes; give it a shorter one"));
                }
            }
            Payload::ElementSection(segments) => {
                for segment in segments.into_iter().flatten() {
                    entries = entries.saturating_add(match segment.items {
                        ElementItems::Functions(functions) => functions.count(),
                        ElementItems::Expressions(_, expressions) => expressions.count(),
                    });
                }
                within("entries of function tables", entries, TABLE_ENTRIES_MAX)?;
            }
            Payload::CodeSectionEntry(body) => within("local variables in a function", locals(&body), LOCALS_MAX)?,
            _ => {}
        }
    }
    Ok(())
}

fn within(what: &str, count: u32, most: u32) -> Result<(), String> {
    match count <= most {
        true => Ok(()),
        false => Err(format!(
            "has {count} {what}; at most {most} are possible: build it optimised, and export only the hooks"
        )),
    }
}

/// The number of local variables of a function, which declares them in groups.
fn locals(body: &FunctionBody<'_>) -> u32 {
    let groups = body.get_locals_reader().into_iter().flatten();
    groups.map_while(Result::ok).fold(0, |sum, (count, _)| sum.saturating_add(count))
}
