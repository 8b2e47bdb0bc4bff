//! The command as people and programs meet it: exit codes, messages, documents.
#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage shall stop there")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// One packet lost from a short chain, deterministic.
const CHAIN: &str = r#"# Does a chain work?
duration = "5s"

[[link]]
id = "a"
from = "n0"
to = "n1"
rate = "1.5Mbit/s"
delay = "20ms"
queue = { kind = "drop_tail", packets = 10 }
error = { kind = "list", packets = [100] }

[[flow]]
id = "f0"
from = "n0"
to = "n1"
transport = "ns2/sack"
window = 8
"#;

/// A folder of its own for each test, empty.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs the command in `folder`.
fn anabranch(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anabranch")).args(args).current_dir(folder).output().unwrap()
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[track_caller]
fn assert_exit(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "stdout: {}\nstderr: {}", stdout(output), stderr(output));
}

#[track_caller]
fn document(output: &Output) -> Value {
    assert_exit(output, 0);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs `text` as `s.toml` and expects exit code 2, nothing on stdout, and this message.
#[track_caller]
fn assert_refused(test: &str, text: &str, args: &[&str], message: &str) {
    let folder = folder(test);
    fs::write(folder.join("s.toml"), text).unwrap();
    let output = anabranch(&folder, &[&["sim", "run", "s.toml"], args].concat());
    assert_exit(&output, 2);
    assert_eq!(stdout(&output), "");
    assert_eq!(stderr(&output), format!("error: {message}\n"));
}

#[test]
fn bad_inputs_name_file_line_and_remedy() {
    let spoil = |from: &str, to: &str| {
        assert!(CHAIN.contains(from));
        CHAIN.replacen(from, to, 1)
    };
    let cases = [
        (spoil("window", "widnow"), "s.toml:18:1: unknown key `widnow`; did you mean `window`?"),
        (
            spoil("20ms", "20msec"),
            "s.toml:9:9: `20msec` is not a length of time, such as \"100ms\": `msec` is not a unit here, use one of s, ms, us, \
             ns, ps, min, h",
        ),
        (
            spoil("delay", "duplex = false\ndelay"),
            "s.toml:14:1: flow `f0` has no route: no links lead from node `n1` to node `n0`; add the link that is missing, or \
             make a simplex one duplex",
        ),
        (
            spoil(
                "[[flow]]",
                "[[link]]\nid = \"a\"\nfrom = \"n1\"\nto = \"n2\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n[[flow]]",
            ),
            "s.toml:14:6: a second link is called `a`; give each link its own name",
        ),
        (
            spoil("window = 8", "window = 0"),
            "s.toml:18:10: found integer `0`, expected a whole number of packets from 1 to 1000000000",
        ),
        (
            "\u{7f}ELF\u{0}\u{1}".to_owned(),
            "s.toml:1:7: not TOML: key with no value, expected `=`; a scenario has lines `key = value` under [[link]] and \
             [[flow]]",
        ),
    ];
    for (index, (text, message)) in cases.iter().enumerate() {
        assert_refused(&format!("bad-{index}"), text, &[], message);
    }
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = folder("unreadable");
    let output = anabranch(&folder, &["sim", "run", "absent.toml"]);
    assert_exit(&output, 2);
    assert!(stderr(&output).starts_with("error: absent.toml: cannot be read: "), "{}", stderr(&output));
    fs::write(folder.join("latin1.toml"), b"seed = 1\n# caf\xe9\n").unwrap();
    let output = anabranch(&folder, &["sim", "run", "latin1.toml"]);
    assert_exit(&output, 2);
    assert_eq!(stderr(&output), "error: latin1.toml:2: not TOML: it is not UTF-8; save it as UTF-8\n");
}

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
fn a_run_is_one_document() {
    let folder = folder("document");
    fs::write(folder.join("s.toml"), CHAIN).unwrap();
    let run = document(&anabranch(&folder, &["sim", "run", "s.toml", "--json"]));
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&run), ["events", "flows", "hash", "links", "seed", "simulated_seconds", "wall_seconds"]);
    assert_eq!(
        keys(&run["flows"][0]),
        [
            "acked_seq",
            "buffered_bytes_max",
            "cc",
            "delivered_packets",
            "dropped_packets",
            "goodput_bps",
            "held_packets_max",
            "id",
            "max_seq",
            "one_way_delay_mean_s",
            "reset_count",
            "retransmitted_packets",
            "rtt_mean_s",
            "sent_packets",
            "throughput_bps",
            "transport",
            "window_final"
        ]
    );
    assert_eq!(keys(&run["links"][0]), ["dropped_packets", "forwarded_packets", "id", "queue_packets_mean"]);
    assert_eq!(run["links"][1]["id"], "a.reverse");
    assert_eq!(run["simulated_seconds"], 5.0);
    let flow = &run["flows"][0];
    assert_eq!((&flow["dropped_packets"], &flow["retransmitted_packets"]), (&1.into(), &1.into()));
    assert_eq!(run["links"][0]["dropped_packets"], 1);
    assert!(flow["delivered_packets"].as_u64().unwrap() > 500, "{flow}");
}

