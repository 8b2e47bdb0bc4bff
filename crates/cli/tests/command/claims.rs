//! Experiments, their claims and figures.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;

use crate::support::{
    CHAIN, anabranch, assert_exit, document, experiment, folder, random_experiment, repository, stderr, stdout,
};

#[test]
fn a_wrong_number_deviates_and_is_missed_unless_explained() {
    let folder = folder("claims");
    fs::create_dir_all(folder.join("experiments/test-2000")).unwrap();
    let reproduce = |published, because: &str| {
        fs::write(folder.join("experiments/test-2000/table1.toml"), experiment(published, because)).unwrap();
        anabranch(&folder, &["reproduce", "--json"])
    };
    let verdict = |output: &Output| {
        let judgement: Value = serde_json::from_slice(&output.stdout).unwrap();
        judgement["papers"][0]["experiments"][0]["claims"][0]["verdict"].as_str().unwrap().to_owned()
    };
    let right = reproduce(1, "");
    assert_exit(&right, 0);
    assert_eq!(verdict(&right), "reproduced");
    let wrong = reproduce(2, "");
    assert_exit(&wrong, 3);
    assert_eq!(verdict(&wrong), "deviates");
    let text = anabranch(&folder, &["reproduce"]);
    assert_exit(&text, 3);
    assert!(stdout(&text).contains("  1 unexplained: Table 1, SACK, lost (2, ours 1).\n"), "{}", stdout(&text));
    let explained = reproduce(2, "because = \"it is a test\"\n");
    assert_exit(&explained, 0);
    assert_eq!(verdict(&explained), "deviates");
    let given_up = reproduce(2, "because = \"it is a test\"\nnot_reproducible = true\n");
    assert_exit(&given_up, 0);
    assert_eq!(verdict(&given_up), "not reproducible");
}

/// Without a key the papers run, with `--all` the groups of our own questions, too. Where there is no paper the groups run. The outcome names the command.
#[test]
fn default_selection_is_papers() {
    let folder = folder("selection");
    let write = |key: &str| {
        fs::create_dir_all(folder.join("experiments").join(key)).unwrap();
        let text = experiment(1, "").replace("test-2000", key);
        fs::write(folder.join(format!("experiments/{key}/table1.toml")), text).unwrap();
    };
    let ran = |arguments: &[&str]| {
        let outcome = document(&anabranch(&folder, &[&["reproduce", "--json"], arguments].concat()));
        let papers: Vec<String> =
            outcome["papers"].as_array().unwrap().iter().map(|paper| paper["key"].as_str().unwrap().into()).collect();
        (papers.join(" "), outcome["command"].as_str().unwrap().to_owned())
    };
    let of = |papers: &str, command: &str| (papers.to_owned(), command.to_owned());
    write("law");
    assert_eq!(ran(&[]), of("law", "anabranch reproduce"));
    write("test-2000");
    assert_eq!(ran(&[]), of("test-2000", "anabranch reproduce"));
    assert_eq!(ran(&["--all"]), of("test-2000 law", "anabranch reproduce --all"));
    assert_eq!(ran(&["law"]).0, "law");
    assert_exit(&anabranch(&folder, &["reproduce", "law", "--all"]), 2);
}

