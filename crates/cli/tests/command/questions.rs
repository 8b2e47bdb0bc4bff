//! Conditions and measures that a run cannot have.

use std::fs;

use crate::bad_input::assert_refused;
use crate::support::{CHAIN, anabranch, assert_exit, folder, stderr, stdout};

/// They are refused as an assertion and as a measure, by every command.
#[test]
fn impossible_expression_is_refused_before_run() {
    let refusals = [
        ("mean(flow.f0.goodput, 3, 60)", "60 s is outside the run, which ends at 5 s: ask from 0 to 5"),
        ("mean(flow.f0.window, 4, 3)", "4 s is later than 3 s: write the earlier time first"),
        ("quantile(flow.f0.rtt, 95, 0, 5)", "95 is no share: use 0 to 1, such as 0.95 for the 95th percentile"),
        (
            "max(bins(flow.f0.goodput, 0), 0, 5)",
            "a run of 5 s cannot be cut into bins of 0 s: use from 0.000005 to 5, which makes at most 1000000 of them",
        ),
    ];
    for (index, (question, reason)) in refusals.iter().enumerate() {
        let name = question.split(['(', ',']).find(|name| name.starts_with("flow.")).unwrap();
        let assertion = format!("{question} > 0");
        let message = format!("--assert \"{assertion}\": `{name}`: {reason}");
        assert_refused(&format!("question-{index}"), CHAIN, &["--assert", &assertion], &message);

        let folder = folder(&format!("question-measured-{index}"));
        fs::create_dir_all(folder.join("experiments/test-2000")).unwrap();
        let text = format!("{CHAIN}[experiment]\npaper = \"test-2000\"\n[measure]\nm = \"{question}\"\n");
        fs::write(folder.join("experiments/test-2000/s.toml"), text).unwrap();
        let file = "experiments/test-2000/s.toml";
        for args in [["sim", "run", file].as_slice(), &["sim", "sweep", file], &["reproduce"]] {
            let output = anabranch(&folder, args);
            assert_exit(&output, 2);
            assert_eq!(stdout(&output), "", "{args:?}");
            assert_eq!(
                stderr(&output).lines().next(),
                Some(format!("error: {file}:22:5: `{name}`: {reason}").as_str())
            );
        }
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
