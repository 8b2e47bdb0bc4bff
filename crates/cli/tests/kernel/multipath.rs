//! Two links for one program, by the commands of the page's part about MPTCP.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{assert_exit, repository, stdout};
use crate::{is_inside, kernel};

fn ip(arguments: &str) {
    let told = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    assert!(told.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&told.stderr));
}

/// It reads to the end, and says how much it was.
const SERVER: &str = "import socket\nl = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)\nl.bind(('10.1.0.2', 7000)); l.listen()\n\
                      s, _ = l.accept()\nn = 0\nwhile True:\n  data = s.recv(1 << 16)\n  if not data: break\n  n += len(data)\ns.send(str(n).encode())\n";

/// It writes until the status shows two subflows, and for ten seconds at most; argument 1 is our program.
const CLIENT: &str = "import json, socket, subprocess, sys, time\ns = socket.create_connection(('10.1.0.2', 7000))\nn = 0\nend = time.time() + 10\n\
                      while time.time() < end:\n  for _ in range(50): s.sendall(b'x' * 20000); n += 20000\n  \
                      told = json.loads(subprocess.check_output([sys.argv[1], 'kernel', 'status', '--json']))\n  \
                      if len({c['local'].split(':')[0] for c in told[0]['connections']}) > 1: break\n\
                      s.shutdown(socket.SHUT_WR)\nassert int(s.recv(100)) == n\nprint(json.dumps(told))\n";

#[test]
fn both_links_of_a_program_have_the_law() {
    if !is_inside("multipath::both_links_of_a_program_have_the_law") {
        return;
    }
    let has = |path, what: fn(&str) -> bool| fs::read_to_string(path).is_ok_and(|text| text.lines().any(what));
    let has_groups = has("/proc/self/cgroup", |line| line.starts_with("0::"));
    if Command::new("mptcpize").output().is_err()
        || !has_groups
        || !has("/proc/sys/net/mptcp/enabled", |line| line == "1")
    {
        println!("skipped: there is no mptcpize, no MPTCP, or there are no control groups of version 2");
        return;
    }
    let page = fs::read_to_string(repository().join("docs/kernel.md")).unwrap();
    let limits = "ip mptcp limits set subflow 2 add_addr_accepted 2";
    let endpoints =
        "an `ip mptcp endpoint` for the second\naddress, `signal` at the server and `subflow` at the client";
    assert!(page.contains(&format!("`{limits}`")) && page.contains(endpoints), "the page has the commands");
    ip("netns add far");
    ip("-n far link set lo up");
    for link in [1, 2] {
        ip(&format!("link add near{link} type veth peer name far{link} netns far"));
        ip(&format!("address add 10.{link}.0.1/24 dev near{link}"));
        ip(&format!("link set near{link} up"));
        ip(&format!("-n far address add 10.{link}.0.2/24 dev far{link}"));
        ip(&format!("-n far link set far{link} up"));
    }
    let limits = limits.strip_prefix("ip ").unwrap();
    ip(limits);
    ip(&format!("-n far {limits}"));
    ip("mptcp endpoint add 10.2.0.1 dev near2 subflow");
    ip("-n far mptcp endpoint add 10.2.0.2 dev far2 signal");
    let mut server = Command::new("ip").args(["netns", "exec", "far", "python3", "-c", SERVER]).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    let listens = || {
        let told = Command::new("ip").args(["netns", "exec", "far", "ss", "-tlnH"]).output().unwrap();
        stdout(&told).contains(":7000 ")
    };
    while !listens() {
        assert!(Instant::now() < until, "the server does not listen");
        thread::sleep(Duration::from_millis(20));
    }
    assert_exit(&kernel("load anabranch"), 0);
    let program = env!("CARGO_BIN_EXE_anabranch");
    let mut command = Command::new(program);
    command.args(["kernel", "run", "--multipath", "anabranch", "--", "python3", "-c", CLIENT, program]);
    let told = command.stdin(Stdio::null()).output().unwrap();
    assert_exit(&told, 0);
    assert!(server.wait().unwrap().success());
    let shown: Value = serde_json::from_str(stdout(&told).trim()).unwrap();
    let connections = shown[0]["connections"].as_array().unwrap();
    let tokens: std::collections::BTreeSet<_> = connections.iter().map(|it| it["mptcp"].as_str().unwrap()).collect();
    assert_eq!(tokens.len(), 1, "{shown}");
    for link in ["10.1.0.1:", "10.2.0.1:"] {
        let is_of = |connection: &Value| connection["local"].as_str().unwrap().starts_with(link);
        assert!(connections.iter().any(is_of), "{link} {shown}");
    }
    assert_exit(&kernel("unload"), 0);
    ip("netns del far");
}
