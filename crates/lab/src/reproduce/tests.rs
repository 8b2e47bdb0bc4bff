use super::plan::{Column, Job};
use super::*;
use crate::document::Document;
use crate::verdict::Verdict;

/// What one flow sends within a second.
const EXPERIMENT: &str = r#"# What is sent?
duration = "1s"
link = [{ id = "a", from = "x", to = "y", rate = "1Mbit/s", delay = "10ms" }]
flow = [{ id = "f", from = "x", to = "y", transport = "ns2/sack" }]
[experiment]
paper = "KEY"
[measure]
sent = "flow.f.max_seq"
[[claim]]
item = "text"
title = "T"
cite = "T"
row = "sent"
measure = "sent"
published = "something"
band = ">= 1"
"#;

fn experiment(key: &str, file: &str) -> Experiment {
    Experiment::parse(Document::parse(file, &EXPERIMENT.replace("KEY", key)).unwrap()).unwrap()
}

fn options() -> Options {
    Options { jobs: NonZeroUsize::MIN, seeds: None }
}

/// The calls of a watch, in their order.
#[derive(Default)]
struct Heard(Vec<String>);

impl Watch for &mut Heard {
    fn runs(&mut self, done: usize, total: usize) {
        self.0.push(format!("{done} of {total}"));
    }

    fn paper(&mut self, paper: &Paper) {
        let good = paper.claims().filter(|claim| claim.verdict == Verdict::Reproduced).count();
        self.0.push(format!("{}: {good}", paper.key));
    }
}

#[test]
fn paper_is_told_when_done_and_before_own_experiments() {
    let keys = ["analytic", "beyond", "rrfast-2017", "new-2030", "mfast-2019", "mfast-2019"];
    let experiments: Vec<Experiment> = keys.iter().map(|key| experiment(key, "experiments/k/e.toml")).collect();
    let mut heard = Heard::default();
    let outcome = reproduce(&experiments, options(), &mut heard).unwrap();
    let order: Vec<&str> = outcome.papers.iter().map(|paper| paper.key.as_str()).collect();
    assert_eq!(order, ["mfast-2019", "rrfast-2017", "new-2030", "analytic", "beyond"]);
    let expected = [
        "0 of 6",
        "1 of 6",
        "2 of 6",
        "mfast-2019: 2",
        "3 of 6",
        "rrfast-2017: 1",
        "4 of 6",
        "new-2030: 1",
        "5 of 6",
        "analytic: 1",
        "6 of 6",
        "beyond: 1",
    ];
    assert_eq!(heard.0, expected);
}

#[test]
fn claims_without_runs_are_reported() {
    let text =
        EXPERIMENT.replace("measure = \"sent\"\npublished = \"something\"", "measure = \"2 - 1\"\npublished = 1");
    let text = text.replace("cite = \"T\"", "cite = \"T\"\ncounts_as = \"derivation\"");
    let experiments = [Experiment::parse(Document::parse("e.toml", &text).unwrap()).unwrap()];
    let mut heard = Heard::default();
    let outcome = reproduce(&experiments, options(), &mut heard).unwrap();
    assert_eq!(heard.0, ["0 of 0", "KEY: 0"]);
    assert_eq!(outcome.totals()[0].under, Under::Derivation);
}

#[test]
fn command_names_folder_of_experiments() {
    let typed = |file: &str, seeds| {
        let outcome = reproduce(&[experiment("k", file)], Options { seeds, ..options() }, |_, _| {}).unwrap();
        (outcome.papers[0].command.clone(), outcome.command)
    };
    let of = |paper: &str, all: &str| (format!("anabranch reproduce {paper}"), format!("anabranch reproduce {all}"));
    assert_eq!(
        typed("experiments/k/e.toml", None),
        ("anabranch reproduce k".to_owned(), "anabranch reproduce".to_owned())
    );
    assert_eq!(
        typed("/srv/ours/k/e.toml", Some(4)),
        of("k --seeds 4 --experiments /srv/ours", "--seeds 4 --experiments /srv/ours")
    );
    let quoted = "--experiments 'it'\\''s mine'";
    assert_eq!(typed("it's mine/k/e.toml", None), of(&format!("k {quoted}"), quoted));
}

