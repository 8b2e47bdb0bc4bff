//! Controllers of one's own: in scenarios, in sweeps, and as projects.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::pages::blocks;
use crate::support::{anabranch, assert_exit, document, folder, stderr, stdout};

/// 10 Mbit/s, 20 ms there and back.
const NET: &str = r#"duration = "5s"

[[link]]
id = "l"
from = "a"
to = "b"
rate = "10Mbit/s"
delay = "10ms"
queue = { kind = "drop_tail", packets = 20 }

[[flow]]
id = "f0"
from = "a"
to = "b"
transport = "anabranch"
packet = "1500B"
"#;

/// A module whose table is at 1024 and whose window is 10, with `more`; `mark` is somewhere in its memory and means nothing.
fn module(more: &str, mark: &str) -> Vec<u8> {
    let text = format!(
        "(module (memory (export \"memory\") 1) (data (i32.const 8) \"{mark}\")\n\
         (data (i32.const 1024) \"\\01\") (data (i32.const 1056) \"\\00\\00\\00\\00\\00\\00\\24\\40\")\n\
         (func (export \"anabranch\") (result i32) (i32.const 1024))\n{more})"
    );
    wat::parse_str(text).unwrap()
}

/// One segment more for each ACK.
const GROWS: &str =
    "(func (export \"on_ack\") (f64.store (i32.const 1056) (f64.add (f64.load (i32.const 1056)) (f64.const 1))))";

/// The same, until the window is 30 segments; then it has no end.
const STOPS: &str = "(func (export \"on_ack\")\n\
    (if (f64.gt (f64.load (i32.const 1056)) (f64.const 30)) (then (loop br 0)))\n\
    (f64.store (i32.const 1056) (f64.add (f64.load (i32.const 1056)) (f64.const 1))))";

/// What makes of a scenario the experiment of a paper.
const CLAIM: &str = "[experiment]\npaper = \"test-2000\"\n[measure]\nsent = \"flow.f0.goodput_bps\"\n[[claim]]\nitem = \"t\"\n\
    title = \"T\"\ncite = \"T\"\nrow = \"r\"\nmeasure = \"sent\"\npublished = 1\nband = \"±1\"\nbecause = \"it is a test\"\n";

fn with_plugin() -> String {
    format!("{NET}cc = {{ plugin = \"mine.wasm\" }}\n")
}

/// What a run gave, without what the law is called and how long it took.
fn measured(folder: &Path, args: &[&str]) -> (String, Value) {
    let mut report = document(&anabranch(folder, &[&["sim", "run", "--json"], args].concat()));
    let hash = report["hash"].as_str().unwrap().to_owned();
    for key in ["hash", "wall_seconds"] {
        report.as_object_mut().unwrap().remove(key);
    }
    report["flows"].as_array_mut().unwrap().iter_mut().for_each(|flow| _ = flow.as_object_mut().unwrap().remove("cc"));
    (hash, report)
}

#[test]
fn a_module_drives_a_flow_and_the_hash_is_that_of_its_content() {
    let folder = folder("plugins_run");
    fs::write(folder.join("mine.wasm"), module(GROWS, "a")).unwrap();
    fs::create_dir(folder.join("laws")).unwrap();
    fs::write(folder.join("laws/same.wasm"), module(GROWS, "a")).unwrap();
    fs::write(folder.join("laws/other.wasm"), module(GROWS, "b")).unwrap();
    fs::write(folder.join("net.toml"), with_plugin()).unwrap();
    fs::write(folder.join("plain.toml"), NET).unwrap();
    let report = document(&anabranch(&folder, &["sim", "run", "net.toml", "--json"]));
    assert_eq!(report["flows"][0]["cc"], "mine.wasm");
    assert!(
        report["flows"][0]["dropped_packets"].as_u64().unwrap() > 1000,
        "what never shrinks overfills the queue: {report}"
    );
    // Ten segments of 1500 B in 20 ms and 1.2 ms for the last of them to leave are 5.66 Mbit/s; headers take some of it.
    fs::write(folder.join("ten.wasm"), module("(func (export \"on_ack\"))", "")).unwrap();
    let ten =
        document(&anabranch(&folder, &["sim", "run", "plain.toml", "--json", "--set", "flow.f0.cc.plugin=ten.wasm"]));
    let goodput = ten["flows"][0]["goodput_bps"].as_f64().unwrap();
    assert!(5.3e6 < goodput && goodput < 5.66e6, "{ten}");
    let own = measured(&folder, &["net.toml"]);
    let set = |file: &str| measured(&folder, &["plain.toml", "--set", &format!("flow.f0.cc.plugin={file}")]);
    assert_eq!((&own, &own), (&set("mine.wasm"), &set("laws/same.wasm")));
    let other = set("laws/other.wasm");
    assert_eq!(own.1, other.1);
    assert_ne!(own.0, other.0, "another module, which does the same, is another run");
    // The path is that from the scenario, wherever the command runs.
    let elsewhere = anabranch(folder.parent().unwrap(), &["sim", "run", "plugins_run/net.toml"]);
    assert_exit(&elsewhere, 0);
}

