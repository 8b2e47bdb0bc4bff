//! Two computers behind NATs, and a relay between them.
//!
//! ```text
//! a 192.168.1.2 ── na 198.51.100.2 ──┐                     each in a namespace of its own; the relay is in that of the test
//!                                    ├── 203.0.113.1
//! b 192.168.1.2 ── nb 198.51.100.6 ──┘
//! ```
//!
//! Both have the same private address, as in homes with the same kind of router.

use std::ffi::OsStr;
use std::io::{ErrorKind, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::inside::{self, Needs};
use crate::shared::{self, PROGRAM, text};
pub(crate) use crate::shared::{Running, noise};

/// How a NAT maps and filters ([rfc-4787]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nat {
    /// One port for all, to which everybody may send.
    EndpointIndependent,
    /// One port for all, to which those addresses may send that were sent to.
    AddressDependent,
    /// One port for all, to which those addresses and ports may send that were sent to.
    PortDependent,
    /// Another port for each address and port that is sent to.
    Symmetric,
}

impl Nat {
    fn rules(self) -> String {
        let masquerade = if self == Self::Symmetric { "masquerade fully-random" } else { "masquerade" };
        let open = match self {
            Self::EndpointIndependent => "iifname wan udp dport 1024-65535 dnat to 192.168.1.2;",
            Self::AddressDependent => "iifname wan ip saddr @contacted udp dport 1024-65535 dnat to 192.168.1.2;",
            Self::PortDependent | Self::Symmetric => "",
        };
        format!(
            "table ip n {{
                set contacted {{ type ipv4_addr; flags dynamic,timeout; timeout 2m; }}
                chain post {{ type nat hook postrouting priority 100; oifname wan {masquerade}; }}
                chain pre {{ type nat hook prerouting priority -100; {open} }}
                chain input {{ type filter hook input priority 0; iifname wan drop; }}
                chain forward {{
                    type filter hook forward priority 0;
                    iifname lan oifname wan update @contacted {{ ip daddr }}
                    iifname wan ct state new ct status dnat accept
                    iifname wan ct state new drop
                }}
            }}"
        )
    }
}

/// The namespaces, which vanish with the test's own.
pub(crate) struct Stage {
    pub(crate) folder: PathBuf,
}

impl Stage {
    /// The stage of a test in namespaces of its own; if this process has none, runs the test in such.
    pub(crate) fn inside(test: &str, a: Nat, b: Nat) -> Option<Self> {
        is_inside(test).then(|| Self::new(test, a, b))
    }

    pub(crate) fn new(name: &str, a: Nat, b: Nat) -> Self {
        for (end, nat, place) in [("a", a, 0), ("b", b, 1)] {
            let (outer, inner) = (4 * place + 1, 4 * place + 2);
            let script = format!(
                "ip netns del {end} 2>/dev/null; ip netns del n{end} 2>/dev/null; ip link del w{end} 2>/dev/null; set -e
                echo 1 > /proc/sys/net/ipv4/ip_forward
                ip addr replace 203.0.113.1/32 dev lo
                ip netns add {end}; ip netns add n{end}
                ip link add w{end} type veth peer name wan netns n{end}
                ip addr add 198.51.100.{outer}/30 dev w{end}; ip link set w{end} up
                ip -n n{end} link set lo up; ip -n {end} link set lo up
                ip -n n{end} addr add 198.51.100.{inner}/30 dev wan; ip -n n{end} link set wan up
                ip -n n{end} route add default via 198.51.100.{outer}
                ip -n n{end} link add lan type veth peer name eth netns {end}
                ip -n n{end} addr add 192.168.1.1/24 dev lan; ip -n n{end} link set lan up
                ip -n {end} addr add 192.168.1.2/24 dev eth; ip -n {end} link set eth up
                ip -n {end} route add default via 192.168.1.1
                ip netns exec n{end} sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'
                ip netns exec n{end} nft -f -"
            );
            let mut shell = Command::new("sh");
            let mut shell = shell.args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
            shell.stdin.take().unwrap().write_all(nat.rules().as_bytes()).unwrap();
            assert!(shell.wait().unwrap().success(), "{nat:?}");
        }
        Self { folder: shared::folder(name) }
    }

    /// A relay at 203.0.113.1.
    pub(crate) fn relay(&self) -> Running {
        self.relay_with(&[])
    }

    /// The same with further options.
    pub(crate) fn relay_with(&self, options: &[&str]) -> Running {
        let key = self.folder.join("key");
        if !key.exists() {
            shared::make_key(&key);
        }
        let mut command = Command::new("timeout");
        command.args(["-k", "5", LIMIT, PROGRAM, "relay", "serve", "--key"]).arg(&key);
        let mut relay = Running::start(command.args(["--listen", "203.0.113.1:4477", "--json"]).args(options));
        assert_eq!(relay.line()["event"], "listening");
        relay
    }

    /// The network of an end lets no UDP through.
    pub(crate) fn block_udp(&self, end: &str) {
        let rules = "table ip b {\n chain f {\n type filter hook forward priority -10\n meta l4proto udp drop\n }\n}";
        let mut nft = Command::new("ip");
        let status = nft.args(["netns", "exec", &format!("n{end}"), "nft", rules]).status().unwrap();
        assert!(status.success());
    }

    fn command(&self, end: &str, args: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["-k", "5", LIMIT, "ip", "netns", "exec", end, PROGRAM]);
        command.args(args).current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    pub(crate) fn start(&self, end: &str, args: &[impl AsRef<OsStr>]) -> Running {
        Running::start(&mut self.command(end, args))
    }

    /// Runs a command that succeeds, and returns its document.
    #[track_caller]
    pub(crate) fn run(&self, end: &str, args: &[impl AsRef<OsStr>]) -> Value {
        let output = self.command(end, args).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Whether the system of the other end refuses a connection, which it does at once.
    pub(crate) fn is_refused(&self, end: &str, address: &str) -> bool {
        let address = address.parse().unwrap();
        let connect = move || TcpStream::connect_timeout(&address, Duration::from_secs(5));
        shared::in_namespace(end, connect).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    }

    /// What `anabranch watch` shows of the commands of an end.
    pub(crate) fn watched(&self, end: &str) -> String {
        let children = Command::new("ip").args(["netns", "pids", end]).output().unwrap();
        let pids = String::from_utf8(children.stdout).unwrap();
        let shown =
            pids.split_whitespace().map(|pid| text(&self.command(end, &["watch", pid, "--once"]).output().unwrap()));
        shown.collect()
    }

    /// Runs a command. Returns its exit code, and what it says.
    pub(crate) fn tells(&self, end: &str, args: &[impl AsRef<OsStr>]) -> (Option<i32>, String) {
        let output = self.command(end, args).output().unwrap();
        (output.status.code(), text(&output))
    }
}

impl Running {
    #[track_caller]
    pub(crate) fn ends_with(mut self, code: i32) {
        assert_eq!(self.child.wait().unwrap().code(), Some(code));
    }
}

/// Whether this process has namespaces of its own; if not, runs the test in such.
pub(crate) fn is_inside(test: &str) -> bool {
    inside::is_inside(test, NEEDS)
}

/// What these tests need.
const NEEDS: Needs = Needs {
    probe: "ip netns add x && nft add table ip n && nft 'add chain ip n p { type nat hook postrouting priority 100; }' && nft add rule ip n p \
            masquerade fully-random",
    skipped: "NATs between network namespaces need root, iproute2 and nftables",
    seconds: "160",
};

/// The seconds that a command may take.
const LIMIT: &str = "100";
