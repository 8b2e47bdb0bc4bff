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
