//! Names of files. A [`Leaf`] is the name of one file or folder: it cannot be a path, whoever made it. Only a `Leaf` reaches the
//! receiver's file system (`folder.rs`).

use std::ffi::OsStr;
use std::fmt;

/// The name of a file or folder in its folder. It is no path: it has no separator, and is neither `.` nor `..`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Leaf<'a>(&'a [u8]);

/// Why a name is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// The name is empty.
    Empty,
    /// The name is `.` or `..`.
    Dots,
    /// The name has a slash, a control character or, on Windows, a reserved character.
    Character,
    /// The name is that of a device on this system, or ends with a character that is not allowed there.
    Device,
    /// The name, or the path, is too long or too deep.
    Long,
    /// The name is that of the folder for incomplete files.
    Reserved,
    /// The name is not Unicode, as this system requires.
    Unicode,
}

/// The naming rules of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rules {
    Unix,
    Windows,
}

impl<'a> Leaf<'a> {
    /// A name of these bytes.
    ///
    /// # Errors
    /// If it could leave its folder, or harm a terminal, on any system.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, NameError> {
        if bytes.is_empty() {
            return Err(NameError::Empty);
        }
        if matches!(bytes, b"." | b"..") {
            return Err(NameError::Dots);
        }
        if bytes.len() > LEAF_MAX {
            return Err(NameError::Long);
        }
        let is_bad = |letter: char| letter == '/' || letter.is_control();
        if bytes.utf8_chunks().any(|piece| piece.valid().contains(is_bad)) {
            return Err(NameError::Character);
        }
        Ok(Self(bytes))
    }

    /// A name of a file that a user or a system names.
    pub(crate) fn of(name: &'a OsStr) -> Result<Self, NameError> {
        Self::new(name.as_encoded_bytes())
    }

    /// Checks that this system can have such a name. Only this entry is refused otherwise.
    pub(crate) fn fits(self) -> Result<(), NameError> {
        self.fits_by(if cfg!(windows) { Rules::Windows } else { Rules::Unix })
    }

    fn fits_by(self, rules: Rules) -> Result<(), NameError> {
        if rules == Rules::Unix {
            return Ok(());
        }
        let name = std::str::from_utf8(self.0).map_err(|_| NameError::Unicode)?;
        if name.contains(['\\', ':', '<', '>', '"', '|', '?', '*']) {
            return Err(NameError::Character);
        }
        let stem = name.split('.').next().unwrap_or_default().trim_end();
        let is_device = DEVICES.iter().any(|device| stem.eq_ignore_ascii_case(device)) || is_numbered_device(stem);
        if is_device || name.ends_with(['.', ' ']) { Err(NameError::Device) } else { Ok(()) }
    }

    /// Whether it is the name of the folder for incomplete files, on any file system.
    pub(crate) fn is_reserved(self) -> bool {
        self.0.eq_ignore_ascii_case(WORKSHOP.0)
    }

    pub(crate) fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// The name for the system's calls.
    #[cfg(unix)]
    pub(crate) fn os(self) -> &'a OsStr {
        use std::os::unix::ffi::OsStrExt as _;
        OsStr::from_bytes(self.0)
    }

    /// The name for the system's calls. [`Self::fits`] has refused what is not Unicode; anything else here would be a reserved
    /// character, which the system refuses.
    #[cfg(not(unix))]
    pub(crate) fn os(self) -> &'a OsStr {
        OsStr::new(std::str::from_utf8(self.0).unwrap_or("?"))
    }

    /// The same number for all names that a file system which ignores case takes for this one. Different names seldom have it.
    pub(crate) fn folded(self) -> u64 {
        let lower = match std::str::from_utf8(self.0) {
            Ok(name) => name.to_lowercase().into_bytes(),
            Err(_) => self.0.to_ascii_lowercase(),
        };
        number(&lower)
    }

    /// A number of this name. Different names seldom have the same.
    pub(crate) fn number(self) -> u64 {
        number(self.0)
    }
}

/// Checks the target of a symbolic link whose folder has this many folders above it within the transferred one. It may climb only
/// at its beginning, and not out of the transferred folder: so it leads through real folders that this transfer has made, or
/// through other such links.
pub(crate) fn stays_inside(target: &[u8], folders_above: usize) -> bool {
    let parts = target.split(|byte| *byte == b'/');
    let climbs = parts.clone().take_while(|part| *part == b"..").count();
    climbs <= folders_above && parts.skip(climbs).all(|part| Leaf::new(part).is_ok())
}

