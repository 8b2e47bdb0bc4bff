//! Networks that let no UDP through: the relay is reached over TCP.

use std::fs;
use std::time::{Duration, Instant};

use crate::stage::{Nat, Running, Stage, is_inside, noise};
use crate::{documented, transfer, way};

/// A stage whose ends with these names have no UDP, and a relay that listens on TCP.
fn blocked(test: &str, ends: &[&str]) -> (Stage, Running) {
    let stage = Stage::new(test, Nat::PortDependent, Nat::PortDependent);
    assert_eq!(documented("anabranch relay serve --tcp"), ["relay", "serve", "--tcp"]);
    let relay = stage.relay_with(&["--tcp"]);
    ends.iter().for_each(|end| stage.block_udp(end));
    (stage, relay)
}

/// One end has no UDP, or neither has: a folder goes by a code of three words, as docs/commands.md has it, and whoever has no UDP is told.
#[test]
fn code_sends_a_folder_where_udp_is_blocked() {
    let test = "over_tcp::code_sends_a_folder_where_udp_is_blocked";
    if !is_inside(test) {
        return;
    }
    for ends in [&["b"][..], &["a"], &["a", "b"]] {
        let (stage, _relay) = blocked("code_sends_a_folder_where_udp_is_blocked", ends);
        fs::create_dir_all(stage.folder.join("pictures")).unwrap();
        fs::create_dir_all(stage.folder.join("there")).unwrap();
        fs::write(stage.folder.join("pictures/a"), noise(3_000_000)).unwrap();
        let begin = Instant::now();
        let send = documented("anabranch send --relay relay.example pictures");
        let mut sender = stage.start("a", &[&send[..], &["--json".to_owned()]].concat());
        let code = sender.line()["code"].as_str().unwrap().to_owned();
        assert_eq!(code.split('-').count(), 3, "{code}");
        let recv = documented("anabranch recv --relay relay.example 7-guitar-ocean");
        let mut recv: Vec<_> = recv.iter().map(|argument| argument.replace("7-guitar-ocean", &code)).collect();
        recv.extend(["--to", "there"].map(str::to_owned));
        let (status, said) = stage.tells("b", &recv);
        assert_eq!(status, Some(0), "{said}");
        let is_told = said.contains("the relay does not answer over UDP: going over TCP, to 203.0.113.1:443");
        assert_eq!(is_told, ends.contains(&"b"), "{said}");
        let sent = sender.line();
        assert_eq!((way(&sent), &sent["files"]), (("relay", None), &1.into()));
        sender.ends_with(0);
        assert!(fs::read(stage.folder.join("there/pictures/a")).unwrap() == noise(3_000_000));
        // Two seconds for each end that waits for UDP, and a busy machine.
        assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
    }
}

/// The ticket of an end names the relay's TCP port, although the relay uses another than 443.
#[test]
fn ticket_leads_over_tcp_at_any_port() {
    let test = "over_tcp::ticket_leads_over_tcp_at_any_port";
    if is_inside(test) {
        let stage = Stage::new("ticket_leads_over_tcp_at_any_port", Nat::Symmetric, Nat::Symmetric);
        let _relay = stage.relay_with(&["--tcp", "8443"]);
        stage.block_udp("a");
        let sent = transfer(&stage, "40Mbit/s", 3_000_000);
        assert_eq!(way(&sent), ("relay", None));
    }
}

/// TCP tells both ends that the relay is gone, and the message is that of a relay over UDP.
#[test]
fn killed_relay_over_tcp_is_reported() {
    if !is_inside("over_tcp::killed_relay_over_tcp_is_reported") {
        return;
    }
    let (stage, relay) = blocked("killed_relay_over_tcp_is_reported", &["a", "b"]);
    fs::write(stage.folder.join("large"), noise(20_000_000)).unwrap();
    let mut receiver = stage.start("b", &["recv", "--relay", "203.0.113.1", "--to", "there", "--json"]);
    let ticket = receiver.line()["ticket"].as_str().unwrap().to_owned();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(5));
        drop(relay);
        Instant::now()
    });
    let (code, said) = stage.tells("a", &["send", "large", &ticket, "--rate", "20Mbit/s"]);
    let took = killer.join().unwrap().elapsed();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("going over TCP") && said.contains("through its relay alone"), "{said}");
    assert!(took < Duration::from_secs(40), "{took:?}");
}

/// A relay is restarted with the same key: both ends join it again over TCP, and the transfer goes on.
#[test]
fn restarted_relay_over_tcp_carries_the_transfer_on() {
    if !is_inside("over_tcp::restarted_relay_over_tcp_carries_the_transfer_on") {
        return;
    }
    let (stage, relay) = blocked("restarted_relay_over_tcp_carries_the_transfer_on", &["a", "b"]);
    let folder = stage.folder.clone();
    let restarter = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(5));
        drop(relay);
        Stage { folder }.relay_with(&["--tcp"])
    });
    let sent = transfer(&stage, "10Mbit/s", 6_000_000);
    assert_eq!(way(&sent), ("relay", None));
    drop(restarter.join().unwrap());
}

/// A whole computer through the relay: the TCP connection to the relay does not go through the tunnel that it carries.
#[test]
fn virtual_network_goes_over_tcp() {
    if !is_inside("over_tcp::virtual_network_goes_over_tcp") {
        return;
    }
    let (stage, _relay) = blocked("virtual_network_goes_over_tcp", &["a", "b"]);
    let serve = ["tunnel", "serve", "--relay", "203.0.113.1", "--vpn", "10.90.0.1/24", "--json"];
    let mut server = stage.start("b", &serve);
    let ticket = server.line()["ticket"].as_str().unwrap().to_owned();
    assert_eq!(server.line()["event"], "network");
    let mut client = stage.start("a", &["tunnel", "vpn", &ticket, "--route", "default", "--json"]);
    assert_eq!(client.line()["to"], "its relay");
    for _ in 0..4 {
        // The system of the other end answers.
        assert!(stage.is_refused("a", "10.90.0.1:9"));
        std::thread::sleep(Duration::from_millis(250));
    }
}
