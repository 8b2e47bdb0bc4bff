//! A flow as a download by curl from nginx: what the kernel's law does for programs that know nothing of it, or our own TCP in front of nginx.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::flow::Flow;
use super::laws;
use super::transfer::Transfer;
use crate::links::{Server, output};
use crate::proofs::program::Program;
use crate::run;

/// Who sends a download over the links.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    /// The TCP of the kernel, with the flow's law.
    Kernel,
    /// Our own, by `anabranch tcp proxy`.
    Ours,
}

impl Sender {
    /// That of an experiment whose flows are downloads.
    pub(super) fn of(experiment: &str) -> Option<Self> {
        match experiment {
            "curl" => Some(Self::Kernel),
            "own-tcp" => Some(Self::Ours),
            _ => None,
        }
    }
}

const PORT: u16 = 8000;
/// That of our TCP.
const OURS: u16 = 8001;
/// The file is longer than any download: 5 Gbit/s would take it whole in 27 s. On the disk it takes nothing.
const FILE_LEN: u64 = 1 << 34;
/// On a busy machine nginx starts within a second.
const PATIENCE: Duration = Duration::from_secs(30);

/// Downloads at the flow's destination from its source, for the time of the experiment. The law is the default there, or that of our TCP.
pub(super) fn run(
    anabranch: &str,
    name: &str,
    sender: Sender,
    flows: &[Flow],
    seconds: f64,
) -> Result<Vec<Transfer>, String> {
    let [flow] = flows else { return Err("a download is one flow".to_owned()) };
    let folder = run::target()?.join("reality-kernel-nginx");
    prepare(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let exec = |host: &str| ["link", "exec", host, "--name", name].map(str::to_owned);
    let law = format!("net.ipv4.tcp_congestion_control={}", laws::of_kernel(&flow.law));
    let with = |host: &str, words: &[&str]| -> Vec<String> {
        exec(host).into_iter().chain(words.iter().map(|&word| word.to_owned())).collect()
    };
    let call = |words: Vec<String>| output(anabranch, &words.iter().map(String::as_str).collect::<Vec<_>>());
    if sender == Sender::Kernel {
        call(with(&flow.from, &["--", "sysctl", "-qw", &law]))?;
    }
    let (folder, configuration) = (folder.to_string_lossy(), folder.join("nginx.conf"));
    let serve =
        with(&flow.from, &["--", "nginx", "-p", &folder, "-e", "stderr", "-c", &configuration.to_string_lossy()]);
    let _server = Server::start(anabranch, &serve.iter().map(String::as_str).collect::<Vec<_>>())?;
    await_port(|| call(with(&flow.from, &["--", "ss", "-Hltn", &format!("sport = :{PORT}")])))?;
    let (mut port, mut _proxy) = (PORT, None);
    if sender == Sender::Ours {
        let (from, to) = (format!("tcp:{OURS}"), format!("127.0.0.1:{PORT}"));
        let proxy = [anabranch, "tcp", "proxy", "--cc", &flow.law, "--from", &from, "--to", &to];
        let proxy = [&["link", "exec", &flow.from, "--name", name, "--"], &proxy[..]].concat();
        let mut started = Program::start(anabranch, &proxy)?;
        let said = started.error_line(PATIENCE)?;
        if !said.starts_with("passes") {
            return Err(said);
        }
        call(with(&flow.from, &["--", "sysctl", "-qw", "net.ipv4.ip_forward=1"]))?;
        let given = format!(
            "table ip far {{ chain in {{ type nat hook prerouting priority dstnat; tcp dport {OURS} dnat to 10.99.0.2; }}; }}"
        );
        call(with(&flow.from, &["--", "nft", &given]))?;
        (port, _proxy) = (OURS, Some(started));
    }
    let (time, url) = (format!("{seconds:.0}"), format!("http://{}:{port}/file", flow.from));
    // That its time is over is exit code 28.
    let script = "curl -s -m \"$0\" -o /dev/null -w '%{speed_download}' \"$1\"; test $? -eq 28";
    let words = with(&flow.to, &["--restart", "--", "sh", "-c", script, &time, &url]);
    let told = call(words)?;
    let bytes: f64 = told.trim().parse().map_err(|_| format!("curl told `{told}`"))?;
    let told = json!({ "end": { "sum_received": { "bits_per_second": 8.0 * bytes } } });
    Ok(vec![Transfer { began: 0.0, told }])
}

/// Waits until somebody listens: until `listeners` names one.
fn await_port(listeners: impl Fn() -> Result<String, String>) -> Result<(), String> {
    let begin = Instant::now();
    while listeners()?.trim().is_empty() {
        if begin.elapsed() > PATIENCE {
            return Err(format!("nginx does not listen at port {PORT} after {} s", PATIENCE.as_secs()));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// A folder with the configuration of nginx, and a file without content on the disk.
fn prepare(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::File::create(folder.join("file"))?.set_len(FILE_LEN)?;
    let place = folder.display();
    let text = format!(
        "daemon off;\nmaster_process off;\nuser root;\npid {place}/pid;\nevents {{}}\nhttp {{\n  access_log off;\n  sendfile on;\n  \
         server {{ listen {PORT}; root {place}; }}\n}}\n"
    );
    fs::write(folder.join("nginx.conf"), text)
}
