//! Limits of the machine and of files.

use std::process::Command;
use std::time::Duration;
use std::{fs, thread};

use crate::support::{CHAIN, anabranch, assert_exit, document, folder, stderr, stdout};

/// With stacks of a petabyte the system refuses every thread.
#[test]
fn without_threads_the_work_is_done_all_the_same() {
    let folder = folder("threads");
    // A random scenario, as a point without chance runs once.
    let random = CHAIN.replace("{ kind = \"list\", packets = [100] }", "{ kind = \"uniform\", rate = 0.05 }");
    fs::write(folder.join("s.toml"), random).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .args(["sim", "sweep", "s.toml", "--seeds", "3", "--jobs", "50"])
        .env("RUST_MIN_STACK", "1000000000000000")
        .current_dir(&folder)
        .output()
        .unwrap();
    assert_exit(&output, 0);
    assert!(stdout(&output).contains("flow.f0.goodput_bps,3,"), "{}", stdout(&output));
}

#[test]
#[cfg(unix)]
fn a_file_without_an_end_is_refused_before_it_is_parsed() {
    let folder = folder("endless");
    let refused = "it has more than 16 MiB, and no scenario has; name a scenario file, or make it smaller with `count`";
    let device = anabranch(&folder, &["sim", "run", "/dev/zero"]);
    assert_exit(&device, 2);
    let not_read = "cannot be read: it is no plain file; name a scenario file that exists and may be read";
    assert_eq!(stderr(&device), format!("error: /dev/zero: {not_read}\n"));
    // A pipe without an end.
    let endless = Command::new("sh")
        .args(["-c", "yes '# nothing' | \"$0\" sim sweep /dev/stdin", env!("CARGO_BIN_EXE_anabranch")])
        .output()
        .unwrap();
    assert_exit(&endless, 2);
    assert_eq!(stderr(&endless), format!("error: /dev/stdin: {refused}\n"));
    let piped = Command::new("sh")
        .args(["-c", "printf %s \"$1\" | \"$0\" sim run /dev/stdin --json", env!("CARGO_BIN_EXE_anabranch"), CHAIN])
        .output()
        .unwrap();
    assert_exit(&piped, 0);
}

/// Ctrl-C as soon as the file exists. The run would take minutes.
#[test]
#[cfg(unix)]
fn an_interrupted_run_leaves_nothing_half_written() {
    let folder = folder("interrupted");
    fs::write(folder.join("s.toml"), CHAIN.replace("5s", "1000h")).unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .args(["sim", "run", "s.toml", "--pcap", "out/s.pcapng"])
        .current_dir(&folder)
        .spawn()
        .unwrap();
    let left =
        || fs::read_dir(folder.join("out")).map_or(0, |entries| entries.filter(|it| is_part(it.as_ref())).count());
    while left() == 0 {
        assert!(run.try_wait().unwrap().is_none(), "it ended by itself");
        thread::sleep(Duration::from_millis(5));
    }
    let signal = Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap();
    assert!(signal.success());
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read_dir(folder.join("out")).unwrap().count(), 0);
}

fn is_part(entry: Result<&fs::DirEntry, &std::io::Error>) -> bool {
    entry.is_ok_and(|entry| entry.file_name().to_string_lossy().ends_with(".part"))
}

/// 100 Mbit/s for a minute are a million changes. What the assertions read has a limit, and a message says so; the tables are whole: each
/// packet enters the queue and leaves it at times of its own.
#[test]
#[cfg(target_os = "linux")]
fn a_long_run_is_traced_in_little_memory() {
    let folder = folder("long-trace");
    let long =
        CHAIN.replace("1.5Mbit/s", "100Mbit/s").replace("window = 8", "window = 500").replace("\"5s\"", "\"60s\"");
    fs::write(folder.join("s.toml"), long).unwrap();
    let run = "ulimit -v 300000; exec \"$0\" sim run s.toml --trace out --json --assert 'max(flow.f0.window, 0, 60) > 1' --assert \
               'mean(flow.f0.goodput, 0, 60) > 1e6'";
    let output =
        Command::new("sh").args(["-c", run, env!("CARGO_BIN_EXE_anabranch")]).current_dir(&folder).output().unwrap();
    let report = document(&output);
    let note = report["notes"][0].as_str().unwrap();
    assert!(note.starts_with("what the measures and the report read did not fit into memory"), "{note}");
    let rows = fs::read_to_string(folder.join("out/link.a.csv")).unwrap().lines().count();
    let forwarded = report["links"][0]["forwarded_packets"].as_u64().unwrap() as usize;
    assert!(forwarded > 300_000 && rows > 2 * forwarded, "{rows} rows, {forwarded} packets");
}
