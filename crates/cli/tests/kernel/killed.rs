//! Commands that are killed: connections live on, and what was left is gone after `unload` or does not hinder the next `load`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};

use crate::support::{assert_exit, stdout};
use crate::{FOLDER, is_inside, kernel, status};

/// What commands lock.
pub(crate) const LOCK: &str = "/run/anabranch-kernel.lock";

fn start(arguments: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.arg("kernel").args(arguments.split(' ')).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[track_caller]
pub(crate) fn assert_nothing_is_left() {
    for path in [FOLDER, LOCK] {
        assert!(!fs::exists(path).unwrap(), "{path} is left");
    }
    assert!(!fs::read_to_string("/proc/self/mounts").unwrap().contains(FOLDER), "a mount is left");
}

/// Waits until the kernel has no law of this name: it frees a link some time after its last owner has ended.
#[track_caller]
pub(crate) fn wait_until_gone(law: &str) {
    let until = Instant::now() + Duration::from_secs(10);
    let is_there = || {
        let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
        available.split_whitespace().any(|known| known == law)
    };
    while is_there() {
        assert!(Instant::now() < until, "{law} is left");
        thread::sleep(Duration::from_millis(5));
    }
}

/// What a loader has made when it is killed: its folder, the file system in it, or all but the link.
const PARTS: [fn(); 3] = [make_folder, mount, load_without_link];

fn make_folder() {
    fs::DirBuilder::new().mode(0o700).create(FOLDER).unwrap();
}

fn mount() {
    make_folder();
    let mount = ["-t", "bpf", "-o", "mode=0700", "bpf", FOLDER];
    assert!(Command::new("mount").args(mount).status().unwrap().success());
}

fn load_without_link() {
    assert_exit(&kernel("load fast"), 0);
    fs::remove_file(Path::new(FOLDER).join("fast-link")).unwrap();
    wait_until_gone("fast");
}

#[test]
fn unfinished_law_is_removed_or_loaded_anew() {
    if !is_inside("killed::unfinished_law_is_removed_or_loaded_anew") {
        return;
    }
    for leave in PARTS {
        leave();
        assert_eq!(status(), serde_json::json!([]));
        assert_exit(&kernel("unload"), 0);
        assert_nothing_is_left();
        leave();
        assert_exit(&kernel("load fast alpha=77"), 0);
        assert_eq!(status()[0]["settings"]["alpha"], "77");
        assert_exit(&kernel("unload fast"), 0);
        assert_nothing_is_left();
        wait_until_gone("fast");
    }
}

/// At moments over the whole time that loading takes, and after it.
#[test]
fn loader_killed_at_any_moment_leaves_nothing() {
    if !is_inside("killed::loader_killed_at_any_moment_leaves_nothing") {
        return;
    }
    let begin = Instant::now();
    assert_exit(&kernel("load fast"), 0);
    let whole = begin.elapsed();
    assert_exit(&kernel("unload"), 0);
    let mut loaded = 0;
    for moment in 0..24 {
        wait_until_gone("fast");
        let child = start("load fast");
        thread::sleep(whole * moment / 20);
        kill(child);
        let is_loaded = status()[0]["law"] == "fast";
        loaded += u32::from(is_loaded);
        if !is_loaded && moment % 2 == 0 {
            wait_until_gone("fast");
            assert_exit(&kernel("load fast"), 0);
        }
        assert_exit(&kernel("unload"), 0);
        assert_nothing_is_left();
    }
    assert!((1..24).contains(&loaded), "{loaded} of 24 had loaded it in {whole:?}");
}

/// The loader is killed as soon as a connection has the law.
#[test]
fn connection_outlives_its_killed_loader() {
    if !is_inside("killed::connection_outlives_its_killed_loader") {
        return;
    }
    for law in ["fast", "anabranch"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        let loader = start(&format!("load {law}"));
        let until = Instant::now() + Duration::from_secs(30);
        while set_tcp_congestion(&near, law).is_err() {
            assert!(Instant::now() < until, "{law} is not loaded");
        }
        kill(loader);
        assert_exit(&kernel("unload"), 0);
        assert_nothing_is_left();
        let reader = thread::spawn(move || {
            let mut all = vec![];
            far.read_to_end(&mut all).map(|_| all)
        });
        let data: Vec<u8> = (0..16_000_000u32).map(|at| (at * 7 + at / 251) as u8).collect();
        near.write_all(&data).unwrap();
        assert_eq!(tcp_congestion(&near).unwrap(), law);
        drop(near);
        assert!(reader.join().unwrap().unwrap() == data, "{law}");
        wait_until_gone(law);
    }
}

/// The program goes on, with its law; its control group goes with the next `unload`.
#[test]
fn program_outlives_its_killed_command() {
    if !is_inside("killed::program_outlives_its_killed_command") {
        return;
    }
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap();
    if !groups.lines().any(|line| line.starts_with("0::")) {
        println!("skipped: there are no control groups of version 2");
        return;
    }
    assert_exit(&kernel("load composite"), 0);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let script = "import socket, sys\ns = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n\
                  print(open('/proc/self/cgroup').read(), flush=True)\n\
                  while s.recv(1): s.send(s.getsockopt(6, 13, 16)[:9])\n";
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(["kernel", "run", "composite", "--", "python3", "-c", script, &port]).stdout(Stdio::piped());
    let mut run = command.spawn().unwrap();
    let (mut program, _) = listener.accept().unwrap();
    program.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut told = BufReader::new(run.stdout.take().unwrap()).lines();
    let group =
        told.by_ref().map(Result::unwrap).find_map(|line| line.strip_prefix("0::/").map(str::to_owned)).unwrap();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mount = mounts.lines().find(|line| line.contains(" cgroup2 ")).unwrap().split(' ').nth(1).unwrap();
    let group = Path::new(mount).join(group);
    assert!(group.to_string_lossy().contains("anabranch-composite-"), "{}", group.display());
    let mut ask = || {
        let mut law = [0; 9];
        program.write_all(b"?").unwrap();
        program.read_exact(&mut law).unwrap();
        assert_eq!(&law, b"composite");
    };
    ask();
    kill(run);
    ask();
    // The program is in its group.
    assert_exit(&kernel("unload"), 0);
    assert!(group.is_dir(), "{}", group.display());
    ask();
    drop(program);
    let until = Instant::now() + Duration::from_secs(10);
    while group.is_dir() {
        let told = kernel("unload");
        assert_exit(&told, 0);
        assert_eq!(stdout(&told).trim(), "no law was loaded");
        assert!(Instant::now() < until, "{} is left", group.display());
    }
    assert_nothing_is_left();
}
