//! A single run, as a document and as files.

use std::collections::BTreeSet;
use std::fs;

use anabranch_lab::report::{FLOW_GAUGES, LINK_GAUGES};
use serde_json::Value;

use crate::support::{CHAIN, anabranch, assert_exit, document, experiment, folder, stderr, stdout};

#[test]
fn a_run_is_one_document() {
    let folder = folder("document");
    fs::write(folder.join("s.toml"), CHAIN).unwrap();
    let run = document(&anabranch(&folder, &["sim", "run", "s.toml", "--json"]));
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        keys(&run),
        ["events", "flows", "hash", "jain_index", "links", "seed", "simulated_seconds", "wall_seconds"]
    );
    // A gauge is a line of its table: no test repeats it.
    let mut flow: BTreeSet<&str> = FLOW_GAUGES.iter().map(|gauge| gauge.name).collect();
    flow.extend(["cc", "id", "transport"]);
    let mut link: BTreeSet<&str> = LINK_GAUGES.iter().map(|gauge| gauge.name).collect();
    link.insert("id");
    assert!(keys(&run["flows"][0]).iter().eq(&flow) && keys(&run["links"][0]).iter().eq(&link), "{run}");
    assert_eq!(run["links"][1]["id"], "a.reverse");
    assert_eq!(run["simulated_seconds"], 5.0);
    let flow = &run["flows"][0];
    assert_eq!((&flow["dropped_packets"], &flow["retransmitted_packets"]), (&1.into(), &1.into()));
    assert_eq!(run["links"][0]["dropped_packets"], 1);
    assert!(flow["delivered_packets"].as_u64().unwrap() > 500, "{flow}");
}

/// The measures of the file are computed; for its axes and claims the commands are named.
#[test]
fn measures_are_computed_and_commands_named() {
    let folder = folder("asked");
    fs::create_dir_all(folder.join("test-2000")).unwrap();
    let axis = "[[axis]]\nname = \"window\"\n[axis.values]\nfour = { \"flow.f0.window\" = 4 }\neight = {}\n";
    let claimed = experiment(1, "").replace("\"dropped\"", "\"dropped('four')\"");
    fs::write(folder.join("test-2000/s.toml"), claimed + axis).unwrap();
    let run = |args: &[&str]| anabranch(&folder, &[&["sim", "run", "test-2000/s.toml"], args].concat());
    let report = document(&run(&["--json"]));
    assert_eq!(report["measures"], serde_json::json!([{ "name": "dropped", "value": 1.0 }]));
    let text = run(&[]);
    assert_exit(&text, 0);
    let shown = stdout(&text).split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "measure value dropped 1",
        "`window` (2 values) are not varied: `anabranch sim sweep test-2000/s.toml` runs every combination",
        "its claims (1) are not looked at here: `anabranch reproduce test-2000` does",
    ] {
        assert!(shown.contains(part), "no `{part}` in: {shown}");
    }
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
    assert_eq!(hash(&["--set", "flow.f0.window=10"]), hash(&["--set", "flow.f0.window=1e1"]));
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
    // One of them was lost before the queue.
    assert_eq!((at, packets), (capture.len(), sent - 1));
    let output = anabranch(&folder, &["sim", "run", "s.toml", "--pcap", "out"]);
    assert_exit(&output, 2);
    assert_eq!(stderr(&output), "error: out: cannot be written; name a file\n");
}
