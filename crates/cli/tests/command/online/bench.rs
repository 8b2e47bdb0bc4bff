//! `anabranch bench`.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::{Server, documented, refused};
use crate::support::{anabranch, assert_exit, document, folder, stdout};

#[test]
fn a_network_is_measured() {
    let here = folder("online-bench");
    let server = Server::start(&here, &["bench", "serve"]);
    for args in [&["--streams", "3"][..], &["--reverse"]] {
        let measured =
            document(&anabranch(&here, &[&["bench", &server.ticket, "--time", "2", "--json"], args].concat()));
        assert!(measured["bits_per_second"].as_f64().unwrap() > 1e6, "{measured}");
        assert!(!measured["intervals"].as_array().unwrap().is_empty(), "{measured}");
    }
    let jumbo = ["bench", &server.ticket, "--time", "1", "--packet-max", "9000", "--json"];
    assert_exit(&anabranch(&here, &jumbo), 0);
    refused(&anabranch(&here, &["bench", &server.ticket, "--packet-max", "10000"]), 2, "1280..=9000");
    let several = ["bench", &server.ticket, "--time", "2", "--connections", "3", "--rate", "24Mbit/s", "--json"];
    let measured = document(&anabranch(&here, &several));
    let rates: Vec<_> =
        measured["connection_bits_per_second"].as_array().unwrap().iter().map(|rate| rate.as_f64().unwrap()).collect();
    // The connections share the rate limit evenly.
    assert!(rates.len() == 3 && rates.iter().all(|rate| (4e6..9e6).contains(rate)), "{measured}");
    let sum = rates.iter().sum::<f64>();
    assert!((sum - measured["bits_per_second"].as_f64().unwrap()).abs() < 1.0, "{measured}");
    assert_eq!(measured["paths"].as_array().unwrap().len(), 3, "{measured}");
    let measured = anabranch(&here, &["bench", &server.ticket, "--time", "1"]);
    assert_exit(&measured, 0);
    assert!(stdout(&measured).contains("RTT p99"), "{}", stdout(&measured));
    assert!(stdout(&measured).contains("\nlimited by: "), "{}", stdout(&measured));
}

