//! A virtual network between computers, each in a network namespace. Without root, iproute2 or TUN the tests say so and pass.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage shall stop there")]

#[path = "../shared/inside.rs"]
mod inside;
#[path = "../shared/stage.rs"]
mod shared;
mod stage;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::thread;
use std::time::Duration;

use crate::stage::{CLIENT, INTERNET, OTHER, SERVER, Stage, host_ends_with, in_namespace, noise};

/// TCP in both directions and packets of UDP, to the server itself and to what lies behind it, while everything is routed to the tunnel, except for the network
/// of the client's own cable. At Ctrl-C nothing remains.
#[test]
fn programs_reach_the_network_behind_the_server() {
    let Some(stage) = Stage::inside("programs_reach_the_network_behind_the_server") else { return };
    let before = stage.system(CLIENT);
    let (server, ticket) = stage.serve(&["--vpn", "10.90.0.1/24", "--vpn", "fd90::1/64"]);
    let (client, told) = stage.join(CLIENT, &ticket, &["--route", "default"]);
    assert_eq!(told["routes"].as_array().unwrap().len(), 4, "{told}");
    let own: Vec<_> =
        told["addresses"].as_array().unwrap().iter().map(|own| own.as_str().unwrap().to_owned()).collect();
    for (place, target) in ["10.90.0.1", "fd90::1", INTERNET].into_iter().enumerate() {
        let family = usize::from(target.contains(':'));
        let listener = TcpListener::bind((target, 7000 + place as u16)).unwrap();
        let (address, expected) = (listener.local_addr().unwrap(), own[family].clone());
        let served = thread::spawn(move || {
            let (mut tcp, from) = listener.accept().unwrap();
            assert_eq!(from.ip().to_string(), expected);
            let mut got = vec![0; 2_000_000];
            tcp.read_exact(&mut got).unwrap();
            tcp.write_all(&got).unwrap();
        });
        in_namespace(CLIENT, move || {
            let mut tcp = std::net::TcpStream::connect_timeout(&address, Duration::from_secs(5)).unwrap();
            tcp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let mut writing = tcp.try_clone().unwrap();
            let writer = thread::spawn(move || writing.write_all(&noise(2_000_000)).unwrap());
            let mut back = vec![0; 2_000_000];
            tcp.read_exact(&mut back).unwrap();
            writer.join().unwrap();
            assert!(back == noise(2_000_000), "{address}");
        });
        served.join().unwrap();
        let socket = UdpSocket::bind((target, 7000)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let address = socket.local_addr().unwrap();
        in_namespace(CLIENT, move || {
            let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            UdpSocket::bind(any).unwrap().send_to(b"hello", address).unwrap();
        });
        let (len, from) = socket.recv_from(&mut [0; 100]).unwrap();
        assert_eq!((len, from.ip().to_string()), (5, own[family].clone()));
    }
    // What a packet of 1,500 bytes has room for.
    let device = told["device"].as_str().unwrap();
    for end in [CLIENT, ""] {
        assert!(stage.has_mtu(end, device, 1409), "{end:?}");
    }
    let socket = UdpSocket::bind((SERVER, 7000)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    in_namespace(CLIENT, || _ = UdpSocket::bind("0.0.0.0:0").unwrap().send_to(b"hello", (SERVER, 7000)).unwrap());
    assert_eq!(socket.recv_from(&mut [0; 100]).unwrap().1.ip().to_string(), "198.51.100.2");
    client.interrupt();
    assert_eq!(stage.system(CLIENT), before, "devices, addresses, rules, routes");
    server.interrupt();
    assert!(!stage.system("").contains("anabranch"), "{}", stage.system(""));
}

/// The second client has an address of its own. The first one comes back with its key, after it was killed, and has its address again; the rules that it has
/// left are gone.
#[test]
fn client_that_was_killed_gets_its_address_again() {
    let Some(stage) = Stage::inside("client_that_was_killed_gets_its_address_again") else { return };
    let key = stage.key();
    let before = stage.system(CLIENT);
    let (_server, ticket) = stage.serve(&["--vpn", "10.90.0.1/24"]);
    let (first, told) = stage.join(CLIENT, &ticket, &["--key", &key, "--route", "10.0.0.0/8"]);
    let own = told["addresses"][0].as_str().unwrap().to_owned();
    let (_other, told_other) = stage.join(OTHER, &ticket, &[]);
    assert_ne!(told_other["addresses"][0], told["addresses"][0]);
    drop(first);
    let left = stage.system(CLIENT);
    assert!(left.contains("suppress_prefixlength") && !left.contains("anabranch"), "only rules are left: {left}");
    let (again, told) = stage.join(CLIENT, &ticket, &["--key", &key, "--route", "10.0.0.0/8"]);
    assert_eq!(told["addresses"][0].as_str(), Some(&*own));
    again.interrupt();
    assert_eq!(stage.system(CLIENT), before);
}

/// A packet with another source than the client's own is dropped at either end: here by the client's command, whose system was told to send it.
#[test]
fn packet_with_a_spoofed_source_does_not_arrive() {
    let Some(stage) = Stage::inside("packet_with_a_spoofed_source_does_not_arrive") else { return };
    let (_server, ticket) = stage.serve(&["--vpn", "10.90.0.1/24"]);
    let (_client, told) = stage.join(CLIENT, &ticket, &[]);
    let (own, device) =
        (told["addresses"][0].as_str().unwrap().to_owned(), told["device"].as_str().unwrap().to_owned());
    stage.ip(CLIENT, &format!("address add 10.90.0.200/32 dev {device}"));
    let socket = UdpSocket::bind("10.90.0.1:7000").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    in_namespace(CLIENT, move || {
        for from in ["10.90.0.200", &own] {
            UdpSocket::bind((from, 0)).unwrap().send_to(from.as_bytes(), "10.90.0.1:7000").unwrap();
        }
    });
    let mut room = [0; 100];
    let (_, from) = socket.recv_from(&mut room).unwrap();
    assert_eq!(Some(&*from.ip().to_string()), told["addresses"][0].as_str());
}

/// What cannot be is said, with what to do, and ends the command.
#[test]
fn missing_part_is_said_with_what_to_do() {
    let Some(stage) = Stage::inside("missing_part_is_said_with_what_to_do") else { return };
    let (server, ticket) = stage.serve(&["--listens"]);
    let fails = |arguments: &[&str], code: i32, words: &str| {
        let (status, said) = stage.fails(CLIENT, &[&["tunnel", "vpn"], arguments].concat());
        assert!(status == Some(code) && said.contains(words), "{arguments:?} {status:?}: {said}");
    };
    fails(&[&ticket], 1, "tunnel serve --vpn 10.90.0.1/24");
    fails(&[&ticket, "--route", "10.0.0.1/8"], 2, "10.0.0.0/8");
    fails(&[&ticket, "--route", "0.0.0.0/0"], 2, "`default`");
    fails(&[&ticket, "--device", "a/b"], 2, "1 to 15 letters");
    fails(&[&ticket, "--dns", "10.90.0.1"], 2, "resolvectl");
    server.interrupt();
    let serve = |of: &[&str]| stage.fails("", &[&["tunnel", "serve", "--listen", "127.0.0.1:0"], of].concat());
    for of in
        [&["--vpn", "8.8.8.8/24"][..], &["--vpn", "10.90.0.1/31"], &["--vpn", "10.90.0.1/24", "--vpn", "10.91.0.1/24"]]
    {
        let (status, said) = serve(of);
        assert!(status == Some(2) && said.contains("a private network with room for clients"), "{of:?}: {said}");
    }
    let (status, said) = stage.fails_as_nobody(&["tunnel", "serve", "--vpn", "10.90.0.1/24"]);
    assert!(status == Some(2) && said.contains("needs root"), "{said}");
    host_ends_with(&stage, "");
}

/// The server is killed, and started again with its key: the client joins again by itself, and keeps its routes meanwhile. After SIGTERM nothing remains.
#[test]
fn client_joins_a_restarted_server_again() {
    let Some(stage) = Stage::inside("client_joins_a_restarted_server_again") else { return };
    let key = stage.key();
    let of_server = ["--vpn", "10.90.0.1/24", "--key", &key];
    let before = stage.system(CLIENT);
    let (server, ticket) = stage.serve(&of_server);
    let (mut client, told) = stage.join(CLIENT, &ticket, &["--route", "default"]);
    let with = stage.system(CLIENT);
    assert_ne!(with, before);
    drop(server);
    assert_eq!(client.line()["event"], "lost");
    assert_eq!(stage.system(CLIENT), with, "nothing leaves past the tunnel meanwhile");
    let (_server, _) = stage.serve(&of_server);
    let mut again = client.line();
    while again["event"] == "lost" {
        again = client.line();
    }
    assert_eq!((&again["event"], &again["addresses"]), (&"connected".into(), &told["addresses"]));
    let listener = TcpListener::bind("10.90.0.1:7000").unwrap();
    in_namespace(CLIENT, || _ = std::net::TcpStream::connect("10.90.0.1:7000").unwrap());
    assert!(listener.accept().is_ok());
    client.stop("-TERM", &[Some(143)]);
    assert_eq!(stage.system(CLIENT), before);
}

/// A network with one address for clients: the second one is told, until the first one has left.
#[test]
fn client_of_a_full_network_is_refused() {
    let Some(stage) = Stage::inside("client_of_a_full_network_is_refused") else { return };
    let (_server, ticket) = stage.serve(&["--vpn", "10.90.0.1/30"]);
    let (first, told) = stage.join(CLIENT, &ticket, &[]);
    assert_eq!(told["addresses"][0], "10.90.0.2");
    let (status, said) = stage.fails(OTHER, &["tunnel", "vpn", &ticket]);
    assert!(status == Some(1) && said.contains("all addresses of the server's virtual network are in use"), "{said}");
    first.interrupt();
    let (_second, told_later) = stage.join(OTHER, &ticket, &[]);
    assert_eq!(told_later["addresses"], told["addresses"]);
}

/// A server whose network is also that of the client's cable gets no place there: it would take the place of the router.
#[test]
fn network_of_the_clients_own_cable_is_refused() {
    let Some(stage) = Stage::inside("network_of_the_clients_own_cable_is_refused") else { return };
    let (_server, ticket) = stage.serve(&["--vpn", "10.90.0.1/24"]);
    stage.ip(CLIENT, "address add 10.90.0.250/24 dev wan");
    let (status, said) = stage.fails(CLIENT, &["tunnel", "vpn", &ticket]);
    assert!(status == Some(1) && said.contains("own network 10.90.0.250/24 (wan)"), "{said}");
    host_ends_with(&stage, CLIENT);
}
