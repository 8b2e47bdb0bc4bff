//! What the machine does not have, and what a file has too much of.

use std::fs;
use std::process::Command;

use crate::support::{CHAIN, assert_exit, folder, stdout};

/// No thread can have a stack of a petabyte: the system refuses every one of them.
#[test]
fn without_threads_the_work_is_done_all_the_same() {
    let folder = folder("threads");
    fs::write(folder.join("s.toml"), CHAIN).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .args(["sim", "sweep", "s.toml", "--seeds", "3", "--jobs", "50"])
        .env("RUST_MIN_STACK", "1000000000000000")
        .current_dir(&folder)
        .output()
        .unwrap();
    assert_exit(&output, 0);
    assert!(stdout(&output).contains("flow.f0.goodput_bps,3,"), "{}", stdout(&output));
}
