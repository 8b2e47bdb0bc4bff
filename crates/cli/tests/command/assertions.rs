//! What `--assert` can ask.

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
