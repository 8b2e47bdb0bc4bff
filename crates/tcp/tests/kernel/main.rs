//! Our TCP and the kernel's, over a TUN device in a network namespace of the test's own. Without root or TUN the tests say so and pass.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage shall stop there")]
#![expect(clippy::print_stdout, reason = "whoever runs the tests shall know what was not tested")]

mod both_ways;
mod crowd;
mod ends;
mod middlebox;
mod notices;

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anabranch_cc::{Settings as Law, registry};
use anabranch_proto::Config;
use anabranch_tcp::{Host, Settings};
use anabranch_units::Span;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Set for the run inside of the namespace.
const INSIDE: &str = "ANABRANCH_INSIDE";
const DEVICE: &str = "tcp0";
const PORT: u16 = 80;

/// The addresses of the kernel and of ours, by family.
const V4: [&str; 2] = ["10.99.0.1", "10.99.0.2"];
const V6: [&str; 2] = ["fd00:99::1", "fd00:99::2"];

/// Whether this process has a namespace of its own; if not, runs the test in one.
fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let can = Command::new("unshare").args(["-n", "ip", "tuntap", "add", DEVICE, "mode", "tun"]).output();
    if !can.as_ref().is_ok_and(|output| output.status.success()) {
        println!("skipped: a TUN device in a network namespace needs root, iproute2 and /dev/net/tun");
        return false;
    }
    let mut inner = Command::new("unshare");
    inner.arg("-n").arg(std::env::current_exe().unwrap()).args([test, "--exact", "--nocapture"]).env(INSIDE, "1");
    assert!(inner.status().unwrap().success(), "{test} failed in its namespace");
    false
}

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A table of nftables with these rules for packets that come in and go out.
fn table(incoming: &str, outgoing: &str) -> String {
    let chain = |hook: &str, rules: &str| format!("chain {hook} {{\ntype filter hook {hook} priority 0\n{rules}}}\n");
    format!("table inet box {{\n{}{}}}\n", chain("input", incoming), chain("output", outgoing))
}

