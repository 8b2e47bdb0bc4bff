//! `anabranch tcp`, as programs of the kernel's TCP see it, in a network namespace of the test's own. Without root or TUN the tests say so and pass.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage shall stop there")]
#![expect(clippy::print_stdout, reason = "whoever runs the tests shall know what was not tested")]

#[path = "../shared/inside.rs"]
mod inside;
mod link;
mod page;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::inside::Needs;

/// Whether this process has namespaces of its own; if not, runs the test in such.
fn is_inside(test: &str) -> bool {
    let skipped = "a TUN device in a network namespace needs root, iproute2 and /dev/net/tun";
    inside::is_inside(test, Needs { probe: "ip tuntap add tcp0 mode tun", skipped, seconds: "100" })
}

/// A running `anabranch tcp`, which is stopped at the end.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn tcp(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.arg("tcp").args(arguments.split(' ')).stdin(Stdio::null());
    command
}

/// Starts it, and waits for the first line that it says.
fn start(command: &mut Command) -> Running {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(!line.starts_with("error"), "{line}");
    Running(child)
}

fn output(arguments: &str) -> Output {
    tcp(arguments).output().unwrap()
}

/// A server that answers each connection with the same, and closes.
fn serve(at: &str, answer: &'static [u8]) {
    let listener = TcpListener::bind(at).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            _ = stream.read(&mut [0; 1000]);
            _ = stream.write_all(answer);
        }
    });
}

fn ask(at: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(b"?").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut got = vec![];
    stream.read_to_end(&mut got).unwrap();
    got
}

/// The first commands of docs/tcp.md: a server of the kernel's behind our TCP; and the other way.
#[test]
fn proxy_passes_connections_on_both_ways() {
    if !is_inside("proxy_passes_connections_on_both_ways") {
        return;
    }
    serve("127.0.0.1:8000", b"from the server");
    let page = include_str!("../../../../docs/tcp.md");
    let first = "tcp proxy --from tcp:80 --to 127.0.0.1:8000";
    assert!(page.contains(first), "the page has the command");
    let ours = start(&mut tcp(first.strip_prefix("tcp ").unwrap()));
    for _ in 0..20 {
        assert_eq!(ask("10.99.0.2:80"), b"from the server");
    }
    serve("10.99.0.1:8001", b"from a far one");
    let second =
        "proxy --from 127.0.0.1:9000 --to tcp:10.99.0.1:8001 --device other --address 10.98.0.2 --kernel 10.98.0.1/24";
    let theirs = start(&mut tcp(second));
    assert_eq!(ask("127.0.0.1:9000"), b"from a far one");
    drop((ours, theirs));
}

/// Two proxies of ours, with the kernel's TCP at both ends: what passes between them is one connection, or one for each without streams.
#[test]
fn two_proxies_share_a_connection() {
    if !is_inside("two_proxies_share_a_connection") {
        return;
    }
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
    serve("127.0.0.1:8000", b"from the server");
    let far = "proxy --from tcp:4000 --to 127.0.0.1:8000 --device far --address 10.98.0.2 --kernel 10.98.0.1/24";
    for (arguments, most) in [(String::new(), 1), (" --streams 0".to_owned(), 20)] {
        let near = format!("proxy --from 127.0.0.1:9000 --to tcp:10.98.0.2:4000{arguments}");
        let (far, near) = (start(&mut tcp(far)), start(&mut tcp(&near)));
        // SYNs on the way to the far proxy.
        let rule = "table inet count {\nchain forward {\ntype filter hook forward priority 0\noifname far tcp flags syn counter\n}\n}\n";
        let counts = nft(&["-f", "-"], rule).is_some();
        thread::scope(|scope| {
            let asks: Vec<_> = (0..20).map(|_| scope.spawn(|| ask("127.0.0.1:9000"))).collect();
            asks.into_iter().for_each(|ask| assert_eq!(ask.join().unwrap(), b"from the server"));
        });
        if counts {
            let table = nft(&["list", "table", "inet", "count"], "").unwrap();
            assert!(table.contains(&format!("packets {most} ")), "{table}");
            nft(&["delete", "table", "inet", "count"], "").unwrap();
        }
        drop((far, near));
    }
}

