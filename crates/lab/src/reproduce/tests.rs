use super::*;
use crate::document::Document;

/// What one flow sends within a second.
const EXPERIMENT: &str = r#"# What is sent?
duration = "1s"
[[link]]
id = "a"
from = "x"
to = "y"
rate = "1Mbit/s"
delay = "10ms"
[[flow]]
id = "f"
from = "x"
to = "y"
transport = "ns2/sack"
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

/// What was heard, in its order.
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
fn a_paper_is_told_when_its_runs_are_done_and_papers_come_before_what_is_ours() {
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
fn what_asks_for_no_run_is_told_as_well() {
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
fn what_to_type_names_the_folder_of_the_experiments() {
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
