use anabranch_cc::registry::{Settings, Value};
use anabranch_proto::Failover;
use anabranch_sim::ErrorSpec;
use anabranch_units::{SimSpan, SimTime};

use super::*;
use crate::scenario::transport::Transport;

const EXPERIMENT: &str = r#"# What is measured?
duration = "1s"
[[link]]
id = "a"
from = "n0"
to = "n1"
rate = "1Mbit/s"
delay = "1ms"
[[flow]]
id = "f"
from = "n0"
to = "n1"
transport = "ns2/sack"
[experiment]
paper = "ctcp-2019"
[[axis]]
name = "agent"
[axis.values]
SACK = { "flow.f.transport" = "ns2/sack" }
Reno = { "flow.f.transport" = "ns2/reno" }
[[axis]]
name = "error rate"
[axis.values]
none = { "link.a.error" = "none" }
some = { "link.a.error" = { kind = "uniform", rate = 0.01 } }
[measure]
delivered = "flow.f.max_seq"
[[table]]
item = "table1"
title = "T"
cite = "T"
unit = "packets"
measure = "delivered"
band = "exact"
columns = ["none"]
[table.rows]
SACK = [5]
Reno = ["6±2"]
"#;

fn parse(text: &str) -> Result<Experiment, Diagnostic> {
    Document::parse("e.toml", text).and_then(Experiment::parse)
}

#[track_caller]
fn assert_refused(from: &str, to: &str, message: &str) {
    assert!(EXPERIMENT.contains(from), "there is no {from}");
    assert_eq!(parse(&EXPERIMENT.replacen(from, to, 1)).expect_err(message).to_string(), message);
}

#[test]
fn axes_make_variants_the_last_one_fastest() {
    let experiment = parse(&EXPERIMENT.replace("band = \"exact\"\n", "").replace("[5]", "[\"5±1\"]")).unwrap();
    let labels: Vec<_> = experiment.variants().iter().map(|variant| experiment.labels(variant).join("+")).collect();
    assert_eq!(labels, ["SACK+none", "SACK+some", "Reno+none", "Reno+some"]);
    let random: Vec<_> =
        experiment.variants().iter().map(|variant| experiment.scenario(variant).unwrap().is_random()).collect();
    assert_eq!(random, [false, true, false, true]);
    assert_eq!(experiment.question(), "What is measured?");
    let claim = &experiment.claims[1];
    assert_eq!((claim.row.as_str(), claim.published.number()), ("Reno", Some(6.0)));
}

#[test]
fn a_number_with_its_allowance_has_no_other_band() {
    let message = "e.toml:38:9: `6±2` has its own band; remove `band`, or its ±";
    assert_eq!(parse(EXPERIMENT).unwrap_err().to_string(), message);
}

#[test]
fn an_empty_cell_claims_nothing() {
    let two = EXPERIMENT.replace("columns = [\"none\"]", "columns = [\"none\", \"some\"]");
    let experiment = parse(&two.replace("[5]", "[5, \"\"]").replace("[\"6±2\"]", "[\"\", 7]")).unwrap();
    let claims: Vec<_> = experiment.claims.iter().map(|claim| (claim.row.as_str(), claim.column.as_str())).collect();
    assert_eq!(claims, [("SACK", "none"), ("Reno", "some")]);
}

#[test]
fn a_table_may_be_of_ratios() {
    let ratio = |over: &str| {
        let text = EXPERIMENT.replace("band = \"exact\"\n", &format!("over = [{over}]\nband = \">= 1\"\n"));
        parse(&text.replace("\"6±2\"", "6")).map_err(|error| error.to_string())
    };
    // SACK delivers 8 and Reno 4 packets; with errors one less.
    let value = |experiment: &Experiment, claim: usize| {
        let expression = &experiment.claims[claim].statistic.expressions()[0];
        let lookup = &mut |variant: &Variant, _: &str| Ok([8.0, 4.0][variant[0]] - variant[1] as f64);
        experiment.evaluate(expression, lookup).unwrap()
    };
    let beside_reno = ratio("\"Reno\"").unwrap();
    assert_eq!(format!("{} {}", value(&beside_reno, 0), value(&beside_reno, 1)), "2 1");
    let beside_errors = ratio("\"some\"").unwrap();
    assert_eq!(format!("{:.6} {:.6}", value(&beside_errors, 0), value(&beside_errors, 1)), "1.142857 1.333333");
    let unknown = ratio("\"Rneo\"").unwrap_err();
    assert!(unknown.contains("no axis has a value `Rneo`; did you mean `Reno`?"), "{unknown}");
}

