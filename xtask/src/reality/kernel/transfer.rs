//! Flows as transfers of iperf3.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::flow::Flow;
use super::{laws, multipath};
use crate::links::{Server, json, output};
use crate::run;

/// What iperf3 told of a flow.
pub(super) struct Transfer {
    /// The first byte of data, in seconds of the links' clock.
    pub(super) began: f64,
    pub(super) told: Value,
}

/// The first port of the servers: iperf3's.
const PORT: usize = 5201;
/// The interval of iperf3's samples in seconds, its least.
const INTERVAL: &str = "0.1";
/// The time for connecting and for iperf3's own messages, in seconds.
const BEYOND_S: f64 = 30.0;
/// A sender with its first window has sent more than this, and a control connection less.
const DATA_LEAST: u64 = 12_000;

/// Runs the transfers of all flows. The links' clock begins with the first one.
pub(super) fn run(
    anabranch: &str,
    name: &str,
    flows: &[Flow],
    seconds: f64,
    quick_acks: bool,
) -> Result<Vec<Transfer>, String> {
    if quick_acks {
        flows.iter().try_for_each(|flow| acknowledge_each(anabranch, name, &flow.to))?;
    }
    for flow in flows {
        multipath::prepare(anabranch, name, flow)?;
        if let Some(bytes) = flow.buffer {
            // Half of it counts as window (tcp_adv_win_scale).
            let most = format!("net.ipv4.tcp_rmem=4096 131072 {}", 2 * bytes);
            output(anabranch, &["link", "exec", &flow.to, "--name", name, "--", "sysctl", "-qw", &most])?;
        }
    }
    let ports: Vec<String> = (PORT..).take(flows.len()).map(|port| port.to_string()).collect();
    let mut servers = vec![];
    for (flow, port) in flows.iter().zip(&ports) {
        let exec = ["link", "exec", &flow.to, "--name", name, "--"];
        let serve = ["iperf3", "--server", "--one-off", "--json", "--interval", INTERVAL, "--port", port];
        servers.push(Server::start(anabranch, &[&exec, multipath::wrapper(flow), &serve].concat())?);
    }
    thread::sleep(Duration::from_millis(700));
    let connecting = Mutex::new(None);
    let began = Instant::now();
    let one = |index: usize| -> Result<Transfer, String> {
        let flow = &flows[index];
        thread::sleep(Duration::from_secs_f64(flow.start).saturating_sub(began.elapsed()));
        let time = format!("{:.0}", (seconds - flow.start).ceil());
        let restart = if index == 0 { &["--restart"][..] } else { &[] };
        let law = laws::of_kernel(&flow.law);
        let to = flow.paths.first().map_or_else(|| flow.to.clone(), |link| format!("{}.{link}", flow.to));
        let client = ["iperf3", "--client", &to, "--port", &ports[index], "--congestion", law, "--time", &time];
        let told = ["--interval", INTERVAL, "--json", "--get-server-output"];
        // A transfer that stands still ends, too.
        let most = format!("{:.0}", seconds - flow.start + BEYOND_S);
        let exec = ["link", "exec", &flow.from, "--name", name];
        let arguments = [&exec, restart, &["--", "timeout", &most], multipath::wrapper(flow), &client, &told];
        let child = Command::new(anabranch)
            .args(arguments.concat())
            .current_dir(run::root())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{anabranch}: {error}"))?;
        if index == 0 {
            *connecting.lock().expect("no thread panics") = Some(first_data(&child, began));
        }
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        let told = json(&String::from_utf8_lossy(&output.stdout))?;
        if let Some(error) = told["error"].as_str() {
            return Err(format!("flow {}: iperf3: {error}", flow.id));
        }
        // Later flows take as long as the first one until they have connected.
        let connecting = connecting.lock().expect("no thread panics").unwrap_or_default();
        Ok(Transfer { began: flow.start + connecting, told })
    };
    thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> = (0..flows.len()).map(|index| scope.spawn(move || one(index))).collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| "a transfer panicked".to_owned())?).collect()
    })
}

/// Lets the TCP of a host acknowledge each segment at once, instead of every other one: a property of its routes.
fn acknowledge_each(anabranch: &str, name: &str, host: &str) -> Result<(), String> {
    let within = ["link", "exec", host, "--name", name, "--", "ip", "route"];
    let routes = output(anabranch, &[&within[..], &["show"]].concat())?;
    for route in routes.lines() {
        let words: Vec<&str> = route.split_whitespace().collect();
        output(anabranch, &[&within[..], &["change"], &words, &["quickack", "1"]].concat())?;
    }
    Ok(())
}

/// The time until the process has sent its first data, in seconds: until the devices of its namespace have counted as much. iperf3 first connects, and agrees
/// on the transfer: five round trips.
fn first_data(child: &Child, began: Instant) -> f64 {
    let folder = format!("/proc/{}", child.id());
    let ours = fs::read_link("/proc/self/ns/net").ok();
    let is_inside = || fs::read_link(format!("{folder}/ns/net")).ok().is_some_and(|it| ours.as_ref() != Some(&it));
    while began.elapsed() < CONNECTING_MAX {
        let sent = fs::read_to_string(format!("{folder}/net/dev")).unwrap_or_default();
        if is_inside() && sent_bytes(&sent) > DATA_LEAST {
            break;
        }
        thread::sleep(Duration::from_millis(2));
    }
    began.elapsed().as_secs_f64()
}

const CONNECTING_MAX: Duration = Duration::from_secs(10);

/// Bytes sent by all devices but the loopback: the ninth number of a line.
fn sent_bytes(dev: &str) -> u64 {
    let counts = dev.lines().filter_map(|line| line.split_once(':')).filter(|(device, _)| device.trim() != "lo");
    counts.filter_map(|(_, numbers)| numbers.split_whitespace().nth(8)?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_all_devices_but_the_loopback_are_sent() {
        let dev = "Inter-|   Receive  |  Transmit\n face |bytes packets|bytes packets\n    lo: 9 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n  \
                   wan:   70 1 0 0 0 0 0 0 500 7 0 0 0 0 0 0\n";
        assert_eq!(sent_bytes(dev), 500);
    }
}