#[test]
fn one_seed_is_one_run_and_overrides_count() {
    let folder = folder("seed");
    fs::write(folder.join("s.toml"), CHAIN).unwrap();
    let hash = |args: &[&str]| {
        let run = document(&anabranch(&folder, &[&["sim", "run", "s.toml", "--json"], args].concat()));
        run["hash"].as_str().unwrap().to_owned()
    };
    let random = ["--set", "link.a.error={ kind = \"uniform\", rate = 0.05 }"];
    assert_eq!(hash(&random), hash(&random));
    assert_ne!(hash(&random), hash(&[&random[..], &["--seed", "2"]].concat()));
    assert_ne!(hash(&[]), hash(&["--set", "flow.f0.window=4"]));
}

#[test]
fn assertions_decide_the_exit_code() {
    let folder = folder("assert");
    fs::write(folder.join("s.toml"), CHAIN).unwrap();
    let run = |assertion: &str| anabranch(&folder, &["sim", "run", "s.toml", "--assert", assertion]);
    assert_exit(&run("flow.f0.dropped_packets == 1"), 0);
    let output = run("flow.f0.dropped_packets == 0");
    assert_exit(&output, 3);
    assert_eq!(
        stderr(&output),
        "error: --assert \"flow.f0.dropped_packets == 0\" does not hold: 1 against 0 (seed 1)\n"
    );
    let output = run("flow.f0.droped_packets == 0");
    assert_exit(&output, 2);
    assert!(stderr(&output).ends_with("did you mean `dropped_packets`?\n"), "{}", stderr(&output));
}

#[test]
fn traces_have_a_row_at_each_change() {
    let folder = folder("trace");
    fs::write(folder.join("s.toml"), CHAIN).unwrap();
    assert_exit(&anabranch(&folder, &["sim", "run", "s.toml", "--trace", "out"]), 0);
    let flow = fs::read_to_string(folder.join("out/flow.f0.csv")).unwrap();
    assert_eq!(flow.lines().next(), Some("time_s,window,ssthresh,rtt_s,base_rtt_s,avg_rtt_s,in_flight"));
    let rows: Vec<&str> = flow.lines().skip(1).map(|row| row.split_once(',').unwrap().1).collect();
    assert!(rows.len() > 100, "{} rows", rows.len());
    assert!(rows.windows(2).all(|pair| pair[0] != pair[1]), "a row without a change");
    assert!(fs::read_to_string(folder.join("out/link.a.csv")).unwrap().lines().count() > 100);
}

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