#[test]
fn a_regression_is_narrow_and_has_no_excuse() {
    let regression = |rows: &str, more: &str| {
        let source = format!("source = \"regression\"\n{more}columns");
        let text = EXPERIMENT.replace("band = \"exact\"\ncolumns", &source);
        parse(&text.replace("SACK = [5]\nReno = [\"6±2\"]", rows)).map_err(|error| error.to_string())
    };
    for rows in ["SACK = [\"8±2\"]", "SACK = [\"0±0\"]"] {
        assert!(regression(rows, "").is_ok(), "{rows}");
    }
    for rows in ["SACK = [\"8±2.3\"]", "SACK = [\"0±0.1\"]"] {
        let error = regression(rows, "").unwrap_err();
        assert!(
            error.contains("a regression is held to a number within 25 %, or notices no change; use more seeds"),
            "{error}"
        );
    }
    let error = regression("SACK = [\"8±2\"]", "because = \"chance\"\n").unwrap_err();
    assert!(error.contains("a regression that does not hold is a change; remove `because`"), "{error}");
}

#[test]
fn labels_measures_and_bands_are_checked() {
    let single = "Reno = [\"6±2\"]";
    assert_refused(single, "Rneo = [6]", "e.toml:38:9: no axis has a value `Rneo`; did you mean `Reno`?");
    assert_refused(single, "Reno = [6, 7]", "e.toml:38:8: 2 numbers for 1 columns; write one number for each column");
    assert_refused(
        "max_seq",
        "max_sqe",
        "e.toml:27:13: no gauge of a flow is called `max_sqe`; did you mean `max_seq`?",
    );
    assert_refused("flow.f.max_seq", "flow.g.max_seq", "e.toml:27:13: no flow is called `g`; there are f");
    assert_refused(
        "measure = \"delivered\"\n",
        "",
        "e.toml:36:9: nothing says what is measured; add `measure`, the name of one in [measure]",
    );
    assert_refused(
        "band = \"exact\"",
        "band = \"near\"",
        "e.toml:37:9: `near` is no band; use \"exact\", \"truncated to 0.01\", \"prediction\", \"±5\", \"±1%\", \"2..3\", \">= 2\" or \"<= 3\"",
    );
    assert_refused(
        "columns = [\"none\"]",
        "columns = [\"SACK\"]",
        "e.toml:37:9: `SACK` is a second value of axis `agent`",
    );
    assert_refused(
        "\"flow.f.transport\" = \"ns2/reno\"",
        "\"flow.f.transprot\" = \"ns2/reno\"",
        "e.toml:20:31: `ns2/sack` has no key `transprot`; did you mean `transport`?",
    );
    assert_refused(
        "[experiment]\npaper = \"ctcp-2019\"\n",
        "",
        "e.toml:26:1: a table needs an experiment; add [experiment] with its paper",
    );
}

/// A measure need not exist in all variants, but it must exist in those that a claim uses.
#[test]
fn no_claim_asks_for_what_is_outside_its_run() {
    let text = EXPERIMENT.replace("[\"6±2\"]", "[6]").replace("flow.f.max_seq", "value_at(flow.f.window, 1)");
    let short = text.replace(
        "some = { \"link.a.error\" = { kind = \"uniform\", rate = 0.01 } }",
        "some = { duration = \"500ms\" }",
    );
    assert!(parse(&short).is_ok());
    let error = parse(&short.replace("[\"none\"]", "[\"some\"]")).unwrap_err().to_string();
    let expected =
        "e.toml:37:9: `delivered` asks `flow.f.window`: 1 s is outside the run, which ends at 0.5 s: ask from 0 to 0.5";
    assert_eq!(error, expected);
    // It exists in no variant.
    let error = parse(&short.replace("window, 1)", "window, 2)")).unwrap_err().to_string();
    assert_eq!(error, "e.toml:27:13: `flow.f.window`: 2 s is outside the run, which ends at 1 s: ask from 0 to 1");
}

#[test]
fn a_grid_has_a_limit() {
    let values: String = (0..400).map(|value| format!("v{value} = {{ seed = {value} }}\n")).collect();
    let axes = format!("[[axis]]\nname = \"seed\"\n[axis.values]\n{values}[measure]");
    let more = format!("[[axis]]\nname = \"more\"\n[axis.values]\n{}{axes}", values.replace('v', "w"));
    assert!(
        parse(&EXPERIMENT.replacen("[measure]", &axes, 1)).unwrap_err().to_string().contains("no label says which")
    );
    let error = parse(&EXPERIMENT.replacen("[measure]", &more, 1)).unwrap_err().to_string();
    assert!(error.contains("with axis `seed` there are more than 100000 combinations; vary less at a time"), "{error}");
}