/// The page's command for SOCKS5, asked as `curl` asks: the target is reached by our TCP, and a failure has its code.
#[test]
fn socks_client_reaches_what_it_names() {
    if !is_inside("socks_client_reaches_what_it_names") {
        return;
    }
    let page = include_str!("../../../../docs/tcp.md");
    let command = "tcp proxy --from socks:127.0.0.1:1080 --to tcp";
    assert!(page.contains(command), "the page has the command");
    let ours = start(&mut tcp(command.strip_prefix("tcp ").unwrap()));
    let listener = TcpListener::bind("10.99.0.1:8001").unwrap();
    let connect = |port: u16| {
        let mut stream = TcpStream::connect("127.0.0.1:1080").unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(&[5, 1, 0, 5, 1, 0, 1, 10, 99, 0, 1]).unwrap();
        stream.write_all(&port.to_be_bytes()).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer[..3], [5, 0, 5]);
        (stream, answer[3])
    };
    let (mut stream, code) = connect(8001);
    assert_eq!(code, 0);
    stream.write_all(b"?").unwrap();
    let (mut served, peer) = listener.accept().unwrap();
    assert_eq!(peer.ip().to_string(), "10.99.0.2", "it comes from our TCP");
    served.read_exact(&mut [0]).unwrap();
    served.write_all(b"found").unwrap();
    drop(served);
    let mut got = vec![];
    stream.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"found");
    // Refused.
    assert_eq!(connect(8009).1, 5);
    // Packets of UDP, and no SOCKS at all.
    let mut stream = TcpStream::connect("127.0.0.1:1080").unwrap();
    stream.write_all(&[5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0]).unwrap();
    let mut answer = vec![];
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(answer[..4], [5, 0, 5, 7]);
    assert!(ask("127.0.0.1:1080").is_empty());
    drop(ours);
}

/// The page's rule of nftables sends connections to the proxy, which knows where they were going.
#[test]
fn redirected_connection_goes_where_it_was_going() {
    if !is_inside("redirected_connection_goes_where_it_was_going") {
        return;
    }
    let page = include_str!("../../../../docs/tcp.md");
    let command = "tcp proxy --from redirect:127.0.0.1:9000 --to tcp";
    let rule = "chain out { type nat hook output priority -100; oifname != \"anabranch-tcp\" tcp dport 443 redirect to :9000; }";
    assert!(page.contains(command) && page.contains(rule), "the page has the command and the rule");
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
    // A far server, as far as the kernel can tell.
    assert!(Command::new("ip").args(["address", "add", "192.0.2.7/32", "dev", "lo"]).status().unwrap().success());
    let listener = TcpListener::bind("192.0.2.7:443").unwrap();
    if nft(&["-f", "-"], &format!("table inet anabranch {{ {rule}; }}\n")).is_none() {
        return;
    }
    let ours = start(&mut tcp(command.strip_prefix("tcp ").unwrap()));
    let asking = thread::spawn(|| ask("192.0.2.7:443"));
    let (mut served, peer) = listener.accept().unwrap();
    assert_eq!(peer.ip().to_string(), "10.99.0.2", "it comes from our TCP");
    served.read_exact(&mut [0]).unwrap();
    served.write_all(b"from there").unwrap();
    drop(served);
    assert_eq!(asking.join().unwrap(), b"from there");
    // Who comes straight is reset, and does not go round in a circle.
    let mut stream = TcpStream::connect("127.0.0.1:9000").unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    drop(ours);
}

/// An answer in two pieces does not wait for a delayed acknowledgement on its way: fifty of them took two seconds.
#[test]
fn pieces_of_an_answer_pass_at_once() {
    if !is_inside("pieces_of_an_answer_pass_at_once") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:8000").unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        while stream.read_exact(&mut [0]).is_ok() {
            stream.write_all(b"a").unwrap();
            thread::sleep(Duration::from_millis(2));
            stream.write_all(b"b").unwrap();
        }
    });
    let far = "proxy --from tcp:4000 --to 127.0.0.1:8000 --device far --address 10.98.0.2 --kernel 10.98.0.1/24";
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
    let _ends = (start(&mut tcp(far)), start(&mut tcp("proxy --from 127.0.0.1:9000 --to tcp:10.98.0.2:4000")));
    let mut stream = TcpStream::connect("127.0.0.1:9000").unwrap();
    stream.set_nodelay(true).unwrap();
    let begin = std::time::Instant::now();
    for _ in 0..50 {
        stream.write_all(b"?").unwrap();
        stream.read_exact(&mut [0; 2]).unwrap();
    }
    assert!(begin.elapsed() < Duration::from_millis(1200), "{:?}", begin.elapsed());
}

