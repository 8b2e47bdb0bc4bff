//! The settings and gauges that a module declares, read from its memory.

use std::sync::{Mutex, PoisonError};

use anabranch_cc::GAUGES_MAX;

use crate::layout::{at, read_f64, read_u32};

/// A setting that a module declares.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The key in a scenario.
    pub name: String,
    /// The unit: `s`, `segments`, or an empty text for a pure number.
    pub unit: String,
    /// One line of help.
    pub help: String,
    /// The value if a scenario sets none.
    pub default: f64,
    /// The least value.
    pub least: f64,
    /// The largest value.
    pub most: f64,
    /// The address of the value in the module's memory.
    pub(crate) place: usize,
}

/// A gauge: its name, and the address of its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gauge {
    pub(crate) name: &'static str,
    pub(crate) place: usize,
}

/// The length of an entry in bytes: three addresses of texts, padding to eight bytes, then the numbers.
const SETTING: usize = 40;
/// The length of an entry in bytes: the address of a name, padding to eight bytes, then a number.
const GAUGE: usize = 16;

/// The limit of settings. Nobody tunes a law with more; the project's own laws have some dozen.
const SETTINGS_MAX: u32 = 64;

/// The limit of a module's gauges, because the window is always shown, too.
const GAUGES_OWN: u32 = GAUGES_MAX as u32 - 1;

/// The limit of bytes in a name and in a line of help.
const NAME_MAX: usize = 64;
const HELP_MAX: usize = 200;

/// Keys of `cc` that a module cannot use for its settings.
const TAKEN: [&str; 2] = ["name", "plugin"];

/// The settings of a module whose table is at `base`.
pub(crate) fn settings(memory: &[u8], base: usize) -> Result<Vec<Setting>, String> {
    let entries = entries(memory, base + at::SETTINGS, SETTING, SETTINGS_MAX, "settings")?;
    let mut settings: Vec<Setting> = Vec::with_capacity(entries.len());
    for entry in entries {
        let name = name(memory, entry).map_err(|fault| format!("setting {} {fault}", settings.len()))?;
        if TAKEN.contains(&name.as_str()) || settings.iter().any(|setting| setting.name == name) {
            return Err(format!("has two settings `{name}`, or one that `cc` has anyway"));
        }
        let text_at =
            |offset| text(memory, entry + offset, HELP_MAX).map_err(|fault| format!("setting `{name}` {fault}"));
        let (unit, help) = (text_at(4)?, text_at(8)?);
        let number = |offset| read_f64(memory, entry + offset).unwrap_or(f64::NAN);
        let (default, least, most) = (number(16), number(24), number(32));
        if !(default.is_finite() && least <= default && default <= most) {
            return Err(format!("setting `{name}` has the default {default}, which is not within {least} to {most}"));
        }
        settings.push(Setting { name, unit, help, default, least, most, place: entry + 16 });
    }
    Ok(settings)
}

/// The gauges of a module whose table is at `base`.
pub(crate) fn gauges(memory: &[u8], base: usize) -> Result<Vec<Gauge>, String> {
    let entries = entries(memory, base + at::GAUGES, GAUGE, GAUGES_OWN, "gauges")?;
    let mut gauges: Vec<Gauge> = Vec::with_capacity(entries.len());
    for entry in entries {
        let name = name(memory, entry).map_err(|fault| format!("gauge {} {fault}", gauges.len()))?;
        if name == WINDOW || gauges.iter().any(|gauge| gauge.name == name) {
            return Err(format!("has two gauges `{name}`; the window is shown as `{WINDOW}` anyway"));
        }
        gauges.push(Gauge { name: kept(name)?, place: entry + 8 });
    }
    Ok(gauges)
}

/// The gauge that every controller has.
pub(crate) const WINDOW: &str = "window";

/// The addresses of the entries of a list, whose count and address are at `place`.
fn entries(memory: &[u8], place: usize, size: usize, most: u32, what: &str) -> Result<Vec<usize>, String> {
    let word = |place| read_u32(memory, place).ok_or("has no room for its table in its memory");
    let (count, address) = (word(place)?, word(place + 4)? as usize);
    if count > most {
        return Err(format!("has {count} {what}; at most {most} are possible"));
    }
    let end = address.saturating_add(count as usize * size);
    if end > memory.len() {
        return Err(format!("has its {what} outside of its memory, at {address}"));
    }
    Ok((address..end).step_by(size).collect())
}

/// The name at the address that `place` holds: lower-case letters, digits and `_`.
fn name(memory: &[u8], place: usize) -> Result<String, String> {
    let name = text(memory, place, NAME_MAX)?;
    let is_sign = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    match name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_sign) {
        true => Ok(name),
        false => Err(format!("is called {name:?}; a name has small letters, digits and `_`")),
    }
}

/// The zero-terminated text at the address that `place` holds; an address of zero is an empty text.
fn text(memory: &[u8], place: usize, most: usize) -> Result<String, String> {
    let address = read_u32(memory, place).unwrap_or(0) as usize;
    if address == 0 {
        return Ok(String::new());
    }
    let bytes = memory.get(address..).unwrap_or(&[]);
    let bytes = bytes.iter().position(|&byte| byte == 0).filter(|&end| end <= most).map(|end| &bytes[..end]);
    let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
    let is_plain = |text: &&str| !text.chars().any(char::is_control);
    text.filter(is_plain).map(str::to_owned).ok_or_else(|| {
        format!("has a text at {address} that is none: it is UTF-8 of at most {most} bytes before a zero byte")
    })
}

/// The names of the gauges of all modules; gauges take `'static` names.
static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// The limit of names in a process.
const NAMES_MAX: usize = 1000;

fn kept(name: String) -> Result<&'static str, String> {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&known) = names.iter().find(|known| **known == name) {
        return Ok(known);
    }
    if names.len() == NAMES_MAX {
        return Err(format!(
            "has the gauge `{name}`, one name more than the {NAMES_MAX} of this process; start another one"
        ));
    }
    let kept: &'static str = Box::leak(name.into_boxed_str());
    names.push(kept);
    Ok(kept)
}
