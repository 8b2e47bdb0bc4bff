//! What is told of a running command: `anabranch watch`, and metrics for Prometheus.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Server, refused};
use crate::support::{anabranch, assert_exit, folder, stdout};

/// A measurement is watched by its process id, in a list of two, and as the only one after the other was killed.
#[cfg(unix)]
#[test]
fn running_measurement_can_be_watched() {
    use std::os::unix::fs::PermissionsExt as _;
    let here = folder("online-watch");
    // Names of sockets must be short.
    let runtime = std::env::temp_dir().join(format!("ab-watch-{}", std::process::id()));
    _ = fs::remove_dir_all(&runtime);
    fs::create_dir(&runtime).unwrap();
    let command = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.args(args).current_dir(&here).env("XDG_RUNTIME_DIR", &runtime);
        command
    };
    let watched = |args: &[&str]| command(&[&["watch", "--once"], args].concat()).output().unwrap();
    refused(&watched(&[]), 1, "no command that could be watched");
    refused(&watched(&["1"]), 1, "process 1 cannot be watched: ");
    let serve = command(&["bench", "serve", "--listen", "127.0.0.1:0", "--json"]).stdout(Stdio::piped()).spawn();
    let mut serve = serve.unwrap();
    let lines = BufReader::new(serve.stdout.take().unwrap());
    let mut serve = Server { child: serve, lines, ticket: String::new() };
    let ticket = serve.line()["ticket"].as_str().unwrap().to_owned();
    let args = ["bench", &ticket, "--time", "120", "--rate", "8Mbit/s", "--jsonl"];
    let mut child = command(&args).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    let mut bench = Server { child, lines, ticket: String::new() };
    bench.line();
    let (serving, measuring) = (serve.child.id().to_string(), bench.child.id().to_string());
    let socket = runtime.join(format!("anabranch-{measuring}.sock"));
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let seen = watched(&[&measuring]);
    assert_exit(&seen, 0);
    for expected in ["anabranch bench (process", "path 0: ", "it/s  RTT ", "nothing to send", "window "] {
        assert!(stdout(&seen).contains(expected), "{expected} in {}", stdout(&seen));
    }
    let listed = watched(&[]);
    assert_exit(&listed, 0);
    for expected in
        [format!("anabranch watch {serving}    bench serve"), format!("anabranch watch {measuring}    bench")]
    {
        assert!(stdout(&listed).contains(&expected), "{expected} in {}", stdout(&listed));
    }
    drop(bench);
    assert!(socket.exists(), "it was killed");
    let alone = watched(&[]);
    assert_exit(&alone, 0);
    assert!(stdout(&alone).contains(&format!("anabranch bench serve (process {serving})")), "{}", stdout(&alone));
    assert!(!socket.exists(), "nobody was behind it");
    drop(serve);
    fs::remove_dir_all(&runtime).unwrap();
}

/// A socket behind which nobody takes connections, as of a stopped command: with room in its queue of connections, and without.
#[cfg(unix)]
#[test]
fn silent_socket_ends_watch_within_seconds() {
    use std::os::unix::net::{UnixListener, UnixStream};
    let here = folder("online-watch-silent");
    let runtime = std::env::temp_dir().join(format!("ab-silent-{}", std::process::id()));
    _ = fs::remove_dir_all(&runtime);
    fs::create_dir(&runtime).unwrap();
    let socket = runtime.join("anabranch-77.sock");
    let _silent = UnixListener::bind(&socket).unwrap();
    let watch = |args: &[&str], reason: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.arg("watch").args(args).current_dir(&here).env("XDG_RUNTIME_DIR", &runtime);
        let begin = Instant::now();
        refused(&command.output().unwrap(), 1, reason);
        assert!(begin.elapsed().as_secs() < 9, "{args:?}: {:?}", begin.elapsed());
    };
    watch(&["77"], "the command shows nothing");
    let waiting: Vec<_> = {
        let (sender, receiver) = std::sync::mpsc::channel();
        let socket = socket.clone();
        std::thread::spawn(move || while sender.send(UnixStream::connect(&socket)).is_ok() {});
        std::iter::from_fn(|| receiver.recv_timeout(Duration::from_millis(300)).ok()).collect()
    };
    assert!(waiting.len() > 10, "{}", waiting.len());
    watch(&["77", "--once"], "process 77 cannot be watched: it takes no connections");
    watch(&[], "process 77 cannot be watched: it takes no connections");
    fs::remove_dir_all(&runtime).unwrap();
}

/// Prometheus metrics, on loopback by default; a port in use is reported.
#[test]
fn a_server_tells_prometheus() {
    let folder = folder("online-metrics");
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(["bench", "serve", "--listen", "127.0.0.1:0", "--metrics", "0", "--json"]).current_dir(&folder);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let lines = BufReader::new(child.stdout.take().unwrap());
    let mut server = Server { child, lines, ticket: String::new() };
    server.line();
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    let address = line.trim_end().strip_prefix("metrics at http://").and_then(|rest| rest.strip_suffix("/metrics"));
    let address = address.unwrap_or_else(|| panic!("{line}"));
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let mut tcp = std::net::TcpStream::connect(address).unwrap();
    std::io::Write::write_all(&mut tcp, b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut tcp, &mut answer).unwrap();
    assert!(answer.contains("\nanabranch_connections 0\n"), "{answer}");
    let taken = anabranch(&folder, &["recv", "--metrics", address]);
    refused(&taken, 1, &format!("cannot serve metrics at {address}: "));
    refused(&anabranch(&folder, &["recv", "--metrics", "x"]), 2, "the port");
}

/// Sockets of another user's processes are not used, even if this user owns the file; they are neither listed nor removed.
#[cfg(target_os = "linux")]
#[test]
fn process_of_another_user_is_not_watched() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    use std::os::unix::process::CommandExt as _;
    const ANOTHER: u32 = 4711;
    let runtime = std::env::temp_dir().join(format!("ab-foreign-{}", std::process::id()));
    _ = fs::remove_dir_all(&runtime);
    fs::create_dir(&runtime).unwrap();
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o777)).unwrap();
    let command = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.current_dir(&runtime).env("XDG_RUNTIME_DIR", &runtime);
        command
    };
    let serve = ["bench", "serve", "--listen", "127.0.0.1:0", "--json"];
    let Ok(mut child) = command().args(serve).uid(ANOTHER).stdout(Stdio::piped()).spawn() else {
        fs::remove_dir_all(&runtime).unwrap();
        return println!("not run: only root may act as another user");
    };
    let lines = BufReader::new(child.stdout.take().unwrap());
    let mut serve = Server { child, lines, ticket: String::new() };
    serve.line();
    let pid = serve.child.id().to_string();
    let socket = runtime.join(format!("anabranch-{pid}.sock"));
    while !socket.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let watched = |args: &[&str]| command().args(["watch", "--once"]).args(args).output().unwrap();
    let expected = format!("process {pid} cannot be watched: its socket is another user's (number {ANOTHER};");
    refused(&watched(&[&pid]), 1, &expected);
    refused(&watched(&[]), 1, "no command that could be watched");
    chown(&socket, Some(0), None).unwrap();
    let expected =
        format!("process {pid} cannot be watched: the process behind it is another user's (number {ANOTHER};");
    refused(&watched(&[&pid]), 1, &expected);
    refused(&watched(&[]), 1, "no command that could be watched");
    assert!(socket.exists());
    drop(serve);
    fs::remove_dir_all(&runtime).unwrap();
}