/// Three windows: a claim uses the first two, and a figure shows the last two.
const WINDOWS: &str = r#"# Are runs shared?
duration = "5s"

link = [{ id = "a", from = "n0", to = "n1", rate = "1.5Mbit/s", delay = "20ms", error = { kind = "uniform", rate = 0.02 } }]
flow = [{ id = "f", from = "n0", to = "n1", transport = "ns2/sack" }]

[experiment]
paper = "test-2000"
seeds = 4

[[axis]]
name = "window"
[axis.values]
2 = { "flow.f.window" = 2 }
4 = { "flow.f.window" = 4 }
8 = { "flow.f.window" = 8 }

[measure]
window = "max(flow.f.window, 0, 5)"
received = "sum(link.a.forwarded, 0, 5)"
lost = "sum(link.a.drops, 0, 5)"

[[claim]]
item = "fig1"
title = "A larger window carries more"
cite = "nobody"
row = "received"
kind = "order"
order = ["received('4')", "received('2')"]
published = "more"
"#;

const FIGURE: &str = r#"
[[figure]]
item = "fig1"
title = "In flight"
variants = [["4"], ["8"]]
[[figure.panel]]
title = "In flight"
unit = "packets"
series = [{ of = "flow.f.in_flight" }]
"#;

fn outcome(text: &str) -> (Outcome, usize) {
    let experiment = Experiment::parse(Document::parse("test-2000/fig1.toml", text).unwrap()).unwrap();
    let mut total = 0;
    (reproduce(&[experiment], options(), |_, all| total = all).unwrap(), total)
}

/// Four seeds of two windows are judged. The figure needs one more run for the third window, and uses the judged run of the second.
#[test]
fn a_run_that_is_judged_is_the_one_that_is_drawn() {
    let (plain, judged) = outcome(WINDOWS);
    let (shown, total) = outcome(&format!("{WINDOWS}{FIGURE}"));
    assert_eq!((judged, total), (8, 9));
    assert_eq!((plain.runs, &plain.hash), (shown.runs, &shown.hash), "what is shown alone is not judged");
    let series = &shown.papers[0].experiments[0].figures[0].panels[0].series;
    assert_eq!(series.iter().map(|series| series.name.as_str()).collect::<Vec<_>>(), ["4", "8"]);
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    // Each is drawn from a run with its own window.
    assert_eq!((most(&series[0].v), most(&series[1].v)), (4.0, 8.0));
}

/// A claim that needs only the arrivals: windows are not recorded, and the numbers stay the same.
#[test]
fn only_what_is_asked_for_is_measured() {
    let experiment = Experiment::parse(Document::parse("test-2000/fig1.toml", WINDOWS).unwrap()).unwrap();
    let plan = Plan::of_claims(vec![&experiment], Some(1)).unwrap();
    let names = |job: &Job| job.measures.iter().map(|&at| experiment.measures()[at].0.clone()).collect::<Vec<_>>();
    assert_eq!(plan.jobs.iter().map(names).collect::<Vec<_>>(), [["received"], ["received"]]);
}

/// A note shows the values of ns-2's agents, so a variant that only notes need is not run on our transport.
#[test]
fn our_transport_runs_what_is_compared_and_nothing_else() {
    let text = WINDOWS.replace("ns2/sack", "ns2/fast");
    let note = "[[note]]\nitem = \"fig1\"\ntext = \"With eight {received('8')}.\"\n";
    let experiment = Experiment::parse(Document::parse("test-2000/fig1.toml", &(text + note)).unwrap()).unwrap();
    let plan = Plan::of_claims(vec![&experiment], Some(1)).unwrap();
    let of = |column| plan.variants.keys().filter(|key| key.2 == column).map(|key| key.1[0]).collect::<Vec<_>>();
    assert_eq!((of(Column::Own), of(Column::Engine)), (vec![0, 1, 2], vec![0, 1]));
}
