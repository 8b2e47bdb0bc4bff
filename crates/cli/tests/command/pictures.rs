//! Reports of runs, comparisons and sweeps, and the rows that a sweep keeps.

use std::fs;

use crate::support::{CHAIN, anabranch, assert_exit, folder, stderr, stdout};

#[test]
fn a_run_has_a_report_that_needs_nothing_else() {
    let folder = folder("run-report");
    fs::write(folder.join("s.toml"), CHAIN).unwrap();
    let output = anabranch(&folder, &["sim", "run", "s.toml", "--report", "out.html"]);
    assert_exit(&output, 0);
    let page = fs::read_to_string(folder.join("out.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    for part in ["Does a chain work?", "Over time", "Distribution: Queue", "<h4>Flows</h4>", "ns2/sack"] {
        assert!(page.contains(part), "{part}");
    }
    assert_exit(&anabranch(&folder, &["sim", "run", "s.toml", "--report", "s.toml"]), 2);
}

/// All content of a file is text, in every report.
#[test]
fn no_file_can_add_an_element_to_a_report() {
    let folder = folder("run-report-text");
    let hostile = CHAIN.replace("Does a chain work?", "Does </script></pre><img src=x> work?");
    let axis = "[[axis]]\nname = \"<img>\"\n[axis.values]\n\"<img>\" = {}\n";
    fs::write(folder.join("s.toml"), hostile + axis).unwrap();
    assert_exit(&anabranch(&folder, &["sim", "run", "s.toml", "--report", "run.html"]), 0);
    assert_exit(&anabranch(&folder, &["sim", "sweep", "s.toml", "--report", "grid.html"]), 0);
    for name in ["run.html", "grid.html"] {
        let page = fs::read_to_string(folder.join(name)).unwrap();
        assert!(page.contains("&lt;img") && !page.contains("<img"), "{name}");
    }
}

#[test]
fn runs_are_compared_in_one_report() {
    let folder = folder("compare");
    fs::write(folder.join("a.toml"), CHAIN).unwrap();
    fs::write(folder.join("b.toml"), CHAIN.replace("window = 8", "window = 4")).unwrap();
    let output = anabranch(&folder, &["compare", "a.toml", "b.toml"]);
    assert_exit(&output, 0);
    assert!(
        stdout(&output).contains("Everything, with curves and distributions: comparison.html"),
        "{}",
        stdout(&output)
    );
    let page = fs::read_to_string(folder.join("comparison.html")).unwrap();
    assert!(page.contains("a.toml beside b.toml") && page.contains("b.toml: f0"));
    assert_exit(&anabranch(&folder, &["compare", "a.toml"]), 2);
    assert_exit(&anabranch(&folder, &["compare", "a.toml", "missing.toml"]), 2);
}

/// A point without chance runs once. A sweep with rows runs only the missing points, and its table is the same.
#[test]
fn a_sweep_goes_on_where_it_stopped() {
    let folder = folder("sweep-rows");
    let axis =
        "[[axis]]\nname = \"loss\"\n[axis.values]\nnone = { \"link.a.error\" = { kind = \"none\" } }\nsome = {}\n";
    let random = CHAIN.replace("{ kind = \"list\", packets = [100] }", "{ kind = \"uniform\", rate = 0.05 }");
    fs::write(folder.join("s.toml"), random + axis).unwrap();
    let sweep = |args: &[&str]| {
        let output = anabranch(&folder, &[&["sim", "sweep", "s.toml", "--report", "grid.html"], args].concat());
        assert_exit(&output, 0);
        (stdout(&output).to_owned(), stderr(&output).to_owned())
    };
    let certain = "note: 1 of 2 points have nothing random and were run once";
    let (table, notes) = sweep(&["--seeds", "3"]);
    assert!(notes.starts_with(certain) && !notes.contains("kept"), "{notes}");
    assert!(table.contains("none,flow.f0.timeouts,1,") && table.contains("some,flow.f0.timeouts,3,"), "{table}");
    // Fewer seeds first, then one run cut off in the middle.
    sweep(&["--seeds", "2", "--rows", "rows.csv"]);
    let rows = fs::read_to_string(folder.join("rows.csv")).unwrap();
    assert_eq!(rows.matches(",hash,").count(), 3, "one run and two");
    let (resumed, notes) = sweep(&["--seeds", "3", "--rows", "rows.csv"]);
    assert_eq!(resumed, table);
    assert!(notes.contains("note: 3 of 4 runs were kept from an earlier sweep"), "{notes}");
    let whole = fs::read_to_string(folder.join("rows.csv")).unwrap();
    fs::write(folder.join("rows.csv"), &whole[..whole.len() - 40]).unwrap();
    let (again, notes) = sweep(&["--seeds", "3", "--rows", "rows.csv"]);
    assert_eq!((again, fs::read_to_string(folder.join("rows.csv")).unwrap()), (table, whole));
    assert!(notes.contains("note: 3 of 4 runs were kept from an earlier sweep"), "{notes}");
    // A changed scenario is another run.
    let (_, notes) = sweep(&["--seeds", "3", "--rows", "rows.csv", "--set", "flow.f0.window=4"]);
    assert!(!notes.contains("kept"), "{notes}");
    let page = fs::read_to_string(folder.join("grid.html")).unwrap();
    assert!(page.contains("flow.f0.goodput_bps") && page.contains("<svg class=\"curve\""));
    fs::write(folder.join("other.csv"), "a,b\n").unwrap();
    assert_exit(&anabranch(&folder, &["sim", "sweep", "s.toml", "--rows", "other.csv"]), 2);
}
