//! A web page of a hundred objects, from nginx to curl: through the tunnel, over the kernel's TCP, and over ours between two proxies. It is the motivating case of mfast-2019
//! (section I): one lost packet makes all objects of a connection wait. The paper has no measurement of it.
//!
//! The ways take turns, page by page, so that other load affects all of them. TCP connects for each page, and so do the clients of the tunnel, to its
//! listener. The tunnel's own connection exists all the time, with the state of its law; or, as one more way, it is new for each page.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::program::Program;
use super::{Bench, NAME, SOON, Table, is_equal};
use crate::links::{Links, output};
use crate::run;

const LINK: &str = "xtask/src/proofs/page.toml";

/// The loss rates of packets from the server to the client.
const LOSSES: [&str; 2] = ["0", "0.01"];

/// The pages of each cell. With so few, the 99th percentile is the longest, and is called so.
const PAGES: usize = 40;

pub(super) fn run(bench: &Bench, table: &mut Table) -> Result<(), String> {
    let needed =
        [("nginx", "nginx-light"), ("curl", "curl"), ("openssl", "openssl"), ("sysctl", "procps"), ("nft", "nftables")];
    let missing = needed.iter().filter(|(program, _)| !run::is_installed(program)).map(|&(_, package)| package);
    let missing = missing.collect::<Vec<_>>().join(" ");
    if !missing.is_empty() {
        table.not_run(&format!("apt-get install {missing}"));
        return Ok(());
    }
    let site = Site::make(bench)?;
    for loss in LOSSES {
        let links = Links::up(&bench.anabranch, NAME, LINK, &[&format!("link.down.error.rate={loss}")])?;
        cells(bench, table, &site, &format!("{} % lost", loss.parse::<f64>().unwrap_or_default() * 100.0))?;
        links.down()?;
    }
    Ok(())
}

/// All pages over one link.
fn cells(bench: &Bench, table: &mut Table, site: &Site, loss: &str) -> Result<(), String> {
    let _nginx = site.serve(bench)?;
    let exit = format!("127.0.0.1:{PORT}");
    let serve = [&bench.anabranch, "tunnel", "serve", "--json", "--listen", "10.77.1.1:4000", "--to", &exit];
    let mut serve = Program::start(&bench.anabranch, &bench.at("server", &serve))?;
    let ticket = serve.json(SOON)?["ticket"].as_str().ok_or("no ticket")?.to_owned();
    let tunnel = call(bench, &ticket, Way::Tunnel)?;
    let _proxies = proxies(bench)?;
    let mut ways = vec![];
    for way in [Way::Tcp("cubic"), Way::Tcp("bbr"), Way::Tunnel, Way::NewTunnel, Way::Proxies, Way::PlainProxies] {
        match way.choose(bench) {
            Ok(()) => ways.push(way),
            Err(problem) => table.note(&format!("{loss}, {}", way.name()), &format!("not run: {problem}")),
        }
    }
    let page = |way: Way, http: Http, keep: Option<&Path>| {
        way.choose(bench)?;
        let new = if way == Way::NewTunnel { Some(call(bench, &ticket, way)?) } else { None };
        let page = site.get(bench, way, http, keep);
        new.map_or(Ok(()), |mut new| new.interrupt(SOON))?;
        page
    };
    let is_equal = ways.iter().try_fold(true, |is_equal, &way| {
        HTTPS.iter().try_fold(is_equal, |is_equal, &http| {
            let to = bench.folder("page")?;
            page(way, http, Some(&to))?;
            Ok::<_, String>(is_equal && site.is_equal(&to)?)
        })
    })?;
    table.row(
        &format!("{loss}, content"),
        "equal on every way",
        if is_equal { "equal" } else { "different" },
        is_equal,
    );
    table.note(&format!("{loss}, start of curl"), &told(&starts(bench)?));
    let mut seconds = vec![vec![vec![]; ways.len()]; HTTPS.len()];
    for round in 0..PAGES {
        for (of_http, &http) in seconds.iter_mut().zip(&HTTPS) {
            for turn in 0..ways.len() {
                let turn = (turn + round) % ways.len();
                of_http[turn].push(page(ways[turn], http, None)?);
            }
        }
    }
    drop(tunnel);
    for (of_http, http) in seconds.iter().zip(HTTPS) {
        let tcp = |percent| {
            let tcps = ways.iter().zip(of_http).filter(|(way, _)| matches!(way, Way::Tcp(_)));
            tcps.map(|(_, times)| percentile(times, percent)).fold(f64::INFINITY, f64::min)
        };
        let (middle, most) = (tcp(50), tcp(99));
        for (way, times) in ways.iter().zip(of_http) {
            let what = format!("{loss}, {}, {}", http.name(), way.name());
            if matches!(way, Way::Tunnel | Way::Proxies) {
                let aim = format!("{:.0}, {:.0} ms, TCP's best", middle * 1e3, most * 1e3);
                table.row(&what, &aim, &told(times), percentile(times, 50) <= middle && percentile(times, 99) <= most);
            } else {
                table.note(&what, &told(times));
            }
        }
    }
    Ok(())
}

