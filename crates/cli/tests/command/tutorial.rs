//! The pages of docs/tutorial, as a reader follows them: files are saved, and commands run in order.
//!
//! A block of `toml` or `python` is the file that the line above it names. Blocks of `console` are commands; blocks of `text` are what these print. Where a page
//! has two terminals, a command that prints a ticket runs in the background, and its ticket takes the place of `ab1...`.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::plugins::{can_build, has, has_wasm};
use crate::support::{assert_exit, folder, repository, stderr, stdout};

/// A page, or a section of it.
#[derive(Default)]
struct Page {
    /// Names and contents.
    files: Vec<(String, String)>,
    commands: Vec<String>,
}

/// Reads a page of the tutorial; with a heading, only that section.
fn page(name: &str, heading: Option<&str>) -> Page {
    let text = fs::read_to_string(repository().join("docs/tutorial").join(name)).unwrap();
    let (mut page, mut above, mut is_wanted) = (Page::default(), "", heading.is_none());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else {
            if line.starts_with("## ") {
                is_wanted = heading.is_none_or(|heading| line == format!("## {heading}"));
            }
            above = if line.is_empty() { above } else { line };
            continue;
        };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match language {
            _ if !is_wanted => {}
            "console" => page.commands.extend(block.into_iter().map(str::to_owned)),
            "toml" | "python" => {
                let name = above.strip_suffix("`:").and_then(|above| above.rsplit('`').next());
                let name = name.unwrap_or_else(|| panic!("{name:?}: `{above}` names no file"));
                page.files.push((name.to_owned(), block.join("\n") + "\n"));
            }
            "text" => {}
            other => panic!("a block of {other} is neither run nor marked as an output"),
        }
    }
    page
}

/// The commands as a shell runs them, one after the other, until one fails.
fn script(commands: &[String]) -> String {
    let line = |line: &String| {
        let line = line.strip_prefix("sudo ").unwrap_or(line).replace("ab1...", "\"$(cat \"$TICKET\")\"");
        if !["anabranch recv", "bench serve", "tunnel serve"].iter().any(|server| line.contains(server)) {
            return line;
        }
        // In a shell of its own: this one would wait for it.
        format!(
            "TOLD=$(mktemp \"$TICKET.XXXXXX\"); ({line} > \"$TOLD\" 2>&1 &)\n\
             for turn in $(seq 300); do grep -o 'ab1[0-9a-z]*' \"$TOLD\" > \"$TICKET\" && break; sleep 0.1; done\n\
             test -s \"$TICKET\""
        )
    };
    commands.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Saves the files of a page in a folder of the test's own.
fn saved(test: &str, page: &Page) -> PathBuf {
    let folder = folder(test);
    page.files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
    folder
}

/// The shell, which finds the command of this build.
fn shell(folder: &Path, arguments: &[&str]) -> Command {
    let anabranch = Path::new(env!("CARGO_BIN_EXE_anabranch"));
    let place = anabranch.parent().unwrap().display();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(arguments[0]);
    command.args(&arguments[1..]).current_dir(folder).env("PATH", format!("{place}:{path}"));
    // What cargo says to this test is not meant for projects that the page builds.
    command.env("TICKET", folder.join("ticket")).env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
    command
}

#[test]
fn first_scenario_runs_as_it_is_written() {
    let page = page("first-scenario.md", None);
    let folder = saved("tutorial_scenario", &page);
    let output = shell(&folder, &["sh", "-ec", &script(&page.commands)]).output().unwrap();
    assert_exit(&output, 0);
    // What the page says of them: an eighth of the link is idle with ten packets of Reno, and nothing with forty or with the default law.
    let goodputs: Vec<f64> = stdout(&output)
        .lines()
        .filter_map(|line| line.strip_prefix("f0 ")?.split_whitespace().nth(1)?.parse().ok())
        .collect();
    assert!(goodputs.len() >= 3, "{goodputs:?}");
    assert!((8400.0..8700.0).contains(&goodputs[0]), "{goodputs:?}");
    assert!(goodputs[1] > 9400.0 && goodputs[2] > 9000.0, "{goodputs:?}");
    assert!(folder.join("run.html").exists());
    // The output that the page shows is what is printed, as far as it goes.
    let text = fs::read_to_string(repository().join("docs/tutorial/first-scenario.md")).unwrap();
    let shown = text.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    for line in shown.lines() {
        assert!(stdout(&output).contains(line), "{line}: {}", stdout(&output));
    }
}

#[test]
fn first_sweep_runs_as_it_is_written() {
    let page = page("first-sweep.md", None);
    let folder = saved("tutorial_sweep", &page);
    let commands: Vec<String> = page
        .commands
        .iter()
        .map(|line| line.replace("--seeds 20", "--seeds 4").replace("--seeds 10", "--seeds 3"))
        .collect();
    let output = shell(&folder, &["sh", "-ec", &script(&commands)]).output().unwrap();
    assert_exit(&output, 0);
    let mean = |law: &str| -> f64 {
        let begin = format!("{law},1 %,\"goodput, Mbit/s\",3,");
        let line = stdout(&output).lines().find_map(|line| line.strip_prefix(&begin));
        line.unwrap_or_else(|| panic!("{}", stdout(&output))).split(',').next().unwrap().parse().unwrap()
    };
    assert!(mean("anabranch") > 17.5 && (16.0..18.0).contains(&mean("BBR")) && mean("CUBIC") < 2.0);
    assert!(folder.join("grid.html").exists());
}

#[test]
fn own_controller_in_c_runs_as_it_is_written() {
    if can_build("C", "clang, lld and make", "apt-get install clang lld make", &["clang", "wasm-ld", "make"].map(has)) {
        let goodputs = own_controller("tutorial_c", "In C");
        let [reno, bolder, faster] = goodputs[..] else { panic!("three runs: {goodputs:?}") };
        assert!(reno < bolder && bolder > 10.0 && faster > bolder, "{goodputs:?}");
    }
}

#[test]
fn own_controller_in_rust_runs_as_it_is_written() {
    if can_build("Rust", "the target wasm32-unknown-unknown", "rustup target add wasm32-unknown-unknown", &[has_wasm()])
    {
        assert_eq!(own_controller("tutorial_rust", "In Rust").len(), 1);
    }
}

/// Runs a section; returns what the own law has beside CUBIC in each run, in Mbit/s.
fn own_controller(test: &str, heading: &str) -> Vec<f64> {
    let page = page("own-controller.md", Some(heading));
    let folder = saved(test, &page);
    let output = shell(&folder, &["sh", "-ec", &script(&page.commands)]).output().unwrap();
    assert_exit(&output, 0);
    let flows = stdout(&output).lines().filter_map(|line| line.strip_prefix("mine "));
    flows
        .filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok())
        .map(|kilobits| kilobits / 1e3)
        .collect()
}

