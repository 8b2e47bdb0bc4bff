//! Transfers between two computers behind NATs, in network namespaces of the test's own. Without root, iproute2 or nftables the tests say so and
//! pass.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage shall stop there")]

#[path = "../shared/inside.rs"]
mod inside;
mod over_tcp;
#[path = "../shared/stage.rs"]
mod shared;
mod stage;

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::stage::{Nat, Stage, is_inside, noise};

/// The way of a transfer, and when it became a direct one.
fn way(sent: &Value) -> (&str, Option<f64>) {
    (sent["way"].as_str().unwrap(), sent["direct_after_seconds"].as_f64())
}

/// A folder goes from one end to the other; returns what the sender says.
fn transfer(stage: &Stage, rate: &str, len: usize) -> Value {
    fs::create_dir_all(stage.folder.join("pictures/old")).unwrap();
    for (name, len) in [("a", 1_000), ("old/b", len)] {
        fs::write(stage.folder.join("pictures").join(name), noise(len)).unwrap();
    }
    let mut receiver = stage.start("b", &["recv", "--relay", "203.0.113.1", "--to", "there", "--once", "--json"]);
    let ticket = receiver.line()["ticket"].as_str().unwrap().to_owned();
    let sent = stage.run("a", &["send", "pictures", &ticket, "--rate", rate, "--json"]);
    assert_eq!(receiver.line()["event"], "received");
    receiver.ends_with(0);
    for (name, len) in [("a", 1_000), ("old/b", len)] {
        assert!(fs::read(stage.folder.join("there/pictures").join(name)).unwrap() == noise(len), "{name}");
    }
    sent
}

/// Neither NAT shows one address to all: the relay remains the only way, and carries everything.
#[test]
fn two_symmetric_nats_transfer_through_the_relay() {
    let Some(stage) = Stage::inside("two_symmetric_nats_transfer_through_the_relay", Nat::Symmetric, Nat::Symmetric)
    else {
        return;
    };
    let _relay = stage.relay();
    let sent = transfer(&stage, "40Mbit/s", 5_000_000);
    assert_eq!(way(&sent), ("relay", None));
}

/// The arguments of a command as docs/commands.md has it, for this stage.
fn documented(command: &str) -> Vec<String> {
    let page = include_str!("../../../../docs/commands.md");
    assert!(page.lines().any(|line| line == command), "the page has `{command}`");
    let arguments = command.strip_prefix("anabranch ").unwrap().replace("relay.example", "203.0.113.1");
    arguments.split(' ').map(str::to_owned).collect()
}

/// The commands of docs/commands.md: one end prints a code of three words, the other types it.
#[test]
fn code_sends_a_folder_between_two_symmetric_nats() {
    let Some(stage) = Stage::inside("code_sends_a_folder_between_two_symmetric_nats", Nat::Symmetric, Nat::Symmetric)
    else {
        return;
    };
    assert_eq!(documented("anabranch relay serve"), ["relay", "serve"]);
    let _relay = stage.relay();
    fs::create_dir_all(stage.folder.join("pictures")).unwrap();
    fs::create_dir_all(stage.folder.join("there")).unwrap();
    fs::write(stage.folder.join("pictures/a"), noise(300_000)).unwrap();
    let mut send = documented("anabranch send --relay relay.example pictures");
    send.push("--json".to_owned());
    let mut sender = stage.start("a", &send);
    let code = sender.line()["code"].as_str().unwrap().to_owned();
    assert_eq!(code.split('-').count(), 3, "{code}");
    let recv = documented("anabranch recv --relay relay.example 7-guitar-ocean");
    let with = |code: &str| {
        let mut arguments: Vec<_> = recv.iter().map(|argument| argument.replace("7-guitar-ocean", code)).collect();
        arguments.extend(["--to", "there", "--json"].map(str::to_owned));
        arguments
    };
    let (status, said) = stage.tells("b", &with("1-acorn-acorn"));
    assert!(status == Some(1) && said.contains("the code is wrong"), "{said}");
    let received = stage.run("b", &with(&code));
    assert_eq!((&received["event"], &received["way"]), (&"received".into(), &"relay".into()));
    assert_eq!(sender.line()["files"], 1);
    sender.ends_with(0);
    assert!(fs::read(stage.folder.join("there/pictures/a")).unwrap() == noise(300_000));
}

