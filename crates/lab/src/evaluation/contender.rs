//! A law with its settings: as text of the command line, in a scenario, and in a file name.

use std::fmt;
use std::sync::Arc;

use anabranch_cc::registry::{self, Row, SettingError, Settings};
use anabranch_plugin::{Law, Module};
use serde::Serialize;

use crate::document::{self, MODULE, PLUGIN};
use crate::own::{Maker, Own};

/// A law of the registry with settings, `anabranch,rival=yield`, or of one's own: `mine.wasm,increase=2`.
///
/// ```
/// use anabranch_lab::evaluation::Contender;
///
/// let law = Contender::parse("anabranch,rival=yield")?;
/// assert_eq!(law.label(), "anabranch,rival=yield");
/// # Ok::<(), anabranch_lab::evaluation::LawError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Contender {
    kind: Kind,
    /// The settings in the given order.
    set: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
enum Kind {
    Row(&'static Row),
    /// `path` is as it was given. Documents call the module by the name of its file.
    Module {
        path: String,
        module: Arc<Module>,
    },
    Made(Arc<dyn Maker>),
}

/// Why a text names no law: what is wrong, and what there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LawError(String);

impl fmt::Display for LawError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LawError {}

impl From<SettingError> for LawError {
    fn from(error: SettingError) -> Self {
        Self(error.to_string())
    }
}

impl Contender {
    /// A law by its name, followed by a comma and `KEY=VALUE` for each setting. The name is one of the registry, and the keys are those of `anabranch cc
    /// show`; or it is the path of a WASM module, which is read, and the keys are those that it declares.
    ///
    /// # Errors
    /// If the registry has no such law, the file is no valid module, the law has no such setting, a value is out of its range, or there is a second
    /// law.
    pub fn parse(text: &str) -> Result<Self, LawError> {
        let mut found = Self::parse_all([text])?;
        match found.len() {
            1 => Ok(found.remove(0)),
            // Two laws are no law of the registry, and neither is none.
            _ => Ok(Self { kind: Kind::Row(registry::find(text)?), set: Vec::new() }),
        }
    }

    /// Several laws, separated by commas or in separate texts, each once: in `cubic,slow_start=hystart,bbr` the setting is CUBIC's.
    ///
    /// # Errors
    /// As [`Contender::parse`], for the first wrong one.
    pub fn parse_all<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Vec<Self>, LawError> {
        let mut found: Vec<Self> = Vec::new();
        for word in texts.into_iter().flat_map(|text| text.split(',')).map(str::trim) {
            match (word.split_once('='), found.last_mut()) {
                (Some((key, value)), Some(law)) => law.set.push((key.trim().to_owned(), value.trim().to_owned())),
                _ => found.push(Self { kind: Kind::find(word)?, set: Vec::new() }),
            }
        }
        let mut once: Vec<Self> = Vec::new();
        for law in found {
            law.check()?;
            if !once.contains(&law) {
                once.push(law);
            }
        }
        Ok(once)
    }

    /// A law of the calling program.
    pub fn made(maker: Arc<dyn Maker>) -> Self {
        Self { kind: Kind::Made(maker), set: Vec::new() }
    }

    /// Checks the settings.
    fn check(&self) -> Result<(), LawError> {
        let set = || self.set.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        match &self.kind {
            Kind::Row(row) => Ok(Settings::parse(row, set()).map(|_| ())?),
            Kind::Module { module, .. } => {
                let mut law = Law::new(Arc::clone(module));
                set().try_for_each(|(key, value)| law.set(key, value)).map_err(|fault| LawError(fault.to_string()))
            }
            Kind::Made(_) => Ok(()),
        }
    }

    /// The facts for a report.
    pub(super) fn facts(&self) -> LawFacts {
        let (summary, citation) = match &self.kind {
            Kind::Row(Row { summary, citation, .. }) => ((*summary).to_owned(), (*citation).to_owned()),
            Kind::Module { module, .. } => (format!("a WASM module, SHA-256 {}", module.digest()), String::new()),
            Kind::Made(maker) => (maker.summary().to_owned(), String::new()),
        };
        let settings = self.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
        LawFacts { name: self.name().to_owned(), summary, citation, settings }
    }

    /// The name of the law: of a module, that of its file.
    fn name(&self) -> &str {
        match &self.kind {
            Kind::Row(row) => row.name,
            Kind::Module { path, .. } => file_name(path),
            Kind::Made(maker) => maker.name(),
        }
    }

    /// What reports call it.
    pub fn label(&self) -> String {
        self.set.iter().fold(self.name().to_owned(), |label, (key, value)| label + &format!(",{key}={value}"))
    }

    /// The text of the command line; `None` for a law of the calling program.
    pub(super) fn argument(&self) -> Option<String> {
        let name = match &self.kind {
            Kind::Made(_) => return None,
            Kind::Module { path, .. } => path,
            Kind::Row(row) => row.name,
        };
        Some(self.set.iter().fold(name.to_owned(), |label, (key, value)| label + &format!(",{key}={value}")))
    }