/// The network of the fixture with a flow of this transport, and more.
fn twin_of(flow: &str, more: &str) -> Option<Scenario> {
    let text = EXPERIMENT.split("[experiment]").next().unwrap();
    let text = text.replace("transport = \"ns2/sack\"", flow) + "[experiment]\npaper = \"p\"\n" + more;
    parse(&text).unwrap().twin(&vec![]).unwrap()
}

/// 1000 B are 960 B behind TCP's header, so a window of 50 packets needs 48 kB; MFast has five streams unless it says otherwise.
#[test]
fn a_twin_has_the_law_the_streams_and_the_window_of_its_flow() {
    let number = |law: &Settings, name: &str| match law.value(name) {
        Some(Value::Number(number)) => number,
        other => panic!("`{name}` is {other:?}"),
    };
    let engine = |flow: &str| match &twin_of(flow, "").unwrap().flows[0].transport {
        Transport::Engine { config, .. } => {
            let law = &config.law;
            (config.streams, config.mss, config.receive_buffer, number(law, "alpha"), number(law, "initial_window"))
        }
        other => panic!("{other:?}"),
    };
    let fast = "packet = \"1000B\"\nwindow = 50\ncc = { name = \"fast\", alpha = 5 }\ntransport = ";
    assert_eq!(engine(&format!("{fast}\"ns2/fast\"")), (0, 960, 48_000, 5.0, 2.0));
    assert_eq!(engine(&format!("{fast}\"ns2/mfast\"\ninitial_window = 3")), (5, 960, 48_000, 5.0, 3.0));
    assert_eq!(engine(&format!("{fast}\"ns2/mfast\"\noptions = {{ streams = 9 }}")).0, 9);
}

/// Other paths take over in the twin if they do in the flow, and none do if there is one path.
#[test]
fn a_twin_takes_over_from_a_path_as_its_flow_does() {
    let failover = |paths: &str, options: &str| {
        let flow = format!("transport = \"ns2/fast-mh\"\n{paths}\n{options}");
        match &twin_of(&flow, "").unwrap().flows[0].transport {
            Transport::Engine { config, .. } => (config.paths_max, config.failover),
            other => panic!("{other:?}"),
        }
    };
    let path = "{ first = \"a\", last = \"a\" }";
    let two = format!("paths = [{path}, {path}]");
    assert_eq!(failover(&two, ""), (2, Failover::Never));
    assert_eq!(failover(&two, "options = { reinject = \"0s\" }"), (2, Failover::Never));
    assert_eq!(failover(&two, "options = { reinject = \"2s\" }"), (2, Failover::OnSilence));
    assert_eq!(failover("", "options = { reinject = \"2s\" }").0, 1);
}

#[test]
fn only_the_papers_own_protocols_have_a_twin() {
    for other in ["ns2/sack", "ns2/sctp", "ns2/linux", "anabranch"] {
        assert!(twin_of(&format!("transport = \"{other}\""), "").is_none(), "{other}");
    }
    assert!(twin_of("transport = \"ns2/composite\"", "").is_some());
    // A reading of Composite TCP that our classifier does not have.
    assert!(twin_of("transport = \"ns2/composite\"\ncc = { name = \"composite\", rtt = \"fine\" }", "").is_none());
}

/// An axis starts one flow of several, and the others after the end; the run with a flow that has no twin is run once.
#[test]
fn a_flow_that_starts_after_the_end_has_no_twin() {
    let twin = |start: &str| twin_of(&format!("transport = \"ns2/fast\"\nstart = \"{start}\""), "");
    assert!(twin("1h").is_none());
    // The fixture's run has one second.
    assert!(twin("1s").is_some());
    assert!(twin("1000001us").is_none());
}

#[test]
fn a_twin_sets_what_the_experiment_says_for_it() {
    let errors = |more: &str| twin_of("transport = \"ns2/fast\"", more).unwrap().links[0].spec.errors.clone();
    assert_eq!(errors(""), []);
    let at = errors("[engine]\n\"link.a.error\" = { kind = \"at\", times = [\"500ms\"] }\n");
    assert_eq!(at, [ErrorSpec::At(vec![SimTime::ZERO + SimSpan::from_millis(500)])]);
}
