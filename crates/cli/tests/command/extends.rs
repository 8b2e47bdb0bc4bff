//! Files that extend others.

use std::fs;

use crate::support::{CHAIN, anabranch, assert_exit, document, folder, random_experiment, stderr, stdout};

#[test]
fn a_file_runs_as_if_its_base_stood_in_it() {
    let folder = folder("extends-runs");
    fs::create_dir_all(folder.join("common")).unwrap();
    fs::create_dir_all(folder.join("mine")).unwrap();
    fs::write(folder.join("common/chain.toml"), CHAIN).unwrap();
    let own = "extends = \"../common/chain.toml\"\n[[flow]]\nid = \"f0\"\nwindow = 20\n";
    fs::write(folder.join("mine/s.toml"), own).unwrap();
    fs::write(folder.join("whole.toml"), CHAIN.replace("window = 8", "window = 20")).unwrap();
    let run = |file: &str| document(&anabranch(&folder, &["sim", "run", file, "--json"]))["hash"].clone();
    assert_eq!(run("mine/s.toml"), run("whole.toml"));
    assert_ne!(run("mine/s.toml"), run("common/chain.toml"));
    // An override is applied last.
    let set = anabranch(&folder, &["sim", "run", "mine/s.toml", "--json", "--set", "flow.f0.window=8"]);
    assert_eq!(document(&set)["hash"], run("common/chain.toml"));
}

#[test]
fn a_mistake_in_a_base_is_shown_there() {
    let folder = folder("extends-mistake");
    fs::create_dir_all(folder.join("mine")).unwrap();
    fs::write(folder.join("chain.toml"), CHAIN.replace("delay", "dealy")).unwrap();
    fs::write(folder.join("mine/s.toml"), "extends = \"../chain.toml\"\n").unwrap();
    let output = anabranch(&folder, &["sim", "run", "mine/s.toml"]);
    assert_exit(&output, 2);
    let expected =
        "error: chain.toml:9:1: unknown key `dealy`; did you mean `delay`?\n  |\n9 | dealy = \"20ms\"\n  | ^^^^^\n";
    assert_eq!(stderr(&output), expected);
    fs::write(folder.join("mine/s.toml"), "\nextends = \"../missing.toml\"\n").unwrap();
    let output = anabranch(&folder, &["sim", "run", "mine/s.toml"]);
    assert_exit(&output, 2);
    assert!(
        stderr(&output).starts_with("error: mine/s.toml:2:11: `missing.toml` cannot be read: No such file"),
        "{}",
        stderr(&output)
    );
}

/// A base is an input like any other, and a device or a pipe is not read.
#[test]
#[cfg(unix)]
fn bases_are_not_written_over_and_devices_not_read() {
    let folder = folder("extends-inputs");
    fs::write(folder.join("chain.toml"), CHAIN).unwrap();
    fs::write(folder.join("s.toml"), "extends = \"chain.toml\"\n").unwrap();
    let output = anabranch(&folder, &["sim", "run", "s.toml", "--pcap", "chain.toml"]);
    assert_exit(&output, 2);
    let expected = "error: chain.toml: would be written over chain.toml, which is read; name another place\n";
    assert_eq!(stderr(&output), expected);
    let made = std::process::Command::new("mkfifo").arg(folder.join("pipe.toml")).status().unwrap();
    assert!(made.success());
    std::os::unix::fs::symlink("/dev/zero", folder.join("zero.toml")).unwrap();
    for base in ["pipe.toml", "zero.toml"] {
        fs::write(folder.join("s.toml"), format!("extends = \"{base}\"\n")).unwrap();
        let output = anabranch(&folder, &["sim", "run", "s.toml"]);
        assert_exit(&output, 2);
        assert!(stderr(&output).contains("it is no plain file"), "{}", stderr(&output));
    }
}

/// A file in `experiments/common` is no experiment, and an artifact contains it.
#[test]
fn common_files_are_no_experiments_and_are_packed() {
    let folder = folder("extends-artifact");
    fs::create_dir_all(folder.join("experiments/common")).unwrap();
    fs::create_dir_all(folder.join("experiments/test-2000")).unwrap();
    let (network, rest) =
        random_experiment().split_once("[[flow]]").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    fs::write(folder.join("experiments/common/chain.toml"), network).unwrap();
    let own = format!("extends = \"../common/chain.toml\"\n[[flow]]{rest}");
    fs::write(folder.join("experiments/test-2000/table1.toml"), own).unwrap();
    let packed = anabranch(&folder, &["artifact", "pack", "a.zip", "--seeds", "2"]);
    assert_exit(&packed, 0);
    let verified = anabranch(&folder, &["artifact", "verify", "a.zip"]);
    assert_exit(&verified, 0);
    assert!(stdout(&verified).contains("every file comes out again, byte by byte"), "{}", stdout(&verified));
    let over = anabranch(&folder, &["artifact", "pack", "experiments/common/chain.toml", "--seeds", "2"]);
    assert_exit(&over, 2);
    assert!(stderr(&over).contains("which is read"), "{}", stderr(&over));
}