/// The commands of docs/commands.md. The names are those of iperf3's report of UDP.
#[test]
fn datagrams_and_round_trips_of_a_network_are_measured() {
    let here = folder("online-bench-datagrams");
    let server = Server::start(&here, &["bench", "serve"]);
    let run = |begin: &str, options: &[&str]| {
        let words = documented(begin).into_iter().map(|word| word.replace("ab1...", &server.ticket));
        let words: Vec<String> = words.chain(options.iter().map(|&word| word.to_owned())).collect();
        anabranch(&here, &words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let measured = document(&run("anabranch bench --datagrams", &["--time", "2", "--bidir", "--json"]));
    for way in ["up", "down"] {
        let way = &measured["datagrams"][way];
        let number = |name: &str| way[name].as_f64().unwrap_or_else(|| panic!("{name}: {way}"));
        // 160 bytes at 64 kbit/s are 50 a second. A busy machine makes up for a tenth of a second, and may drop what waits for a quarter.
        let (packets, lost, unsent) = (number("packets"), number("lost_packets"), number("unsent_packets"));
        assert!((60.0..=101.0).contains(&(packets + unsent)) && lost + unsent <= 15.0, "{way}");
        assert!((number("lost_percent") - 100.0 * lost / packets).abs() < 1e-9, "{way}");
        assert!((number("bytes") - 160.0 * (packets - lost)).abs() < 1e-9, "{way}");
        assert!((number("bits_per_second") - 4.0 * number("bytes")).abs() < 1e-6, "of two seconds: {way}");
        assert!((0.0..500.0).contains(&number("jitter_ms")), "{way}");
        assert!(number("delay_variation_ms_p50") <= number("delay_variation_ms_p99"), "{way}");
    }
    let shown = run("anabranch bench --datagrams", &["--time", "1"]);
    let text = stdout(&shown);
    assert!(text.contains("up: lost") && text.contains(" %)") && !text.contains("down: "), "{text}");
    let measured = document(&run("anabranch bench --ping-pong", &["--time", "1", "--streams", "3", "--json"]));
    let trips = &measured["round_trips"];
    assert!(trips["count"].as_f64().unwrap() > 3.0 && trips["size_bytes"] == 64, "{trips}");
    assert!(trips["ms_min"].as_f64().unwrap() <= trips["ms_p99"].as_f64().unwrap(), "{trips}");
    assert_eq!(measured["datagrams"], Value::Null);
    let shown = run("anabranch bench --ping-pong", &["--time", "1"]);
    let text = stdout(&shown);
    assert!(text.contains("round trip p99"), "{text}");
    let shown = run("anabranch bench --set-up", &["--time", "1"]);
    assert!(stdout(&shown).contains("connected p50") && stdout(&shown).contains("first answer p99"), "{shown:?}");
    let wrong: [(&[&str], &str); 7] = [
        (&["--set-up", "--ping-pong"], "cannot be used with"),
        (&["--datagrams", "--ping-pong"], "cannot be used with"),
        (&["--datagrams", "--connections", "2"], "cannot be used with"),
        (&["--ping-pong", "--rate", "1Mbit/s"], "cannot be used with"),
        (&["--size", "100"], "required arguments"),
        (&["--datagrams", "--size", "15"], "a datagram has 16 to 8900 bytes"),
        (&["--ping-pong", "--size", "0"], "--size <BYTES>"),
    ];
    for (options, says) in wrong {
        refused(&anabranch(&here, &[&["bench", &server.ticket], options].concat()), 2, says);
    }
    // More than a packet carries.
    let large = anabranch(&here, &["bench", &server.ticket, "--datagrams", "--size", "2000", "--time", "1"]);
    refused(&large, 1, "a datagram of 2000 bytes is too large");
}

/// The kernel's TCP alone, ours alone, and both, in one run.
#[test]
fn tcp_beside_is_measured_alone_and_together() {
    let here = folder("online-bench-beside");
    let server = Server::start(&here, &["bench", "serve"]);
    let run = |options: &[&str]| anabranch(&here, &[&["bench", &server.ticket, "--time", "1"], options].concat());
    let measured = document(&run(&["--beside", "tcp", "--reverse", "--connections", "2", "--json"]));
    let beside = &measured["beside"];
    for name in ["tcp_bits_per_second", "together_tcp_bits_per_second", "together_bits_per_second"] {
        assert!(beside[name].as_f64().unwrap() > 0.0, "{name}: {beside}");
    }
    assert!(measured["bits_per_second"].as_f64().unwrap() > 0.0);
    if cfg!(target_os = "linux") {
        let shown = run(&["--beside", "tcp:reno"]);
        let text = stdout(&shown);
        assert!(text.contains("TCP (reno) alone") && text.contains("this beside TCP"), "{text}");
    }
    assert_eq!(document(&run(&["--json"]))["beside"], Value::Null);
    let wrong: [(&[&str], i32, &str); 5] = [
        (&["--beside", "udp"], 2, "it is `tcp`, or `tcp:`"),
        (&["--beside", "tcp:"], 2, "it is `tcp`, or `tcp:`"),
        (&["--beside", "tcp", "--bidir"], 2, "cannot be used with"),
        (&["--beside", "tcp", "--datagrams"], 2, "cannot be used with"),
        (&["--beside", "tcp:nosuchlaw"], 1, "no such congestion law"),
    ];
    for (options, code, says) in wrong {
        refused(&run(options), code, says);
    }
}

/// Ctrl-C after one and a half seconds: the result so far is printed, and the part of the second interval is in it.
#[cfg(unix)]
#[test]
fn interrupted_measurement_prints_the_result_so_far() {
    let here = folder("online-bench-interrupted");
    let server = Server::start(&here, &["bench", "serve"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(["bench", &server.ticket, "--time", "60", "--rate", "8Mbit/s", "--jsonl"]).current_dir(&here);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let lines: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (end, intervals) = lines.split_last().unwrap();
    let (last, whole) = (intervals.last().unwrap()["seconds"].as_f64().unwrap(), end["seconds"].as_f64().unwrap());
    assert!(whole - last < 0.05 && whole > 1.0 && whole < 3.0, "the last interval ended at {last} s of {whole}");
    assert!(end["bits_per_second"].as_f64().unwrap() > 4e6, "{end}");
}

/// Both ends send at most 8 Mbit/s each, far less than loopback carries: so both are limited by the application for most of the time.
#[test]
fn a_network_is_measured_both_ways_at_a_rate() {
    let here = folder("online-bench-bidir");
    let server = Server::start(&here, &["bench", "serve"]);
    let measured =
        anabranch(&here, &["bench", &server.ticket, "--time", "3", "--bidir", "--rate", "8Mbit/s", "--jsonl"]);
    assert_exit(&measured, 0);
    let lines: Vec<Value> = stdout(&measured).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (end, intervals) = lines.split_last().unwrap();
    assert!(intervals.len() >= 2 && intervals.iter().all(|line| line["event"] == "interval"), "{lines:?}");
    // The last interval is the rest of a second: the intervals cover the whole time.
    let (last, whole) = (intervals.last().unwrap()["seconds"].as_f64().unwrap(), end["seconds"].as_f64().unwrap());
    assert!(whole - last < 0.05, "the last interval ended at {last} s of {whole}");
    assert_eq!((&end["event"], &end["direction"]), (&"end".into(), &"both".into()));
    for direction in ["bytes_sent", "bytes_received"] {
        let bytes = end[direction].as_f64().unwrap();
        // 3 MB in three seconds, headers, and a piece at the end.
        assert!((1e6..3.3e6).contains(&bytes), "{direction}: {end}");
    }
    assert!(end["limits"]["application"].as_f64().unwrap() > 0.5, "{end}");
    assert_eq!(intervals[0]["limited_by"], "application", "{end}");
    let total: f64 = end["limits"].as_object().unwrap().values().map(|share| share.as_f64().unwrap()).sum();
    assert!((total - 1.0).abs() < 1e-9, "{end}");
    refused(&anabranch(&here, &["bench", &server.ticket, "--rate", "1bit/s"]), 2, "below 8kbit/s");
    refused(&anabranch(&here, &["bench", &server.ticket, "--bidir", "--reverse"]), 2, "cannot be used with");
}