/// The seconds of pages by HTTP/2 over one way, over links that are up; each begins [`EVERY`] after the one before. A first one does not count: a connection
/// that exists all the time has seen the path.
pub(crate) fn times(bench: &Bench, way: &str, count: usize) -> Result<Vec<f64>, String> {
    let ways = [Way::Tcp("cubic"), Way::Tcp("bbr"), Way::Proxies, Way::PlainProxies];
    let way = ways.into_iter().find(|it| it.name() == way).ok_or_else(|| format!("there is no way `{way}`"))?;
    let site = Site::make(bench)?;
    let _nginx = site.serve(bench)?;
    let _proxies = if matches!(way, Way::Tcp(_)) { None } else { Some(proxies(bench)?) };
    way.choose(bench)?;
    let mut seconds = vec![];
    for _ in 0..=count {
        let begin = Instant::now();
        seconds.push(site.get(bench, way, HTTPS[1], None)?);
        thread::sleep(EVERY.saturating_sub(begin.elapsed()));
    }
    Ok(seconds.split_off(1))
}

/// The transport of a page from the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Over the kernel's TCP, with this law at the server.
    Tcp(&'static str),
    /// Through a tunnel that existed before.
    Tunnel,
    /// Through a new tunnel; its handshake does not count.
    NewTunnel,
    /// Through two proxies of our TCP, between which connections are streams of one.
    Proxies,
    /// The same, with plain TCP between them.
    PlainProxies,
}

impl Way {
    fn name(self) -> String {
        match self {
            Self::Tcp(law) => format!("TCP {}", law.to_uppercase()),
            Self::Tunnel => "tunnel".to_owned(),
            Self::NewTunnel => "new tunnel".to_owned(),
            Self::Proxies => "our TCP, one connection".to_owned(),
            Self::PlainProxies => "our TCP, a connection each".to_owned(),
        }
    }

    /// The address to which curl connects.
    fn server(self) -> String {
        match self {
            Self::Tcp(_) => format!("server:{PORT}"),
            Self::Tunnel => format!("127.0.0.1:{PORT}"),
            Self::NewTunnel => format!("127.0.0.1:{}", PORT + 1),
            Self::Proxies => format!("127.0.0.1:{}", PORT + 2),
            Self::PlainProxies => format!("127.0.0.1:{}", PORT + 3),
        }
    }

    /// Sets the server's law. A route can have any law of the kernel; the namespace's setting only those that all users may choose.
    fn choose(self, bench: &Bench) -> Result<(), String> {
        let Self::Tcp(law) = self else { return Ok(()) };
        let route = ["ip", "route", "change", "10.77.2.1", "dev", "down", "scope", "link", "src", "10.77.1.1"];
        let change = [&route[..], &["congctl", law]].concat();
        output(&bench.anabranch, &bench.at("server", &change)).map(drop)
    }
}

/// Opens the client's end of a tunnel, and waits for its connection.
fn call(bench: &Bench, ticket: &str, way: Way) -> Result<Program, String> {
    let local = format!("{}:127.0.0.1:{PORT}", way.server());
    let call = [&bench.anabranch, "tunnel", ticket, "--json", "--local", &local];
    let mut tunnel = Program::start(&bench.anabranch, &bench.at("client", &call))?;
    while tunnel.json(SOON)?["event"] != "connected" {}
    Ok(tunnel)
}

/// Our TCP at both ends of the link, each behind a device to which the kernel forwards.
fn proxies(bench: &Bench) -> Result<[Program; 3], String> {
    let at = |host: &'static str, command: &str| {
        let command: Vec<_> = command.split(' ').collect();
        output(&bench.anabranch, &bench.at(host, &command)).map(drop)
    };
    // The link carries packets of its hosts alone.
    at("server", "nft add table ip proxies")?;
    at("server", "nft add chain ip proxies in { type nat hook prerouting priority dstnat; }")?;
    at("server", "nft add rule ip proxies in iifname down tcp dport 4000 dnat to 10.99.0.2")?;
    at("client", "nft add table ip proxies")?;
    at("client", "nft add chain ip proxies out { type nat hook postrouting priority srcnat; }")?;
    at("client", "nft add rule ip proxies out oifname down masquerade")?;
    for host in ["server", "client"] {
        at(host, "sysctl -q -w net.ipv4.ip_forward=1")?;
    }
    let start = |host, arguments: &str| {
        let command =
            [&[bench.anabranch.as_str(), "tcp", "proxy"], &arguments.split(' ').collect::<Vec<_>>()[..]].concat();
        let mut program = Program::start(&bench.anabranch, &bench.at(host, &command))?;
        program.error_line(SOON).and_then(|line| if line.starts_with("passes") { Ok(program) } else { Err(line) })
    };
    let near = |port, device, streams| {
        let (own, streams) = (format!("10.98.{device}"), format!("--streams {streams}"));
        let to = format!("--from 127.0.0.1:{port} --to tcp:10.77.1.1:4000");
        start("client", &format!("{to} --device tcp{port} --address {own}.2 --kernel {own}.1/24 {streams}"))
    };
    Ok([
        start("server", &format!("--from tcp:4000 --to 127.0.0.1:{PORT}"))?,
        near(PORT + 2, 0, 255)?,
        near(PORT + 3, 1, 0)?,
    ])
}

