//! What is wrong with an input is said with its place and a remedy.

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
    assert_eq!(stderr(&output), format!("error: {message}\n"));
}

#[test]
fn bad_inputs_name_file_line_and_remedy() {
    let spoil = |from: &str, to: &str| {
        assert!(CHAIN.contains(from));
        CHAIN.replacen(from, to, 1)
    };
    let cases = [
        (spoil("window", "widnow"), "s.toml:18:1: unknown key `widnow`; did you mean `window`?"),
        (
            spoil("20ms", "20msec"),
            "s.toml:9:9: `20msec` is not a length of time, such as \"100ms\": `msec` is not a unit here, use one of s, ms, us, \
             ns, ps, min, h",
        ),
        (
            spoil("delay", "duplex = false\ndelay"),
            "s.toml:14:1: flow `f0` has no route: no links lead from node `n1` to node `n0`; add the link that is missing, or \
             make a simplex one duplex",
        ),
        (
            spoil(
                "[[flow]]",
                "[[link]]\nid = \"a\"\nfrom = \"n1\"\nto = \"n2\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n[[flow]]",
            ),
            "s.toml:14:6: a second link is called `a`; give each link its own name",
        ),
        (
            spoil("window = 8", "window = 0"),
            "s.toml:18:10: found integer `0`, expected a whole number of packets from 1 to 1000000000",
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

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = folder("unreadable");
    let output = anabranch(&folder, &["sim", "run", "absent.toml"]);
    assert_exit(&output, 2);
    assert!(stderr(&output).starts_with("error: absent.toml: cannot be read: "), "{}", stderr(&output));
    fs::write(folder.join("latin1.toml"), b"seed = 1\n# caf\xe9\n").unwrap();
    let output = anabranch(&folder, &["sim", "run", "latin1.toml"]);
    assert_exit(&output, 2);
    assert_eq!(stderr(&output), "error: latin1.toml:2: not TOML: it is not UTF-8; save it as UTF-8\n");
}