#[test]
fn first_transfer_runs_as_it_is_written() {
    over_links(
        "first-transfer.md",
        "tutorial_transfer",
        &[("8000000", "1000000"), ("--time 5", "--time 1")],
        Some("inbox/film"),
    );
}

#[test]
fn transfer_over_two_paths_runs_as_it_is_written() {
    over_links(
        "two-paths.md",
        "tutorial_paths",
        &[("20000000", "6000000"), ("sleep 3", "sleep 1")],
        Some("inbox/film"),
    );
}

/// In the place of `ping`, which not every machine has, a connection is refused by the server's system, which is an answer, too.
#[test]
fn vpn_over_two_links_runs_as_it_is_written() {
    let asks = "python3 -c 'import socket; s = socket.socket(); s.settimeout(20); assert s.connect_ex((\"10.90.0.1\", 9)) == 111'";
    over_links("vpn.md", "tutorial_vpn", &[("ping -c 3 -W 5 10.90.0.1", asks), ("ping -c 3 10.90.0.1", asks)], None);
}

/// The transfers take the ways that the page tells.
#[test]
fn meeting_behind_nats_runs_as_it_is_written() {
    if !has("nft") {
        assert!(std::env::var_os("ANABRANCH_REQUIRE_NFTABLES").is_none(), "nftables is required");
        let _ = writeln!(std::io::stderr(), "skipped: the tutorial about NATs needs nftables");
        return;
    }
    let ways = [
        ("film \"$(cat \"$TICKET\")\"", "film \"$(cat \"$TICKET\")\" | grep '\"way\":\"direct\"'"),
        ("second \"$(cat \"$TICKET\")\"", "second \"$(cat \"$TICKET\")\" | grep '\"way\":\"relay\"'"),
    ];
    over_links("behind-nats.md", "tutorial_nats", &ways, Some("inbox/second"));
}

/// Runs a page in a sandbox, with shorter times, after which there is a file. Where links cannot be emulated, it says so and passes.
#[track_caller]
fn over_links(name: &str, test: &str, shorter: &[(&str, &str)], made: Option<&str>) {
    let page = page(name, None);
    let folder = saved(test, &page);
    let sandbox =
        |script: &str| shell(&folder, &["anabranch", "link", "sandbox", "--", "sh", "-ec", script]).output().unwrap();
    let up = script(&page.commands[..1]);
    assert!(up.starts_with("anabranch link up "), "{up}");
    let probe = sandbox(&up);
    if !probe.status.success() {
        // The test harness shows what a passed test prints only to who asks for it; this line goes past it.
        let _ = writeln!(std::io::stderr(), "skipped: {}", stderr(&probe));
        return;
    }
    let whole = shorter.iter().fold(script(&page.commands), |script, (from, to)| script.replace(from, to));
    let output = sandbox(&whole);
    assert_exit(&output, 0);
    let hosts = page.files[0].1.lines().filter(|line| *line == "[[flow]]").count() + 1;
    let gone = format!("removed {hosts} namespaces");
    assert!(stdout(&output).contains(&gone), "{}{}", stdout(&output), stderr(&output));
    assert!(made.is_none_or(|file| folder.join(file).exists()));
}

#[test]
fn server_of_a_page_runs_in_the_background() {
    let commands = ["sudo anabranch link exec h1 -- anabranch recv --to inbox".to_owned(), "x ab1...".to_owned()];
    let script = script(&commands);
    assert!(script.contains("(anabranch link exec h1") && script.ends_with("x \"$(cat \"$TICKET\")\""), "{script}");
}
