//! Measures the lateness of an emulated link on this machine, at one rate and delay.
//!
//! A thread in one namespace sends packets at a constant rate, each with its sending time; a thread in another namespace records
//! arrivals. Between them is a link of this rate. The sending times determine when a perfect link, which serves packets one after
//! the other, would have delivered each packet. Both threads are measuring instruments, so they have real-time priority, below
//! the emulator's.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anabranch_sim::{LinkSpec, Topology, Wire};
use anabranch_units::{Bytes, Rate, SimSpan};
use serde::Serialize;

use super::drive::{Driver, PRIORITY, become_real_time};
use super::{Claim, Failure, control, down, namespace, state, up};
use crate::address::Interface;
use crate::histogram::Histogram;
use crate::name::{InvalidName, Name};
use crate::plan::{Plan, Settings};
use crate::status::{Lateness, Status};

/// One measurement of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// The rate of the link in both directions.
    pub rate: Rate,
    /// The delay of the link in both directions.
    pub delay: SimSpan,
    /// How long packets are sent.
    pub span: Duration,
}

/// The result of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CheckRow {
    /// The rate of the link in bits per second.
    pub rate_bps: u64,
    /// The delay of the link in milliseconds.
    pub delay_ms: f64,
    /// Packets of 1500 bytes that were sent.
    pub sent_packets: u64,
    /// Packets that arrived.
    pub delivered_packets: u64,
    /// The lateness from program to program, relative to a perfect link.
    pub late: Option<Lateness>,
    /// The lateness with which packets leave the emulator.
    pub late_emulator: Option<Lateness>,
    /// The emulator's processor time divided by the elapsed time.
    pub cpu_share: f64,
    /// Whether the emulator had real-time priority.
    pub is_real_time: bool,
}

impl CheckRow {
    /// Whether this machine sustains the link: at least 999 of 1000 packets arrived, and 99 of 100 were at most a millisecond
    /// late.
    pub fn is_carried(&self) -> bool {
        let is_whole = self.delivered_packets * 1000 >= self.sent_packets * 999;
        is_whole && self.late.is_some_and(|late| late.p99_ms <= LATE_MS_MAX)
    }
}

/// The tolerance between real and simulated queueing delay, in milliseconds.
const LATE_MS_MAX: f64 = 1.0;

/// The longest packet with the usual MTU, and its UDP payload.
const PACKET: usize = 1500;
const PAYLOAD: usize = PACKET - 28;

/// The load as a share of the link's rate. At full load the queue of an initial delay would never drain.
const LOAD: f64 = 0.95;

const PORT: u16 = 7;

/// Creates a link, measures it, and removes it again.
///
/// # Errors
/// If the system refuses.
pub fn check(check: &Check) -> Result<CheckRow, Failure> {
    let name = format!("check-{}", std::process::id());
    let name: Name = name.parse().map_err(|invalid: InvalidName| Failure::Usage(invalid.to_string()))?;
    let claim = Claim::new(&name)?;
    let row = measure(&name, claim, check);
    down(&name)?;
    row
}

fn measure(name: &Name, _claim: Claim, check: &Check) -> Result<CheckRow, Failure> {
    let (network, settings) = (network(check), Settings::default());
    let plan = Plan::new(name, &network, &settings).map_err(|refusal| Failure::Usage(refusal.to_string()))?;
    let state = state::State::new(String::new(), plan).map_err(|error| Failure::failed("/proc", error))?;
    state.write()?;
    let devices = up::devices(&state.plan, &settings)?;
    let driver = Driver::new(network, devices, &settings, control::listen(name)?)?;
    let [from, to] = [0, 1].map(|host: usize| &state.plan.hosts[host].namespace);
    let is_over = AtomicBool::new(false);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let emulator = scope.spawn(|| driver.run());
        let receiver = scope.spawn(|| namespace::within(to, || receive(begin, &is_over).map_err(socket)));
        let measured = (|| {
            // Wait until the receiver's socket exists.
            std::thread::sleep(Duration::from_millis(50));
            let before = control::status(name)?;
            let sent = namespace::within(from, || send(begin, check).map_err(socket))?;
            std::thread::sleep(Duration::from_secs_f64(check.delay.as_secs_f64()) + Duration::from_millis(200));
            Ok((sent, before, control::status(name)?))
        })();
        is_over.store(true, Ordering::Relaxed);
        control::stop(name)?;
        let (ended, received) = (join(emulator), join(receiver));
        let (sent, before, after) = measured?;
        ended?;
        Ok(row(check, &sent, &received?, [&before, &after]))
    })
}

fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn socket(error: io::Error) -> Failure {
    Failure::failed("a socket of the check", error)
}

