//! A law with its settings: as text of the command line, in a scenario, and in a file name.

use anabranch_cc::registry::{self, Row, SettingError, Settings};
use serde::Serialize;

/// A law of the registry with settings: `anabranch,rival=yield`.
///
/// ```
/// use anabranch_lab::evaluation::Contender;
///
/// let law = Contender::parse("anabranch,rival=yield")?;
/// assert_eq!((law.row().name, law.label()), ("anabranch", "anabranch,rival=yield".to_owned()));
/// # Ok::<(), anabranch_cc::registry::SettingError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Contender {
    row: &'static Row,
    /// The settings in the given order.
    set: Vec<(String, String)>,
}

impl Contender {
    /// A law by its name, followed by a comma and `KEY=VALUE` for each setting; the keys are those of `anabranch cc show`.
    ///
    /// # Errors
    /// If the registry has no such law, the law has no such setting, a value is out of its range, or there is a second law.
    pub fn parse(text: &str) -> Result<Self, SettingError> {
        let mut found = Self::parse_all([text])?;
        match found.len() {
            1 => Ok(found.remove(0)),
            // Two laws are no law of the registry, and neither is none.
            _ => registry::find(text).map(|row| Self { row, set: Vec::new() }),
        }
    }

    /// Several laws, separated by commas or in separate texts, each once: in `cubic,slow_start=hystart,bbr` the setting is CUBIC's.
    ///
    /// # Errors
    /// As [`Contender::parse`], for the first wrong one.
    pub fn parse_all<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Vec<Self>, SettingError> {
        let mut found: Vec<Self> = Vec::new();
        for word in texts.into_iter().flat_map(|text| text.split(',')).map(str::trim) {
            match (word.split_once('='), found.last_mut()) {
                (Some((key, value)), Some(law)) => law.set.push((key.trim().to_owned(), value.trim().to_owned())),
                _ => found.push(Self { row: registry::find(word)?, set: Vec::new() }),
            }
        }
        let mut once: Vec<Self> = Vec::new();
        for law in found {
            Settings::parse(law.row, law.set.iter().map(|(key, value)| (key.as_str(), value.as_str())))?;
            if !once.contains(&law) {
                once.push(law);
            }
        }
        Ok(once)
    }

    /// The row of its law in the registry.
    pub fn row(&self) -> &'static Row {
        self.row
    }

    /// The facts for a report.
    pub(super) fn facts(&self) -> LawFacts {
        let Row { name, summary, citation, .. } = self.row;
        LawFacts {
            name,
            summary,
            citation,
            settings: self.set.iter().map(|(key, value)| format!("{key}={value}")).collect(),
        }
    }

    /// The text of the command line.
    pub fn label(&self) -> String {
        self.set.iter().fold(self.row.name.to_owned(), |label, (key, value)| label + &format!(",{key}={value}"))
    }

    /// The value of `cc` in a scenario.
    pub(super) fn table(&self) -> String {
        let mut table = format!("{{ name = \"{}\"", self.row.name);
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
    pub(super) fn slug(&self) -> String {
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
        self.label().chars().map(|character| if is_plain(character) { character } else { '-' }).collect()
    }
}

/// A law of an evaluation, as the registry describes it.
#[derive(Clone, Debug, Serialize)]
pub struct LawFacts {
    /// The name of the law in the registry.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// The sources: keys of docs/bibliography.md.
    pub citation: &'static str,
    /// `KEY=VALUE` of each given setting.
    pub settings: Vec<String>,
}

/// Two are equal if their names and the texts of their settings are equal.
impl PartialEq for Contender {
    fn eq(&self, other: &Self) -> bool {
        self.row.name == other.row.name && self.set == other.set
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
    fn what_is_wrong_is_named() {
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
