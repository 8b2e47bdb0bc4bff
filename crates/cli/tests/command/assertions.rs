//! The conditions of `--assert`.

use std::fs;

use crate::support::{CHAIN, anabranch, assert_exit, folder, stderr};

#[test]
fn assertions_decide_the_exit_code() {
    let folder = folder("assert");
    fs::write(folder.join("s.toml"), CHAIN).unwrap();
    let run = |assertion: &str| anabranch(&folder, &["sim", "run", "s.toml", "--assert", assertion]);
    assert_exit(&run("flow.f0.dropped_packets == 1"), 0);
    let output = run("flow.f0.dropped_packets == 0");
    assert_exit(&output, 3);
    assert_eq!(
        stderr(&output),
        "error: --assert \"flow.f0.dropped_packets == 0\" does not hold: 1 against 0 (seed 1)\n"
    );
    let output = run("flow.f0.droped_packets == 0");
    assert_exit(&output, 2);
    assert!(stderr(&output).ends_with("did you mean `dropped_packets`?\n"), "{}", stderr(&output));
}

#[test]
fn measures_of_the_file_can_be_asserted() {
    let folder = folder("assert-measure");
    let measures = "[measure]\nlost = \"count(link.a.drops, 0, 5)\"\nnever = \"first_time(link.a.drops, 4)\"\n";
    fs::write(folder.join("s.toml"), format!("{CHAIN}{measures}")).unwrap();
    let run = |assertion: &str| anabranch(&folder, &["sim", "run", "s.toml", "--assert", assertion]);
    assert_exit(&run("lost == 1"), 0);
    assert_exit(&run("2 * lost < 1e-3 + 2"), 0);
    assert_exit(&run("lost == 2"), 3);
    let never = run("never > 4");
    assert_exit(&never, 1);
    assert_eq!(stderr(&never), "error: `never` has no value: `link.a.drops`: it never happens from 4 s on\n");
    let unknown = run("losst == 1");
    assert_exit(&unknown, 2);
}

/// A synonym and a misspelt name.
#[test]
fn a_wrong_name_suggests_the_nearest_series() {
    let folder = folder("assert-nearest");
    fs::write(folder.join("s.toml"), CHAIN).unwrap();
    for (assertion, message) in [
        (
            "flow.f0.cwnd > 1",
            "no gauge of a flow is called `cwnd`; did you mean the series `flow.f0.window`? Ask for one of its values, as \
             value_at(flow.f0.window, 5)",
        ),
        ("value_at(flow.f0.cwnd, 5) > 1", "`flow.f0.cwnd` is no series; did you mean `flow.f0.window`?"),
        ("mean(link.a.qeue, 0, 5) > 1", "`link.a.qeue` is no series; did you mean `link.a.queue`?"),
        ("flow.f0.goodput_bit > 1", "no gauge of a flow is called `goodput_bit`; did you mean `goodput_bps`?"),
    ] {
        let output = anabranch(&folder, &["sim", "run", "s.toml", "--assert", assertion]);
        assert_exit(&output, 2);
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
}

/// The packet that is lost is number 100; the window grows to 8 and no further.
#[test]
fn assertions_may_ask_what_happened_when() {
    let folder = folder("series");
    fs::write(folder.join("s.toml"), CHAIN).unwrap();
    let run = |assertion: &str| anabranch(&folder, &["sim", "run", "s.toml", "--assert", assertion]);
    assert_exit(&run("count(link.a.drops, 0, 5) == 1"), 0);
    assert_exit(&run("first_time(flow.f0.window >= 8, 0) < first_time(link.a.drops, 0)"), 0);
    assert_exit(&run("value_at(flow.f0.window, 5) == flow.f0.window_final"), 0);
    assert_exit(&run("max(bins(flow.f0.goodput, 0.5), 0, 4.9) > 1000000"), 0);
    assert_exit(&run("first_time(link.a.drops, 0) > 4"), 3);
    let never = run("first_time(link.a.drops, 4) > 4");
    assert_exit(&never, 1);
    assert_eq!(stderr(&never), "error: `link.a.drops`: it never happens from 4 s on\n");
    let unknown = run("count(link.b.drops, 0, 5) == 1");
    assert_exit(&unknown, 2);
    assert!(stderr(&unknown).ends_with("no link is called `b`; there are a, a.reverse\n"), "{}", stderr(&unknown));
}
