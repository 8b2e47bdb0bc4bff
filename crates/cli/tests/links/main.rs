//! Emulated links between namespaces, as programs see them. Where links cannot be emulated, the tests say so and pass. They are separate from the
//! other tests of the command because they measure times, which other load would change.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage shall stop there")]

#[expect(dead_code, reason = "some of it is for the other tests")]
#[path = "../command/support.rs"]
mod support;

use std::fs;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anabranch_emulator::Namespace;
use anabranch_emulator::linux::{can_emulate, within};
use serde_json::Value;

use crate::support::{anabranch, assert_exit, document, folder, stderr, stdout};

/// Bytes of the headers of IPv4 and UDP.
const HEADERS: usize = 28;

/// Links that are up until the end of the test. Only one test at a time has links, as they measure times.
struct Links {
    folder: PathBuf,
    name: String,
    _turn: MutexGuard<'static, ()>,
}

impl Links {
    /// Creates links; `None`, with a message, where links cannot be emulated.
    fn up(name: &str, links: &str) -> Option<Self> {
        Self::up_with(name, links, &[])
    }

    /// The same, with more arguments of `anabranch link up`.
    #[expect(clippy::print_stdout, reason = "whoever runs the tests shall know what was not tested")]
    fn up_with(name: &str, links: &str, more: &[&str]) -> Option<Self> {
        static TURN: Mutex<()> = Mutex::new(());
        if let Err(missing) = can_emulate() {
            println!("skipped: {missing}");
            return None;
        }
        // A failed test leaves nothing for the next one.
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = folder(&format!("link-{name}"));
        // Parallel test runs have different names of links.
        let name = format!("{name}-{}", std::process::id());
        let flow = "[[flow]]\nid = \"f\"\nfrom = \"h0\"\nto = \"h1\"\ntransport = \"anabranch\"\n";
        fs::write(folder.join(format!("{name}.toml")), format!("duration = \"1s\"\n{links}{flow}")).unwrap();
        let links = Self { folder, name, _turn: turn };
        let file = format!("{}.toml", links.name);
        let up = links.run(&[&["up", &file, "--json"], more].concat());
        assert_exit(&up, 0);
        Some(links)
    }

    fn run(&self, args: &[&str]) -> std::process::Output {
        anabranch(&self.folder, &[&["link"], args].concat())
    }

    fn namespace(&self, host: &str) -> Namespace {
        Namespace::new(&self.name.parse().unwrap(), host).unwrap()
    }

    fn status(&self) -> Value {
        document(&self.run(&["status", &self.name, "--json"]))
    }

    fn restart(&self) {
        assert_exit(&self.run(&["restart", &self.name]), 0);
    }

    fn count(&self, link: usize, what: &str) -> u64 {
        self.status()["links"][link][what].as_u64().unwrap()
    }

    fn socket(&self, host: &str, address: &str) -> UdpSocket {
        let bind = || {
            let socket = UdpSocket::bind(address)?;
            socket.set_read_timeout(Some(Duration::from_millis(300))).map(|()| socket)
        };
        within(&self.namespace(host), || Ok(bind().unwrap())).unwrap()
    }