/// An experiment that claims what the chain gives, and one that claims something else.
fn experiment(published: u32, because: &str) -> String {
    format!(
        "{CHAIN}\n[experiment]\npaper = \"test-2000\"\n[measure]\ndropped = \"flow.f0.dropped_packets\"\n[[claim]]\nitem = \
         \"table1\"\ntitle = \"Table 1\"\ncite = \"Table 1\"\nrow = \"SACK\"\ncolumn = \"lost\"\nunit = \"packets\"\nmeasure = \
         \"dropped('x')\"\npublished = {published}\nband = \"exact\"\n{because}"
    )
    .replace("('x')", "")
}

#[test]
fn a_wrong_number_deviates_and_is_missed_unless_explained() {
    let folder = folder("claims");
    fs::create_dir_all(folder.join("experiments/test-2000")).unwrap();
    let reproduce = |published, because: &str| {
        fs::write(folder.join("experiments/test-2000/table1.toml"), experiment(published, because)).unwrap();
        anabranch(&folder, &["reproduce", "--json"])
    };
    let verdict = |output: &Output| {
        let judgement: Value = serde_json::from_slice(&output.stdout).unwrap();
        judgement["papers"][0]["experiments"][0]["claims"][0]["verdict"].as_str().unwrap().to_owned()
    };
    let right = reproduce(1, "");
    assert_exit(&right, 0);
    assert_eq!(verdict(&right), "reproduced");
    let wrong = reproduce(2, "");
    assert_exit(&wrong, 3);
    assert_eq!(verdict(&wrong), "deviates");
    let explained = reproduce(2, "because = \"it is a test\"\n");
    assert_exit(&explained, 0);
    assert_eq!(verdict(&explained), "deviates");
    let given_up = reproduce(2, "because = \"it is a test\"\nnot_reproducible = true\n");
    assert_exit(&given_up, 0);
    assert_eq!(verdict(&given_up), "not reproducible");
}

/// The 100th packet of ns-2's agent is lost, and of our transport, which loses by the clock, none: its run ends before.
#[test]
fn what_our_transport_gives_stands_beside_it_and_is_missed_unless_explained() {
    let folder = folder("engine");
    fs::create_dir_all(folder.join("experiments/test-2000")).unwrap();
    let reproduce = |engine: &str| {
        let text = experiment(1, engine).replace("transport = \"ns2/sack\"", "transport = \"ns2/fast\"");
        assert!(text.contains("ns2/fast"), "the flow of the chain speaks SACK");
        let later = "[engine]\n\"link.a.error\" = { kind = \"at\", times = [\"1000s\"] }\n[experiment]";
        fs::write(folder.join("experiments/test-2000/table1.toml"), text.replace("[experiment]", later)).unwrap();
        anabranch(&folder, &["reproduce", "--json"])
    };
    let judged = |output: &Output| {
        let judgement: Value = serde_json::from_slice(&output.stdout).unwrap();
        let claim = &judgement["claims"][0];
        (claim["measured"]["engine"]["value"].clone(), claim["engine"].clone())
    };
    let missed = reproduce("");
    assert_exit(&missed, 3);
    let (value, engine) = judged(&missed);
    assert_eq!((value.as_f64(), &engine["agrees"], &engine["is_missed"]), (Some(0.0), &false.into(), &true.into()));
    let explained = reproduce("engine = \"it loses later\"\n");
    assert_exit(&explained, 0);
    assert_eq!(judged(&explained).1["because"], "it loses later");
}

