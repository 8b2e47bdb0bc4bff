//! Laws in the kernel, as programs see them. Where the kernel cannot, the tests say so and pass. Laws are the kernel's, not a namespace's, so one
//! test run at a time has them; pins are in a mount namespace of the test's own.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage shall stop there")]
#![expect(clippy::print_stdout, reason = "whoever runs the tests shall know what was not tested")]

#[expect(dead_code, reason = "some of it is for the other tests")]
#[path = "../command/support.rs"]
mod support;

mod at_once;
mod killed;
mod multipath;

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};
use serde_json::Value;

use crate::support::{assert_exit, folder, repository, stderr, stdout};

/// Set for the run inside of the namespaces.
const INSIDE: &str = "ANABRANCH_INSIDE";
const FOLDER: &str = "/run/anabranch-kernel";

fn kernel(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anabranch")).arg("kernel").args(arguments.split(' ')).output().unwrap()
}

/// Whether this process has namespaces of its own; if not, runs the test in some. Without root or BTF it says why not.
fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    if let Err(lack) = anabranch_bpf::kernel::check(anabranch_bpf::Law::Anabranch) {
        println!("skipped: {lack}");
        return false;
    }
    let lock = File::create(std::env::temp_dir().join("anabranch-kernel-tests.lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let mut inner = Command::new("unshare");
    // Process identifiers of its own, so that `default --host` reaches no other namespace of the machine.
    let script = "mount -t tmpfs tmpfs /run && ip link set lo up && exec \"$@\"";
    inner.args(["-mnpf", "--mount-proc", "sh", "-c", script, "sh"]);
    let status =
        inner.arg(std::env::current_exe().unwrap()).args([test, "--exact", "--nocapture"]).env(INSIDE, "1").status();
    assert!(status.unwrap().success(), "{test} failed in its namespaces");
    false
}

fn status() -> Value {
    let told = kernel("status --json");
    assert_exit(&told, 0);
    serde_json::from_slice(&told.stdout).unwrap()
}

#[test]
fn law_loaded_set_and_unloaded_leaves_nothing() {
    if !is_inside("law_loaded_set_and_unloaded_leaves_nothing") {
        return;
    }
    assert_exit(&kernel("load fast alpha=100"), 0);
    assert_exit(&kernel("load fast"), 1);
    assert_exit(&kernel("load rrfast"), 0);
    assert_exit(&kernel("set --law fast alpha=200 refill=ccafr"), 0);
    let told = status();
    assert_eq!(told[0]["law"], "fast");
    assert_eq!((&told[0]["settings"]["alpha"], &told[0]["settings"]["refill"]), (&"200".into(), &"ccafr".into()));
    assert_eq!((&told[1]["law"], &told[1]["settings"]["base_rtt"]), (&"rrfast".into(), &"reroute".into()));
    // All or none: `refill.gapflag` is no setting in the kernel.
    let refused = kernel("set gamma=0.25 refill.gapflag=even");
    assert_exit(&refused, 2);
    assert_eq!(status()[1]["settings"]["gamma"], "0.5");
    assert_exit(&kernel("unload rrfast"), 0);
    assert_exit(&kernel("unload rrfast"), 1);
    assert_exit(&kernel("default fast"), 0);
    assert_exit(&kernel("unload"), 0);
    assert_eq!(status(), Value::Array(vec![]));
    assert!(!fs::exists(FOLDER).unwrap(), "{FOLDER} is left");
    assert!(!fs::read_to_string("/proc/self/mounts").unwrap().contains(FOLDER), "a mount is left");
    // The kernel frees a link in its own time, after the command has ended.
    let is_there = || {
        let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
        available.split_whitespace().any(|law| law == "fast")
    };
    let until = Instant::now() + Duration::from_secs(10);
    while is_there() {
        assert!(Instant::now() < until, "the law is left");
        thread::sleep(Duration::from_millis(20));
    }
}

/// One namespace has a process, and one has a name alone; both have the law, and neither after `unload`.
#[test]
fn default_of_the_host_is_that_of_each_namespace() {
    if !is_inside("default_of_the_host_is_that_of_each_namespace") {
        return;
    }
    let ip = |arguments: &str| Command::new("ip").args(arguments.split(' ')).output().unwrap();
    assert!(ip("netns add other").status.success());
    let mut sleeper = Command::new("unshare").args(["-n", "sleep", "60"]).spawn().unwrap();
    // It is in a namespace of its own once it sleeps.
    let inside = format!("/proc/{}/comm", sleeper.id());
    while fs::read_to_string(&inside).unwrap().trim() != "sleep" {
        thread::sleep(Duration::from_millis(5));
    }
    let defaults = || {
        let own = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
        let named = ip("netns exec other cat /proc/sys/net/ipv4/tcp_congestion_control");
        let of = sleeper.id().to_string();
        let sleeping = Command::new("nsenter")
            .args(["-n", "-t", &of, "cat", "/proc/sys/net/ipv4/tcp_congestion_control"])
            .output()
            .unwrap();
        [own.trim().to_owned(), stdout(&named).trim().to_owned(), stdout(&sleeping).trim().to_owned()]
    };
    assert_exit(&kernel("default --host rrfast"), 1);
    assert_exit(&kernel("load rrfast"), 0);
    let told = kernel("default rrfast");
    assert_exit(&told, 0);
    let [own, named, sleeping] = defaults();
    assert!(own == "rrfast" && named != "rrfast" && sleeping != "rrfast", "{own}, {named}, {sleeping}");
    let told = kernel("default --host rrfast");
    assert_exit(&told, 0);
    assert_eq!(stdout(&told).trim(), "the default of 3 network namespaces is rrfast");
    assert_eq!(defaults(), ["rrfast"; 3]);
    assert_exit(&kernel("unload"), 0);
    assert!(!defaults().contains(&"rrfast".to_owned()), "{:?}", defaults());
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(ip("netns del other").status.success());
}

#[test]
fn connection_keeps_its_law_after_unload() {
    if !is_inside("connection_keeps_its_law_after_unload") {
        return;
    }
    for (law, host) in [("emfast", "[::1]"), ("anabranch", "127.0.0.1"), ("anabranch", "[::1]")] {
        if let Ok(listener) = TcpListener::bind((host.trim_matches(['[', ']']), 0)) {
            keep(law, &listener);
        } else {
            println!("skipped: this machine has no {host}");
        }
    }
}

fn keep(law: &str, listener: &TcpListener) {
    // The command that loads has ended long before anything is sent.
    assert_exit(&kernel(&format!("load {law} alpha=50")), 0);
    let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    set_tcp_congestion(&near, law).unwrap();
    let reader = thread::spawn(move || {
        let mut all = vec![];
        far.read_to_end(&mut all).map(|_| all)
    });
    let half = vec![7; 16_000_000];
    near.write_all(&half).unwrap();
    let told = status();
    let connection = &told[0]["connections"][0];
    assert_eq!(connection["local"], near.local_addr().unwrap().to_string());
    assert_eq!(connection["remote"], near.peer_addr().unwrap().to_string());
    assert!(connection["window"].as_f64().unwrap() > 10.0, "{told}");
    assert!(connection["base_rtt_ms"].as_f64().unwrap() > 0.0, "{told}");
    assert_eq!(connection["mptcp"], Value::Null);
    assert_exit(&kernel("unload"), 0);
    near.write_all(&half).unwrap();
    assert_eq!(tcp_congestion(&near).unwrap(), law);
    drop(near);
    assert_eq!(reader.join().unwrap().unwrap().len(), 2 * half.len());
}

#[test]
fn program_run_with_a_law_has_it() {
    if !is_inside("program_run_with_a_law_has_it") {
        return;
    }
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap();
    if !groups.lines().any(|line| line.starts_with("0::")) {
        println!("skipped: there are no control groups of version 2");
        return;
    }
    assert_exit(&kernel("run composite -- true"), 1);
    assert_exit(&kernel("load composite"), 0);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let script = "import socket, sys\ns = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n\
                  print(s.getsockopt(6, 13, 16).split(b'\\0')[0].decode())\nsys.exit(5)\n";
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    let told = command.args(["kernel", "run", "composite", "--", "python3", "-c", script, &port]).output().unwrap();
    assert_exit(&told, 5);
    assert_eq!(stdout(&told).trim(), "composite");
    let plain = Command::new("python3").args(["-c", script, &port]).output().unwrap();
    assert_ne!(stdout(&plain).trim(), "composite");
    assert_exit(&kernel("unload"), 0);
}

/// Protocol 262 is MPTCP; its subflow is the only TCP socket. `ss` and our status show the same token of the connection.
#[test]
fn subflow_of_program_run_multipath_has_the_law() {
    if !is_inside("subflow_of_program_run_multipath_has_the_law") {
        return;
    }
    let has = |path| {
        fs::read_to_string(path)
            .is_ok_and(|text: String| text.lines().any(|line| line.starts_with("0::") || line == "1"))
    };
    if Command::new("mptcpize").output().is_err() || !has("/proc/self/cgroup") || !has("/proc/sys/net/mptcp/enabled") {
        println!("skipped: there is no mptcpize, no MPTCP, or there are no control groups of version 2");
        return;
    }
    assert_exit(&kernel("load anabranch"), 0);
    let script = "import socket, subprocess, sys\nl = socket.create_server(('127.0.0.1', 0))\n\
                  s = socket.create_connection(l.getsockname())\nf, _ = l.accept()\n\
                  for _ in range(40): s.send(b'x' * 5000); n = len(f.recv(5000)); f.send(b'y'); s.recv(1)\n\
                  print(n, s.getsockopt(1, 38), flush=True)\nsubprocess.run(['ss', '-tinH'])\n\
                  subprocess.run([sys.argv[1], 'kernel', 'status', '--json'])\n";
    let program = env!("CARGO_BIN_EXE_anabranch");
    let mut command = Command::new(program);
    command.args(["kernel", "run", "--multipath", "anabranch", "--", "python3", "-c", script, program]);
    let told = command.output().unwrap();
    assert_exit(&told, 0);
    assert!(stdout(&told).starts_with("5000 262"), "{}", stdout(&told));
    let subflows = stdout(&told).lines().filter(|line| line.contains(" anabranch ") && line.contains("mptcp")).count();
    assert!(subflows >= 1, "{}", stdout(&told));
    let shown: Value = serde_json::from_str(stdout(&told).lines().last().unwrap()).unwrap();
    let connections = shown[0]["connections"].as_array().unwrap();
    assert!(connections.len() >= subflows, "{shown}");
    for connection in connections {
        let token = connection["mptcp"].as_str().expect("each connection is a subflow");
        assert!(stdout(&told).contains(&format!("/{token}(")), "{token}: {}", stdout(&told));
    }
    assert_exit(&kernel("unload"), 0);
}

/// What systemd would run: the law is the default while the unit is up, and gone after it.
#[test]
fn commands_of_the_unit_load_and_unload_the_default() {
    if !is_inside("commands_of_the_unit_load_and_unload_the_default") {
        return;
    }
    let unit = fs::read_to_string(repository().join("docs/systemd/anabranch-kernel@.service")).unwrap();
    let run = |key: &str| {
        let commands =
            unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix("=/usr/local/bin/anabranch "));
        let mut count = 0;
        for command in commands {
            let command = command.replace("%i", "anabranch").replace("$SETTINGS", "alpha=30");
            let told = Command::new(env!("CARGO_BIN_EXE_anabranch")).args(command.split(' ')).output().unwrap();
            assert_exit(&told, 0);
            count += 1;
        }
        count
    };
    assert_eq!(run("ExecStart"), 2);
    let default = || fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
    assert_eq!(default().trim(), "anabranch");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    assert_eq!(tcp_congestion(&near).unwrap(), "anabranch");
    let told = Command::new(env!("CARGO_BIN_EXE_anabranch")).args(["watch", "--kernel", "--once"]).output().unwrap();
    assert_exit(&told, 0);
    for part in ["alpha=30", &near.local_addr().unwrap().to_string(), "grow"] {
        assert!(stdout(&told).contains(part), "{part}: {}", stdout(&told));
    }
    assert_eq!(run("ExecStop"), 1);
    assert_ne!(default().trim(), "anabranch");
    assert_eq!(status(), Value::Array(vec![]));
}