    /// The least and the median round trip in milliseconds between two addresses.
    fn round_trips(&self, from: &str, to: &str) -> (f64, f64) {
        let (here, there) = (self.socket("h0", from), self.socket("h1", to));
        let to = there.local_addr().unwrap();
        let mut trips = vec![];
        for _ in 0..9 {
            let begin = Instant::now();
            here.send_to(&[0; 10], to).unwrap();
            let mut buffer = [0; 10];
            let (len, back) = there.recv_from(&mut buffer).unwrap();
            there.send_to(&buffer[..len], back).unwrap();
            here.recv(&mut buffer).unwrap();
            trips.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        trips.sort_by(f64::total_cmp);
        (trips[0], trips[4])
    }

    /// Sends a burst of packets of `size` bytes from h0 to h1, on links without other traffic. Returns their arrival times.
    fn burst(&self, count: usize, size: usize) -> Vec<Instant> {
        let (here, there) = (self.socket("h0", "10.77.1.1:0"), self.socket("h1", "10.77.2.1:7"));
        (0..count).for_each(|_| _ = here.send_to(&vec![0; size - HEADERS], there.local_addr().unwrap()).unwrap());
        arrivals(&there)
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.run(&["down", &self.name]);
    }
}

/// The arrival time of each packet, until none arrives for a while.
fn arrivals(socket: &UdpSocket) -> Vec<Instant> {
    let (mut times, mut buffer) = (vec![], [0; 2000]);
    while socket.recv(&mut buffer).is_ok() {
        times.push(Instant::now());
    }
    times
}

fn wire(id: &str, more: &str) -> String {
    format!("[[link]]\nid = \"{id}\"\nfrom = \"h0\"\nto = \"h1\"\n{more}\n")
}

#[track_caller]
fn assert_within(value: f64, from: f64, to: f64) {
    assert!(from <= value && value <= to, "{value} is not from {from} to {to}");
}

/// The delay is 10 ms on the first link and 40 ms on the second, one way. No packet is early; how late it is depends on the load of the machine, so
/// the median has a tolerance.
#[test]
fn each_path_has_its_delay_in_both_families() {
    let first = wire("a", "rate = \"100Mbit/s\"\ndelay = \"10ms\"");
    let Some(links) = Links::up("delay", &(first + &wire("b", "rate = \"100Mbit/s\"\ndelay = \"40ms\""))) else {
        return;
    };
    let cases = [
        ("10.77.1.1:0", "10.77.2.1:7", 20.0),
        ("10.77.1.2:0", "10.77.2.2:7", 80.0),
        // A socket bound to the second address sends by the second link to any destination; the answer goes to the first address.
        ("10.77.1.2:0", "10.77.2.1:7", 80.0),
        ("[fd77::1:1]:0", "[fd77::2:1]:7", 20.0),
        ("[fd77::1:2]:0", "[fd77::2:2]:7", 80.0),
    ];
    for (from, to, expected) in cases {
        let (least, median) = links.round_trips(from, to);
        // The answer to the third leaves by the first link, by its source address.
        let expected = if (from, to) == ("10.77.1.2:0", "10.77.2.1:7") { 50.0 } else { expected };
        assert_within(least, expected, expected + 3.0);
        assert_within(median, expected, expected + 10.0);
    }
    let told = links.run(&["exec", "--name", &links.name, "h0", "--", "sh", "-c", "cat /etc/hosts; exit 7"]);
    assert_exit(&told, 7);
    assert!(stdout(&told).contains("10.77.2.2 h1.b\n"), "{}", stdout(&told));
    let told = links.run(&["exec", "--name", &links.name, "h0", "--", "no-such-program"]);
    assert_exit(&told, 127);
    assert!(
        stderr(&told).starts_with("anabranch link exec:") && stderr(&told).contains("no-such-program"),
        "{}",
        stderr(&told)
    );
    assert!(links.count(0, "delivered_packets") >= 9);
}

/// 300 packets of 1500 bytes at 20 Mbit/s: 0.6 ms each.
#[test]
fn a_burst_comes_out_at_the_rate() {
    let more = "rate = \"20Mbit/s\"\ndelay = \"5ms\"\nqueue = { kind = \"drop_tail\", packets = 1000 }";
    let Some(links) = Links::up("rate", &wire("a", more)) else { return };
    let times = links.burst(300, 1500);
    assert_eq!(times.len(), 300);
    let span = times[299].duration_since(times[0]).as_secs_f64();
    assert_within(299.0 * 0.6e-3 / span, 0.98, 1.02);
}

/// A link with a hold releases packets at one moment. A device with receive offload passes them on as one packet, another one as several. A socket
/// without GRO gets each packet by itself in both cases, with its content.
#[test]
fn packets_of_one_moment_are_joined_by_offload() {
    const COUNT: u8 = 20;
    let held = "rate = \"1Gbit/s\"\ndelay = \"1ms\"\nhold = { kind = \"gather\", span = \"100ms\" }";
    for (name, more, most) in [("joins", &["--offload"][..], 5), ("apart", &[][..], u64::MAX)] {
        let Some(links) = Links::up_with(name, &wire("a", held), more) else { return };
        let (here, there) = (links.socket("h0", "10.77.1.1:0"), links.socket("h1", "10.77.2.1:7"));
        for number in 0..COUNT {
            here.send_to(&[number; 1400], there.local_addr().unwrap()).unwrap();
        }
        for number in 0..COUNT {
            let mut buffer = [0; 2000];
            let len = there.recv(&mut buffer).unwrap();
            assert_eq!(buffer[..len], [number; 1400]);
        }
        let path = "/sys/class/net/a/statistics/rx_packets";
        let counted = links.run(&["exec", "--name", &links.name, "h1", "--", "cat", path]);
        let counted: u64 = stdout(&counted).trim().parse().unwrap();
        assert!((1..=most).contains(&counted), "{counted} packets");
        assert!(most < u64::MAX || counted >= COUNT.into(), "{counted} packets");
    }
}

/// At 1 Mbit/s a packet of 1500 bytes takes 12 ms, much longer than the burst: all packets that get through have waited, except the one in service. A
/// second one may have left before the last packet arrived.
#[test]
fn a_queue_holds_so_many_packets_or_bytes() {
    let cases = [("packets", "packets = 20", 20), ("bytes", "bytes = \"30000B\"", 21)];
    for (name, limit, held) in cases {
        let more = format!("rate = \"1Mbit/s\"\ndelay = \"1ms\"\nqueue = {{ kind = \"drop_tail\", {limit} }}");
        let Some(links) = Links::up(name, &wire("a", &more)) else { return };
        let delivered = links.burst(100, 1500).len();
        assert!(delivered == held || delivered == held + 1, "{name}: {delivered}, not {held}");
        assert_eq!(links.count(0, "dropped_packets"), 100 - delivered as u64);
    }
}

/// 10,000 packets with a loss of 1 %: the standard deviation is 10, and the tolerance is five of them.
#[test]
fn so_many_are_lost_as_chance_says() {
    let more = "rate = \"1Gbit/s\"\ndelay = \"1ms\"\nerror = { kind = \"uniform\", rate = 0.01 }";
    let Some(links) = Links::up("loss", &wire("a", more)) else { return };
    let (here, to) = (links.socket("h0", "10.77.1.1:0"), SocketAddr::from(([10, 77, 2, 1], 7)));
    // Without a socket the other host would answer each packet.
    let _there = links.socket("h1", "10.77.2.1:7");
    for number in 0..10_000 {
        here.send_to(&[0; 20], to).unwrap();
        if number % 100 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    std::thread::sleep(Duration::from_millis(50));
    let status = links.status();
    let (link, count) = (&status["links"][0], |what: &str| status["links"][0][what].as_u64().unwrap());
    assert_eq!((count("sent_packets"), &status["unread_packets"]), (10_000, &0.into()), "{link}");
    assert_within(count("lost_packets") as f64, 50.0, 150.0);
    // The default queue drops a part of a burst after a pause of this thread.
    assert_eq!(count("delivered_packets") + count("dropped_packets") + count("lost_packets"), 10_000, "{link}");
}

/// From 0.3 to 0.6 s after the restart nothing gets through, in both directions.
#[test]
fn an_outage_is_an_outage_from_the_restart_on() {
    let more = "rate = \"10Mbit/s\"\ndelay = \"5ms\"\noutages = [{ from = \"300ms\", until = \"600ms\" }]";
    let Some(links) = Links::up("outage", &wire("a", more)) else { return };
    // The first outage passes.
    std::thread::sleep(Duration::from_millis(600));
    let (here, there) = (links.socket("h0", "10.77.1.1:0"), links.socket("h1", "10.77.2.1:7"));
    links.restart();
    let begin = Instant::now();
    let clock = links.status()["clock_seconds"].as_f64().unwrap();
    // The largest lead of the scenario's clock over ours.
    let ahead = clock - begin.elapsed().as_secs_f64();
    let mut sent = vec![];
    while begin.elapsed() < Duration::from_millis(900) {
        here.send_to(&[sent.len() as u8], there.local_addr().unwrap()).unwrap();
        sent.push(begin.elapsed().as_secs_f64());
        std::thread::sleep(Duration::from_millis(5));
    }
    let (mut came, mut buffer) = (vec![false; sent.len()], [0; 10]);
    while there.recv(&mut buffer).is_ok() {
        came[usize::from(buffer[0])] = true;
    }
    // A pause of this thread between the reading of the clock and the packet is an error, on a busy machine some tens of milliseconds.
    for (at, came) in sent.iter().map(|at| at + ahead).zip(came) {
        match at {
            _ if (0.4..0.5).contains(&at) => assert!(!came, "{at}: came"),
            _ if !(0.2..0.7).contains(&at) => assert!(came, "{at}: was lost"),
            _ => {}
        }
    }
    assert_within(links.count(0, "lost_packets") as f64, 20.0, 65.0);
}

/// A router between the hosts exists only in the emulator; both links count.
#[test]
fn a_router_has_no_namespace() {
    let links = "[[link]]\nid = \"a\"\nfrom = \"h0\"\nto = \"r\"\nrate = \"10Mbit/s\"\ndelay = \"5ms\"\n[[link]]\nid = \"b\"\nfrom = \"r\"\nto = \
                 \"h1\"\nrate = \"20Mbit/s\"\ndelay = \"10ms\"\n";
    let Some(links) = Links::up("router", links) else { return };
    assert!(!Path::new("/run/netns").join(links.namespace("r").as_str()).exists());
    let (least, _) = links.round_trips("10.77.1.1:0", "10.77.2.1:7");
    assert_within(least, 30.0, 33.0);
    assert_eq!([0, 2].map(|link| links.count(link, "delivered_packets")), [9, 9]);
}

/// Also after the emulator was killed, and although a program runs in a namespace.
#[test]
fn down_leaves_nothing() {
    let Some(links) = Links::up("down", &wire("a", "rate = \"10Mbit/s\"\ndelay = \"5ms\"")) else { return };
    let again = links.run(&["up", &format!("{}.toml", links.name)]);
    assert_exit(&again, 2);
    assert!(stderr(&again).contains("link down"), "{}", stderr(&again));
    let mut sleeper = Command::new("ip");
    let mut sleeper = sleeper.args(["netns", "exec", links.namespace("h1").as_str(), "sleep", "100"]).spawn().unwrap();
    let state = format!("/run/anabranch/{}/state.json", links.name);
    let state: Value = serde_json::from_slice(&fs::read(state).unwrap()).unwrap();
    let killed = Command::new("kill").args(["-9", &state["process"]["id"].to_string()]).status().unwrap();
    assert!(killed.success());
    std::thread::sleep(Duration::from_millis(100));
    let status = links.run(&["status", &links.name]);
    assert_exit(&status, 1);
    assert!(stderr(&status).contains("has crashed"), "{}", stderr(&status));
    let down = links.run(&["down", &links.name]);
    assert_exit(&down, 0);
    assert!(stdout(&down).contains("removed 2 namespaces, stopped 1 program in them"), "{}", stdout(&down));
    assert!(!sleeper.wait().unwrap().success());
    let left = |folder: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().contains(&links.name)).count()
    };
    assert_eq!(["/run/netns", "/run/anabranch"].map(left), [0, 0]);
    let down = links.run(&["down", &links.name]);
    assert_exit(&down, 1);
    assert!(stderr(&down).contains("nothing was up as"), "{}", stderr(&down));
    let status = links.run(&["status", &links.name]);
    assert_exit(&status, 2);
}