/// Pairs of NATs through which a hole can be punched: it is, in less than two seconds.
#[test]
fn nats_that_allow_it_get_a_direct_way() {
    let test = "nats_that_allow_it_get_a_direct_way";
    if !is_inside(test) {
        return;
    }
    let pairs = [
        (Nat::PortDependent, Nat::PortDependent),
        (Nat::EndpointIndependent, Nat::Symmetric),
        (Nat::Symmetric, Nat::EndpointIndependent),
        (Nat::AddressDependent, Nat::Symmetric),
        (Nat::Symmetric, Nat::AddressDependent),
    ];
    for (place, (a, b)) in pairs.into_iter().enumerate() {
        let stage = Stage::new(&format!("{test}-{place}"), a, b);
        let _relay = stage.relay();
        // 2.4 s.
        let sent = transfer(&stage, "20Mbit/s", 6_000_000);
        let (way, after) = way(&sent);
        assert!(way == "direct" && after.is_some_and(|after| after < 2.0), "{a:?} {b:?}: {way} {after:?}");
    }
}

/// A relay is killed in the middle. With a direct way the transfer does not notice.
#[test]
fn relay_killed_after_a_direct_way_costs_nothing() {
    let Some(stage) =
        Stage::inside("relay_killed_after_a_direct_way_costs_nothing", Nat::PortDependent, Nat::PortDependent)
    else {
        return;
    };
    let relay = stage.relay();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(2_500));
        drop(relay);
    });
    // 4.8 s at the rate.
    let begin = Instant::now();
    let sent = transfer(&stage, "20Mbit/s", 12_000_000);
    let took = begin.elapsed();
    killer.join().unwrap();
    assert_eq!(way(&sent).0, "direct");
    assert!(took < Duration::from_secs(8), "{took:?}");
}

/// Without a direct way the transfer ends soon, and the message names the relay.
#[test]
fn relay_killed_without_a_direct_way_is_reported() {
    let Some(stage) = Stage::inside("relay_killed_without_a_direct_way_is_reported", Nat::Symmetric, Nat::Symmetric)
    else {
        return;
    };
    let relay = stage.relay();
    fs::write(stage.folder.join("large"), noise(20_000_000)).unwrap();
    let mut receiver = stage.start("b", &["recv", "--relay", "203.0.113.1", "--to", "there", "--json"]);
    let ticket = receiver.line()["ticket"].as_str().unwrap().to_owned();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(2_500));
        drop(relay);
        Instant::now()
    });
    let (code, said) = stage.tells("a", &["send", "large", &ticket, "--rate", "20Mbit/s"]);
    let took = killer.join().unwrap().elapsed();
    assert_eq!(code, Some(1));
    assert!(said.contains("through its relay alone"), "{said}");
    // The system answers a closed port once a second, and data has used that up; the idle timeout of 30 s is the last resort, and machines are busy.
    assert!(took < Duration::from_secs(60), "{took:?}");
}

/// A relay is restarted with the same key: both ends join it again, and the transfer goes on through it.
#[test]
fn restarted_relay_carries_the_transfer_on() {
    let Some(stage) = Stage::inside("restarted_relay_carries_the_transfer_on", Nat::Symmetric, Nat::Symmetric) else {
        return;
    };
    let relay = stage.relay();
    let folder = stage.folder.clone();
    let restarter = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1_500));
        drop(relay);
        Stage { folder }.relay()
    });
    let sent = transfer(&stage, "20Mbit/s", 8_000_000);
    assert_eq!(way(&sent), ("relay", None));
    drop(restarter.join().unwrap());
}

/// A whole computer behind a NAT through one behind another: with and without a direct way, and the tunnel's own datagrams never go through it.
#[test]
fn virtual_network_passes_two_nats() {
    let test = "virtual_network_passes_two_nats";
    if !is_inside(test) {
        return;
    }
    for (place, nat) in [Nat::Symmetric, Nat::PortDependent].into_iter().enumerate() {
        let stage = Stage::new(&format!("{test}-{place}"), nat, nat);
        let _relay = stage.relay();
        let serve = ["tunnel", "serve", "--relay", "203.0.113.1", "--vpn", "10.90.0.1/24", "--json"];
        let mut server = stage.start("b", &serve);
        let ticket = server.line()["ticket"].as_str().unwrap().to_owned();
        assert_eq!(server.line()["event"], "network");
        let mut client = stage.start("a", &["tunnel", "vpn", &ticket, "--route", "default", "--json"]);
        assert_eq!(client.line()["to"], "its relay");
        // Holes are punched meanwhile.
        for _ in 0..8 {
            let begin = Instant::now();
            // The system of the other end answers.
            assert!(stage.is_refused("a", "10.90.0.1:9"), "{nat:?} {:?}", begin.elapsed());
            std::thread::sleep(Duration::from_millis(250));
        }
        let paths = stage.watched("a");
        let is_direct = paths.contains("198.51.100.");
        assert!(is_direct == (nat == Nat::PortDependent) && !paths.contains("10.90.0."), "{nat:?}: {paths}");
    }
}
