//! Where results go.

use std::fs;

use crate::support::{CHAIN, anabranch, assert_exit, experiment, folder, repository, stderr, stdout};

/// A folder below a file cannot be made by anybody. It is found before the simulation runs.
#[test]
fn unwritable_folders_are_refused_and_nothing_is_half_written() {
    let folder = folder("unwritable");
    fs::write(folder.join("s.toml"), CHAIN).unwrap();
    for args in [["run", "s.toml", "--trace", "s.toml/out"], ["sweep", "s.toml", "--out", "s.toml/out.csv"]] {
        let output = anabranch(&folder, &[&["sim"], &args[..]].concat());
        assert_exit(&output, 2);
        assert_eq!(stdout(&output), "");
        assert!(stderr(&output).contains("name a folder that you may write to"), "{}", stderr(&output));
    }
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["s.toml"]);
}

#[test]
fn a_folder_that_cannot_be_written_is_usage_before_anything_runs() {
    let folder = folder("unwritable-report");
    fs::create_dir_all(folder.join("experiments/test-2000")).unwrap();
    fs::write(folder.join("experiments/test-2000/table1.toml"), experiment(1, "")).unwrap();
    fs::write(folder.join("reproduction"), "a file").unwrap();
    for args in [["reproduce"].as_slice(), &["reproduce", "--json", "--out", "reproduction/below"]] {
        let output = anabranch(&folder, args);
        assert_exit(&output, 2);
        assert_eq!(stdout(&output), "");
        assert!(
            stderr(&output).contains("cannot write here") && stderr(&output).contains("reproduction"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
#[cfg(unix)]
fn a_link_is_followed_and_a_device_left_alone() {
    let folder = folder("a_link_is_followed_and_a_device_left_alone");
    fs::write(folder.join("target.csv"), "old").unwrap();
    std::os::unix::fs::symlink("target.csv", folder.join("link.csv")).unwrap();
    let sweep = |out: &str| {
        let file = repository().join("experiments/bench/small.toml");
        anabranch(&folder, &["sim", "sweep", file.to_str().unwrap(), "--seeds", "1", "--out", out])
    };
    assert_eq!(sweep("link.csv").status.code(), Some(0));
    assert!(fs::symlink_metadata(folder.join("link.csv")).unwrap().is_symlink());
    assert_ne!(fs::read_to_string(folder.join("target.csv")).unwrap(), "old");
    let full = sweep("/dev/full");
    assert_eq!(full.status.code(), Some(1), "{}", stderr(&full));
    assert!(!fs::metadata("/dev/full").unwrap().is_file());
}