fn network(check: &Check) -> Topology {
    let wire = |id: &str, from, to| {
        let spec = LinkSpec::new(check.rate, check.delay);
        Wire { id: id.to_owned(), from, to, spec, mtu_changes: vec![] }
    };
    Topology {
        seed: 1,
        nodes: ["h0", "h1"].map(str::to_owned).to_vec(),
        wires: vec![wire("check", 0, 1), wire("check.reverse", 1, 0)],
        routes: vec![],
        hosts: vec![0, 1],
    }
}

/// Sends at a constant rate. Returns the sending times since `begin`.
fn send(begin: Instant, check: &Check) -> io::Result<Vec<Duration>> {
    become_real_time(PRIORITY - 10);
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(SocketAddr::from((Interface { host: 1, number: 0 }.ipv4(), PORT)))?;
    let interval = 8.0 * PACKET as f64 / (check.rate.bits_per_second() as f64 * LOAD);
    let mut payload = [0; PAYLOAD];
    let (mut sent, first) = (vec![], begin.elapsed());
    for number in 0_u64.. {
        let due = Duration::from_secs_f64(number as f64 * interval);
        if due >= check.span {
            break;
        }
        let wait = (first + due).saturating_sub(begin.elapsed());
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
        payload[..8].copy_from_slice(&number.to_be_bytes());
        sent.push(begin.elapsed());
        socket.send(&payload)?;
    }
    Ok(sent)
}

/// Records the number and the arrival time of each packet, since `begin`.
fn receive(begin: Instant, is_over: &AtomicBool) -> io::Result<Vec<(u64, Duration)>> {
    become_real_time(PRIORITY - 10);
    let socket = UdpSocket::bind(("0.0.0.0", PORT))?;
    // The buffer is large: if the receiver pauses for some milliseconds, this must not look like loss on the link.
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 16 << 20)?;
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    let (mut received, mut buffer) = (vec![], [0; PACKET]);
    while !is_over.load(Ordering::Relaxed) {
        match socket.recv(&mut buffer) {
            Ok(PAYLOAD) => {
                let number = buffer.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
                received.push((number, begin.elapsed()));
            }
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(received)
}

fn row(check: &Check, sent: &[Duration], received: &[(u64, Duration)], [before, after]: [&Status; 2]) -> CheckRow {
    let perfect = perfect(check, sent);
    let mut late = Histogram::default();
    for (number, at) in received {
        late.add(at.saturating_sub(perfect[*number as usize]));
    }
    CheckRow {
        rate_bps: check.rate.bits_per_second(),
        delay_ms: check.delay.as_secs_f64() * 1e3,
        sent_packets: sent.len() as u64,
        delivered_packets: received.len() as u64,
        late: Lateness::of(&late),
        late_emulator: after.links[0].late,
        cpu_share: (after.cpu_seconds - before.cpu_seconds) / (after.clock_seconds - before.clock_seconds),
        is_real_time: after.is_real_time,
    }
}

/// The arrival times over a perfect link, which serves one packet after the other.
fn perfect(check: &Check, sent: &[Duration]) -> Vec<Duration> {
    let transmission: SimSpan = check.rate.transmission(Bytes::new(PACKET as u64));
    let [transmission, delay] = [transmission, check.delay].map(|span| Duration::from_secs_f64(span.as_secs_f64()));
    let mut free_at = Duration::ZERO;
    let serve = |&at: &Duration| {
        free_at = free_at.max(at) + transmission;
        free_at + delay
    };
    sent.iter().map(serve).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_link_serves_one_after_the_other() {
        // 12 Mbit/s: 1500 bytes take a millisecond.
        let (rate, delay) = (Rate::from_bits_per_second(12_000_000), SimSpan::from_millis(10));
        let check = Check { rate, delay, span: Duration::ZERO };
        let times = |all: [u64; 4]| all.map(Duration::from_micros);
        assert_eq!(perfect(&check, &times([0, 100, 5000, 5999])), times([11_000, 12_000, 16_000, 17_000]));
    }

    #[test]
    fn a_link_that_loses_or_delays_is_not_carried() {
        let late = |p99_ms| Some(Lateness { p50_ms: 0.1, p99_ms, max_ms: 9.0 });
        let row = |delivered_packets, late| CheckRow {
            rate_bps: 1,
            delay_ms: 1.0,
            sent_packets: 10_000,
            delivered_packets,
            late,
            late_emulator: None,
            cpu_share: 0.1,
            is_real_time: true,
        };
        assert!(row(9990, late(1.0)).is_carried());
        assert!(!row(9989, late(1.0)).is_carried());
        assert!(!row(10_000, late(1.01)).is_carried());
        assert!(!row(0, None).is_carried());
    }
}