/// The lines that a shell prints that runs `script` as root, with `anabranch` as `$AB`. The shell has a mount namespace of its own, where `/run` and
/// `/etc` are empty folders in memory, as is the current folder: what is removed there is removed nowhere else.
#[expect(clippy::print_stdout, reason = "whoever runs the tests shall know what was not tested")]
fn aside(script: &str) -> Option<String> {
    if let Err(missing) = can_emulate() {
        println!("skipped: {missing}");
        return None;
    }
    let set =
        "set -e; mount -t tmpfs tmpfs /mnt; cd /mnt; mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /etc; set +e";
    let mut shell = Command::new("unshare");
    let shell = shell.args(["--mount", "sh", "-c", &format!("{set}\n{script}")]);
    let output = shell.env("AB", env!("CARGO_BIN_EXE_anabranch")).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    Some(stdout(&output).to_owned() + stderr(&output))
}

/// An absolute path, a way up, the folder itself, no name, and a longer one.
#[test]
fn down_with_path_removes_nothing() {
    let names = ["/mnt/victim", "../victim", "..", ".", "", "/", "a/../../victim", "victim\n", "x.y", &"a".repeat(65)];
    for name in names {
        let script = format!(
            "mkdir -p /run/anabranch/a victim /run/victim /run/netns; echo precious | tee victim/file /run/victim/file /run/netns/victim \
             > /run/file; $AB link down \"$(printf '{name}')\"; echo exit $?; cat victim/file /run/victim/file /run/netns/victim /run/file",
            name = name.replace('\n', "\\n.")
        );
        let Some(told) = aside(&script) else { return };
        assert_eq!(told.matches("precious").count(), 4, "{name:?}: {told}");
        assert!(told.contains("exit 2") && told.contains("is no name of links"), "{name:?}: {told}");
    }
    // A scenario's file stands for its name alone.
    let Some(told) = aside("mkdir -p /run/victim; $AB link down ../victim.toml; echo exit $?; ls -d /run/victim")
    else {
        return;
    };
    assert!(
        told.contains("exit 1") && told.contains("nothing was up as `victim`") && told.contains("/run/victim"),
        "{told}"
    );
}