/// A version of HTTP. Both are over TLS, as on the web: curl 7.88 of Debian 12 aborts multiplexed requests of HTTP/2 in clear text (curl/curl pull
/// request 10643). It is TLS 1.2, the default of nginx 1.22 in Debian 12, so that a later nginx does the same.
#[derive(Clone, Copy)]
struct Http {
    version: &'static str,
    /// The number of concurrent requests.
    requests: &'static str,
    connections: u32,
}

const HTTPS: [Http; 2] =
    [Http { version: "1.1", requests: "6", connections: 6 }, Http { version: "2", requests: "100", connections: 1 }];

impl Http {
    fn name(self) -> String {
        format!("HTTP/{}", self.version)
    }
}

/// The content of the server, and its configuration.
struct Site {
    folder: PathBuf,
    sizes: Vec<u64>,
}

impl Site {
    fn make(bench: &Bench) -> Result<Self, String> {
        let folder = bench.folder("site")?;
        let sizes = sizes();
        for (object, &size) in sizes.iter().enumerate() {
            bench.payload(&format!("site/{object}"), size)?;
        }
        let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
        let (key, certificate) = (path("key.pem"), path("certificate.pem"));
        let request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
        let request = [&request[..], &["-subj", "/CN=server", "-keyout", &key, "-out", &certificate]].concat();
        output("openssl", &request)?;
        let config = format!(
            "daemon off;\nuser root root;\nworker_processes 1;\npid {};\nevents {{ worker_connections 256; }}\nhttp {{\n  \
             access_log off;\n  sendfile on;\n  tcp_nopush on;\n  server {{\n    listen {PORT} ssl http2;\n    ssl_protocols TLSv1.2;\n    ssl_certificate {certificate};\n    \
             ssl_certificate_key {key};\n    root {};\n  }}\n}}\n",
            path("nginx.pid"),
            folder.display()
        );
        write(&folder.join("nginx.conf"), &config)?;
        Ok(Self { folder, sizes })
    }

