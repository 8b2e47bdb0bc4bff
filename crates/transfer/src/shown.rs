//! File names and a peer's words, as messages show them.

use std::ffi::OsStr;
use std::fmt::Write as _;

/// A file name, a path or a text from elsewhere, on one line and without surprises: control characters, line ends and marks that
/// reverse or hide letters are escaped as in Rust (`\n`, `\u{202e}`), and bytes that are not UTF-8 as `\xff`.
pub fn shown(text: impl AsRef<OsStr>) -> String {
    shown_bytes(text.as_ref().as_encoded_bytes())
}

/// The same for a name of bytes.
pub(crate) fn shown_bytes(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for piece in bytes.utf8_chunks() {
        for letter in piece.valid().chars() {
            if deceives(letter) { shown.extend(letter.escape_default()) } else { shown.push(letter) }
        }
        for byte in piece.invalid() {
            // Writing to a string cannot fail.
            _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

/// Whether a terminal would act on it, or a reader would not see it. Joiners are letters of some scripts, and stay.
fn deceives(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_with_controls_marks_or_bytes_is_escaped() {
        for (name, expected) in [
            ("plain ä 日本 \u{200d}", "plain ä 日本 \u{200d}"),
            ("a\nb\tc\r", "a\\nb\\tc\\r"),
            ("\u{1b}[2J\u{9b}", "\\u{1b}[2J\\u{9b}"),
            ("invoice\u{202e}fdp.exe", "invoice\\u{202e}fdp.exe"),
            ("\u{2066}x\u{2069}\u{200f}\u{feff}", "\\u{2066}x\\u{2069}\\u{200f}\\u{feff}"),
        ] {
            assert_eq!(shown(name), expected);
        }
        assert_eq!(shown_bytes(b"caf\xe9 \xff\xfe!"), "caf\\xe9 \\xff\\xfe!");
    }
}