    /// If the registry does not have it: the law with the name that [`Contender::table`] has for it.
    pub(crate) fn own(&self) -> Option<(String, Own)> {
        let own = match &self.kind {
            Kind::Row(_) => return None,
            Kind::Module { module, .. } => Own::Module(Arc::clone(module)),
            Kind::Made(maker) => Own::Made(Arc::clone(maker)),
        };
        Some((self.name().to_owned(), own))
    }

    /// The value of `cc` in a scenario.
    pub(crate) fn table(&self) -> String {
        let key = if matches!(self.kind, Kind::Row(_)) { "name" } else { PLUGIN };
        let mut table = format!("{{ {key} = \"{}\"", escaped(self.name()));
        for (key, value) in &self.set {
            // A part and its settings cannot both be keys of one table; its kind has a name of its own.
            let has_settings = self.set.iter().any(|(other, _)| other.starts_with(&format!("{key}.")));
            let kind = if has_settings { ".kind" } else { "" };
            let is_bare = value.parse::<bool>().is_ok() || value.parse::<f64>().is_ok_and(f64::is_finite);
            let quote = if is_bare { "" } else { "\"" };
            table += &format!(", {key}{kind} = {quote}{value}{quote}");
        }
        table + " }"
    }

    /// A part of a file name, without characters that are special in a shell or a path.
    pub(crate) fn slug(&self) -> String {
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
        self.label().chars().map(|character| if is_plain(character) { character } else { '-' }).collect()
    }
}

impl Kind {
    fn find(word: &str) -> Result<Self, LawError> {
        if !word.ends_with(MODULE) {
            return Ok(Self::Row(registry::find(word)?));
        }
        let refused = |reason: String| LawError(format!("the controller {word} cannot be read: {reason}"));
        let bytes = document::module_bytes(word).map_err(refused)?;
        let module =
            Module::new(file_name(word), bytes).map_err(|error| LawError(format!("the controller {error}")))?;
        Ok(Self::Module { path: word.to_owned(), module: Arc::new(module) })
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// For a TOML string between double quotes.
pub(super) fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// A law of an evaluation, as the registry or its author describes it.
#[derive(Clone, Debug, Serialize)]
pub struct LawFacts {
    /// The name of the law in the registry, of its file or of its class.
    pub name: String,
    /// What it does, in a line.
    pub summary: String,
    /// The sources: keys of docs/bibliography.md.
    pub citation: String,
    /// `KEY=VALUE` of each given setting.
    pub settings: Vec<String>,
}

/// Two are equal if they are the same law, and the texts of their settings are equal.
impl PartialEq for Contender {
    fn eq(&self, other: &Self) -> bool {
        let digest = |law: &Self| law.own().map(|(_, own)| own.digest().to_owned());
        self.name() == other.name() && digest(self) == digest(other) && self.set == other.set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;
    use crate::scenario::Scenario;

    #[test]
    fn settings_belong_to_the_law_before_them() {
        let found = Contender::parse_all(["cubic,slow_start=hystart", " bbr", "fast, alpha = 5,reno", "bbr"]).unwrap();
        let labels: Vec<String> = found.iter().map(Contender::label).collect();
        assert_eq!(labels, ["cubic,slow_start=hystart", "bbr", "fast,alpha=5", "reno"]);
        assert_eq!(found[0].slug(), "cubic-slow_start-hystart");
    }

    #[test]
    fn contender_error_names_mistake() {
        let error = |text: &str| Contender::parse(text).unwrap_err().to_string();
        for (text, named) in [
            ("cubicc", "cubicc"),
            ("cubic,slow_stat=hystart", "slow_stat"),
            ("fast,alpha=lots", "lots"),
            ("alpha=5", "alpha=5"),
            ("cubic,bbr", "cubic,bbr"),
            ("", "``"),
        ] {
            assert!(error(text).contains(named), "{text}: {}", error(text));
        }
    }

    /// The table of a scenario gives the same settings as the command line: numbers, words, and parts with settings of their own.
    #[test]
    fn a_scenario_reads_what_was_typed() {
        let law = Contender::parse("fast,alpha=5,refill=ccafr,refill.ipd_weight=0.5").unwrap();
        let text = format!(
            "duration = '1s'\n[[link]]\nid = 'l'\nfrom = 'a'\nto = 'b'\nrate = '1Mbit/s'\ndelay = '10ms'\n[[flow]]\nid = 'f'\n\
             from = 'a'\nto = 'b'\ntransport = 'anabranch'\npacket = '1500B'\ncc = {}\n",
            law.table()
        );
        let scenario = Scenario::parse(&Document::parse("one.toml", &text).unwrap()).unwrap();
        let crate::scenario::transport::Transport::Engine { config, .. } = &scenario.flows[0].transport else {
            panic!("the transport of a controller is ours")
        };
        let value = |key: &str| config.law.value(key).unwrap().to_string();
        assert_eq!(["alpha", "refill", "refill.ipd_weight"].map(value), ["5", "ccafr", "0.5"]);
    }
}
