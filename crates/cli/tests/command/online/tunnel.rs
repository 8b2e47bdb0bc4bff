//! `anabranch tunnel`.

use std::io::BufReader;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Server;
use crate::support::{anabranch, assert_exit, folder, stderr};

/// A server that sends its name.
fn named_server(name: &'static [u8]) -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            _ = std::io::Write::write_all(&mut tcp.unwrap(), name);
        }
    });
    port
}

fn said_at(port: u64) -> Option<Vec<u8>> {
    let mut tcp = std::net::TcpStream::connect(("127.0.0.1", port as u16)).ok()?;
    tcp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut said = vec![];
    std::io::Read::read_to_end(&mut tcp, &mut said).ok().map(|_| said)
}

/// Ports in both directions, and a server that is restarted with the same key: the client reconnects by itself.
#[test]
fn a_tunnel_leads_there_and_back() {
    let folder = folder("tunnel");
    let target = named_server(b"the target");
    assert_exit(&anabranch(&folder, &["key", "new", "key"]), 0);
    let any_port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let serve = |folder: &Path| {
        let (to, listen) = (format!("127.0.0.1:{target}"), any_port.to_string());
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.args(["tunnel", "serve", "--json", "--listens", "--key", "key", "--to", &to, "--listen", &listen]);
        let mut child = command.current_dir(folder).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut server = Server { child, lines, ticket: String::new() };
        server.ticket = server.line()["ticket"].as_str().unwrap().to_owned();
        server
    };
    let server = serve(&folder);
    let forward = format!("0:127.0.0.1:{target}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(["tunnel", &server.ticket, "--json", "-L", &forward, "-R", &forward]).current_dir(&folder);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    let mut client = Server { child, lines, ticket: String::new() };
    let port =
        |line: &Value| line["listen"].as_str().unwrap().split([':', ' ']).nth(1).unwrap().parse::<u64>().unwrap();

    let local = port(&client.line());
    assert_eq!(client.line()["event"], "connected");
    let remote = port(&client.line());
    assert_eq!(said_at(local).unwrap(), b"the target");
    assert_eq!(said_at(remote).unwrap(), b"the target");

    // The port is free again when the process is gone.
    drop(server);
    let _again = serve(&folder);
    let begin = Instant::now();
    assert_eq!(client.line()["event"], "lost", "the new process knows nothing of the old connection");
    assert_eq!(client.line()["event"], "connected");
    client.line();
    assert_eq!(said_at(local).unwrap(), b"the target");
    assert!(begin.elapsed() < Duration::from_secs(50), "{:?}", begin.elapsed());
}

#[test]
fn a_tunnel_without_anything_to_do_is_refused() {
    let folder = folder("tunnel-refused");
    let refused = anabranch(&folder, &["tunnel", "serve"]);
    assert_exit(&refused, 2);
    assert!(stderr(&refused).contains("--to HOST:PORT"), "{}", stderr(&refused));
    let refused = anabranch(&folder, &["tunnel", "serve", "--to", "nowhere"]);
    assert_exit(&refused, 2);
    assert!(stderr(&refused).contains("port from 1 to 65535"), "{}", stderr(&refused));
}

/// Packets of two programs to a target at the other end, which answers them; the target must be allowed for UDP.
#[test]
fn tunnel_carries_packets_of_udp() {
    let folder = folder("tunnel-udp");
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = target.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut room = [0; 2000];
        while let Ok((len, from)) = target.recv_from(&mut room) {
            _ = target.send_to(&room[..len], from);
        }
    });
    let server = Server::start(&folder, &["tunnel", "serve", "--to-udp", &to]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(["tunnel", &server.ticket, "--json", "--local-udp", &format!("0:{to}")]).current_dir(&folder);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    let mut client = Server { child, lines, ticket: String::new() };
    let forwarding = client.line();
    let listen = forwarding["listen"].as_str().unwrap();
    assert_eq!((forwarding["event"].as_str(), forwarding["target"].as_str()), (Some("forwarding"), Some(&*to)));
    let port = listen.strip_suffix(" (UDP)").unwrap();
    assert_eq!(client.line()["event"], "connected");
    for name in ["one", "other"] {
        let program = UdpSocket::bind("127.0.0.1:0").unwrap();
        program.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        program.connect(port).unwrap();
        for packet in [name.to_owned(), name.repeat(300)] {
            program.send(packet.as_bytes()).unwrap();
            let mut room = [0; 2000];
            let len = program.recv(&mut room).unwrap();
            assert_eq!(&room[..len], packet.as_bytes());
        }
    }
}
