//! Errors in an input are reported with their place and a remedy.

use std::fs;

use crate::support::{CHAIN, anabranch, assert_exit, folder, stderr, stdout};

/// Runs `text` as `s.toml` and expects exit code 2, nothing on stdout, and this message.
#[track_caller]
pub(crate) fn assert_refused(test: &str, text: &str, args: &[&str], message: &str) {
    let folder = folder(test);
    fs::write(folder.join("s.toml"), text).unwrap();
    let output = anabranch(&folder, &[&["sim", "run", "s.toml"], args].concat());
    assert_exit(&output, 2);
    assert_eq!(stdout(&output), "");
    let (first, excerpt) = stderr(&output).split_once('\n').unwrap();
    assert_eq!(first, format!("error: {message}"));
    assert!(excerpt.len() < 1000, "a line that is shown is cut: {} bytes", excerpt.len());
}

#[test]
fn bad_inputs_name_file_line_and_remedy() {
    let spoil = |from: &str, to: &str| {
        assert!(CHAIN.contains(from));
        CHAIN.replacen(from, to, 1)
    };
    let cases = [
        (spoil("window", "widnow"), "s.toml:18:1: `ns2/sack` has no key `widnow`; did you mean `window`?"),
        (
            spoil("20ms", "20msec"),
            "s.toml:9:9: `20msec` is not a length of time, such as \"100ms\": `msec` is not a unit here, use one of s, ms, us, \
             ns, ps, min, h",
        ),
        (
            "\u{7f}ELF\u{0}\u{1}".to_owned(),
            "s.toml:1:7: not TOML: key with no value, expected `=`; a scenario has lines `key = value` under [[link]] and \
             [[flow]]",
        ),
    ];
    for (index, (text, message)) in cases.iter().enumerate() {
        assert_refused(&format!("bad-{index}"), text, &[], message);
    }
}

/// Messages use the words of the reference, not the types of the program.
#[test]
fn messages_speak_the_words_of_the_reference() {
    let window = "transport = \"ns2/sack\"\nwindow = 8";
    let cases = [
        (
            "queue = { kind = \"drop_tail\", packets = 10 }",
            "queue = { kind = \"red\", packets = 10, threshold_min = \"5\" }",
            "s.toml:10:55: found string `5`, expected a number",
        ),
        ("window = 8", "cc = 5", "s.toml:18:6: found integer `5`, expected a table"),
        (
            window,
            "transport = \"anabranch\"\nstreams = 300",
            "s.toml:18:11: found integer `300`, expected a whole number from 0 to 255",
        ),
        (window, "transport = \"anabranch\"\nnagle = 1", "s.toml:18:9: found integer `1`, expected true or false"),
        (window, "transport = \"anabranch\"\npaths = {}", "s.toml:18:9: found a table, expected a list"),
        ("transport = \"ns2/sack\"", "transport = [1]", "s.toml:17:13: found a list, expected a string"),
        (
            "id = \"f0\"",
            "id = \"f\"\ncount = 10",
            "s.toml:14:6: 10 elements cannot all be called `f`; put `#` in it, which becomes 0 to 9, as in \"f#\"",
        ),
        (
            "# Does",
            "name = \"\\u001b[2J\" # Does",
            "s.toml:1:8: a text cannot hold the control character U+001B; remove it",
        ),
    ];
    for (index, (from, to, message)) in cases.into_iter().enumerate() {
        assert!(CHAIN.contains(from));
        assert_refused(&format!("words-{index}"), &CHAIN.replacen(from, to, 1), &[], message);
    }
    let long = "x".repeat(1_000_000);
    let shown = "x".repeat(100);
    let message = format!("s.toml:14:6: `{shown}…` is not a name: use 1 to 64 letters, digits, `-` and `_`");
    assert_refused("long-id", &CHAIN.replace("id = \"f0\"", &format!("id = \"{long}\"")), &[], &message);
}

/// A list of 10,000 numbers, a thousand times.
#[test]
fn expansion_has_a_limit_of_values() {
    let list = format!("packets = [{}]", "0, ".repeat(10_000));
    let text = CHAIN.replace("packets = [100]", &list).replace("id = \"a\"", "id = \"a#\"\ncount = 1000");
    let message = "s.toml:6:9: written out, all elements with a `count` have more than 2000000 values; use a smaller one, or shorter \
                   lists in the element";
    assert_refused("written-out", &text, &[], message);
}

/// The name of a file may contain escape sequences, too.
#[test]
fn no_escape_sequence_reaches_the_terminal() {
    let output = anabranch(&folder("escape"), &["sim", "run", "absent\u{1b}[2J.toml"]);
    assert_exit(&output, 2);
    assert!(stderr(&output).starts_with("error: absent\\u{1b}[2J.toml: cannot be read"), "{}", stderr(&output));
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = folder("unreadable");
    let output = anabranch(&folder, &["sim", "run", "absent.toml"]);
    assert_exit(&output, 2);
    assert!(stderr(&output).starts_with("error: absent.toml: cannot be read: "), "{}", stderr(&output));
    fs::write(folder.join("latin1.toml"), b"seed = 1\n# caf\xe9\n").unwrap();
    let output = anabranch(&folder, &["sim", "run", "latin1.toml"]);
    assert_exit(&output, 2);
    assert_eq!(stderr(&output), "error: latin1.toml:2:6: not TOML: it is not UTF-8; save it as UTF-8\n");
}

/// The name of a file is one line of a message, whatever is in it.
#[test]
#[cfg(unix)]
fn name_with_line_end_or_reversing_mark_escaped() {
    let folder = folder("odd-names");
    fs::write(folder.join("a\nerror: all is lost.toml"), "dealy = 1\n").unwrap();
    for (args, expected) in [
        (["sim", "run", "a\nerror: all is lost.toml"], "a\\nerror: all is lost.toml:1:1: "),
        (["sim", "run", "in\u{202e}lmot.exe"], "in\\u{202e}lmot.exe: "),
        (["key", "show", "k\ney"], "k\\ney: "),
        (["artifact", "verify", "z\u{1b}[2Jip"], "z\\u{1b}[2Jip: "),
        (["cc", "check", "m\nod"], "m\\nod: "),
    ] {
        let output = anabranch(&folder, &args);
        assert_exit(&output, 2);
        let first = stderr(&output).lines().next().unwrap();
        assert!(first.starts_with(&format!("error: {expected}")), "{args:?}: {}", stderr(&output));
    }
}
