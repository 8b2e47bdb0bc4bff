//! Our TCP and the kernel's over emulated links that lose, delay and repeat packets.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Running, is_inside, start};

const FILE_LEN: u32 = 1_000_000;

/// The properties of the link in both directions, and whether hosts send each twentieth packet twice.
const CASES: [(&str, bool); 4] = [
    ("error = { kind = \"uniform\", rate = 0.01 }", false),
    ("reorder = { share = 0.05, extra = { kind = \"exponential\", mean = \"3ms\" } }", false),
    ("mtu = \"1500B\"", true),
    (
        "error = { kind = \"uniform\", rate = 0.01 }, reorder = { share = 0.05, extra = { kind = \"exponential\", mean = \"3ms\" } }",
        true,
    ),
];

/// Port 80 of h0 is that of our TCP there, and what our TCP at h1 sends comes from h1.
const NAT: [(&str, &str); 2] = [
    ("h0", "type nat hook prerouting priority dstnat; iifname wan tcp dport 80 dnat to 10.99.0.2;"),
    ("h1", "type nat hook postrouting priority srcnat; oifname wan masquerade;"),
];

/// Two hosts with a link between them, h0 and h1, and a folder for files.
struct Hosts {
    folder: PathBuf,
}

impl Hosts {
    fn new() -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("anabranch-tcp-link-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    /// Gives the link new properties. Programs at the hosts end.
    fn link(&self, properties: &str) {
        let text = format!(
            "[[link]]\nid = \"wan\"\nfrom = \"h0\"\nto = \"h1\"\nrate = \"100Mbit/s\"\ndelay = \"5ms\"\nqueue = {{ kind = \"drop_tail\", packets = 200 }}\n\
             reverse = {{ {properties} }}\n{}\n[[flow]]\nid = \"f\"\nfrom = \"h0\"\nto = \"h1\"\ntransport = \"anabranch\"\npacket = \"1500B\"\n",
            properties.replace(", reorder", "\nreorder")
        );
        let file = self.folder.join("bad.toml");
        fs::write(&file, format!("duration = \"60s\"\n{text}")).unwrap();
        succeed(anabranch(&["link", "down"]));
        succeed(anabranch(&["link", "up", &file.to_string_lossy()]));
    }

    /// A table of nftables at a host, with one chain.
    fn filter(&self, host: &str, table: &str, chain: &str) {
        let rules = format!("table ip {table} {{ chain one {{ {chain} }}; }}");
        succeed(anabranch(&["link", "exec", host, "--", "nft", &rules]));
    }

    /// A program at a host.
    fn at(&self, host: &str, command: &str) -> Command {
        let mut words = vec!["link", "exec", host, "--"];
        words.extend(command.split(' '));
        let mut command = anabranch(&words);
        command.current_dir(&self.folder);
        command
    }

    /// nginx at h0, port 8000: `file`, and a place for others.
    fn serve(&self) -> Running {
        let content: Vec<u8> = (0..FILE_LEN).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        fs::write(self.folder.join("file"), content).unwrap();
        let place = self.folder.display();
        let configuration = format!(
            "daemon off;\nmaster_process off;\nuser root;\npid {place}/pid;\nevents {{}}\nhttp {{\n  access_log off;\n  \
             server {{ listen 8000; root {place}; client_max_body_size 10m; dav_methods PUT; }}\n}}\n"
        );
        fs::write(self.folder.join("nginx.conf"), configuration).unwrap();
        let mut nginx = self.at("h0", &format!("nginx -p {place} -e stderr -c {place}/nginx.conf"));
        let server = Running(nginx.stderr(Stdio::null()).spawn().unwrap());
        let until = Instant::now() + Duration::from_secs(20);
        while !self.at("h0", "curl -sfo /dev/null http://127.0.0.1:8000/file").status().unwrap().success() {
            assert!(Instant::now() < until, "nginx listens");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// Fetches the file and brings one, from h1.
    #[track_caller]
    fn exchange(&self, url: &str) {
        let file = fs::read(self.folder.join("file")).unwrap();
        let fetched = self.at("h1", &format!("curl -sS -m 60 {url}/file")).stdout(Stdio::piped()).output().unwrap();
        assert!(fetched.status.success(), "{}", String::from_utf8_lossy(&fetched.stderr));
        assert!(fetched.stdout == file, "{} bytes of {}, or others", fetched.stdout.len(), file.len());
        succeed(self.at("h1", &format!("curl -sS -m 60 -o /dev/null -T file {url}/brought")));
        assert!(fs::read(self.folder.join("brought")).unwrap() == file, "what was brought differs");
        fs::remove_file(self.folder.join("brought")).unwrap();
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        _ = anabranch(&["link", "down"]).status();
        _ = fs::remove_dir_all(&self.folder);
    }
}

fn anabranch(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

#[track_caller]
fn succeed(mut command: Command) {
    // What runs on in the background keeps what it inherits, so nothing is read.
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}

/// Of every case the kernel's TCP is the client, and then the server; with and without timestamps and SACK.
#[test]
fn every_byte_arrives_lost_late_or_twice() {
    if let Err(missing) = anabranch_emulator::linux::can_emulate() {
        println!("skipped: {missing}");
        return;
    }
    for (program, version) in [("curl", "--version"), ("nginx", "-v"), ("nft", "--version")] {
        if Command::new(program).arg(version).output().is_err() {
            println!("skipped: there is no {program}");
            return;
        }
    }
    if !is_inside("link::every_byte_arrives_lost_late_or_twice") {
        return;
    }
    let hosts = Hosts::new();
    let program = env!("CARGO_BIN_EXE_anabranch");
    for (properties, are_doubled) in CASES {
        hosts.link(properties);
        let _nginx = hosts.serve();
        for host in ["h0", "h1"] {
            succeed(hosts.at(host, "sysctl -qw net.ipv4.ip_forward=1"));
        }
        for (host, chain) in NAT {
            hosts.filter(host, "nat", chain);
        }
        for (host, peer) in [("h0", "10.77.2.1"), ("h1", "10.77.1.1")].into_iter().filter(|_| are_doubled) {
            let rule = format!("oifname wan numgen random mod 20 0 dup to {peer} device wan;");
            // After the translation of addresses.
            hosts.filter(host, "twice", &format!("type filter hook postrouting priority 200; {rule}"));
        }
        let server = start(&mut hosts.at("h0", &format!("{program} tcp proxy --from tcp:80 --to 127.0.0.1:8000")));
        let client =
            start(&mut hosts.at("h1", &format!("{program} tcp proxy --from 127.0.0.1:9000 --to tcp:10.77.1.1:8000")));
        for features in ["1", "0"] {
            for name in ["timestamps", "sack"] {
                succeed(hosts.at("h1", &format!("sysctl -qw net.ipv4.tcp_{name}={features}")));
                succeed(hosts.at("h0", &format!("sysctl -qw net.ipv4.tcp_{name}={features}")));
            }
            hosts.exchange("http://h0");
            hosts.exchange("http://127.0.0.1:9000");
        }
        drop((server, client));
    }
}