/// Gives rules to nftables; false, with a message, where it is missing or too old for them.
fn nft(rules: &str) -> bool {
    let child = Command::new("nft").args(["-f", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let output = child.and_then(|mut child| {
        child.stdin.take().unwrap().write_all(rules.as_bytes())?;
        child.wait_with_output()
    });
    match output {
        Ok(output) if output.status.success() => return true,
        Ok(output) => println!("skipped: nftables refuses: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => println!("skipped: nftables: {error}"),
    }
    assert!(std::env::var_os("ANABRANCH_REQUIRE_NFTABLES").is_none(), "nftables is required");
    false
}

fn sysctl(name: &str, value: &str) {
    std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value).unwrap();
}

/// Lets the kernel be a router of both families.
fn forward() {
    sysctl("ip_forward", "1");
    std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").unwrap();
}

/// A second device, and the addresses of the kernel on it and of a host of ours behind it, by family.
const FAR_DEVICE: &str = "tcp1";
const FAR_V4: [&str; 2] = ["10.98.0.1", "10.98.0.2"];
const FAR_V6: [&str; 2] = ["fd00:98::1", "fd00:98::2"];

/// Both of our hosts, the near one first, by family.
const TWO_OF_OURS: [[&str; 2]; 2] = [[V4[1], FAR_V4[1]], [V6[1], FAR_V6[1]]];

/// A host behind a device of its own: what goes from the other one to it is forwarded by the kernel.
fn far_host() -> Host {
    let mut connection = Config::new(Law::default_for(registry::find("anabranch").unwrap()));
    (connection.time_wait, connection.timestamps) = (Span::from_secs(1), true);
    let settings = Settings {
        addresses: [FAR_V4[1], FAR_V6[1]].map(|address| address.parse().unwrap()).into(),
        connection,
        sockets_max: 4000,
        backlog: 128,
    };
    let host = Host::open(FAR_DEVICE, settings, [8; 32]).unwrap();
    ip(&format!("address add {}/24 dev {FAR_DEVICE}", FAR_V4[0]));
    ip(&format!("address add {}/64 dev {FAR_DEVICE} nodad", FAR_V6[0]));
    ip(&format!("link set {FAR_DEVICE} up txqueuelen 5000"));
    forward();
    host
}

/// A host behind the device; the kernel's addresses are on it.
fn host(set: impl FnOnce(&mut Config)) -> Host {
    let mut connection = Config::new(Law::default_for(registry::find("anabranch").unwrap()));
    connection.time_wait = Span::from_secs(1);
    set(&mut connection);
    let settings = Settings {
        addresses: [V4[1], V6[1]].map(|address| address.parse().unwrap()).into(),
        connection,
        sockets_max: 4000,
        backlog: 128,
    };
    let host = Host::open(DEVICE, settings, [9; 32]).unwrap();
    ip("link set lo up");
    ip(&format!("address add {}/24 dev {DEVICE}", V4[0]));
    ip(&format!("address add {}/64 dev {DEVICE} nodad", V6[0]));
    ip(&format!("link set {DEVICE} up txqueuelen 5000"));
    host
}

/// The runtime of a test in a namespace of its own; if this process has none, runs the test in one.
fn inside(test: &str) -> Option<tokio::runtime::Runtime> {
    let build = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    is_inside(test).then(build)
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

fn remote(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().unwrap(), port)
}

/// Accepts connections, and sends back what arrives until the end.
fn serve_echo(host: &Host, port: u16) -> tokio::task::JoinHandle<()> {
    let mut listener = host.listen(port).unwrap();
    tokio::spawn(async move {
        loop {
            let Ok(stream) = listener.accept().await else { return };
            tokio::spawn(async move {
                let (mut from, mut to) = tokio::io::split(stream);
                _ = tokio::io::copy(&mut from, &mut to).await;
                _ = to.shutdown().await;
            });
        }
    })
}

/// A client of the kernel that sends `data`, closes its side, and reads all that comes back.
fn echo_by_kernel(address: &str, data: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(remote(address, PORT)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    thread::scope(|scope| {
        let mut writer = stream.try_clone().unwrap();
        scope.spawn(move || {
            writer.write_all(data).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut back = vec![];
        stream.read_to_end(&mut back).unwrap();
        back
    })
}

/// The features of the kernel's TCP, as sysctls: timestamps, SACK, scaled windows, ECN.
const FEATURES: [[&str; 4]; 4] =
    [["1", "1", "1", "1"], ["0", "1", "1", "2"], ["1", "0", "1", "0"], ["0", "0", "0", "0"]];

fn set_features([timestamps, sack, scaling, ecn]: [&str; 4]) {
    sysctl("tcp_timestamps", timestamps);
    sysctl("tcp_sack", sack);
    sysctl("tcp_window_scaling", scaling);
    sysctl("tcp_ecn", ecn);
}

#[test]
fn kernel_client_gets_every_byte_back() {
    let Some(runtime) = inside("kernel_client_gets_every_byte_back") else { return };
    let _guard = runtime.enter();
    for ours in [false, true] {
        let host = host(|config| config.timestamps = ours);
        let server = serve_echo(&host, PORT);
        let data = content(3 << 20);
        for features in FEATURES {
            set_features(features);
            for address in [V4[1], V6[1]] {
                assert!(echo_by_kernel(address, &data) == data, "{address} {features:?} {ours}");
            }
        }
        server.abort();
        drop(host);
        // The device goes with the last connection in TIME-WAIT.
        thread::sleep(Duration::from_secs(3));
    }
}

/// What we send is gathered: the device takes fewer packets than there are segments. With an MTU of 9000 the segments of both ends are as long.
#[test]
fn segments_are_gathered_and_as_long_as_the_device_takes() {
    let Some(runtime) = inside("segments_are_gathered_and_as_long_as_the_device_takes") else { return };
    let _guard = runtime.enter();
    let host = host(|config| (config.mss, config.timestamps) = (9000 - 40, true));
    ip(&format!("link set {DEVICE} mtu 9000"));
    _ = serve_echo(&host, PORT);
    let data = content(8 << 20);
    for (address, headers) in [(V4[1], 52), (V6[1], 72)] {
        let packets = || {
            let devices = std::fs::read_to_string("/proc/net/dev").unwrap();
            let line = devices.lines().find_map(|line| line.trim().strip_prefix(DEVICE)?.strip_prefix(':')).unwrap();
            // Bytes and packets that the kernel has received.
            line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap()
        };
        let before = packets();
        let mut stream = TcpStream::connect(remote(address, PORT)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut back = vec![0; data.len()];
        thread::scope(|scope| {
            let mut writer = stream.try_clone().unwrap();
            let data = &data;
            scope.spawn(move || writer.write_all(data).unwrap());
            stream.read_exact(&mut back).unwrap();
        });
        assert!(back == data, "{address}");
        let segment = 9000 - headers;
        let told =
            Command::new("ss").args(["-tinH", "dst", &stream.peer_addr().unwrap().to_string()]).output().unwrap();
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        assert!(told.contains(&format!(" mss:{segment} ")) && told.contains(&format!(" rcvmss:{segment} ")), "{told}");
        // Without the acknowledgements of what arrived, which go alone, there were even fewer.
        let sent = packets() - before;
        assert!(sent < data.len() / segment, "{address}: {sent} packets");
    }
}

#[test]
fn kernel_server_gets_every_byte_and_sees_the_end() {
    let Some(runtime) = inside("kernel_server_gets_every_byte_and_sees_the_end") else { return };
    let host = runtime.block_on(async { host(|_| {}) });
    for features in FEATURES {
        set_features(features);
        for [kernel, ours] in [V4, V6] {
            let server = TcpListener::bind(remote(kernel, 0)).unwrap();
            let port = server.local_addr().unwrap().port();
            let reader = thread::spawn(move || {
                let (mut stream, _) = server.accept().unwrap();
                let mut got = vec![];
                stream.read_to_end(&mut got).unwrap();
                stream.write_all(&got[..1000]).unwrap();
                got
            });
            let data = content(3 << 20);
            let back = runtime.block_on(async {
                let mut stream = host.connect(ours.parse().unwrap(), remote(kernel, port)).await.unwrap();
                stream.write_all(&data).await.unwrap();
                stream.shutdown().await.unwrap();
                let mut back = vec![];
                stream.read_to_end(&mut back).await.unwrap();
                back
            });
            assert!(reader.join().unwrap() == data, "{kernel} {features:?}");
            assert_eq!(back, data[..1000]);
        }
    }
}

/// Of packets both ways, each twentieth is lost.
#[test]
fn every_byte_arrives_with_five_percent_lost() {
    let Some(runtime) = inside("every_byte_arrives_with_five_percent_lost") else { return };
    let _guard = runtime.enter();
    let host = host(|_| {});
    _ = serve_echo(&host, PORT);
    let drop = |from: &str| format!("{from}ifname \"{DEVICE}\" numgen random mod 20 0 drop\n");
    if !nft(&table(&drop("i"), &drop("o"))) {
        return;
    }
    let data = content(1 << 20);
    for features in FEATURES {
        set_features(features);
        assert!(echo_by_kernel(V4[1], &data) == data, "{features:?}");
    }
}

/// A middlebox takes options out of all segments, of both ends: what neither end has is not used.
#[test]
fn every_byte_arrives_without_options() {
    let Some(runtime) = inside("every_byte_arrives_without_options") else { return };
    let _guard = runtime.enter();
    let host = host(|config| config.timestamps = true);
    _ = serve_echo(&host, PORT);
    let data = content(1 << 20);
    for options in [&["timestamp"][..], &["sack-perm"], &["window"], &["maxseg"], &["timestamp", "sack-perm", "window"]]
    {
        let rules: String = options.iter().map(|option| format!("reset tcp option {option}\n")).collect();
        if !nft(&table(&rules, &rules)) {
            return;
        }
        assert!(echo_by_kernel(V4[1], &data) == data, "{options:?}");
        assert!(nft("delete table inet box\n"));
    }
}

/// Between two of ours, connections share one where the path lets streams pass, and have their own where a middlebox does not: every byte comes back, by
/// IPv4 and IPv6.
#[test]
fn two_of_ours_share_a_connection_or_fall_back() {
    let Some(runtime) = inside("two_of_ours_share_a_connection_or_fall_back") else { return };
    let _guard = runtime.enter();
    // What a middlebox does; whether connections share one. A lost SYN leads to plain TCP, too.
    let middleboxes = [
        ("", true),
        ("tcp flags & syn != 0 accept\nnumgen random mod 20 0 drop\n", true),
        ("reset tcp option 253\n", false),
        ("@th,100,4 set 0\n", false),
        ("tcp flags syn tcp option 253 exists drop\n", false),
        ("oifname tcp1 reset tcp option 253\n", false),
        ("oifname tcp0 reset tcp option 253\n", false),
        ("oifname tcp0 @th,100,4 set 0\n", false),
        ("oifname tcp0 tcp flags syn tcp option 253 exists drop\n", false),
    ];
    let (near, far) = (host(|config| config.timestamps = true), far_host());
    for (case, (rules, is_shared)) in middleboxes.into_iter().enumerate() {
        // A host remembers peers without streams, so each has a port.
        let port = PORT + case as u16;
        _ = serve_echo(&far, port);
        if !nft(&format!("table inet box {{\nchain forward {{\ntype filter hook forward priority 0\n{rules}}}\n}}\n")) {
            return;
        }
        for ends in TWO_OF_OURS {
            runtime.block_on(four_come_back(&near, ends, port, is_shared, rules));
        }
        assert!(nft("delete table inet box\n"));
    }
}

/// Four connections at once, of which every byte comes back.
async fn four_come_back(near: &Host, [ours, far]: [&'static str; 2], port: u16, is_shared: bool, rules: &'static str) {
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..4 {
        let near = near.clone();
        tasks.spawn(async move {
            let data = content(1 << 20).split_off(number);
            let mut stream = near.connect(ours.parse().unwrap(), remote(far, port)).await.unwrap();
            assert_eq!(stream.is_shared(), is_shared, "{far}: {rules}");
            assert!(echo(&mut stream, &data).await == data, "{far}: {rules}");
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

/// Sends `data`, closes the side, and reads all that comes back.
async fn echo(stream: &mut anabranch_tcp::TcpStream, data: &[u8]) -> Vec<u8> {
    let (mut from, mut to) = tokio::io::split(stream);
    let write = async {
        to.write_all(data).await.unwrap();
        to.shutdown().await.unwrap();
    };
    let mut back = vec![];
    let (_, read) = tokio::join!(write, from.read_to_end(&mut back));
    read.unwrap();
    back
}

/// Behind a route with a smaller MTU, of which the kernel tells us, our packets fit: every byte comes back, over one connection and over their own.
#[test]
fn every_byte_arrives_over_narrow_route() {
    let Some(runtime) = inside("every_byte_arrives_over_narrow_route") else { return };
    let _guard = runtime.enter();
    let (near, far) = (host(|config| config.timestamps = true), far_host());
    _ = serve_echo(&far, PORT);
    ip(&format!("link set {FAR_DEVICE} mtu 1300"));
    let data = content(1 << 20);
    for [ours, far] in TWO_OF_OURS {
        let before = near.tally().0.too_big;
        let back = runtime.block_on(async {
            let mut stream = near.connect(ours.parse().unwrap(), remote(far, PORT)).await.unwrap();
            echo(&mut stream, &data).await
        });
        assert!(back == data, "{far}");
        assert!(near.tally().0.too_big > before, "{far}");
    }
}

#[test]
fn refusal_and_reset_are_seen_by_both() {
    let Some(runtime) = inside("refusal_and_reset_are_seen_by_both") else { return };
    let _guard = runtime.enter();
    let host = host(|_| {});
    // Nobody listens, here or there.
    let refused = TcpStream::connect(remote(V4[1], 81)).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    let refused = runtime.block_on(host.connect(V4[1].parse().unwrap(), remote(V4[0], 81))).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    // Our reset.
    let mut listener = host.listen(PORT).unwrap();
    let mut stream = TcpStream::connect(remote(V4[1], PORT)).unwrap();
    runtime.block_on(listener.accept()).unwrap().abort();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    // The kernel's: it closes with unread data.
    let server = TcpListener::bind(remote(V4[0], 82)).unwrap();
    runtime.block_on(async {
        let mut stream = host.connect(V4[1].parse().unwrap(), remote(V4[0], 82)).await.unwrap();
        let (there, _) = server.accept().unwrap();
        stream.write_all(b"unread").await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        drop(there);
        let error = stream.read(&mut [0]).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    });
}

#[test]
fn kernel_pings_our_addresses() {
    let Some(runtime) = inside("kernel_pings_our_addresses") else { return };
    let _guard = runtime.enter();
    let _host = host(|_| {});
    for address in [V4[1], V6[1]] {
        match Command::new("ping").args(["-c", "2", "-W", "2", address]).output() {
            Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
            Err(_) => println!("skipped: no ping"),
        }
    }
}

/// Both ways: what the kernel sends as urgent is told and comes in its place; of ours the kernel takes the last octet out, as it does by default.
#[test]
fn urgent_data_is_understood_by_both() {
    let Some(runtime) = inside("urgent_data_is_understood_by_both") else { return };
    let script = "import socket, sys\ns = socket.create_connection(sys.argv[1:3])\n\
                  s.send(b'plain'); s.send(b'urgent', socket.MSG_OOB); s.recv(1)\n\
                  print(s.recv(1, socket.MSG_OOB), s.recv(9), s.recv(9))\n";
    let host = runtime.block_on(async { host(|_| {}) });
    for address in [V4[1], V6[1]] {
        let client = Command::new("python3").args(["-c", script, address, "80"]).stdout(Stdio::piped()).spawn();
        let Ok(client) = client else {
            println!("skipped: there is no python3");
            return;
        };
        let told = runtime.block_on(async {
            let mut stream = host.listen(PORT).unwrap().accept().await.unwrap();
            let mut told = stream.urgent_comes().await.unwrap();
            let mut got = [0; 11];
            stream.read_exact(&mut got[..7]).await.unwrap();
            told -= 7 + stream.urgent();
            stream.read_exact(&mut got[7..]).await.unwrap();
            assert_eq!((&got, stream.urgent()), (b"plainurgent", 0));
            // The octet that the client awaits, so that the rest arrives before it looks.
            assert_eq!(stream.write_urgent(b"?ab!").await.unwrap(), 4);
            stream.write_all(b"cd").await.unwrap();
            stream.shutdown().await.unwrap();
            tokio::time::sleep(Duration::from_millis(200)).await;
            told
        });
        assert_eq!(told, 0, "each octet that is read is one less");
        let output = client.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "b'!' b'ab' b'cd'", "{address}");
    }
}