#[test]
fn a_controller_that_fails_ends_the_run_with_an_error() {
    let folder = folder("plugins_fail");
    fs::write(folder.join("mine.wasm"), module(STOPS, "")).unwrap();
    fs::write(folder.join("net.toml"), with_plugin()).unwrap();
    for args in [&["sim", "run", "net.toml"][..], &["sim", "run", "net.toml", "--pcap", "all.pcapng"]] {
        let failed = anabranch(&folder, args);
        assert_exit(&failed, 1);
        let message = stderr(&failed);
        assert!(
            message.contains("flow `f0`: mine.wasm at 0.")
                && message.contains("`on_ack` did not end within 1000000 instructions"),
            "{message}"
        );
    }
    let swept = anabranch(&folder, &["sim", "sweep", "net.toml"]);
    assert_exit(&swept, 1);
    assert!(
        stderr(&swept).contains("1 of 1 runs failed, the first with seed 1: flow `f0`: mine.wasm at 0."),
        "{}",
        stderr(&swept)
    );
    let compared = anabranch(&folder, &["compare", "net.toml", "net.toml"]);
    assert_exit(&compared, 1);
    let paper = folder.join("experiments/test-2000");
    fs::create_dir_all(&paper).unwrap();
    fs::write(paper.join("mine.wasm"), module(STOPS, "")).unwrap();
    fs::write(paper.join("one.toml"), format!("{}{CLAIM}", with_plugin())).unwrap();
    let reproduced = anabranch(&folder, &["reproduce"]);
    assert_exit(&reproduced, 1);
    let message = stderr(&reproduced);
    assert!(message.contains("one.toml: with the seed 1: flow `f0`: mine.wasm at 0."), "{message}");
}

#[test]
fn a_file_that_is_no_controller_is_refused_where_it_is_named() {
    let folder = folder("plugins_bad");
    fs::write(folder.join("net.toml"), with_plugin()).unwrap();
    let refused = |message: &str| {
        let output = anabranch(&folder, &["sim", "run", "net.toml"]);
        assert_exit(&output, 2);
        let found = stderr(&output);
        assert!(found.contains("net.toml:17:17: ") && found.contains(message), "{found}");
    };
    refused("the controller `mine.wasm` cannot be read: No such file");
    fs::write(folder.join("mine.wasm"), "duration = \"1s\"").unwrap();
    refused("mine.wasm is no WASM module");
    fs::write(folder.join("mine.wasm"), wat::parse_str("(module (import \"env\" \"now\" (func)))").unwrap()).unwrap();
    refused("mine.wasm imports `now` of `env`");
    fs::remove_file(folder.join("mine.wasm")).unwrap();
    fs::create_dir(folder.join("mine.wasm")).unwrap();
    refused("it is no plain file");
    fs::write(folder.join("ok.wasm"), module(GROWS, "")).unwrap();
    let set = |law: &str| {
        fs::write(folder.join("plain.toml"), NET).unwrap();
        let output = anabranch(&folder, &["sim", "run", "plain.toml", "--set", &format!("flow.f0.cc={law}")]);
        assert_exit(&output, 2);
        stderr(&output).to_owned()
    };
    for (law, message) in [
        ("{ plugin = \"ok.wasm\", alpha = 3 }", "ok.wasm has no setting `alpha`; it declares none"),
        ("{ plugin = \"ok.wasm\", name = \"reno\" }", "a flow has one law"),
        ("{ plugin = \"ok.so\" }", "`ok.so` is not the name of a controller"),
        ("{ plugin = \"/etc/ok.wasm\" }", "not a relative path of a controller"),
        ("{ plugin = 3 }", "is not the name of a controller"),
        ("{ alpha = 3 }", "no law is named; add `name` and a law, or `plugin` and the file of your own"),
    ] {
        let found = set(law);
        assert!(found.contains(message), "{law}: {found}");
    }
    let agent =
        NET.replace("transport = \"anabranch\"", "transport = \"ns2/fast\"") + "cc = { plugin = \"ok.wasm\" }\n";
    fs::write(folder.join("agent.toml"), agent).unwrap();
    assert_exit(&anabranch(&folder, &["sim", "run", "agent.toml"]), 2);
}