fn number(name: &[u8]) -> u64 {
    let hash = blake3::hash(name);
    let (first, _) = hash.as_bytes().split_first_chunk().unwrap_or((&[0; 8], &[]));
    u64::from_le_bytes(*first)
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
            Self::Empty => "the name is empty",
            Self::Dots => "`.` and `..` lead elsewhere",
            Self::Character => "the name has a character that is not allowed here",
            Self::Device => "the name is that of a device here",
            Self::Long => "the name is too long, or too deep",
            Self::Reserved => "the name is reserved for incomplete files",
            Self::Unicode => "the name is not Unicode, as this system requires",
        })
    }
}

impl std::error::Error for NameError {}

/// The folder for incomplete files.
pub(crate) const WORKSHOP: Leaf<'static> = Leaf(b".anabranch");

/// The length limit of common systems.
pub(crate) const LEAF_MAX: usize = 255;

const DEVICES: &[&str] = &["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_that_leads_elsewhere_is_refused() {
        for good in ["a", "c.txt", "...", "..a", "a..", ".hidden", "ä ö 日本", "-rf", "\\", "C:"] {
            assert_eq!(Leaf::new(good.as_bytes()).map(Leaf::bytes), Ok(good.as_bytes()), "{good}");
        }
        assert_eq!(Leaf::new(b"caf\xe9").map(Leaf::bytes), Ok(&b"caf\xe9"[..]));
        for (bad, error) in [
            (&b""[..], NameError::Empty),
            (b".", NameError::Dots),
            (b"..", NameError::Dots),
            (b"/", NameError::Character),
            (b"/etc/passwd", NameError::Character),
            (b"a/../../b", NameError::Character),
            (b"a\xff/b", NameError::Character),
            (b"a\0b", NameError::Character),
            (b"a\x1b[2J", NameError::Character),
            (b"a\nb", NameError::Character),
            (&[b'a'; 256], NameError::Long),
        ] {
            assert_eq!(Leaf::new(bad), Err(error), "{bad:?}");
        }
        for reserved in ["", ".anabranch", ".Anabranch"] {
            assert_eq!(Leaf(reserved.as_bytes()).is_reserved(), !reserved.is_empty());
        }
    }

    #[test]
    fn device_or_drive_fits_where_there_are_none() {
        for (name, error) in [
            ("CON", NameError::Device),
            ("nul.txt", NameError::Device),
            ("aux.tar.gz", NameError::Device),
            ("com1", NameError::Device),
            ("LPT².x", NameError::Device),
            ("con .txt", NameError::Device),
            ("a ", NameError::Device),
            ("a..", NameError::Device),
            ("C:", NameError::Character),
            ("C:\\windows", NameError::Character),
            ("..\\x", NameError::Character),
            ("file:stream", NameError::Character),
        ] {
            assert_eq!(Leaf(name.as_bytes()).fits_by(Rules::Windows), Err(error), "{name}");
            assert_eq!(Leaf(name.as_bytes()).fits_by(Rules::Unix), Ok(()), "{name}");
        }
        assert_eq!(Leaf(b"console").fits_by(Rules::Windows), Ok(()));
        assert_eq!(Leaf(b"\xff").fits_by(Rules::Windows), Err(NameError::Unicode));
    }

    /// `..` after a name is refused: the name may be a link, and the folder above its target is elsewhere.
    #[test]
    fn link_target_that_leaves_the_folder_is_refused() {
        for (target, folders_above, stays) in [
            ("a", 0, true),
            ("a/b", 0, true),
            ("../a", 1, true),
            ("..", 1, true),
            ("../..", 2, true),
            ("../a", 0, false),
            ("../../a", 1, false),
            ("a/../b", 5, false),
            ("/etc/passwd", 5, false),
            ("", 5, false),
            ("a//b", 5, false),
            ("./a", 5, false),
        ] {
            assert_eq!(stays_inside(target.as_bytes(), folders_above), stays, "{target}");
        }
    }

    #[test]
    fn names_that_differ_in_case_fold_to_the_same() {
        let folded = |name: &'static str| Leaf(name.as_bytes()).folded();
        assert_eq!(folded("README"), folded("readme"));
        assert_eq!(folded("Ärger"), folded("ärger"));
        assert_ne!(folded("README"), folded("README2"));
    }
}
