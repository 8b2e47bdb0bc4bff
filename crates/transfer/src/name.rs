//! Names of files in the receiver's folder. A [`Name`] cannot lead out of the folder, whoever made it.

use std::fmt;
use std::path::{Path, PathBuf};

/// A relative path: parts that are valid file names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(Vec<String>);

/// Why a name is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// There is no part, or an empty part, as in an absolute path.
    Empty,
    /// A part is `.` or `..`.
    Dots,
    /// A part has a slash, a control character or, on Windows, a reserved character.
    Character,
    /// A part is a device name on this system, or ends with a character that is not allowed there.
    Device,
    /// The name is too long, or too deep.
    Long,
    /// The name is that of the folder for incomplete files.
    Reserved,
    /// The name is not Unicode.
    Unicode,
}

/// The naming rules of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rules {
    Unix,
    Windows,
}

impl Name {
    /// A name of these parts.
    ///
    /// # Errors
    /// If a part could leave the folder, or is not allowed on this system.
    pub fn new<S: Into<String>>(parts: impl IntoIterator<Item = S>) -> Result<Self, NameError> {
        Self::by(if cfg!(windows) { Rules::Windows } else { Rules::Unix }, parts)
    }

    fn by<S: Into<String>>(rules: Rules, parts: impl IntoIterator<Item = S>) -> Result<Self, NameError> {
        let parts: Vec<String> = parts.into_iter().map(Into::into).collect();
        if parts.is_empty() {
            return Err(NameError::Empty);
        }
        if parts.len() > DEPTH_MAX || parts.iter().map(|part| part.len() + 1).sum::<usize>() > LENGTH_MAX {
            return Err(NameError::Long);
        }
        parts.iter().try_for_each(|part| rules.check(part))?;
        if parts[0].eq_ignore_ascii_case(WORKSHOP) { Err(NameError::Reserved) } else { Ok(Self(parts)) }
    }

    /// A name below this one.
    ///
    /// # Errors
    /// If the part is not allowed.
    pub fn join(&self, part: &str) -> Result<Self, NameError> {
        Self::new(self.0.iter().map(String::as_str).chain([part]))
    }

    /// The parts of the path.
    pub fn parts(&self) -> &[String] {
        &self.0
    }

    /// The path below `folder`.
    pub(crate) fn below(&self, folder: &Path) -> PathBuf {
        self.0.iter().fold(folder.to_owned(), |path, part| path.join(part))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("/"))
    }
}

impl Rules {
    fn check(self, part: &str) -> Result<(), NameError> {
        if part.is_empty() {
            return Err(NameError::Empty);
        }
        if matches!(part, "." | "..") {
            return Err(NameError::Dots);
        }
        if part.len() > PART_MAX {
            return Err(NameError::Long);
        }
        let is_bad = |character: char| match character {
            '/' => true,
            '\\' | ':' | '<' | '>' | '"' | '|' | '?' | '*' => self == Self::Windows,
            _ => character.is_control(),
        };
        if part.contains(is_bad) {
            return Err(NameError::Character);
        }
        let stem = part.split('.').next().unwrap_or_default().trim_end();
        let is_device = DEVICES.iter().any(|device| stem.eq_ignore_ascii_case(device)) || is_numbered_device(stem);
        if self == Self::Windows && (is_device || part.ends_with(['.', ' '])) {
            return Err(NameError::Device);
        }
        Ok(())
    }
}

/// COM1 to COM9 and LPT1 to LPT9, including superscript digits.
fn is_numbered_device(stem: &str) -> bool {
    let Some((letters, digit)) = stem.split_at_checked(3) else { return false };
    let is_port = letters.eq_ignore_ascii_case("com") || letters.eq_ignore_ascii_case("lpt");
    is_port && matches!(digit, "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³")
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "a part of the name is empty, or the name is absolute",
            Self::Dots => "`.` and `..` lead elsewhere",
            Self::Character => "the name has a character that is not allowed here",
            Self::Device => "the name is that of a device here",
            Self::Long => "the name is too long",
            Self::Reserved => "the name is reserved for incomplete files",
            Self::Unicode => "the name is not Unicode",
        })
    }
}

impl std::error::Error for NameError {}

/// The folder for incomplete files.
pub(crate) const WORKSHOP: &str = ".anabranch";

/// The length limit of common systems.
const PART_MAX: usize = 255;
/// Linux allows 4096, including the path of the folder.
const LENGTH_MAX: usize = 3072;
const DEPTH_MAX: usize = 256;

const DEVICES: &[&str] = &["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"];

#[cfg(test)]
mod tests {
    use super::*;

    fn by(rules: Rules, path: &str) -> Result<(), NameError> {
        Name::by(rules, path.split('/')).map(|_| ())
    }

    #[test]
    fn no_name_leads_elsewhere() {
        for rules in [Rules::Unix, Rules::Windows] {
            for good in ["a", "a/b/c.txt", "...", "..a", "a..", ".hidden", "ä ö/日本", "-rf"] {
                let is_windows = rules == Rules::Windows && good.split('/').any(|part| part.ends_with('.'));
                assert_eq!(by(rules, good), if is_windows { Err(NameError::Device) } else { Ok(()) }, "{good}");
            }
            for (bad, error) in [
                ("", NameError::Empty),
                ("/etc/passwd", NameError::Empty),
                ("a//b", NameError::Empty),
                ("a/", NameError::Empty),
                ("..", NameError::Dots),
                ("a/../../b", NameError::Dots),
                ("a/./b", NameError::Dots),
                ("a\0b", NameError::Character),
                ("a\u{1b}[2J", NameError::Character),
                ("a\nb", NameError::Character),
                (".anabranch/x.part", NameError::Reserved),
                (".Anabranch", NameError::Reserved),
            ] {
                assert_eq!(by(rules, bad), Err(error), "{bad:?}");
            }
            assert_eq!(Name::by(rules, ["a/b"]).unwrap_err(), NameError::Character, "a slash inside of a part");
            assert_eq!(by(rules, &"a".repeat(256)), Err(NameError::Long));
            assert_eq!(by(rules, &vec!["a"; 257].join("/")), Err(NameError::Long));
            assert_eq!(by(rules, &vec!["a".repeat(250); 13].join("/")), Err(NameError::Long));
        }
    }

    #[test]
    fn devices_and_drives_are_refused_where_there_are_any() {
        for (name, error) in [
            ("CON", NameError::Device),
            ("nul.txt", NameError::Device),
            ("aux.tar.gz", NameError::Device),
            ("com1", NameError::Device),
            ("LPT².x", NameError::Device),
            ("con .txt", NameError::Device),
            ("a ", NameError::Device),
            ("C:", NameError::Character),
            ("C:\\windows", NameError::Character),
            ("..\\x", NameError::Character),
            ("file:stream", NameError::Character),
        ] {
            assert_eq!(by(Rules::Windows, name), Err(error), "{name}");
            assert_eq!(by(Rules::Unix, name), Ok(()), "{name}");
        }
        assert_eq!(by(Rules::Windows, "console/com10/common"), Ok(()));
    }
}