/// A grid over two modules and settings of the network: kept runs are known by the modules' content.
#[test]
fn a_sweep_knows_a_run_by_the_content_of_the_module() {
    let folder = folder("plugins_sweep");
    let axis = "[[axis]]\nname = \"law\"\n[axis.values]\none = { \"flow.f0.cc.plugin\" = \"one.wasm\" }\n\
        two = { \"flow.f0.cc\" = { plugin = \"two.wasm\" } }\n";
    let random = NET.replacen("queue =", "error = { kind = \"uniform\", rate = 0.01 }\nqueue =", 1);
    fs::write(folder.join("grid.toml"), format!("{random}{axis}")).unwrap();
    fs::write(folder.join("one.wasm"), module(GROWS, "1")).unwrap();
    fs::write(folder.join("two.wasm"), module(STOPS, "2")).unwrap();
    let sweep = |jobs: &str| {
        anabranch(&folder, &["sim", "sweep", "grid.toml", "--seeds", "2", "--rows", "rows.csv", "--jobs", jobs])
    };
    let runs = || -> Vec<String> {
        let rows = fs::read_to_string(folder.join("rows.csv")).unwrap_or_default();
        let hashes =
            rows.lines().filter(|line| line.contains(",hash,")).map(|line| line.split(',').next().unwrap().to_owned());
        hashes.collect()
    };
    let failed = sweep("2");
    assert_exit(&failed, 1);
    let message = stderr(&failed);
    assert!(
        message.contains("2 of 4 runs failed, the first with law = two and seed 1: flow `f0`: two.wasm at "),
        "{message}"
    );
    assert_eq!(runs().len(), 2, "the others are kept");
    fs::write(folder.join("two.wasm"), module(GROWS, "2")).unwrap();
    let whole = sweep("1");
    assert_exit(&whole, 0);
    let kept = runs();
    assert_eq!(kept.len(), 4);
    assert_eq!(stdout(&sweep("2")), stdout(&whole));
    assert_eq!(runs(), kept, "nothing ran again");
    fs::write(folder.join("one.wasm"), module(GROWS, "3")).unwrap();
    assert_exit(&sweep("2"), 0);
    assert_eq!(runs().len(), 6, "the module is another, and its two runs, too");
    fs::rename(folder.join("two.wasm"), folder.join("three.wasm")).unwrap();
    let grid = fs::read_to_string(folder.join("grid.toml")).unwrap();
    fs::write(folder.join("grid.toml"), grid.replace("two.wasm", "three.wasm")).unwrap();
    assert_exit(&sweep("2"), 0);
    assert_eq!(runs().len(), 6, "the name has no part in it");
}

#[test]
fn an_evaluation_names_what_is_wrong_with_a_module() {
    let folder = folder("plugins_eval");
    fs::create_dir(folder.join("laws")).unwrap();
    fs::write(folder.join("laws/mine.wasm"), module(GROWS, "a")).unwrap();
    fs::write(folder.join("mine.wasm"), module(GROWS, "b")).unwrap();
    fs::write(folder.join("stops.wasm"), module(STOPS, "c")).unwrap();
    for (args, code, named) in [
        (&["--cc", "laws/none.wasm"][..], 2, "the controller laws/none.wasm cannot be read"),
        (&["--cc", "laws"], 2, "there is no congestion law `laws`"),
        (&["--cc", "laws/mine.wasm,step=2"], 2, "mine.wasm has no setting `step`"),
        (&["--cc", "mine.wasm", "--against", "laws/mine.wasm"], 2, "two different laws are called `mine.wasm`"),
        (&["--cc", "stops.wasm", "--quick"], 1, "flow `f`: stops.wasm at 0."),
    ] {
        let output = anabranch(&folder, &[&["eval"], args].concat());
        assert_exit(&output, code);
        assert!(stderr(&output).contains(named), "{}", stderr(&output));
    }
}

#[test]
fn an_artifact_does_not_hold_a_module() {
    let folder = folder("plugins_artifact");
    let paper = folder.join("experiments/test-2000");
    fs::create_dir_all(&paper).unwrap();
    fs::write(paper.join("mine.wasm"), module(GROWS, "")).unwrap();
    fs::write(paper.join("one.toml"), format!("{}{CLAIM}", with_plugin())).unwrap();
    let packed = anabranch(&folder, &["artifact", "pack", "a.zip"]);
    assert_exit(&packed, 2);
    assert!(
        stderr(&packed).contains("mine.wasm is a controller from a file, and an artifact holds texts alone"),
        "{}",
        stderr(&packed)
    );
    assert!(!folder.join("a.zip").exists());
}