    /// Starts nginx, and waits until it listens.
    fn serve(&self, bench: &Bench) -> Result<Program, String> {
        let config = self.folder.join("nginx.conf").to_string_lossy().into_owned();
        let nginx = Program::start(&bench.anabranch, &bench.at("server", &["nginx", "-e", "stderr", "-c", &config]))?;
        let (begin, port) = (Instant::now(), format!("sport = :{PORT}"));
        while output(&bench.anabranch, &bench.at("server", &["ss", "-Hltn", &port]))?.trim().is_empty() {
            if begin.elapsed() > SOON {
                return Err(format!("nginx does not listen after {} s", SOON.as_secs()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(nginx)
    }

    /// Gets the page and returns the seconds, curl's start included. Objects are kept in a folder, or discarded.
    fn get(&self, bench: &Bench, way: Way, http: Http, keep: Option<&Path>) -> Result<f64, String> {
        let server = way.server();
        let mut requests = String::new();
        for object in 0..OBJECTS {
            let to = keep.map_or_else(|| PathBuf::from("/dev/null"), |folder| folder.join(object.to_string()));
            requests += &format!("url = \"https://{server}/{object}\"\noutput = \"{}\"\n", to.display());
        }
        let path = self.folder.join("requests");
        write(&path, &requests)?;
        let curl = format!(
            "curl -q --insecure --no-progress-meter --max-time 120 --http{} --parallel --parallel-max {} \
             --write-out '%{{http_code}} %{{size_download}} %{{num_connects}} %{{http_version}}\\n' --config {}",
            http.version,
            http.requests,
            path.display()
        );
        let (seconds, printed) = timed(bench, &curl)?;
        let (whole, connections) = read(&printed, http.version);
        let due = (OBJECTS, self.sizes.iter().sum());
        if whole != due || connections != http.connections {
            return Err(format!(
                "{}, {}: of {due:?} objects and bytes came {whole:?}, over {connections} connections",
                way.name(),
                http.name()
            ));
        }
        Ok(seconds)
    }

    /// Whether a folder has the same objects.
    fn is_equal(&self, folder: &Path) -> Result<bool, String> {
        (0..OBJECTS).try_fold(true, |equal, object| {
            let name = object.to_string();
            Ok(equal && is_equal(&self.folder.join(&name), &folder.join(&name))?)
        })
    }
}

/// The number of objects received with this version and their bytes, and the number of connections.
fn read(printed: &str, version: &str) -> ((usize, u64), u32) {
    let mut whole = (0, 0);
    let mut connections = 0;
    for line in printed.lines() {
        let [code, bytes, connects, of] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
        connections += connects.parse().unwrap_or(0);
        if code == "200" && of == version {
            whole = (whole.0 + 1, whole.1 + bytes.parse::<u64>().unwrap_or(0));
        }
    }
    (whole, connections)
}

/// The run time of a curl that requests nothing. It is a part of every page.
fn starts(bench: &Bench) -> Result<Vec<f64>, String> {
    (0..PAGES).map(|_| timed(bench, "curl -q --version").map(|(seconds, _)| seconds)).collect()
}

/// Runs a command at the client: its seconds, and what it prints.
fn timed(bench: &Bench, command: &str) -> Result<(f64, String), String> {
    let script = format!("date +%s%N && {command} && date +%s%N");
    let printed = output(&bench.anabranch, &bench.at("client", &["sh", "-c", &script]))?;
    let time = |line: Option<&str>| line.and_then(|line| line.parse::<u64>().ok()).ok_or("no time is printed");
    let (from, until) = (time(printed.lines().next())?, time(printed.lines().last())?);
    Ok((until.saturating_sub(from) as f64 / 1e9, printed))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The bytes of the objects: the quantiles of a Pareto distribution with shape 1.2, from 2 kB on. 100 of them have 805 kB, the longest 165 kB. They are
/// chosen, not measured: many short objects and few long ones, as on web pages. A step of 37 mixes them.
fn sizes() -> Vec<u64> {
    let quantile = |at: usize| (at as f64 + 0.5) / OBJECTS as f64;
    (0..OBJECTS).map(|object| (2000.0 * (1.0 - quantile(object * 37 % OBJECTS)).powf(-1.0 / 1.2)) as u64).collect()
}

fn told(seconds: &[f64]) -> String {
    let last = if seconds.len() < 100 { "longest" } else { "p99" };
    let (middle, most) = (percentile(seconds, 50), percentile(seconds, 99));
    format!("p50 {:.0} ms, {last} {:.0}, {} times", middle * 1e3, most * 1e3, seconds.len())
}

/// The percentile by nearest rank: the least number that `percent` per cent do not exceed.
pub(crate) fn percentile(numbers: &[f64], percent: usize) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
}

const OBJECTS: usize = 100;

/// From the begin of a page to that of the next, in [`times`].
const EVERY: Duration = Duration::from_secs(3);

/// The server's port; a new tunnel for a page listens at the next one.
const PORT: u16 = 8443;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_the_nearest_ranks() {
        // 1 to 100, mixed: 50 of them are not above 50, 99 not above 99.
        let hundred = (0..100).map(|at| f64::from(at * 37 % 100 + 1)).collect::<Vec<_>>();
        assert_eq!((percentile(&hundred, 50), percentile(&hundred, 99)), (50.0, 99.0));
        // With fewer than a hundred numbers, 99 per cent are all of them.
        assert_eq!((percentile(&hundred[..1], 50), percentile(&hundred[..1], 99)), (1.0, 1.0));
        assert_eq!((percentile(&[3.0, 1.0, 2.0], 50), percentile(&[3.0, 1.0, 2.0], 99)), (2.0, 3.0));
        assert!(percentile(&[], 50).is_nan());
    }

    #[test]
    fn sizes_have_the_tail_of_their_distribution() {
        let mut sizes = sizes();
        sizes.sort_unstable();
        // P(size > s) = (2000 / s) ^ 1.2: a half at 3563.6, 10 % at 13626, 1 % at 92832.
        let above = |size: u64| sizes.iter().filter(|&&of| of > size).count();
        assert_eq!((sizes.len(), above(1999), above(3564), above(13_626), above(92_832)), (100, 100, 50, 10, 1));
    }

    #[test]
    fn curl_output_is_counted() {
        let printed = "1700000000000000000\n200 2000 1 2\n200 500 0 2\n404 100 0 2\n000 0 1 0\n1700000001000000000\n";
        assert_eq!(read(printed, "2"), ((2, 2500), 2));
        assert_eq!(read(printed, "1.1"), ((0, 0), 2));
    }
}