/// The second block of docs/kernel.md, in order. What needs a program that is not there is left out.
#[test]
fn commands_of_the_list_succeed() {
    if !is_inside("commands_of_the_list_succeed") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/file", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            _ = stream.read(&mut [0; 1000]);
            _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nfrom the server");
        }
    });
    let folder = folder("kernel-list");
    let page = fs::read_to_string(repository().join("docs/kernel.md")).unwrap();
    let block = page.split("```console\n").nth(2).unwrap().split("```").next().unwrap();
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap();
    let has_groups = groups.lines().any(|line| line.starts_with("0::"));
    assert_eq!(block.lines().count(), 10);
    for line in block.lines() {
        let command = line.split(" #").next().unwrap().trim().strip_prefix("sudo anabranch ").unwrap();
        let needs = ["curl", "mptcpize"].into_iter().zip([" curl ", "--multipath"]);
        let missing = needs
            .filter(|(_, part)| command.contains(part))
            .find(|(program, _)| Command::new(program).arg("--help").output().is_err());
        if let Some((program, _)) = missing {
            println!("skipped: there is no {program}");
            continue;
        }
        if command.starts_with("kernel run") && !has_groups {
            println!("skipped: there are no control groups of version 2");
            continue;
        }
        // It would go on for ever.
        let command =
            if command == "watch --kernel" { "watch --kernel --once".to_owned() } else { command.replace("URL", &url) };
        _ = fs::remove_file(folder.join("file"));
        let told = Command::new(env!("CARGO_BIN_EXE_anabranch"))
            .args(command.split(' '))
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(told.status.success(), "{line}: {}", stderr(&told));
        if command.contains("curl") {
            assert_eq!(fs::read(folder.join("file")).unwrap(), b"from the server", "{line}");
        }
    }
}