#[test]
fn a_judgement_has_the_promised_shape() {
    let folder = folder("judgement");
    fs::create_dir_all(folder.join("experiments/test-2000")).unwrap();
    fs::write(folder.join("experiments/test-2000/table1.toml"), experiment(1, "")).unwrap();
    let judgement = document(&anabranch(&folder, &["reproduce", "test-2000", "--json"]));
    assert_eq!(judgement["schema"], "anabranch-reproduce/3");
    assert_eq!(judgement["version"], env!("CARGO_PKG_VERSION"));
    assert!(judgement["wall_seconds"].is_f64() && judgement["hash"].is_string());
    let claim = &judgement["papers"][0]["experiments"][0]["claims"][0];
    let listed = &judgement["claims"][0];
    assert!(listed["paper"].is_string() && listed["scenario"].is_string());
    for (key, value) in claim.as_object().unwrap() {
        assert_eq!(&listed[key], value, "{key} in the list of all claims");
    }
    let expected = serde_json::json!({
        "item": "table1", "title": "Table 1", "source": "paper", "cite": "Table 1",
        "row": "SACK", "column": "lost", "kind": "number", "unit": "packets", "published": 1.0,
        "measured": { "ours": { "value": 1.0, "seeds": 1, "sd": 0.0, "low": 1.0, "high": 1.0 }, "engine": null },
        "engine": null,
        "band": { "kind": "exact", "low": 1.0, "high": 1.0 },
        "verdict": "reproduced", "because": null, "is_missed": false, "is_open": false,
    });
    assert_eq!(*claim, expected);
    let experiment = &judgement["papers"][0]["experiments"][0];
    assert_eq!(experiment["item"], "table1");
    assert_eq!(experiment["file"], "experiments/test-2000/table1.toml");
    assert_eq!(experiment["command"], "anabranch reproduce test-2000");
    assert!(experiment["source"].as_str().unwrap().contains("[experiment]"));
    let link = serde_json::json!({
        "id": "a", "from": "n0", "to": "n1", "rate": "1.5Mbit/s", "delay": "20ms", "queue": "drop-tail, 10 packets",
        "error": "packets 100", "is_duplex": true,
    });
    assert_eq!(experiment["topology"]["links"], serde_json::json!([link]));
    let text = anabranch(&folder, &["reproduce"]);
    assert_exit(&text, 0);
    assert!(!stdout(&text).contains('\u{1b}'), "colours are for terminals");
    assert!(stdout(&text).contains("1 claims: 1 reproduced"), "{}", stdout(&text));
}

#[test]
fn unknown_papers_and_absent_experiments_are_usage() {
    let output = anabranch(repository(), &["reproduce", "ctcp-2091"]);
    assert_exit(&output, 2);
    assert_eq!(stderr(&output), "error: no paper `ctcp-2091` in experiments; did you mean `ctcp-2019`?\n");
    let output = anabranch(&folder("nowhere"), &["reproduce"]);
    assert_exit(&output, 2);
    assert!(stderr(&output).contains("name the folder of the experiments with --experiments"), "{}", stderr(&output));
}

#[test]
fn laws_are_listed_and_shown() {
    let laws = document(&anabranch(repository(), &["cc", "list", "--json"]));
    assert!(laws["laws"].as_array().unwrap().iter().any(|law| law["name"] == "reno"));
    let reno = document(&anabranch(repository(), &["cc", "show", "reno", "--json"]));
    assert_eq!(reno["parameters"][0]["name"], "initial_window");
    let output = anabranch(repository(), &["cc", "show", "rneo"]);
    assert_exit(&output, 2);
    assert_eq!(stderr(&output), "error: there is no congestion law `rneo`; did you mean `reno`?\n");
}

#[test]
fn the_reference_is_up_to_date() {
    assert_exit(&anabranch(repository(), &["generate", "reference", "--check"]), 0);
    let folder = folder("reference");
    assert_exit(&anabranch(&folder, &["generate", "reference", "--check"]), 1);
    assert_exit(&anabranch(&folder, &["generate", "reference"]), 0);
    assert_exit(&anabranch(&folder, &["generate", "reference", "--check"]), 0);
}

#[test]
fn every_command_has_a_man_page() {
    let folder = folder("man");
    assert_exit(&anabranch(&folder, &["generate", "man", "man1"]), 0);
    for page in ["anabranch.1", "anabranch-reproduce.1", "anabranch-sim-run.1", "anabranch-cc-show.1"] {
        let text = fs::read_to_string(folder.join("man1").join(page)).unwrap();
        assert!(text.contains(".TH"), "{page}");
    }
}