/// A folder without the mark, a link in its place, a folder of another user, and one to which others may write.
#[test]
fn down_of_foreign_folder_removes_nothing() {
    let cases = [
        ("mkdir -p /run/anabranch/x", "did not make this folder"),
        (
            "mkdir -p /run/anabranch victim; echo > victim/made-by-anabranch-link; ln -s /mnt/victim /run/anabranch/x",
            "it is not a folder",
        ),
        ("mkdir -p /run/anabranch/x; chown 4711 /run/anabranch/x", "it belongs to another user (number 4711"),
        ("mkdir -p /run/anabranch/x; chmod 777 /run/anabranch", "others may write to it"),
        ("mkdir -p victim/x; ln -s /mnt/victim /run/anabranch", "it is not a folder"),
    ];
    for (make, why) in cases {
        let script = format!(
            "{make}; echo precious > /run/anabranch/x/state.json; $AB link down x; echo exit $?; cat /run/anabranch/x/state.json"
        );
        let Some(told) = aside(&script) else { return };
        assert!(told.contains("exit 1") && told.contains("precious") && told.contains(why), "{make}: {told}");
    }
}

/// A file that somebody else has put beside ours stays, and is named; all else goes.
#[test]
fn down_with_foreign_file_keeps_it() {
    let script = "mkdir -p /run/anabranch/x
        cd /run/anabranch/x; touch made-by-anabranch-link log hosts diary
        $AB link down x; echo exit $?
        cd /; find run/anabranch | sort
        rm run/anabranch/x/diary
        $AB link down x; echo exit $?
        find run/anabranch | sort";
    let Some(told) = aside(script) else { return };
    let expected = "exit 1\nrun/anabranch\nrun/anabranch/x\nrun/anabranch/x/diary\nrun/anabranch/x/made-by-anabranch-link\n\
                    x: removed 0 namespaces, stopped 0 programs in them\nexit 0\nrun/anabranch\n";
    let (stdout, stderr) = told.split_at(expected.len().min(told.len()));
    assert_eq!(stdout, expected);
    assert!(stderr.contains("/run/anabranch/x: not made by `anabranch link`, so it stays: diary"), "{stderr}");
}