/// The first blocks of docs/kernel.md and of the tutorial, in order; transfers take a second instead of twenty, and are left out where there is no iperf3.
#[test]
fn commands_of_the_pages_succeed() {
    if let Err(missing) = anabranch_emulator::linux::can_emulate() {
        println!("skipped: {missing}");
        return;
    }
    if !is_inside("commands_of_the_pages_succeed") {
        return;
    }
    for page in ["docs/kernel.md", "docs/tutorial/kernel.md"] {
        let page = fs::read_to_string(repository().join(page)).unwrap();
        commands_succeed(page.split("```console\n").nth(1).unwrap().split("```").next().unwrap());
    }
}

/// Runs the commands of a block.
fn commands_succeed(block: &str) {
    let has_iperf = Command::new("iperf3").arg("-v").output().is_ok();
    for line in block.lines() {
        let command = line.split('#').next().unwrap().trim().strip_prefix("sudo anabranch ").unwrap();
        if command.contains("iperf3") && !has_iperf {
            println!("skipped: there is no iperf3");
            continue;
        }
        let command = command.replace("-t 20", "-t 1");
        let mut anabranch = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        // A server in the background keeps what it inherits, so nothing of it is read.
        let status =
            anabranch.args(command.split(' ')).current_dir(repository()).stdout(Stdio::null()).status().unwrap();
        assert!(status.success(), "{line}: {status}");
    }
}