/// The whole of ctcp-2019: every deterministic cell to the integer, every random one within its band, and CTCP's Table 3 as
/// the one deviation that is known and explained.
#[test]
fn ctcp_2019_is_reproduced() {
    let judgement = document(&anabranch(repository(), &["reproduce", "ctcp-2019", "--json"]));
    let experiments = judgement["papers"][0]["experiments"].as_array().unwrap();
    let claims: Vec<&Value> =
        experiments.iter().flat_map(|experiment| experiment["claims"].as_array().unwrap()).collect();
    let select = |item: &str, source: &str, kind: &str| {
        let is = |claim: &&Value| claim["item"] == item && claim["source"] == source && claim["band"]["kind"] == kind;
        claims.iter().copied().filter(is).collect::<Vec<_>>()
    };
    // Table 2 without errors: six agents and CTCP. Table 3: six agents and CTCP, two senders and their total.
    assert_eq!((select("table2", "paper", "exact").len(), select("table3", "paper", "exact").len()), (7, 21));
    assert_eq!(select("table2", "paper", "prediction").len(), 14);
    assert_eq!(select("fig5", "paper", "prediction").len(), 4);
    for claim in claims {
        let is_known = claim["item"] == "table3" && claim["column"] == "CTCP" && claim["source"] == "paper";
        let expected = if is_known { "deviates" } else { "reproduced" };
        assert_eq!(claim["verdict"], expected, "{claim:#}");
        assert_eq!(claim["because"].is_string(), is_known, "{claim:#}");
    }
}

#[test]
fn a_judgement_does_not_depend_on_the_number_of_threads() {
    let hash = |jobs: &str| {
        // Two seeds are too few for the verdicts; they are enough to tell runs apart.
        let args = ["reproduce", "ctcp-2019", "--seeds", "2", "--jobs", jobs, "--json"];
        let judgement: Value = serde_json::from_slice(&anabranch(repository(), &args).stdout).unwrap();
        judgement["hash"].as_str().unwrap().to_owned()
    };
    assert_eq!(hash("1"), hash("3"));
}

#[test]
fn a_capture_has_every_packet_that_enters_a_link() {
    let folder = folder("pcap");
    fs::write(folder.join("s.toml"), CHAIN).unwrap();
    let report = document(&anabranch(&folder, &["sim", "run", "s.toml", "--pcap", "out/s.pcapng", "--json"]));
    let sent = report["flows"][0]["sent_packets"].as_u64().unwrap();
    let capture = fs::read(folder.join("out/s.pcapng")).unwrap();
    let (mut at, mut packets) = (0, 0);
    while at < capture.len() {
        let word = |at: usize| u32::from_le_bytes(capture[at..at + 4].try_into().unwrap());
        // The first interface is the link of the data.
        packets += u64::from(word(at) == 6 && word(at + 8) == 0);
        at += word(at + 4) as usize;
    }
    // One of them was lost in front of the queue.
    assert_eq!((at, packets), (capture.len(), sent - 1));
    let output = anabranch(&folder, &["sim", "run", "s.toml", "--pcap", "out"]);
    assert_exit(&output, 2);
    assert_eq!(stderr(&output), "error: out: cannot be written; name a file\n");
}

/// The packet that is lost is number 100; the window grows to 8 and no further.
#[test]
fn assertions_may_ask_what_happened_when() {
    let folder = folder("series");
    fs::write(folder.join("s.toml"), CHAIN).unwrap();
    let run = |assertion: &str| anabranch(&folder, &["sim", "run", "s.toml", "--assert", assertion]);
    assert_exit(&run("count(link.a.drops, 0, 5) == 1"), 0);
    assert_exit(&run("first_time(flow.f0.window >= 8, 0) < first_time(link.a.drops, 0)"), 0);
    assert_exit(&run("value_at(flow.f0.window, 5) == flow.f0.window_final"), 0);
    assert_exit(&run("max(bins(flow.f0.goodput, 0.5), 0, 4.9) > 1000000"), 0);
    assert_exit(&run("first_time(link.a.drops, 0) > 4"), 3);
    let never = run("first_time(link.a.drops, 4) > 4");
    assert_exit(&never, 1);
    assert_eq!(stderr(&never), "error: `link.a.drops`: it never happens from 4 s on\n");
    let unknown = run("count(link.b.drops, 0, 5) == 1");
    assert_exit(&unknown, 2);
    assert!(stderr(&unknown).ends_with("no link is called `b`; there are a, a.reverse\n"), "{}", stderr(&unknown));
}

