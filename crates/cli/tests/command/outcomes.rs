//! The formats of an outcome, and the report.

use std::fs;

use serde_json::Value;

use crate::support::{anabranch, assert_exit, experiment, folder, stdout};

#[test]
fn outcomes_are_written_in_every_format() {
    let folder = folder("formats");
    fs::create_dir_all(folder.join("experiments/test-2000")).unwrap();
    fs::write(folder.join("experiments/test-2000/table1.toml"), experiment(1, "")).unwrap();
    let csv = anabranch(&folder, &["reproduce", "--format", "csv", "--out", "report"]);
    assert_exit(&csv, 0);
    let row =
        "test-2000,table1,table1,Table 1,paper,result,SACK,lost,number,packets,1,1,1,0,exact,1,1,reproduced,,,,,,false";
    assert_eq!(stdout(&csv).lines().nth(1), Some(row));
    assert_eq!(fs::read_to_string(folder.join("report/outcome.csv")).unwrap(), stdout(&csv));
    let page = fs::read_to_string(folder.join("report/outcome.md")).unwrap();
    assert!(page.contains("| SACK | lost | 1 | 1 |  | packets | reproduced |  |  |"), "{page}");
    assert!(page.contains("| the papers | 1 | 1 reproduced | 0 | 0 | 0 | 0 |"), "{page}");
    let json: Value = serde_json::from_slice(&fs::read(folder.join("report/outcome.json")).unwrap()).unwrap();
    assert_eq!(json["papers"][0]["key"], "test-2000");
    assert_exit(&anabranch(&folder, &["reproduce", "--format", "html"]), 2);
}

/// The text format, for people, also writes the report; the other formats write only what is requested.
#[test]
fn reports_are_written_for_people() {
    let folder = folder("report");
    fs::create_dir_all(folder.join("experiments/test-2000")).unwrap();
    fs::write(folder.join("experiments/test-2000/table1.toml"), experiment(1, "")).unwrap();
    for format in [["--json"].as_slice(), &["--format", "csv"], &["--format", "markdown"]] {
        assert_exit(&anabranch(&folder, &[&["reproduce"], format].concat()), 0);
        assert!(!folder.join("reproduction").exists(), "{format:?} writes nothing");
    }
    let text = anabranch(&folder, &["reproduce"]);
    assert_exit(&text, 0);
    assert_eq!(
        stdout(&text).lines().last(),
        Some("Everything, with reasons and figures: reproduction/report.html; every number in the terminal: --verbose")
    );
    let page = fs::read_to_string(folder.join("reproduction/report.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    assert!(page.contains("test-2000") && page.contains("anabranch reproduce test-2000"));
    assert!(page.contains("href=\"playground.html#file=experiments/test-2000/table1.toml\""));
    assert!(folder.join("reproduction/playground.html").exists());
    assert_exit(&anabranch(&folder, &["reproduce", "--json", "--out", "both"]), 0);
    let mut written: Vec<_> =
        fs::read_dir(folder.join("both")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    written.sort();
    assert_eq!(
        written,
        ["outcome.csv", "outcome.json", "outcome.md", "playground.html", "report.html"],
        "and nothing half written"
    );
}