/// One sentence, exit 2. The program's folder may be closed to others; then there is nothing to run.
#[test]
fn user_without_root_is_told_in_one_sentence() {
    if !rustix::process::geteuid().is_root() {
        let told = kernel("load fast");
        assert_exit(&told, 2);
        return;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    let Ok(told) = command.args(["kernel", "load", "fast"]).uid(65534).gid(65534).output() else {
        println!("skipped: another user cannot run the program");
        return;
    };
    assert_exit(&told, 2);
    assert_eq!(stderr(&told).trim_end().lines().count(), 1, "{}", stderr(&told));
    assert!(stderr(&told).contains("root"), "{}", stderr(&told));
}

/// A kernel that does not tell its types: its folder is covered in a mount namespace.
#[test]
fn kernel_without_types_is_told_in_one_sentence() {
    if !rustix::process::geteuid().is_root() || !Path::new("/sys/kernel/btf").is_dir() {
        println!("skipped: this needs root and a kernel with types");
        return;
    }
    let without = |arguments: &str| {
        let script = format!("mount -t tmpfs tmpfs /sys/kernel/btf && exec \"$0\" {arguments}");
        Command::new("unshare").args(["-m", "sh", "-c", &script, env!("CARGO_BIN_EXE_anabranch")]).output().unwrap()
    };
    let told = without("kernel load fast");
    assert_exit(&told, 2);
    assert_eq!(stderr(&told).trim_end().lines().count(), 1, "{}", stderr(&told));
    assert!(stderr(&told).contains("CONFIG_DEBUG_INFO_BTF"), "{}", stderr(&told));
    let told = String::from_utf8(without("doctor").stdout).unwrap();
    assert!(told.contains("CONFIG_DEBUG_INFO_BTF"), "{told}");
}

#[test]
fn name_that_is_no_law_is_wrong_usage() {
    for name in ["cubic", "../fast", "fast/..", ""] {
        let told = |verb| Command::new(env!("CARGO_BIN_EXE_anabranch")).args(["kernel", verb, name]).output().unwrap();
        assert_exit(&told("load"), 2);
        assert_exit(&told("unload"), 2);
    }
}
