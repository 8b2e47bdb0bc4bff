//! A server, and two clients.
//!
//! ```text
//! client 198.51.100.2 ──┐
//!                       ├── 198.51.100.1, 198.51.100.5: the server, which also has 203.0.113.9, as the network behind it
//! other  198.51.100.6 ──┘
//! ```
//!
//! The clients have namespaces of their own; the server is in that of the test.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::inside::{Needs, is_inside};
use crate::shared::{self, PROGRAM, text};
pub(crate) use crate::shared::{Running, in_namespace, noise};

pub(crate) const CLIENT: &str = "client";
pub(crate) const OTHER: &str = "other";
pub(crate) const SERVER: &str = "198.51.100.1";
pub(crate) const INTERNET: &str = "203.0.113.9";

/// The namespaces, which vanish with the test's own.
pub(crate) struct Stage {
    folder: PathBuf,
}

impl Stage {
    /// The stage of a test in namespaces of its own; if this process has none, runs the test in such.
    pub(crate) fn inside(test: &str) -> Option<Self> {
        is_inside(test, NEEDS).then(|| Self::new(test))
    }

    fn new(name: &str) -> Self {
        let mut script = format!("set -e; ip address add {INTERNET}/32 dev lo\n");
        for (end, place) in [(CLIENT, 0), (OTHER, 1)] {
            let (outer, inner) = (4 * place + 1, 4 * place + 2);
            script += &format!(
                "ip netns add {end}
                ip link add {end} type veth peer name wan netns {end}
                ip address add 198.51.100.{outer}/30 dev {end}; ip link set {end} up
                ip -n {end} link set lo up
                ip -n {end} address add 198.51.100.{inner}/30 dev wan; ip -n {end} link set wan up
                ip -n {end} route add default via 198.51.100.{outer}
                ip netns exec {end} sh -c 'echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter'\n"
            );
        }
        assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
        Self { folder: shared::folder(name) }
    }

    /// A key file.
    pub(crate) fn key(&self) -> String {
        let file = self.folder.join("key");
        shared::make_key(&file);
        file.to_str().unwrap().to_owned()
    }

    /// A server, and its ticket.
    pub(crate) fn serve(&self, arguments: &[&str]) -> (Running, String) {
        let listen = format!("{SERVER}:4433");
        let fixed = ["tunnel", "serve", "--listen", &listen, "--json"];
        let mut server = Running::start(&mut self.command("", &[&fixed[..], arguments].concat()));
        let ticket = server.line()["ticket"].as_str().unwrap().to_owned();
        if arguments.contains(&"--vpn") {
            assert_eq!(server.line()["event"], "network");
        }
        (server, ticket)
    }

    /// A client, and what it says when it has joined.
    pub(crate) fn join(&self, end: &str, ticket: &str, arguments: &[&str]) -> (Running, Value) {
        let mut client =
            Running::start(&mut self.command(end, &[&["tunnel", "vpn", ticket, "--json"], arguments].concat()));
        let told = client.line();
        assert_eq!(told["event"], "connected", "{told}");
        (client, told)
    }

    fn command(&self, end: &str, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = if end.is_empty() { Command::new(PROGRAM) } else { Command::new("ip") };
        if !end.is_empty() {
            command.args(["netns", "exec", end, PROGRAM]);
        }
        command.args(arguments).current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    /// Runs a command that fails. Returns its exit code, and what it says.
    pub(crate) fn fails(&self, end: &str, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.command(end, arguments).output().unwrap();
        (output.status.code(), text(&output))
    }

    /// The same, by a user without rights.
    pub(crate) fn fails_as_nobody(&self, arguments: &[&str]) -> (Option<i32>, String) {
        // The program may lie where only root reads. This folder is the test's own: nobody has left a link there.
        let program = Path::new("/run/anabranch");
        fs::copy(PROGRAM, program).unwrap();
        let output = Command::new(program).args(arguments).current_dir("/").uid(65_534).gid(65_534).output();
        fs::remove_file(program).unwrap();
        let output = output.unwrap();
        (output.status.code(), text(&output))
    }

    pub(crate) fn ip(&self, end: &str, words: &str) {
        assert!(Command::new("ip").args(["-n", end]).args(words.split(' ')).status().unwrap().success(), "{words}");
    }

    /// Whether a device has this MTU within five seconds.
    pub(crate) fn has_mtu(&self, end: &str, device: &str, mtu: u16) -> bool {
        let of = if end.is_empty() { vec![] } else { vec!["-n", end] };
        (0..50).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            let output = Command::new("ip").args(&of).args(["link", "show", device]).output().unwrap();
            text(&output).contains(&format!("mtu {mtu} "))
        })
    }

    /// Devices, addresses, rules and routes of an end, without the local addresses of IPv6, which a device has after a while.
    pub(crate) fn system(&self, end: &str) -> String {
        let of = if end.is_empty() { String::new() } else { format!("-n {end}") };
        let script = format!(
            "for family in -4 -6; do ip {of} $family -o address | sed 's/valid_lft.*//'; ip {of} $family rule; ip {of} $family route show table all; done | grep -v fe80 | grep -v ff00"
        );
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Nothing of ours is left in the system of an end.
#[track_caller]
pub(crate) fn host_ends_with(stage: &Stage, end: &str) {
    let system = stage.system(end);
    assert!(!system.contains("anabranch") && !system.contains("suppress"), "{system}");
}

impl Running {
    /// Ctrl-C. A server has no other end than the signal's.
    #[track_caller]
    pub(crate) fn interrupt(self) {
        self.stop("-INT", &[Some(0), None]);
    }

    /// Stops it by a signal, after which it has one of these exit codes.
    #[track_caller]
    pub(crate) fn stop(mut self, signal: &str, codes: &[Option<i32>]) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
        let code = self.child.wait().unwrap().code();
        assert!(codes.contains(&code), "{code:?}");
    }
}

/// What these tests need.
const NEEDS: Needs = Needs {
    probe: "ip netns add x && ip tuntap add x mode tun && ip rule add pref 6199 nop",
    skipped: "a virtual network between network namespaces needs root, iproute2 and /dev/net/tun",
    seconds: "100",
};
