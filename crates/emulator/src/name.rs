//! Names that become names of files: that of an emulator, and those of its namespaces. None of them can hold a path.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The name of an emulator: 1 to 64 letters, digits, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// The name of a host's namespace: `anabranch.NAME.HOST`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Namespace(String);

/// Why a text is not a name: the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidName(pub String);

impl Name {
    /// The name of a scenario's file without folder and extension, with `_` in place of other characters. It fails for a path without a
    /// file name, such as `..`.
    ///
    /// # Errors
    /// If the path has no file name.
    pub fn of_file(file: &std::path::Path) -> Result<Self, InvalidName> {
        let stem = file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let plain = stem.chars().map(|c| if is_plain(c) { c } else { '_' });
        let name: String = plain.take(NAME_MAX).collect();
        name.parse().map_err(|_| InvalidName(file.display().to_string()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Namespace {
    /// The namespace of a host.
    ///
    /// # Errors
    /// If the name of the host has other characters than letters, digits, `-`, `_` and `.`, or is too long.
    pub fn new(emulator: &Name, host: &str) -> Result<Self, InvalidName> {
        format!("{PREFIX}.{emulator}.{host}").parse()
    }

    /// Whether it belongs to this emulator.
    pub fn is_of(&self, emulator: &Name) -> bool {
        // A name has no point, so the part after the prefix is one of exactly one emulator.
        self.0.split('.').nth(1) == Some(emulator.as_str())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        match (1..=NAME_MAX).contains(&text.len()) && text.chars().all(is_plain) {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidName(text.to_owned())),
        }
    }
}

impl FromStr for Namespace {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let mut parts = text.splitn(3, '.');
        let is_ours = parts.next() == Some(PREFIX) && parts.next().is_some_and(|name| name.parse::<Name>().is_ok());
        let is_host = |host: &str| !host.is_empty() && host.chars().all(|c| is_plain(c) || c == '.');
        match is_ours && parts.next().is_some_and(is_host) && text.len() <= NAMESPACE_MAX {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidName(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Name {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        text.parse()
    }
}

impl TryFrom<String> for Namespace {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl From<Namespace> for String {
    fn from(namespace: Namespace) -> Self {
        namespace.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidName {}

impl fmt::Display for InvalidName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(f, "{text:?} is no name of links: use 1 to {NAME_MAX} letters, digits, `-` and `_`")
    }
}

/// The prefix of all namespaces.
const PREFIX: &str = "anabranch";

/// Together with a host's name it fits into a file name.
const NAME_MAX: usize = 64;

/// The longest file name of Linux' file systems (NAME_MAX of limits.h).
const NAMESPACE_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    /// What leads out of a folder, or to the folder itself, has no name.
    #[test]
    fn name_with_path_refused() {
        let long = "a".repeat(65);
        let paths = ["", ".", "..", "/", "/tmp", "a/b", "../a", "a/", "a\0", "a b", "a.b", "é", "a\n", "~", "*", &long];
        for path in paths {
            assert_eq!(path.parse::<Name>(), Err(InvalidName(path.to_owned())));
            let json = serde_json::to_string(path).unwrap();
            assert!(serde_json::from_str::<Name>(&json).is_err(), "{path:?}");
            let namespace = format!("anabranch.{path}.h0");
            assert!(path == "a.b" || namespace.parse::<Namespace>().is_err(), "{namespace:?}");
        }
        let longest = "a".repeat(64);
        for name in ["a", "-", "_", "A-1_b", &longest] {
            assert_eq!(name.parse::<Name>().unwrap().as_str(), name);
        }
    }

    #[test]
    fn namespace_of_another_emulator_told_apart() {
        let name = |text: &str| text.parse::<Name>().unwrap();
        let namespace = Namespace::new(&name("a"), "h0").unwrap();
        assert_eq!(namespace.as_str(), "anabranch.a.h0");
        assert!(namespace.is_of(&name("a")) && !namespace.is_of(&name("ab")) && !namespace.is_of(&name("h0")));
        for host in ["", "../h0", "h/0", "h\n0"] {
            assert!(Namespace::new(&name("a"), host).is_err(), "{host:?}");
        }
        for other in ["anabranch", "anabranch.a", "anabranch.a.", "other.a.h0", "anabranch..h0", "../anabranch.a.h0"] {
            assert!(other.parse::<Namespace>().is_err(), "{other:?}");
        }
        assert!(Namespace::new(&name("a"), &"h".repeat(300)).is_err());
    }

    #[test]
    fn name_of_file_has_plain_characters() {
        let of = |file: &str| Name::of_file(std::path::Path::new(file)).map(String::from);
        assert_eq!(of("net.toml").unwrap(), "net");
        assert_eq!(of("../some where/Two paths é.toml").unwrap(), "Two_paths__");
        assert_eq!(of("..toml").unwrap(), "_");
        assert_eq!(of(&format!("{}.toml", "a".repeat(90))).unwrap(), "a".repeat(64));
        for file in ["..", "/", ""] {
            assert_eq!(of(file), Err(InvalidName(file.to_owned())));
        }
    }
}
