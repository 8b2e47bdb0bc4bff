//! Conditions and measures that a run cannot have.

use std::fs;

use crate::bad_input::assert_refused;
use crate::support::{CHAIN, anabranch, assert_exit, folder, stderr, stdout};

/// It is refused as an assertion and as a measure, by every command. The laboratory tests which expressions are impossible.
#[test]
fn impossible_expression_is_refused_before_run() {
    let question = "mean(flow.f0.goodput, 3, 60)";
    let reason = "`flow.f0.goodput`: 60 s is outside the run, which ends at 5 s: ask from 0 to 5";
    let assertion = format!("{question} > 0");
    assert_refused("question", CHAIN, &["--assert", &assertion], &format!("--assert \"{assertion}\": {reason}"));

    let folder = folder("question-measured");
    fs::create_dir_all(folder.join("experiments/test-2000")).unwrap();
    let text = format!("{CHAIN}[experiment]\npaper = \"test-2000\"\n[measure]\nm = \"{question}\"\n");
    let file = "experiments/test-2000/s.toml";
    fs::write(folder.join(file), text).unwrap();
    for args in [["sim", "run", file].as_slice(), &["sim", "sweep", file], &["reproduce"]] {
        let output = anabranch(&folder, args);
        assert_exit(&output, 2);
        assert_eq!(stdout(&output), "", "{args:?}");
        assert_eq!(stderr(&output).lines().next(), Some(format!("error: {file}:22:5: {reason}").as_str()));
    }
}

/// A value of an axis may make the run shorter than the time of a measure.
#[test]
fn no_variant_is_shorter_than_what_is_measured() {
    let folder = folder("short-variant");
    let axis = "[[axis]]\nname = \"length\"\n[axis.values]\nlong = {}\nshort = { duration = \"1s\" }\n";
    let measure = "[measure]\nm = \"mean(flow.f0.goodput, 0, 2)\"\n";
    fs::write(folder.join("s.toml"), format!("{CHAIN}{axis}{measure}")).unwrap();
    let output = anabranch(&folder, &["sim", "sweep", "s.toml"]);
    assert_exit(&output, 2);
    let expected = "error: s.toml:25:5: `flow.f0.goodput`: 2 s is outside the run, which ends at 1 s: ask from 0 to 1";
    assert_eq!(stderr(&output).lines().next(), Some(expected));
}
