//! Commands that are killed or stopped, and started again: how soon the other end knows.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{anabranch, assert_exit, folder};

/// A running command, and its lines of JSON.
struct Running {
    child: Child,
    lines: Receiver<Value>,
}

impl Running {
    fn start(folder: &Path, args: &[&str]) -> Self {
        let mut command = program();
        // Its socket for `watch` is in the folder of the test.
        command.args(args).arg("--json").current_dir(folder).env("XDG_RUNTIME_DIR", folder);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                _ = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        Self { child, lines }
    }

    /// Waits for this event.
    #[track_caller]
    fn event(&self, event: &str) -> Value {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).unwrap_or_else(|_| panic!("no {event} in 20 s"));
            if line["event"] == event {
                return line;
            }
        }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }
}

/// The command, for which SIGHUP has its usual effect, also if these tests run under `nohup`, which children inherit.
fn program() -> Command {
    let program = env!("CARGO_BIN_EXE_anabranch");
    if cfg!(target_os = "linux") {
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP", program]);
        return command;
    }
    Command::new(program)
}

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// A folder with the keys `server` and `client`, and free ports for UDP and TCP.
fn place(test: &str) -> (std::path::PathBuf, String, u16) {
    let here = folder(test);
    ["server", "client"].iter().for_each(|key| assert_exit(&anabranch(&here, &["key", "new", key]), 0));
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    (here, udp.to_string(), tcp.port())
}

const SERVE: [&str; 7] = ["tunnel", "serve", "--listens", "--to", "127.0.0.1:9", "--key", "server"];

fn serve(here: &Path, listen: &str) -> (Running, String) {
    let server = Running::start(here, &[&SERVE[..], &["--listen", listen]].concat());
    let ticket = server.event("listening")["ticket"].as_str().unwrap().to_owned();
    (server, ticket)
}

/// The server is killed, and an idle client, which asks every second, learns of it: by a stateless reset if the server was started again on
/// its port, with its key; else because the port is closed. A second later it connects again.
#[test]
fn killed_server_is_noticed_in_two_seconds() {
    for is_back in [true, false] {
        let (here, listen, _) = place(&format!("restart-killed-{is_back}"));
        let (server, ticket) = serve(&here, &listen);
        let client = Running::start(&here, &["tunnel", &ticket, "--local", "127.0.0.1:0:127.0.0.1:9"]);
        client.event("connected");
        // The longest time until the next question.
        std::thread::sleep(Duration::from_millis(500));
        drop(server);
        let begin = Instant::now();
        let _back = is_back.then(|| serve(&here, &listen));
        client.event("lost");
        let lost = begin.elapsed();
        assert!(lost < Duration::from_secs(2), "{lost:?}, started again: {is_back}");
        let _back = _back.unwrap_or_else(|| serve(&here, &listen));
        client.event("connected");
    }
}

/// SIGTERM and SIGHUP: the other end knows at once, and the socket for `watch` is gone.
#[test]
fn command_stopped_by_signal_says_goodbye() {
    for (name, code) in [("-TERM", 143), ("-HUP", 129)] {
        let (here, listen, _) = place(&format!("restart-stopped{name}"));
        let (mut server, ticket) = serve(&here, &listen);
        let client = Running::start(&here, &["tunnel", &ticket, "--local", "127.0.0.1:0:127.0.0.1:9"]);
        client.event("connected");
        // The client is connected before the server has its last handshake message; until then nobody is there to say goodbye to.
        std::thread::sleep(Duration::from_millis(300));
        let begin = Instant::now();
        server.signal(name);
        client.event("lost");
        let lost = begin.elapsed();
        assert!(lost < Duration::from_secs(1), "{lost:?} after {name}");
        assert_eq!(server.child.wait().unwrap().code(), Some(code));
        let socket = format!("{}.sock", server.child.id());
        let left = fs::read_dir(&here).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert_eq!(left.filter(|name| name.ends_with(&socket)).count(), 0);
    }
}

/// A client is killed, while the server holds a port for it, and comes back. With the same key it has the port at once; without one
/// a second later, as the client that held it does not answer. A client that answers keeps its port.
#[test]
fn restarted_client_gets_remote_port_in_two_seconds() {
    for key in [&["--key", "client"][..], &[]] {
        let (here, listen, port) = place(&format!("restart-client-{}", key.len()));
        let (_server, ticket) = serve(&here, &listen);
        let remote = format!("127.0.0.1:{port}:127.0.0.1:9");
        let client = || Running::start(&here, &[&["tunnel", &ticket, "--remote", &remote], key].concat());
        let first = client();
        first.event("forwarding");
        drop(first);
        let begin = Instant::now();
        let second = client();
        second.event("forwarding");
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?} with {key:?}", begin.elapsed());
        let mut other = Running::start(&here, &["tunnel", &ticket, "--remote", &remote]);
        assert_eq!(other.child.wait().unwrap().code(), Some(1), "the second client answers");
    }
}

/// Two clients want the port of a killed one at the same time. One has it; the other is refused, and does not take it away.
#[test]
fn port_of_killed_client_goes_to_one_of_two() {
    let (here, listen, port) = place("restart-two");
    let (_server, ticket) = serve(&here, &listen);
    let remote = format!("127.0.0.1:{port}:127.0.0.1:9");
    let client = || Running::start(&here, &["tunnel", &ticket, "--remote", &remote]);
    let first = client();
    first.event("forwarding");
    drop(first);
    let mut both = [client(), client()];
    let until = Instant::now() + Duration::from_secs(10);
    let is_over = |client: &mut Running| client.child.try_wait().unwrap().is_some();
    while !both.iter_mut().any(is_over) {
        assert!(Instant::now() < until, "nobody was refused");
        std::thread::sleep(Duration::from_millis(50));
    }
    // Longer than the refused one was asked to wait for.
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(both.iter_mut().filter_map(|client| client.child.try_wait().unwrap()).count(), 1);
}
