//! The files of results.

use std::fs;

use crate::support::{CHAIN, anabranch, assert_exit, experiment, folder, repository, stderr, stdout};

/// A folder below a file cannot be created. This is found before the simulation runs.
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
fn unwritable_folder_is_usage_error_before_run() {
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
        let file = repository().join("experiments/speed/small.toml");
        anabranch(&folder, &["sim", "sweep", file.to_str().unwrap(), "--seeds", "1", "--out", out])
    };
    assert_eq!(sweep("link.csv").status.code(), Some(0));
    assert!(fs::symlink_metadata(folder.join("link.csv")).unwrap().is_symlink());
    assert_ne!(fs::read_to_string(folder.join("target.csv")).unwrap(), "old");
    let full = sweep("/dev/full");
    assert_eq!(full.status.code(), Some(1), "{}", stderr(&full));
    assert!(!fs::metadata("/dev/full").unwrap().is_file());
}

/// An input is recognised under another path, as a symbolic link and as a hard link.
#[test]
#[cfg(unix)]
fn output_does_not_replace_input() {
    let folder = folder("over-inputs");
    let paper = folder.join("experiments/test-2000");
    fs::create_dir_all(&paper).unwrap();
    fs::create_dir_all(folder.join("out")).unwrap();
    fs::write(folder.join("s.toml"), CHAIN).unwrap();
    fs::write(folder.join("out/flow.f0.csv"), CHAIN).unwrap();
    fs::write(paper.join("table1.toml"), experiment(1, "")).unwrap();
    std::os::unix::fs::symlink("s.toml", folder.join("soft.toml")).unwrap();
    fs::hard_link(folder.join("s.toml"), folder.join("hard.toml")).unwrap();
    std::os::unix::fs::symlink("../experiments/test-2000/table1.toml", folder.join("out/outcome.csv")).unwrap();
    fs::hard_link(paper.join("table1.toml"), folder.join("out/report.html")).unwrap();
    fs::hard_link(paper.join("table1.toml"), folder.join("out/a.zip")).unwrap();
    let refuse = |args: &[&str], output: &str, input: &str| {
        let refused = anabranch(&folder, args);
        assert_exit(&refused, 2);
        assert_eq!(stdout(&refused), "", "{args:?}");
        let expected = format!("error: {output}: would be written over {input}, which is read; name another place\n");
        assert_eq!(stderr(&refused), expected, "{args:?}");
    };
    for output in ["s.toml", "./s.toml", "out/../s.toml", "soft.toml", "hard.toml"] {
        for input in ["s.toml", "soft.toml", "hard.toml"] {
            refuse(&["sim", "run", input, "--pcap", output], output, input);
        }
        refuse(&["sim", "sweep", "s.toml", "--out", output], output, "s.toml");
    }
    refuse(&["sim", "run", "out/flow.f0.csv", "--trace", "out"], "out/flow.f0.csv", "out/flow.f0.csv");
    let table = "experiments/test-2000/table1.toml";
    refuse(&["reproduce", "--out", "out"], "out/report.html", table);
    fs::remove_file(folder.join("out/report.html")).unwrap();
    refuse(&["reproduce", "--json", "--out", "out"], "out/outcome.csv", table);
    refuse(&["artifact", "pack", table], table, table);
    refuse(&["artifact", "pack", "out/a.zip"], "out/a.zip", table);
    assert_eq!(fs::read_to_string(folder.join("s.toml")).unwrap(), CHAIN);
    assert_eq!(fs::read_to_string(folder.join("out/flow.f0.csv")).unwrap(), CHAIN);
    assert_eq!(fs::read_to_string(paper.join("table1.toml")).unwrap(), experiment(1, ""));
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 5, "{left:?}");
}

/// `anabranch sim run s.toml --json >> s.toml`: only the shell knows the name of the output.
#[test]
#[cfg(unix)]
fn output_is_not_appended_to_input() {
    let folder = folder("print-over-input");
    let file = folder.join("s.toml");
    fs::write(&file, CHAIN).unwrap();
    let appending = fs::File::options().append(true).open(&file).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_anabranch"));
    let output =
        command.args(["sim", "run", "s.toml", "--json"]).current_dir(&folder).stdout(appending).output().unwrap();
    assert_exit(&output, 2);
    let expected = "error: s.toml: standard output would be written over it; name another file\n";
    assert_eq!(stderr(&output), expected);
    assert_eq!(fs::read_to_string(&file).unwrap(), CHAIN);
}

#[test]
fn a_capture_and_a_table_are_two_files() {
    let folder = folder("capture-over-table");
    fs::write(folder.join("s.toml"), CHAIN).unwrap();
    let output = anabranch(&folder, &["sim", "run", "s.toml", "--trace", "out", "--pcap", "./out/link.a.csv"]);
    assert_exit(&output, 2);
    assert_eq!(stderr(&output), "error: ./out/link.a.csv: --trace writes a table of this name; name another file\n");
}

/// A named pipe without a writer would be waited for, and a device read for ever.
#[test]
#[cfg(unix)]
fn input_pipe_or_device_refused_at_once() {
    let folder = folder("input-pipe");
    assert!(std::process::Command::new("mkfifo").arg(folder.join("pipe.toml")).status().unwrap().success());
    fs::write(folder.join("s.toml"), CHAIN).unwrap();
    fs::write(folder.join("extends.toml"), "extends = \"pipe.toml\"\n").unwrap();
    let cases: [&[&str]; 9] = [
        &["sim", "run", "pipe.toml"],
        &["sim", "run", "/dev/zero"],
        &["sim", "run", "extends.toml"],
        &["sim", "sweep", "s.toml", "--seeds", "1", "--rows", "pipe.toml"],
        &["sim", "merge", "s.toml", "pipe.toml"],
        &["compare", "s.toml", "pipe.toml"],
        &["artifact", "verify", "pipe.toml"],
        &["cc", "check", "pipe.toml"],
        &["key", "show", "pipe.toml"],
    ];
    for args in cases {
        let mut command = std::process::Command::new("timeout");
        let command = command.args(["10", env!("CARGO_BIN_EXE_anabranch")]).args(args).current_dir(&folder);
        let output = command.output().unwrap();
        assert_exit(&output, 2);
        let expected = if args[0] == "key" { "holds no secret key" } else { "no plain file" };
        assert!(stderr(&output).contains(expected), "{args:?}: {}", stderr(&output));
    }
}

/// The temporary names of results are new files, whatever is there.
#[test]
#[cfg(unix)]
fn temporary_name_never_an_existing_file() {
    let folder = folder("temporary-names");
    fs::write(folder.join("s.toml"), CHAIN).unwrap();
    fs::write(folder.join("victim"), "precious").unwrap();
    // The number of the process is not known before: a shell replaces itself, and so gives its own.
    let script = "for name in .anabranch-$$ .out.csv.$$.part .out.csv.$$-0.part .anabranch.$$-0.part; do ln -s victim $name; done
                  exec \"$0\" sim sweep s.toml --seeds 1 --out out.csv";
    let mut shell = std::process::Command::new("sh");
    let shell = shell.args(["-c", script, env!("CARGO_BIN_EXE_anabranch")]).current_dir(&folder);
    assert_exit(&shell.output().unwrap(), 0);
    assert_eq!(fs::read_to_string(folder.join("victim")).unwrap(), "precious");
    let links = fs::read_dir(&folder).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_symlink());
    assert_eq!(links.count(), 4);
    assert!(fs::read_to_string(folder.join("out.csv")).unwrap().lines().count() > 1);
}
