//! The commands of docs/tcp.md, block by block, with the `curl` and the `nginx` of the system: both speak the kernel's TCP and know nothing of ours.

mod inline;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Running, ask, is_inside, nft, serve, start};

/// What nginx serves: some thousand segments.
const FILE_LEN: usize = 3_000_000;

/// The commands of the page, by block, without `sudo` and comments.
fn blocks() -> Vec<Vec<String>> {
    let page = include_str!("../../../../docs/tcp.md");
    let block = |text: &str| -> Vec<String> {
        let lines = text.split("```").next().unwrap().lines();
        lines.map(|line| line.split(" #").next().unwrap().trim().trim_start_matches("sudo ").to_owned()).collect()
    };
    page.split("```console\n").skip(1).map(block).collect()
}

/// Whether the page has this text outside of its blocks.
fn says(text: &str) -> bool {
    include_str!("../../../../docs/tcp.md").contains(text)
}

/// Whether the machine has the programs, in the namespace of the test.
fn has_programs(test: &str) -> bool {
    for (program, version) in [("curl", "--version"), ("nginx", "-v")] {
        if Command::new(program).arg(version).output().is_err() {
            println!("skipped: there is no {program}");
            return false;
        }
    }
    is_inside(test)
}

/// Another host: a namespace behind a link, of which our end is `eth0`.
struct Host(Child);

impl Host {
    /// The other one has 192.0.2.1, and we 192.0.2.2.
    fn new() -> Self {
        let host = Self(Command::new("unshare").args(["-n", "sleep", "1000"]).spawn().unwrap());
        let id = host.0.id();
        let until = Instant::now() + Duration::from_secs(10);
        while fs::read_to_string(format!("/proc/{id}/comm")).unwrap().trim() != "sleep" {
            assert!(Instant::now() < until, "the namespace is there");
            std::thread::sleep(Duration::from_millis(5));
        }
        run(&format!("ip link add eth0 type veth peer name eth0 netns {id}"), &[]);
        run("ip address add 192.0.2.2/24 dev eth0", &[]);
        run("ip link set eth0 up", &[]);
        for command in ["ip link set lo up", "ip address add 192.0.2.1/24 dev eth0", "ip link set eth0 up"] {
            assert!(host.command(command).status().unwrap().success(), "{command}");
        }
        host
    }

