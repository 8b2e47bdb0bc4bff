//! Names of files that cannot be paths.

use std::fmt;
use std::path::Path;

/// The name of a file: letters, digits and a few signs. It is no path, no hidden file and no option of a program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name(String);

impl Name {
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let is_sign = |letter: char| letter.is_ascii_alphanumeric() || "._+-@~".contains(letter);
        let begins = text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_');
        match begins && text.len() <= NAME_LEN_MAX && text.chars().all(is_sign) {
            true => Ok(Self(text.to_owned())),
            false => Err(format!("`{}` is no name of a file of a release", text.escape_debug())),
        }
    }

    /// The last part of a path that a tool has written to.
    pub(super) fn of(path: &Path) -> Result<Self, String> {
        let name = path.file_name().and_then(|name| name.to_str());
        Self::new(name.ok_or_else(|| format!("{}: it has no name", path.display()))?)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The field of a tar header.
const NAME_LEN_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_no_name() {
        for text in ["anabranch-0.1.0-x86_64-unknown-linux-musl.tar.gz", "_anabranch", "anabranch-kernel@.service"] {
            assert_eq!(Name::new(text).unwrap().as_str(), text);
        }
        let long = "a".repeat(101);
        for text in ["", ".", "..", "../a", "a/b", "/a", "-rf", ".a", "a b", "a\n", "ä", "a\\b", "~", "*", &long] {
            assert!(Name::new(text).is_err(), "{text:?}");
        }
        assert!(Name::of(Path::new("..")).is_err());
        assert_eq!(Name::of(Path::new("/x/y.whl")).unwrap().as_str(), "y.whl");
    }
}