#[test]
fn a_module_is_held_to_what_every_law_must_do() {
    let folder = folder("plugins_check");
    fs::write(folder.join("good.wasm"), module(GROWS, "")).unwrap();
    fs::write(folder.join("greedy.wasm"), module(&format!("{GROWS}(func (export \"on_loss\"))"), "")).unwrap();
    fs::write(folder.join("stops.wasm"), module(STOPS, "")).unwrap();
    let check = |args: &[&str]| anabranch(&folder, &[&["cc", "check"], args].concat());
    let good = check(&["good.wasm", "--cases", "50"]);
    assert_exit(&good, 0);
    assert!(stdout(&good).contains("hooks: on_ack\ngauges: window\n"), "{}", stdout(&good));
    for (args, code, message) in [
        (&["greedy.wasm"][..], 3, "greedy.wasm: a "),
        (&["stops.wasm"], 3, "stops.wasm at "),
        (&["none.wasm"], 2, "none.wasm: cannot be read"),
        (&["good.wasm", "--set", "alpha=3"], 2, "good.wasm has no setting `alpha`"),
    ] {
        let output = check(args);
        assert_exit(&output, code);
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
}

#[test]
fn a_project_is_written_once() {
    let folder = folder("plugins_new");
    for language in ["rust", "c", "python"] {
        let new = || anabranch(&folder, &["cc", "new", &format!("my_{language}"), "--language", language]);
        let made = new();
        assert_exit(&made, 0);
        assert!(stdout(&made).contains(&format!("Next:\n  cd my_{language}\n  ")), "{}", stdout(&made));
        let again = new();
        assert_exit(&again, 2);
        assert!(stderr(&again).contains("is there already, and nothing is written over"), "{}", stderr(&again));
    }
    let bad = anabranch(&folder, &["cc", "new", "My-Law"]);
    assert_exit(&bad, 2);
    assert!(stderr(&bad).contains("cannot be called `My-Law`"), "{}", stderr(&bad));
}

#[test]
fn template_in_c_makes_reno() {
    if can_build("C", "clang, lld and make", "apt-get install clang lld make", &["clang", "wasm-ld", "make"].map(has)) {
        makes_reno("c", "make", "mine.wasm");
    }
}

#[test]
fn template_in_rust_makes_reno() {
    if can_build("Rust", "the target wasm32-unknown-unknown", "rustup target add wasm32-unknown-unknown", &[has_wasm()])
    {
        makes_reno("rust", "cargo build --release", &format!("target/{WASM}/release/mine.wasm"));
    }
}

const WASM: &str = "wasm32-unknown-unknown";

/// Whether Rust's library for WASM is there.
pub(crate) fn has_wasm() -> bool {
    let library = Command::new("rustc").args(["--print", "target-libdir", "--target", WASM]).output();
    library.is_ok_and(|told| told.status.success() && Path::new(stdout(&told).trim()).is_dir())
}

/// The first commands of docs/own-controllers.md make a law that is Reno: to the bit, it does what the project's own does.
#[track_caller]
fn makes_reno(language: &str, build: &str, module: &str) {
    let folder = folder(&format!("plugins_build_{language}"));
    fs::write(folder.join("net.toml"), NET).unwrap();
    let page = blocks("docs/own-controllers.md", "sh").remove(0);
    let page =
        page.replace("--language rust", &format!("--language {language}")).replace("cargo build --release", build);
    let page = page.replace("target/wasm32-unknown-unknown/release/mine.wasm", module);
    let mut place = folder.clone();
    for line in page.lines() {
        let words: Vec<&str> = line.split(" #").next().unwrap_or_default().split_whitespace().collect();
        match words[0] {
            "cd" => place.push(words[1]),
            "anabranch" => assert_exit(&anabranch(&place, &words[1..]), 0),
            program => {
                let mut build = Command::new(program);
                // What cargo says to this test is not meant for the project.
                build.args(&words[1..]).current_dir(&place).env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
                assert_exit(&build.output().unwrap(), 0);
            }
        }
    }
    let file = format!("mine/{module}");
    let set = |law: &str| measured(&folder, &["net.toml", "--set", &format!("flow.f0.cc={law}")]).1;
    assert_eq!(set(&format!("{{ plugin = \"{file}\" }}")), set("{ name = \"reno\" }"));
    let faster = set(&format!("{{ plugin = \"{file}\", initial_window = 4, increase = 3 }}"));
    assert_ne!(faster, set("{ name = \"reno\", initial_window = 4 }"));
}

/// Whether all compilers of a language are there. If not, it says what was not tested, or panics if `ANABRANCH_REQUIRE_COMPILERS` is 1, which `cargo
/// xtask test` sets after installing them.
#[track_caller]
pub(crate) fn can_build(language: &str, needed: &str, remedy: &str, are_there: &[bool]) -> bool {
    let can = are_there.iter().all(|&is_there| is_there);
    if !can {
        let is_required = std::env::var("ANABRANCH_REQUIRE_COMPILERS").is_ok_and(|value| value == "1");
        assert!(!is_required, "the project in {language} needs {needed}: {remedy}");
        // The test harness shows what a passed test prints only to who asks for it; this line goes past it.
        let _ = writeln!(std::io::stderr(), "skipped: the project in {language} needs {needed}: {remedy}");
    }
    can
}

pub(crate) fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}
