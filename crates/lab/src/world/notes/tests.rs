use crate::testing;

/// One flow over a link of 10 Mbit/s and 20 ms, one way.
const CHAIN: &str = r#"duration = "10s"
[[link]]
id = "a"
from = "n0"
to = "n1"
rate = "10Mbit/s"
delay = "20ms"
[[flow]]
id = "f"
from = "n0"
to = "n1"
transport = "ns2/sack"
"#;

/// The notes of the chain with these changes.
fn notes(changes: &[&str]) -> Vec<String> {
    testing::run(CHAIN, changes).notes
}

#[track_caller]
fn assert_note(changes: &[&str], expected: &str) {
    let notes = notes(changes);
    assert!(notes.len() == 1 && notes[0].contains(expected), "expected `{expected}` in {notes:?}");
}

/// 20 packets of 1040 B in 40 ms are 4.2 Mbit/s: the link is idle for more than half of the time. 200 packets are more than the link and
/// its queue hold. A window of 20 in the file is intended and causes no note.
#[test]
fn a_default_window_that_is_the_limit_is_said() {
    assert_note(&[], "flow `f` is limited by its window of 20 packets, ns-2's default, at ");
    for window in ["flow.f.window=200", "flow.f.window=20"] {
        assert_eq!(notes(&[window]), Vec::<String>::new());
    }
    // At a tenth of the rate 20 packets are more than the path holds: a larger window only makes a longer queue.
    assert_eq!(notes(&["link.a.rate=1Mbit/s"]), Vec::<String>::new());
}

#[test]
fn a_flow_without_traffic_says_why() {
    for (changes, expected) in [
        (
            &["link.a.error={ kind = \"policer\", rate = \"1Mbit/s\", burst = \"0B\" }"][..],
            "its policer lets nothing pass that is larger than its `burst` of 0B, and a packet has 1040 B",
        ),
        (
            &["link.a.queue={ kind = \"drop_tail\", bytes = \"500B\" }"],
            "its queue holds 500 B, and a packet has 1040 B",
        ),
        (
            &["link.a.error={ kind = \"uniform\", rate = 1.0 }"],
            "link `a` lost 3 of its packets: its errors take every packet",
        ),
        (
            &["link.a.reverse={ error = { kind = \"uniform\", rate = 1.0 } }"],
            "link `a.reverse` lost 3 of their acknowledgements: its errors take every packet",
        ),
        (&["flow.f.start=11s"], "it starts at 11s, and the run ends at 10s"),
        (&["duration=30ms"], "the run ends at 30ms before its first data arrives"),
        (
            &["flow.f.transport=on_off", "flow.f.rate=1Mbit/s", "flow.f.on=1s", "flow.f.off=1000h"],
            "it sent nothing: its first silence (`off`) is longer than the run",
        ),
        (&["flow.f.transport=cbr", "flow.f.rate=1bit/s", "flow.f.start=9.99s"], "before its first data arrives"),
        (
            &["flow.f.transport=anabranch", "link.a.error={ kind = \"uniform\", rate = 1.0 }"],
            "of its packets: its errors take every packet",
        ),
    ] {
        assert_note(changes, expected);
    }
}

/// A route from `n0` over `n2`, which sends packets for `n1` back.
#[test]
fn a_loop_of_routes_is_said() {
    let looped = "[[link]]\nid = \"b\"\nfrom = \"n0\"\nto = \"n2\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n[[route]]\nnode = \
                  \"n0\"\nto = \"n1\"\nvia = \"b\"\nat = \"1ms\"\n";
    let notes = testing::run(&format!("{CHAIN}start = \"2ms\"\n{looped}"), &[]).notes;
    assert!(notes.len() == 1 && notes[0].contains("the routes lead in a loop"), "{notes:?}");
}
