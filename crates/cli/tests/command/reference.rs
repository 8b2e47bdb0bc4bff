//! Lists and generated documents.

use std::fs;

use crate::support::{anabranch, assert_exit, document, folder, repository, stderr};

#[test]
fn laws_are_listed_and_shown() {
    let laws = document(&anabranch(repository(), &["cc", "list", "--json"]));
    assert!(laws["laws"].as_array().unwrap().iter().any(|law| law["name"] == "reno"));
    let reno = document(&anabranch(repository(), &["cc", "show", "reno", "--json"]));
    assert_eq!(reno["parameters"][0]["name"], "initial_window");
    let output = anabranch(repository(), &["cc", "show", "rneo"]);
    assert_exit(&output, 2);
    assert_eq!(stderr(&output), "error: there is no congestion law `rneo`; did you mean `reno`?\n");
}

#[test]
fn the_reference_is_up_to_date() {
    assert_exit(&anabranch(repository(), &["generate", "reference", "--check"]), 0);
    let folder = folder("reference");
    assert_exit(&anabranch(&folder, &["generate", "reference", "--check"]), 1);
    assert_exit(&anabranch(&folder, &["generate", "reference"]), 0);
    assert_exit(&anabranch(&folder, &["generate", "reference", "--check"]), 0);
}

#[test]
fn every_command_has_a_man_page() {
    let folder = folder("man");
    assert_exit(&anabranch(&folder, &["generate", "man", "man1"]), 0);
    for page in ["anabranch.1", "anabranch-reproduce.1", "anabranch-sim-run.1", "anabranch-cc-show.1"] {
        let text = fs::read_to_string(folder.join("man1").join(page)).unwrap();
        assert!(text.contains(".TH"), "{page}");
    }
}