/// A claim about a time is a number in seconds that some measure finds in a series.
#[test]
fn claims_are_made_of_series() {
    let folder = folder("time");
    fs::create_dir_all(folder.join("experiments/test-2000")).unwrap();
    let claim = |expression: &str| {
        format!(
            "{CHAIN}[experiment]\npaper = \"test-2000\"\n[measure]\nwhen = \"{expression}\"\n[[claim]]\nitem = \"fig1\"\n\
             title = \"Figure 1\"\ncite = \"nobody\"\nrow = \"the loss\"\nkind = \"time\"\nunit = \"s\"\nmeasure = \"when\"\n\
             published = 0.7\nband = \"±0.2\"\n"
        )
    };
    let judge = |expression: &str| {
        fs::write(folder.join("experiments/test-2000/fig1.toml"), claim(expression)).unwrap();
        let output = anabranch(&folder, &["reproduce", "--json"]);
        let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
        outcome["papers"][0]["experiments"][0]["claims"][0].clone()
    };
    let lost = judge("first_time(link.a.drops, 0)");
    assert_eq!(lost["verdict"], "reproduced", "{lost:#}");
    let never = judge("first_time(link.a.drops, 4)");
    assert_eq!(never["verdict"], "deviates");
    assert_eq!(never["because"], "`link.a.drops`: it never happens from 4 s on");
}

/// Two variants, and of each the window and the goodput in bins: five seconds are ten bins of 0.5 s.
#[test]
fn figures_have_their_points() {
    let folder = folder("figure");
    fs::create_dir_all(folder.join("experiments/test-2000")).unwrap();
    let figure = r#"
[experiment]
paper = "test-2000"
[[axis]]
name = "window"
[axis.values]
four = { "flow.f0.window" = 4 }
eight = {}
[[figure]]
item = "fig1"
title = "Windows"
from = "0s"
variants = [["four"], ["eight"]]
[[figure.panel]]
title = "Window"
unit = "packets"
series = [{ of = "flow.f0.window" }]
[[figure.panel]]
title = "Goodput"
unit = "kbit/s"
series = [{ name = "goodput", of = "flow.f0.goodput", bin = "500ms", scale = 0.001 }, { of = "link.a.drops" }]
"#;
    let file = folder.join("experiments/test-2000/fig1.toml");
    fs::write(&file, format!("{CHAIN}{figure}")).unwrap();
    let outcome = document(&anabranch(&folder, &["reproduce", "--json"]));
    let figure_of = &outcome["papers"][0]["experiments"][0]["figures"][0];
    assert_eq!((&figure_of["title"], &figure_of["to"]), (&"Windows".into(), &5.0.into()));
    let windows = figure_of["panels"][0]["series"].as_array().unwrap();
    assert_eq!((&windows[0]["name"], &windows[1]["name"]), (&"four".into(), &"eight".into()));
    let goodput = &figure_of["panels"][1]["series"][2];
    assert_eq!((&goodput["name"], &goodput["style"]), (&"eight: goodput".into(), &"steps".into()));
    assert_eq!(goodput["t"].as_array().unwrap().len(), 10);
    assert!((1000.0..1500.0).contains(&goodput["v"][4].as_f64().unwrap()), "{goodput:#}");
    let drops = &figure_of["panels"][1]["series"][3];
    assert_eq!((&drops["style"], drops["v"].as_array().unwrap().len()), (&"points".into(), 1));
    fs::write(&file, format!("{CHAIN}{}", figure.replace("f0.window\" }", "f0.widnow\" }"))).unwrap();
    let wrong = anabranch(&folder, &["reproduce"]);
    assert_exit(&wrong, 2);
    assert!(
        stderr(&wrong).contains("fig1.toml:35:18: `flow.f0.widnow` is no series; write one of"),
        "{}",
        stderr(&wrong)
    );
}