#[test]
fn down_without_name_and_links_succeeds() {
    for arguments in ["", "--all"] {
        let Some(told) = aside(&format!("$AB link down {arguments}; echo exit $?")) else { return };
        assert_eq!(told, "nothing was up\nexit 0\n");
    }
}

/// The kernel's TCP with ECN over a queue that marks: packets are marked, none is dropped, and the sender has seen it.
#[test]
fn kernels_ecn_is_marked_by_a_queue() {
    let more = "rate = \"20Mbit/s\"\ndelay = \"5ms\"\nqueue = { kind = \"codel\", packets = 1000, ecn = true }";
    let Some(links) = Links::up("ecn", &wire("a", more)) else { return };
    let run = |host: &str, script: &str| {
        let told = links.run(&["exec", "--name", &links.name, host, "--", "sh", "-c", script]);
        assert_exit(&told, 0);
        stdout(&told).to_owned()
    };
    for host in ["h0", "h1"] {
        run(host, "echo 1 > /proc/sys/net/ipv4/tcp_ecn");
    }
    let (listener, socket) = (
        within(&links.namespace("h1"), || Ok(std::net::TcpListener::bind("10.77.2.1:7").unwrap())).unwrap(),
        within(&links.namespace("h0"), || Ok(std::net::TcpStream::connect("10.77.2.1:7").unwrap())).unwrap(),
    );
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        io::copy(&mut stream, &mut io::sink()).unwrap()
    });
    let mut socket = socket;
    io::Write::write_all(&mut socket, &vec![7; 6_000_000]).unwrap();
    let seen = run("h0", "ss -tin dport = :7");
    drop(socket);
    assert_eq!(reader.join().unwrap(), 6_000_000);
    assert!(seen.contains("delivered_ce:"), "{seen}");
    assert!(links.count(0, "marked_packets") > 5);
    assert_eq!(links.count(0, "dropped_packets"), 0);
}