    fn command(&self, text: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-n", "-t", &self.0.id().to_string(), "sh", "-c", &format!("exec {text}")]);
        with_path(&mut command);
        command
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// A server with a file of its own.
struct Nginx {
    server: Running,
    folder: PathBuf,
}

impl Nginx {
    fn start(test: &str, listen: &str) -> Self {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("anabranch-tcp-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let content: Vec<u8> =
            (0..FILE_LEN as u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        fs::write(folder.join("index.html"), content).unwrap();
        let place = folder.display();
        let configuration = format!(
            "daemon off;\nmaster_process off;\nuser root;\npid {place}/pid;\nevents {{}}\nhttp {{\n  access_log off;\n  \
             server {{ listen {listen}; root {place}; }}\n}}\n"
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, configuration).unwrap();
        let mut nginx = Command::new("nginx");
        nginx.arg("-p").arg(&folder).args(["-e", "stderr", "-c"]).arg(&file);
        let server = Running(nginx.stderr(Stdio::null()).spawn().unwrap());
        let until = Instant::now() + Duration::from_secs(20);
        let address = listen.to_owned();
        while std::net::TcpStream::connect(&address).is_err() {
            assert!(Instant::now() < until, "nginx listens at {listen}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { server, folder }
    }

    /// Asserts that a command of curl gets the file whole.
    #[track_caller]
    fn is_got_by(&self, mut command: Command) {
        let output = command.output().unwrap();
        let file = fs::read(self.folder.join("index.html")).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout == file, "{} bytes of {}, or others", output.stdout.len(), file.len());
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        _ = self.server.0.kill();
        _ = fs::remove_dir_all(&self.folder);
    }
}

/// A command of the page, in which some words stand for others.
fn shell(line: &str, others: &[(&str, &str)]) -> Command {
    let text = others.iter().fold(line.to_owned(), |text, (word, other)| {
        assert!(text.contains(word), "{text}: no {word}");
        text.replace(word, other)
    });
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec {text}")]).stdin(Stdio::null());
    with_path(&mut command);
    command
}

fn with_path(command: &mut Command) {
    let folder = Path::new(env!("CARGO_BIN_EXE_anabranch")).parent().unwrap().display().to_string();
    command.env("PATH", format!("{folder}:{}", std::env::var("PATH").unwrap()));
}

#[track_caller]
fn run(line: &str, others: &[(&str, &str)]) {
    let output = shell(line, others).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A block that is new has no test here yet.
#[test]
fn blocks_of_the_page_have_a_test_each() {
    let lines: Vec<usize> = blocks().iter().map(Vec::len).collect();
    assert_eq!(lines, [8, 2, 4, 2, 2, 4, 3]);
}

/// In the folder of the project; transfers take a second instead of twenty.
#[test]
fn transfers_over_emulated_link_succeed() {
    if let Err(missing) = anabranch_emulator::linux::can_emulate() {
        println!("skipped: {missing}");
        return;
    }
    if Command::new("iperf3").arg("-v").output().is_err() {
        println!("skipped: there is no iperf3");
        return;
    }
    if !is_inside("page::transfers_over_emulated_link_succeed") || nft(&["list", "tables"], "").is_none() {
        return;
    }
    let mut background = vec![];
    for line in &blocks()[0] {
        if let Some(line) = line.strip_suffix(" &") {
            background.push(start(&mut shell(line, &[])));
            continue;
        }
        let mut command = shell(&line.replace("-t 20", "-t 1"), &[]);
        command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
        // A server in the background keeps what it inherits, so nothing of it is read.
        let status = command.stdout(Stdio::null()).status().unwrap();
        assert!(status.success(), "{line}: {status}");
    }
}

/// Nginx behind our TCP, for a curl of this host, and for one of another.
#[test]
fn curl_gets_a_file_of_nginx_through_our_tcp() {
    if !has_programs("page::curl_gets_a_file_of_nginx_through_our_tcp") {
        return;
    }
    let nginx = Nginx::start("first", "127.0.0.1:8000");
    let [first, second] = &blocks()[1..3] else { unreachable!() };
    let ours = start(&mut shell(&first[0], &[]));
    for _ in 0..5 {
        nginx.is_got_by(shell(&first[1], &[]));
    }
    if nft(&["list", "tables"], "").is_some() {
        let host = Host::new();
        second.iter().for_each(|line| run(line, &[]));
        nginx.is_got_by(host.command("curl -sS http://192.0.2.2/"));
    }
    drop(ours);
}

/// The server's proxy is at the other host; each has a route to the other's device.
#[test]
fn curl_gets_a_file_between_two_proxies() {
    if !has_programs("page::curl_gets_a_file_between_two_proxies") {
        return;
    }
    let host = Host::new();
    let [server, client] = &blocks()[3][..] else { unreachable!() };
    let to_server = "ip route add 10.99.0.0/24 via SERVER";
    let to_client = "ip route add 10.98.0.0/24 via CLIENT";
    assert!(says(to_server) && says(to_client) && says("sysctl -w net.ipv4.ip_forward=1"));
    assert!(server.contains("--to 127.0.0.1:8443") && client.contains("--from 127.0.0.1:8443"));
    // The file is at this side, and curl at the other: so the page's server is here.
    let nginx = Nginx::start("two", "127.0.0.1:8443");
    run("sysctl -w net.ipv4.ip_forward=1", &[]);
    assert!(host.command("sysctl -qw net.ipv4.ip_forward=1").status().unwrap().success());
    run(to_client, &[("CLIENT", "192.0.2.1")]);
    assert!(host.command(&to_server.replace("SERVER", "192.0.2.2")).status().unwrap().success());
    let ends = (start(&mut shell(server, &[])), start(&mut host.command(client)));
    for _ in 0..5 {
        nginx.is_got_by(host.command("curl -sS http://127.0.0.1:8443/"));
    }
    drop(ends);
}

/// Nginx is at the kernel's side of the device, so our TCP is its peer.
#[test]
fn curl_gets_a_file_of_nginx_by_socks() {
    if !has_programs("page::curl_gets_a_file_of_nginx_by_socks") {
        return;
    }
    let [proxy, curl] = &blocks()[4][..] else { unreachable!() };
    let ours = start(&mut shell(proxy, &[]));
    let nginx = Nginx::start("socks", "10.99.0.1:8001");
    for _ in 0..5 {
        nginx.is_got_by(shell(curl, &[("https://example.org/", "http://10.99.0.1:8001/")]));
    }
    drop(ours);
}

#[test]
fn curl_that_is_redirected_gets_a_file_of_nginx() {
    if !has_programs("page::curl_that_is_redirected_gets_a_file_of_nginx") {
        return;
    }
    let [proxy, rule, curl, remove] = &blocks()[5][..] else { unreachable!() };
    if nft(&["list", "tables"], "").is_none() {
        return;
    }
    run("sysctl -w net.ipv4.ip_forward=1", &[]);
    run("ip address add 192.0.2.7/32 dev lo", &[]);
    let nginx = Nginx::start("redirect", "192.0.2.7:443");
    let ours = start(&mut shell(proxy, &[]));
    run(rule, &[]);
    let others = [("https://example.org/", "http://192.0.2.7:443/")];
    nginx.is_got_by(shell(curl, &others));
    run(remove, &[]);
    // It goes straight.
    drop(ours);
    nginx.is_got_by(shell(curl, &others));
}

#[test]
fn commands_listen_connect_and_proxy_succeed() {
    if !is_inside("page::commands_listen_connect_and_proxy_succeed") {
        return;
    }
    let [listen, connect, proxy] = &blocks()[6][..] else { unreachable!() };
    let listening = start(shell(listen, &[]).stdout(Stdio::null()));
    assert_eq!(ask("10.99.0.2:80"), b"", "its standard input is empty");
    drop(listening);
    serve("0.0.0.0:8000", b"from the server");
    // The device of a program that has ended may still be there for a moment.
    let told = shell(connect, &[("connect", "connect --device another")]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&told.stdout), "from the server", "{}", String::from_utf8_lossy(&told.stderr));
    run("ip address add 192.0.2.7/32 dev lo", &[]);
    serve("192.0.2.7:80", b"from a far one");
    run("sysctl -w net.ipv4.ip_forward=1", &[]);
    let ours = start(&mut shell(proxy, &[("proxy", "proxy --device third")]));
    assert_eq!(ask("127.0.0.1:9000"), b"from a far one");
    drop(ours);
}