#[test]
fn outcomes_are_written_in_every_format() {
    let folder = folder("formats");
    fs::create_dir_all(folder.join("experiments/test-2000")).unwrap();
    fs::write(folder.join("experiments/test-2000/table1.toml"), experiment(1, "")).unwrap();
    let csv = anabranch(&folder, &["reproduce", "--format", "csv", "--out", "report"]);
    assert_exit(&csv, 0);
    let row = "test-2000,table1,table1,Table 1,paper,SACK,lost,number,packets,1,1,1,0,exact,1,1,reproduced,,,,,";
    assert_eq!(stdout(&csv).lines().nth(1), Some(row));
    assert_eq!(fs::read_to_string(folder.join("report/outcome.csv")).unwrap(), stdout(&csv));
    let page = fs::read_to_string(folder.join("report/outcome.md")).unwrap();
    assert!(page.contains("| SACK | lost | 1 | 1 |  | packets | reproduced |  |  |"), "{page}");
    let json: Value = serde_json::from_slice(&fs::read(folder.join("report/outcome.json")).unwrap()).unwrap();
    assert_eq!(json["papers"][0]["key"], "test-2000");
    assert_exit(&anabranch(&folder, &["reproduce", "--format", "html"]), 2);
}

#[test]
fn an_artifact_can_be_checked() {
    let folder = folder("an_artifact_can_be_checked");
    let experiments = repository().join("experiments");
    let experiments = experiments.to_str().unwrap();
    let packed =
        anabranch(&folder, &["artifact", "pack", "a.zip", "ctcp-2019", "--seeds", "2", "--experiments", experiments]);
    assert_eq!(packed.status.code(), Some(0), "{}", stderr(&packed));
    let verified = anabranch(&folder, &["artifact", "verify", "a.zip"]);
    assert_eq!(verified.status.code(), Some(0), "{}", stderr(&verified));
    assert!(stdout(&verified).contains("the same in every number"), "{}", stdout(&verified));
}

#[test]
fn what_is_no_artifact_is_refused() {
    let folder = folder("what_is_no_artifact_is_refused");
    fs::write(folder.join("a.zip"), "no archive").unwrap();
    for (file, message) in [("a.zip", "not a ZIP file"), ("missing.zip", "No such file")] {
        let output = anabranch(&folder, &["artifact", "verify", file]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
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

/// The text is for people, who get the report as well; a program gets what it asks for.
#[test]
fn reports_are_written_for_people() {
    let folder = folder("report");
    fs::create_dir_all(folder.join("experiments/test-2000")).unwrap();
    fs::write(folder.join("experiments/test-2000/table1.toml"), experiment(1, "")).unwrap();
    for format in [["--json"].as_slice(), &["--format", "csv"], &["--format", "markdown"]] {
        assert_exit(&anabranch(&folder, &[&["reproduce"], format].concat()), 0);
        assert!(!folder.join("reproduction").exists(), "{format:?} writes nothing");
    }
    let text = anabranch(&folder, &["reproduce"]);
    assert_exit(&text, 0);
    assert_eq!(stdout(&text).lines().last(), Some("report: reproduction/report.html"));
    let page = fs::read_to_string(folder.join("reproduction/report.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    assert!(page.contains("test-2000") && page.contains("anabranch reproduce test-2000"));
    assert_exit(&anabranch(&folder, &["reproduce", "--json", "--out", "both"]), 0);
    let mut written: Vec<_> =
        fs::read_dir(folder.join("both")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    written.sort();
    assert_eq!(written, ["outcome.csv", "outcome.json", "outcome.md", "report.html"], "and nothing half written");
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
