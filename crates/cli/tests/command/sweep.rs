//! Grids.

use std::fs;

use crate::support::{CHAIN, anabranch, assert_exit, folder, stdout};

#[test]
fn a_sweep_is_one_table_and_shards_make_the_whole() {
    let folder = folder("sweep");
    let axis = "[[axis]]\nname = \"window\"\n[axis.values]\nfour = { \"flow.f0.window\" = 4 }\neight = {}\n";
    let random = CHAIN.replace("{ kind = \"list\", packets = [100] }", "{ kind = \"uniform\", rate = 0.05 }");
    fs::write(folder.join("s.toml"), random + axis).unwrap();
    let sweep = |args: &[&str]| {
        let output = anabranch(&folder, &[&["sim", "sweep", "s.toml", "--seeds", "3"], args].concat());
        assert_exit(&output, 0);
        stdout(&output).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let whole = sweep(&["--jobs", "2"]);
    assert_eq!(whole[0], "window,gauge,seeds,mean,sd,low,high");
    assert!(whole.iter().any(|row| row.starts_with("four,flow.f0.goodput_bps,3,")), "{whole:?}");
    assert_eq!(whole, sweep(&["--jobs", "1"]), "the table does not depend on the number of threads");
    let parts = [sweep(&["--shard", "1/2"]), sweep(&["--shard", "2/2"])];
    assert_eq!(whole[1..], parts.iter().flat_map(|part| part[1..].to_vec()).collect::<Vec<_>>());
    sweep(&["--out", "table.csv"]);
    assert_eq!(fs::read_to_string(folder.join("table.csv")).unwrap().lines().collect::<Vec<_>>(), whole);
}

const GRID: &str = "[[axis]]\nname = \"window\"\n[axis.values]\nfour = { \"flow.f0.window\" = 4 }\neight = {}\ntwo = { \"flow.f0.window\" = 2 }\n";

/// A chain whose losses are drawn, with three windows.
fn random_grid() -> String {
    CHAIN.replace("{ kind = \"list\", packets = [100] }", "{ kind = \"uniform\", rate = 0.05 }") + GRID
}

/// Table and rows of three shards together are those of the whole, to the byte; what is missing, doubled or of another file is an error.
#[test]
fn shards_that_ran_elsewhere_merge_into_the_whole() {
    let folder = folder("merge");
    fs::write(folder.join("s.toml"), random_grid()).unwrap();
    fs::write(folder.join("other.toml"), random_grid().replace("rate = 0.05", "rate = 0.06")).unwrap();
    let command = |what: &str, args: &[&str], code: i32| {
        let output = anabranch(&folder, &[&["sim", what], args, &["--seeds", "2"]].concat());
        assert_exit(&output, code);
        output
    };
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    command("sweep", &["s.toml", "--rows", "rows.csv", "--out", "table.csv", "--report", "page.html"], 0);
    for shard in ["1", "2", "3"] {
        command("sweep", &["s.toml", "--shard", &format!("{shard}/3"), "--rows", &format!("{shard}.csv")], 0);
    }
    let merged =
        command("merge", &["s.toml", "3.csv", "1.csv", "2.csv", "--rows", "all.csv", "--report", "all.html"], 0);
    assert_eq!(stdout(&merged).as_bytes(), read("table.csv"));
    assert_eq!(read("all.csv"), read("rows.csv"));
    assert_eq!(read("all.html"), read("page.html"));

    let refused = |args: &[&str], words: &str| {
        let told = String::from_utf8(command("merge", args, 2).stderr).unwrap();
        assert!(told.split_whitespace().collect::<Vec<_>>().join(" ").contains(words), "{told}");
    };
    let part = "2 of 6 runs are in none of the files, the first with window = eight and seed 1: a shard is missing";
    refused(&["s.toml", "1.csv", "3.csv"], part);
    refused(&["s.toml", "1.csv", "2.csv", "3.csv", "1.csv"], "is in 1.csv as well; give each shard once");
    refused(&["other.toml", "1.csv", "2.csv", "3.csv"], "is of another scenario than other.toml");
    refused(&["s.toml", "1.csv", "2.csv", "3.csv", "--rows", "1.csv"], "would be written over 1.csv");
    refused(&["s.toml", "1.csv", "4.csv"], "4.csv: cannot be read");
    // As a simulator of other sources names its runs.
    let engine = String::from_utf8(read("3.csv")).unwrap().lines().nth(1).unwrap()[..16].to_owned();
    fs::write(folder.join("3.csv"), String::from_utf8(read("3.csv")).unwrap().replace(&engine, "00112233445566ff"))
        .unwrap();
    refused(&["s.toml", "1.csv", "2.csv", "3.csv"], "another version of the simulator: engine 00112233445566ff, not");
}