/// The only place of a proxy: who says nothing and reads nothing is reset after the limit, and the next one is served. Who is slow keeps it.
#[test]
fn idle_connection_gives_up_its_place() {
    if !is_inside("idle_connection_gives_up_its_place") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:8000").unwrap();
    let ours = start(&mut tcp("proxy --from tcp:80 --to 127.0.0.1:8000 --connections 1 --idle 2"));
    let connect = || {
        let stream = TcpStream::connect("10.99.0.2:80").unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    };
    let begin = std::time::Instant::now();
    let mut silent = connect();
    let (mut served, _) = listener.accept().unwrap();
    // Half of it is over, and the other half never ends.
    served.shutdown(Shutdown::Write).unwrap();
    assert_eq!(silent.read(&mut [0]).unwrap(), 0);
    assert_eq!(served.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    assert!(begin.elapsed() > Duration::from_millis(1900), "{:?}", begin.elapsed());
    let mut slow = connect();
    let (mut served, _) = listener.accept().unwrap();
    for _ in 0..5 {
        thread::sleep(Duration::from_secs(1));
        served.write_all(b"slow").unwrap();
        slow.read_exact(&mut [0; 4]).unwrap();
    }
    drop(ours);
}

/// What nftables says; nothing, with a message, where it is missing.
fn nft(arguments: &[&str], input: &str) -> Option<String> {
    let child =
        Command::new("nft").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let output = child.and_then(|mut child| {
        child.stdin.take().unwrap().write_all(input.as_bytes())?;
        child.wait_with_output()
    });
    match output {
        Ok(output) if output.status.success() => return Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => println!("skipped: nftables refuses: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => println!("skipped: nftables: {error}"),
    }
    assert!(std::env::var_os("ANABRANCH_REQUIRE_NFTABLES").is_none(), "nftables is required");
    None
}

/// A device that somebody has made and set up is used as it is.
#[test]
fn device_is_used_as_it_is() {
    if !is_inside("device_is_used_as_it_is") {
        return;
    }
    for arguments in ["tuntap add own mode tun", "address add 10.97.0.1/24 dev own", "link set own up"] {
        assert!(Command::new("ip").args(arguments.split(' ')).status().unwrap().success());
    }
    serve("127.0.0.1:8000", b"from the server");
    let ours = start(&mut tcp("proxy --from tcp:80 --to 127.0.0.1:8000 --device own --as-is --address 10.97.0.2"));
    assert_eq!(ask("10.97.0.2:80"), b"from the server");
    drop(ours);
}

#[test]
fn connect_pipes_standard_input_and_output() {
    if !is_inside("connect_pipes_standard_input_and_output") {
        return;
    }
    let listening = start(tcp("listen 80").stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut child = listening;
    child.0.stdin.take().unwrap().write_all(b"to you").unwrap();
    assert_eq!(ask("10.99.0.2:80"), b"to you");
    let mut got = String::new();
    child.0.stdout.take().unwrap().read_to_string(&mut got).unwrap();
    assert_eq!(got, "?");
    assert!(child.0.wait().unwrap().success());
    let refused = output("connect 10.99.0.1:8009");
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("10.99.0.1:8009: connection refused"));
}

/// A server that breaks off, one that is not there, and a proxy that is stopped: the client sees a reset, not an end.
#[test]
fn broken_side_of_proxy_resets_the_other() {
    if !is_inside("broken_side_of_proxy_resets_the_other") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:8000").unwrap();
    let ours = start(&mut tcp("proxy --from tcp:80 --to 127.0.0.1:8000"));
    let connect = || {
        let stream = TcpStream::connect("10.99.0.2:80").unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    };
    let is_reset = |mut stream: TcpStream| {
        let error = stream.read_to_end(&mut vec![]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    };
    let mut client = connect();
    let (server, _) = listener.accept().unwrap();
    client.write_all(b"unread").unwrap();
    thread::sleep(Duration::from_millis(300));
    // With unread data this is a reset.
    drop(server);
    is_reset(client);

    let client = connect();
    let (server, _) = listener.accept().unwrap();
    let stopped = Command::new("kill").arg(ours.0.id().to_string()).status().unwrap();
    assert!(stopped.success());
    is_reset(client);
    drop((server, ours));

    drop(listener);
    let ours = start(&mut tcp("proxy --from tcp:80 --to 127.0.0.1:8000"));
    match TcpStream::connect("10.99.0.2:80") {
        Ok(stream) => is_reset(stream),
        // It came before the call had returned.
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
    }
    drop(ours);
}

#[test]
fn wrong_arguments_are_told() {
    for (arguments, message) in [
        ("proxy --from 127.0.0.1:1 --to 127.0.0.1:2", "one of --from and --to must be ours"),
        ("proxy --from socks:127.0.0.1:1 --to 127.0.0.1:2", "one of --from and --to must be ours"),
        ("proxy --from redirect:127.0.0.1:1 --to tcp:127.0.0.1:2", "write --to tcp"),
        ("proxy --from tcp:80 --to tcp", "these connections name no target"),
        ("connect 10.99.0.1", "invalid socket address"),
        ("listen 0", "0 is not in"),
        ("listen 80 --device ../x", "a device has a name"),
    ] {
        let told = output(arguments);
        assert_eq!(told.status.code(), Some(2), "{arguments}");
        let text = String::from_utf8_lossy(&told.stderr).into_owned();
        assert!(text.contains(message), "{arguments}: {text}");
    }
}