/// The delay is 25 ms one way. No datagram is early; how late the fastest one is depends on the load of the machine. A connection takes a round trip, and the
/// first answer another one.
#[test]
fn one_way_delay_and_set_up_over_a_link_are_measured() {
    let Some(links) = Links::up("one-way", &wire("a", "rate = \"50Mbit/s\"\ndelay = \"25ms\"")) else { return };
    let begin = |host: &str, args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.args(["link", "exec", "--name", &links.name, host, "--", env!("CARGO_BIN_EXE_anabranch")]).args(args);
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut server = begin("h1", &["bench", "serve", "--json"]);
    let mut line = String::new();
    io::BufRead::read_line(&mut io::BufReader::new(server.stdout.take().unwrap()), &mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    let ticket = told["ticket"].as_str().unwrap();
    let options = ["--datagrams", "--clocks-agree", "--rate", "2Mbit/s", "--time", "1", "--bidir", "--json"];
    let run = |options: &[&str]| -> Value {
        let measured = begin("h0", &[&["bench", ticket][..], options].concat()).wait_with_output().unwrap();
        serde_json::from_slice(&measured.stdout).unwrap()
    };
    let (measured, set_ups) = (run(&options), run(&["--set-up", "--connections", "2", "--time", "1", "--json"]));
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(set_ups["count"].as_u64().unwrap() >= 5 && set_ups["failed"] == 0, "{set_ups}");
    assert_within(set_ups["connected"]["ms_min"].as_f64().unwrap(), 50.0, 60.0);
    assert_within(set_ups["answered"]["ms_min"].as_f64().unwrap(), 100.0, 115.0);
    for way in ["up", "down"] {
        let delay = |which: &str| measured["datagrams"][way][format!("delay_ms_{which}")].as_f64().unwrap();
        assert_within(delay("min"), 25.0, 30.0);
        assert!(delay("min") <= delay("p50") && delay("p50") <= delay("p99"), "{measured}");
    }
}

/// A datagram that is longer than the link takes is lost, and the router says so: the kernel sends the next one in two fragments. Where routers
/// are silent, that is lost, too.
#[test]
fn kernel_learns_the_mtu_of_a_link_from_its_router() {
    for (more, arrive) in [(&[][..], 1), (&["--black-holes"], 0)] {
        let narrow = wire("a", "rate = \"20Mbit/s\"\ndelay = \"5ms\"\nmtu = \"1400B\"");
        let Some(links) = Links::up_with("narrow", &narrow, more) else { return };
        for (here, there) in [("10.77.1.1:0", "10.77.2.1:7"), ("[fd77::1:1]:0", "[fd77::2:1]:7")] {
            let (here, there) = (links.socket("h0", here), links.socket("h1", there));
            for turn in 0..2 {
                // The first may fail already: it is told of the message about itself.
                _ = here.send_to(&[turn; 1440], there.local_addr().unwrap());
                std::thread::sleep(Duration::from_millis(50));
            }
            assert_eq!(arrivals(&there).len(), arrive, "{there:?} with {more:?}");
        }
    }
}

/// As the user nobody: links come up, a program sees its host names, and at the end nothing is left.
#[test]
fn user_without_root_has_links_in_a_sandbox() {
    if can_emulate().is_err() {
        return;
    }
    let folder = folder("link-sandbox");
    let flow = "[[flow]]\nid = \"f\"\nfrom = \"h0\"\nto = \"h1\"\ntransport = \"anabranch\"\n";
    let links = wire("a", "rate = \"20Mbit/s\"\ndelay = \"20ms\"");
    fs::write(folder.join("free.toml"), format!("duration = \"1s\"\n{links}{flow}")).unwrap();
    let script = "$AB link up free.toml; $AB link exec h0 -- sh -c 'grep h1 /etc/hosts; cat /proc/net/dev'; $AB link down; \
                  $AB link up free.toml > up; echo exit $?";
    // The copies are where that user reaches them.
    let place = std::env::temp_dir().join(format!("ab-sandbox-{}", std::process::id()));
    fs::create_dir(&place).unwrap();
    let program = place.join("anabranch");
    fs::copy(env!("CARGO_BIN_EXE_anabranch"), &program).unwrap();
    fs::copy(folder.join("free.toml"), place.join("free.toml")).unwrap();
    let command = format!("cd {}; \"$AB\" link sandbox -- sh -c \"$SCRIPT\"", place.display());
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", &command]).env("AB", &program).env("SCRIPT", script.replace("> up", "> /dev/null"));
    let output = shell.uid(65_534).gid(65_534).stdin(Stdio::null()).output().unwrap();
    fs::remove_dir_all(&place).unwrap();
    let told = format!("{}{}", stdout(&output), stderr(&output));
    if told.contains("does not let users make namespaces") {
        assert_exit(&output, 1);
        return;
    }
    assert!(told.contains("free is up.") && told.contains("10.77.2.1 h1 h1.a"), "{told}");
    assert!(told.contains("removed 2 namespaces") && told.contains("exit 0"), "{told}");
    // The second emulator was up when the shell ended.
    let left = Command::new("pgrep").args(["-f", "link up free.toml"]).output().unwrap();
    assert_eq!(stdout(&left), "");
    assert!(!Path::new("/run/anabranch/free").exists());
}

#[test]
fn user_without_root_is_told_what_to_do() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    let command = command.args(["link", "status"]).stdin(Stdio::null());
    // The user nobody, if this is root.
    let output = match fs::metadata("/proc/self").map(|own| std::os::unix::fs::MetadataExt::uid(&own)) {
        Ok(0) => command.uid(65_534).output(),
        _ => command.output(),
    };
    match output {
        Ok(output) => {
            assert_exit(&output, 2);
            assert!(stderr(&output).contains("type sudo in front"), "{}", stderr(&output));
        }
        // The folder of this program may not be accessible to others.
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
    }
}