/// A regression, and a claim that a simulation cannot fail, is no result.
#[test]
fn totals_tell_results_from_what_is_none() {
    let folder = folder("totals");
    fs::create_dir_all(folder.join("experiments/test-2000")).unwrap();
    let claim = |number: usize, keys: &str| {
        format!(
            "[[claim]]\nitem = \"text\"\ntitle = \"T\"\ncite = \"T\"\nrow = \"{number}\"\npublished = 1\nband = \"exact\"\n{keys}\n"
        )
    };
    let run = "measure = \"dropped\"\n";
    let claims = [
        format!("{run}source = \"oracle\""),
        format!("{run}source = \"analytic\""),
        format!("{run}source = \"regression\""),
        format!("{run}counts_as = \"input\""),
        "measure = \"3 - 2\"\nsource = \"analytic\"\ncounts_as = \"derivation\"".to_owned(),
    ];
    let text: String = claims.iter().enumerate().map(|(number, keys)| claim(number, keys)).collect();
    let file = folder.join("experiments/test-2000/table1.toml");
    fs::write(&file, experiment(1, "") + "\n" + &text).unwrap();
    let coarse =
        "[[coarse]]\nexperiment = \"test-2000/table1\"\ntitle = \"Table 1\"\nrow = \"SACK\"\ncolumn = \"lost\"\n";
    fs::create_dir(folder.join("experiments/generated")).unwrap();
    fs::write(folder.join("experiments/generated/sensitivity.toml"), coarse).unwrap();
    let outcome = document(&anabranch(&folder, &["reproduce", "--json"]));
    let totals = outcome["totals"].as_array().unwrap().iter();
    let totals: Vec<(&str, u64, u64)> = totals
        .map(|total| {
            (total["under"].as_str().unwrap(), total["good"].as_u64().unwrap(), total["coarse"].as_u64().unwrap())
        })
        .collect();
    let expected = [
        ("paper", 1, 1),
        ("oracle", 1, 0),
        ("analytic", 1, 0),
        ("derivation", 1, 0),
        ("input", 1, 0),
        ("regression", 1, 0),
    ];
    assert_eq!(totals, expected);
    let verdicts: Vec<&str> =
        outcome["claims"].as_array().unwrap().iter().map(|claim| claim["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["reproduced", "reproduced", "reproduced", "holds", "holds", "holds"]);

    fs::write(&file, experiment(1, "") + "\n" + &claim(0, "measure = \"3 - 2\"")).unwrap();
    let output = anabranch(&folder, &["reproduce"]);
    assert_exit(&output, 2);
    let message = "nothing in it is simulated, so that no simulation can fail it; write counts_as = \"derivation\"";
    assert!(stderr(&output).contains(message), "{}", stderr(&output));
    fs::write(
        &file,
        experiment(1, "") + "\n" + &claim(0, &format!("{run}source = \"regression\"\ncounts_as = \"input\"")),
    )
    .unwrap();
    assert!(
        stderr(&anabranch(&folder, &["reproduce"])).contains("a regression is no result already; remove `counts_as`")
    );
}

/// ns-2's agent loses its 100th packet. Our transport, whose losses are set by time, loses none, as its run ends before.
#[test]
fn engine_verdict_stands_beside_claim_and_must_be_explained() {
    let folder = folder("engine");
    fs::create_dir_all(folder.join("experiments/test-2000")).unwrap();
    let reproduce = |engine: &str| {
        let text = experiment(1, engine).replace("transport = \"ns2/sack\"", "transport = \"ns2/fast\"");
        assert!(text.contains("ns2/fast"), "the flow of the chain speaks SACK");
        let later = "[engine]\n\"link.a.error\" = { kind = \"at\", times = [\"1000s\"] }\n[experiment]";
        fs::write(folder.join("experiments/test-2000/table1.toml"), text.replace("[experiment]", later)).unwrap();
        anabranch(&folder, &["reproduce", "--json"])
    };
    let judged = |output: &Output| {
        let judgement: Value = serde_json::from_slice(&output.stdout).unwrap();
        let claim = &judgement["claims"][0];
        (claim["measured"]["engine"]["value"].clone(), claim["engine"].clone())
    };
    let missed = reproduce("");
    assert_exit(&missed, 3);
    let (value, engine) = judged(&missed);
    assert_eq!((value.as_f64(), &engine["agrees"], &engine["is_missed"]), (Some(0.0), &false.into(), &true.into()));
    let explained = reproduce("engine = \"it loses later\"\n");
    assert_exit(&explained, 0);
    assert_eq!(judged(&explained).1["because"], "it loses later");
}

#[test]
fn a_judgement_has_the_promised_shape() {
    let folder = folder("judgement");
    fs::create_dir_all(folder.join("experiments/test-2000")).unwrap();
    fs::write(folder.join("experiments/test-2000/table1.toml"), experiment(1, "")).unwrap();
    let judgement = document(&anabranch(&folder, &["reproduce", "test-2000", "--json"]));
    assert_eq!(judgement["schema"], "anabranch-reproduce/4");
    assert_eq!(judgement["version"], env!("CARGO_PKG_VERSION"));
    assert!(judgement["wall_seconds"].is_f64() && judgement["hash"].is_string());
    let claim = &judgement["papers"][0]["experiments"][0]["claims"][0];
    let listed = &judgement["claims"][0];
    assert!(listed["paper"].is_string() && listed["scenario"].is_string());
    for (key, value) in claim.as_object().unwrap() {
        assert_eq!(&listed[key], value, "{key} in the list of all claims");
    }
    let expected = serde_json::json!({
        "item": "table1", "title": "Table 1", "source": "paper", "counts_as": "result", "cite": "Table 1",
        "row": "SACK", "column": "lost", "kind": "number", "unit": "packets", "published": 1.0,
        "measured": { "ours": { "value": 1.0, "seeds": 1, "sd": 0.0, "low": 1.0, "high": 1.0 }, "engine": null },
        "engine": null,
        "band": { "kind": "exact", "low": 1.0, "high": 1.0 },
        "verdict": "reproduced", "because": null, "is_missed": false, "is_open": false, "is_coarse": false,
    });
    assert_eq!(*claim, expected);
    let experiment = &judgement["papers"][0]["experiments"][0];
    assert_eq!(experiment["item"], "table1");
    assert_eq!(experiment["file"], "experiments/test-2000/table1.toml");
    assert_eq!(experiment["command"], "anabranch reproduce test-2000");
    assert!(experiment["source"].as_str().unwrap().contains("[experiment]"));
    let link = serde_json::json!({
        "id": "a", "from": "n0", "to": "n1", "rate": "1.5Mbit/s", "delay": "20ms", "queue": "drop_tail, packets 10",
        "error": "list, packets [100]", "is_duplex": true,
    });
    assert_eq!(experiment["topology"]["links"], serde_json::json!([link]));
    let text = anabranch(&folder, &["reproduce"]);
    assert_exit(&text, 0);
    assert!(!stdout(&text).contains('\u{1b}'), "colours are for terminals");
    let shown = stdout(&text);
    assert!(shown.contains("  Table 1       1           1\n"), "a line a title: {shown}");
    assert!(!shown.contains("must lie") && shown.contains("every number in the terminal: --verbose"), "{shown}");
    assert!(shown.contains("  the papers  1            1           1\n"), "totals by source: {shown}");
    let verbose = anabranch(&folder, &["reproduce", "--verbose"]);
    assert_exit(&verbose, 0);
    assert!(
        stdout(&verbose).contains("  SACK  lost          1     1           0  packets  reproduced\n"),
        "{}",
        stdout(&verbose)
    );
    let total = serde_json::json!([{
        "under": "paper", "claims": 1, "places": 1, "good": 1, "coarse": 0, "explained": 0, "open": 0, "missed": 0, "not_reproducible": 0,
    }]);
    assert_eq!((&judgement["totals"], &listed["under"]), (&total, &"paper".into()));
}

#[test]
fn unknown_papers_and_absent_experiments_are_usage() {
    let output = anabranch(repository(), &["reproduce", "ctcp-2091"]);
    assert_exit(&output, 2);
    assert_eq!(stderr(&output), "error: experiments: there is no paper `ctcp-2091`; did you mean `ctcp-2019`?\n");
    let output = anabranch(&folder("nowhere"), &["reproduce"]);
    assert_exit(&output, 2);
    assert!(stderr(&output).contains("name the folder of the experiments with --experiments"), "{}", stderr(&output));
}

/// The whole of ctcp-2019: every deterministic cell to the integer, every random one within its band, and CTCP's Table 3 as
/// the one deviation that is known and explained.
#[test]
fn ctcp_2019_is_reproduced() {
    let judgement = match std::env::var_os("ANABRANCH_REPRODUCTION") {
        // The test command has run all experiments, and names the folder with the outcome.
        Some(reproduction) => {
            serde_json::from_slice(&fs::read(PathBuf::from(reproduction).join("outcome.json")).unwrap()).unwrap()
        }
        None => document(&anabranch(repository(), &["reproduce", "ctcp-2019", "--json"])),
    };
    let paper = judgement["papers"].as_array().unwrap().iter().find(|paper| paper["key"] == "ctcp-2019");
    let experiments = paper.unwrap()["experiments"].as_array().unwrap();
    let claims: Vec<&Value> =
        experiments.iter().flat_map(|experiment| experiment["claims"].as_array().unwrap()).collect();
    let select = |item: &str, source: &str, kind: &str| {
        let is = |claim: &&Value| claim["item"] == item && claim["source"] == source && claim["band"]["kind"] == kind;
        claims.iter().copied().filter(is).collect::<Vec<_>>()
    };
    // Table 2 without errors: six agents and CTCP in both readings. Table 3: the same, two senders and their total.
    assert_eq!((select("table2", "paper", "exact").len(), select("table3", "paper", "exact").len()), (8, 24));
    assert_eq!(select("table2", "paper", "prediction").len(), 16);
    assert_eq!(select("fig5", "paper", "prediction").len(), 8);
    for claim in claims {
        // In Table 3 CTCP equals SACK in both readings; and "same window" gains less over Linux than in Figure 5.
        let is_ctcp =
            claim["item"] == "table3" && claim["column"].as_str().is_some_and(|column| column.starts_with("CTCP"));
        let is_figure_5 = claim["row"] == "CTCP, same window, over Linux" && claim["column"] == "error=0.01";
        let is_known = claim["source"] == "paper" && (is_ctcp || claim["item"] == "fig5" && is_figure_5);
        let expected = if is_known { "deviates" } else { "reproduced" };
        assert_eq!(claim["verdict"], expected, "{claim:#}");
        assert_eq!(claim["because"].is_string(), is_known, "{claim:#}");
    }
}

/// Thirty seeds on ns-2's agent and on our transport; with three threads they finish in any order.
#[test]
fn a_judgement_does_not_depend_on_the_number_of_threads() {
    let folder = folder("threads");
    fs::create_dir_all(folder.join("experiments/test-2000")).unwrap();
    fs::write(folder.join("experiments/test-2000/table1.toml"), random_experiment()).unwrap();
    let judge = |jobs: &str| {
        let output = anabranch(&folder, &["reproduce", "--jobs", jobs, "--json"]);
        let mut judgement: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(judgement["runs"], 60);
        judgement.as_object_mut().unwrap().remove("wall_seconds");
        judgement
    };
    assert_eq!(judge("1"), judge("3"));
}

/// A claim about a time is a number in seconds, by a measure of a series.
#[test]
fn claims_are_made_of_series() {
    let folder = folder("time");
    fs::create_dir_all(folder.join("experiments/test-2000")).unwrap();
    let claim = |expression: &str| {
        format!(
            "{CHAIN}[experiment]\npaper = \"test-2000\"\n[measure]\nwhen = \"{expression}\"\n[[claim]]\nitem = \"fig1\"\n\
             title = \"Figure 1\"\ncite = \"nobody\"\nrow = \"the loss\"\nkind = \"time\"\nunit = \"s\"\nmeasure = \"when\"\n\
             published = 0.7\nband = \"±0.2\"\n"
        )
    };
    let judge = |expression: &str| {
        fs::write(folder.join("experiments/test-2000/fig1.toml"), claim(expression)).unwrap();
        let output = anabranch(&folder, &["reproduce", "--json"]);
        let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
        outcome["papers"][0]["experiments"][0]["claims"][0].clone()
    };
    let lost = judge("first_time(link.a.drops, 0)");
    assert_eq!(lost["verdict"], "reproduced", "{lost:#}");
    let never = judge("first_time(link.a.drops, 4)");
    assert_eq!(never["verdict"], "deviates");
    assert_eq!(never["because"], "`link.a.drops`: it never happens from 4 s on");
}

/// Two variants, each with the window, and the goodput in bins: five seconds are ten bins of 0.5 s.
#[test]
fn figures_have_their_points() {
    let folder = folder("figure");
    fs::create_dir_all(folder.join("experiments/test-2000")).unwrap();
    let figure = r#"
[experiment]
paper = "test-2000"
[[axis]]
name = "window"
[axis.values]
four = { "flow.f0.window" = 4 }
eight = {}
[[figure]]
item = "fig1"
title = "Windows"
from = "0s"
variants = [["four"], ["eight"]]
[[figure.panel]]
title = "Window"
unit = "packets"
series = [{ of = "flow.f0.window" }]
[[figure.panel]]
title = "Goodput"
unit = "kbit/s"
series = [{ name = "goodput", of = "flow.f0.goodput", bin = "500ms", scale = 0.001 }, { of = "link.a.drops" }]
"#;
    let file = folder.join("experiments/test-2000/fig1.toml");
    fs::write(&file, format!("{CHAIN}{figure}")).unwrap();
    let outcome = document(&anabranch(&folder, &["reproduce", "--json"]));
    let figure_of = &outcome["papers"][0]["experiments"][0]["figures"][0];
    assert_eq!((&figure_of["title"], &figure_of["to"]), (&"Windows".into(), &5.0.into()));
    let windows = figure_of["panels"][0]["series"].as_array().unwrap();
    assert_eq!((&windows[0]["name"], &windows[1]["name"]), (&"four".into(), &"eight".into()));
    let goodput = &figure_of["panels"][1]["series"][2];
    assert_eq!((&goodput["name"], &goodput["style"]), (&"eight: goodput".into(), &"steps".into()));
    assert_eq!(goodput["t"].as_array().unwrap().len(), 10);
    assert!((1000.0..1500.0).contains(&goodput["v"][4].as_f64().unwrap()), "{goodput:#}");
    let drops = &figure_of["panels"][1]["series"][3];
    assert_eq!((&drops["style"], drops["v"].as_array().unwrap().len()), (&"points".into(), 1));
    fs::write(&file, format!("{CHAIN}{}", figure.replace("f0.window\" }", "f0.widnow\" }"))).unwrap();
    let wrong = anabranch(&folder, &["reproduce"]);
    assert_exit(&wrong, 2);
    assert!(
        stderr(&wrong).contains("fig1.toml:35:18: `flow.f0.widnow` is no series; did you mean `flow.f0.window`?"),
        "{}",
        stderr(&wrong)
    );
}
