//! Logs of real connections, read back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anabranch::{Config, Endpoint, SecretKey};
use serde_json::Value;

use crate::support::{between, soon};

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("qlog-{name}"));
    _ = std::fs::remove_dir_all(&folder);
    folder
}

/// The records of the only log of a vantage point.
fn records(folder: &PathBuf, vantage: &str) -> Vec<Value> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut names = names.filter(|name| name.to_string_lossy().ends_with(&format!("-{vantage}.sqlog")));
    let (file, more) = (names.next().unwrap(), names.next());
    assert_eq!(more, None);
    let text = std::fs::read_to_string(file).unwrap();
    let records = text.strip_prefix('\u{1e}').unwrap().split('\u{1e}');
    records.map(|record| serde_json::from_str(record).unwrap()).collect()
}

/// Two paths and a transfer over both, logged at both ends.
#[tokio::test]
async fn log_has_paths_and_transfer() {
    let folder = folder("paths");
    let config = Config { qlog: Some(folder.clone()), ..Config::default() };
    let at = || "127.0.0.1:0".parse().unwrap();
    let server =
        Endpoint::bind(at(), &SecretKey::generate().unwrap(), config.clone().admit(anabranch::Admission::Ticket));
    let (server, client) = (server.unwrap(), Endpoint::bind(at(), &SecretKey::generate().unwrap(), config).unwrap());
    let second = server.add_address("127.0.0.2:0".parse().unwrap()).unwrap();
    let own = client.add_address("127.0.0.3:0".parse().unwrap()).unwrap();
    let ticket = server.ticket();
    soon(async {
        let (there, here) = between(&client, &server, &ticket).await;
        there.add_path(own.ip(), second).await.unwrap();
        let send = async {
            let mut stream = there.open_stream().await.unwrap();
            stream.write_all(&vec![1; 3_000_000]).await.unwrap();
            there.close().await.unwrap();
            there.closed().await.unwrap();
        };
        let receive = async {
            let mut stream = here.accept_stream().await.unwrap();
            while stream.read_chunk(1 << 20).await.unwrap().is_some() {}
            here.close().await.unwrap();
        };
        tokio::join!(send, receive);
        drop((there, here));
        tokio::join!(client.wait_idle(), server.wait_idle());
    })
    .await;
    for (endpoint, vantage) in [(&client, "client"), (&server, "server")] {
        let report = endpoint.finish_qlog().await.unwrap();
        assert_eq!((report.dropped, &report.error), (0, &None), "{vantage}");
        assert_eq!(endpoint.finish_qlog().await, None, "it has been finished");
        let records = records(&folder, vantage);
        check(&records, vantage);
    }
}

fn check(records: &[Value], vantage: &str) {
    let (header, events) = records.split_first().unwrap();
    assert_eq!((&header["qlog_version"], &header["qlog_format"]), (&"0.3".into(), &"JSON-SEQ".into()));
    assert_eq!(header["trace"]["vantage_point"]["type"], vantage);
    let count = |name: &str| events.iter().filter(|event| event["name"] == name).count();
    for name in ["connectivity:connection_started", "connectivity:connection_closed", "anabranch:path_validated"] {
        assert_eq!(count(name), 1, "{name} of the {vantage}");
    }
    assert_eq!(events[0]["name"], "connectivity:connection_started");
    assert_eq!(events.last().unwrap()["name"], "connectivity:connection_closed");
    let (mut last, mut bytes) = (0.0, 0);
    let (mut sent, mut acked): (BTreeMap<String, u64>, BTreeSet<(String, u64)>) = (BTreeMap::new(), BTreeSet::new());
    for event in events {
        let time = event["time"].as_f64().unwrap();
        assert!(time >= last, "{event}");
        last = time;
        let group = event["group_id"].as_str().unwrap().to_owned();
        let data = &event["data"];
        let number = data["header"]["packet_number"].as_u64();
        match event["name"].as_str().unwrap() {
            "transport:packet_sent" => {
                let next = sent.entry(group).or_default();
                assert_eq!(number, Some(*next), "{event}");
                *next += 1;
            }
            "transport:packet_received" => {
                for frame in data["frames"].as_array().unwrap() {
                    let ranges = frame["acked_ranges"].as_array();
                    for range in ranges.into_iter().flatten() {
                        let (first, end) = (range[0].as_u64().unwrap(), range[1].as_u64().unwrap());
                        for number in first..=end {
                            assert!(number < sent[&group], "{event}");
                            assert!(acked.insert((group.clone(), number)), "told of once: {event}");
                        }
                    }
                    if frame["frame_type"] == "stream" {
                        bytes += frame["length"].as_u64().unwrap();
                    }
                }
            }
            "transport:packets_acked" => {
                for number in data["packet_numbers"].as_array().unwrap() {
                    assert!(acked.insert((group.clone(), number.as_u64().unwrap())), "told of once: {event}");
                }
            }
            _ => {}
        }
    }
    let groups: Vec<&str> = sent.keys().map(String::as_str).collect();
    assert_eq!(groups, ["path-0", "path-1"], "both carry something");
    assert!(count("recovery:metrics_updated") > 10);
    match vantage {
        "client" => assert!(acked.len() > 3_000_000 / 1500, "{} packets", acked.len()),
        _ => assert!(bytes >= 3_000_000, "{bytes} bytes came"),
    }
}
