//! Commands and options that stand in the text of docs/tcp.md and docs/wireshark/README.md.

use super::super::output;
use super::*;

/// What stands in the text between this begin and a backtick.
fn inline(begin: &str) -> &'static str {
    let page = include_str!("../../../../../docs/tcp.md");
    page.split(begin).nth(1).expect("the page has it").split('`').next().unwrap()
}

/// Bytes that a device has received and sent.
fn bytes_of(device: &str) -> u64 {
    let devices = fs::read_to_string("/proc/net/dev").unwrap();
    let line = devices.lines().find_map(|line| line.trim().strip_prefix(device)?.strip_prefix(':')).unwrap();
    let fields: Vec<u64> = line.split_whitespace().map(|field| field.parse().unwrap()).collect();
    fields[0] + fields[8]
}

/// The client's host has two ways: both carry data, and one that fails is left.
#[test]
fn two_ways_are_paths_of_one_connection() {
    if !has_programs("page::inline::two_ways_are_paths_of_one_connection") {
        return;
    }
    let host = Host::new();
    run(&format!("ip link add way type veth peer name wlan0 netns {}", host.0.id()), &[]);
    run("ip address add 198.51.100.2/24 dev way", &[]);
    run("ip link set way up", &[]);
    let at_client = |line: &str| assert!(host.command(line).status().unwrap().success(), "{line}");
    at_client("ip address add 198.51.100.1/24 dev wlan0");
    at_client("ip link set wlan0 up");
    let [server, client] = &blocks()[3][..] else { unreachable!() };
    let [rule, route] =
        ["ip rule add from 10.98.1.2 table 77", "ip route add 10.99.0.0/24 via GATEWAY dev wlan0 table 77"];
    let liberal = "sysctl -w net.netfilter.nf_conntrack_tcp_be_liberal=1";
    assert!(says(rule) && says(route) && says(liberal) && says("`--paths 2` at both ends"));
    at_client("sysctl -qw net.ipv4.ip_forward=1");
    at_client("ip route add 10.99.0.0/24 via 192.0.2.2");
    at_client(rule);
    at_client(&route.replace("GATEWAY", "198.51.100.2"));
    run("sysctl -qw net.ipv4.ip_forward=1", &[]);
    run("ip route add 10.98.0.0/24 via 192.0.2.1", &[]);
    run("ip route add 10.98.1.0/24 via 198.51.100.1", &[]);
    if Path::new("/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal").exists() {
        run(liberal, &[]);
        at_client(liberal);
    }
    let nginx = Nginx::start("paths", "127.0.0.1:8443");
    let second = "--paths 2 --address 10.98.1.2 --kernel 10.98.1.1/24";
    let ends = (
        start(&mut shell(&format!("{server} --paths 2"), &[])),
        start(&mut host.command(&format!("{client} {second}"))),
    );
    // The second way is used once it is known to lead there.
    let until = Instant::now() + Duration::from_secs(20);
    while ["eth0", "way"].map(bytes_of).iter().any(|bytes| *bytes < FILE_LEN as u64) {
        assert!(Instant::now() < until, "eth0 and the second way have carried {:?}", ["eth0", "way"].map(bytes_of));
        nginx.is_got_by(host.command("curl -sS -m 30 http://127.0.0.1:8443/"));
    }
    for way in ["way", "eth0"] {
        run(&format!("ip link set {way} down"), &[]);
        nginx.is_got_by(host.command("curl -sS -m 30 http://127.0.0.1:8443/"));
        run(&format!("ip link set {way} up"), &[]);
        // The routes have gone with the device.
        run(
            &format!(
                "ip route replace 10.98.{}.0/24 via {}",
                u8::from(way == "way"),
                if way == "way" { "198.51.100.1" } else { "192.0.2.1" }
            ),
            &[],
        );
        nginx.is_got_by(host.command("curl -sS -m 30 http://127.0.0.1:8443/"));
    }
    drop(ends);
}

/// Each option of the list with its value, on a proxy that serves.
#[test]
fn options_of_the_list_are_taken() {
    if !is_inside("page::inline::options_of_the_list_are_taken") {
        return;
    }
    serve("127.0.0.1:8000", b"from the server");
    let first = &blocks()[1][0];
    let v6 = inline("* IPv6: `");
    let ours = start(&mut shell(&format!("{first} {v6} --device first"), &[]));
    assert_eq!(ask("10.99.0.2:80"), b"from the server");
    assert_eq!(ask("[fd00:99::2]:80"), b"from the server");
    drop(ours);
    for (number, (option, value)) in [
        ("--mtu", "9000"),
        ("--cc", "cubic"),
        ("--connections", "1000"),
        ("--idle", "7440"),
        ("--paths", "1"),
        ("--streams", "255"),
        ("--streams", "0"),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(says(&format!("`{option}")) && (["9000", "cubic"].contains(&value) || says(value)), "{option} {value}");
        let ours = start(&mut shell(&format!("{first} {option} {value} --device d{number}"), &[]));
        assert_eq!(ask("10.99.0.2:80"), b"from the server", "{option} {value}");
        drop(ours);
    }
    assert_eq!(output("listen 80 --mtu 65536").status.code(), Some(2));
}

/// `tcpdump` sees what goes over the device of a proxy.
#[test]
fn tcpdump_captures_what_goes_over_the_device() {
    if Command::new("tcpdump").arg("--version").output().is_err() {
        println!("skipped: there is no tcpdump");
        return;
    }
    if !is_inside("page::inline::tcpdump_captures_what_goes_over_the_device") {
        return;
    }
    let command = "tcpdump -i anabranch-tcp -w capture.pcapng";
    let wireshark = include_str!("../../../../../docs/wireshark/README.md");
    assert!(says(&format!("`sudo {command}`")) && wireshark.contains(&format!("`sudo {command}`")));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("anabranch-tcp-dump-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    serve("127.0.0.1:8000", b"from the server");
    let ours = start(&mut shell(&blocks()[1][0], &[]));
    let mut dump = start(shell(command, &[]).current_dir(&folder));
    assert_eq!(ask("10.99.0.2:80"), b"from the server");
    // It gets packets from the kernel within a second.
    std::thread::sleep(Duration::from_millis(1500));
    run(&format!("kill -INT {}", dump.0.id()), &[]);
    assert!(dump.0.wait().unwrap().success());
    let read = shell("tcpdump -nn -r capture.pcapng", &[]).current_dir(&folder).output().unwrap();
    let read = String::from_utf8_lossy(&read.stdout).into_owned();
    fs::remove_dir_all(&folder).unwrap();
    assert!(read.contains("10.99.0.2.80: Flags [S]") && read.contains("10.99.0.2.80 > "), "{read}");
    drop(ours);
}
