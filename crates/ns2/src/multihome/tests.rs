use std::collections::{BTreeMap, BTreeSet};

use anabranch_units::{SimSpan, SimTime};
use proptest::prelude::*;

use super::*;
use crate::config::{Agent, FastOptions, SenderConfig};
use crate::packet::Kind;

const RBUF_LARGE: f64 = 100_000.0;

fn config(paths: usize, rbuf: f64) -> Config {
    let options = FastOptions { alpha: 10.0, beta: 10.0, ..FastOptions::default() };
    Config { agent: SenderConfig { window: rbuf, ..SenderConfig::new(Agent::Fast(options)) }, paths, reinject: None }
}

/// One direction of a path: one packet per `service` time, then a propagation delay of `delay`. SACKs take `delay` only.
#[derive(Clone, Copy)]
struct Wire {
    service: SimSpan,
    delay: SimSpan,
}

const fn wire(service_ms: u64, delay_ms: u64) -> Wire {
    Wire { service: SimSpan::from_millis(service_ms), delay: SimSpan::from_millis(delay_ms) }
}

/// A sender and a receiver with wires between them. All queues are unlimited.
struct Pair<L> {
    now: SimTime,
    sender: Sender,
    sink: Sink,
    wires: Vec<Wire>,
    free_at: Vec<SimTime>,
    /// Whether the n-th packet on a path, or SACK on the way back, is lost.
    is_lost: L,
    counts: BTreeMap<(usize, bool), u64>,
    events: BTreeMap<(SimTime, u64), Departure>,
    order: u64,
    /// What the sender sent: when, over which path, and which packet.
    sent: Vec<(SimTime, usize, i32)>,
    /// When the packet that was sent last was delivered in order.
    delivered_at: SimTime,
}

impl<L: FnMut(SimTime, usize, Kind, u64) -> bool> Pair<L> {
    fn new(config: Config, wires: Vec<Wire>, is_lost: L) -> Self {
        let free_at = vec![SimTime::ZERO; wires.len()];
        let (sender, sink) = (Sender::new(config), Sink::new(config.paths));
        let (counts, events) = (BTreeMap::new(), BTreeMap::new());
        let (now, sent, delivered_at) = (SimTime::ZERO, vec![], SimTime::ZERO);
        Self { now, sender, sink, wires, free_at, is_lost, counts, events, order: 0, sent, delivered_at }
    }

    fn run(mut self, packets: Option<u32>, seconds: u64) -> Self {
        self.sender.produce(self.now, packets);
        self.drain();
        let end = SimTime::ZERO + SimSpan::from_secs(seconds);
        loop {
            let timeout = self.sender.poll_timeout();
            let event = self.events.first_key_value().map_or(SimTime::NEVER, |(&(time, _), _)| time);
            self.now = timeout.min(event);
            if self.now > end {
                return self;
            }
            if event <= timeout {
                let (_, Departure { path, packet }) = self.events.pop_first().expect("it was looked at");
                match packet.kind {
                    Kind::Data => self.arrive(path, &packet),
                    Kind::Ack => self.sender.handle(self.now, path, &packet),
                }
            } else {
                self.sender.handle_timeout(self.now);
            }
            self.drain();
        }
    }

    fn arrive(&mut self, path: usize, packet: &Packet) {
        let before = self.sink.delivered_packets();
        self.sink.handle(self.now, path, packet);
        if self.sink.delivered_packets() > before {
            self.delivered_at = self.now;
        }
        let answer = self.sink.poll_transmit().expect("each packet is acknowledged at once");
        assert_eq!(answer.path, path, "a SACK goes back over the path of the packet");
        assert!(self.sink.poll_transmit().is_none());
        self.put(answer, self.wires[path].delay);
    }

    fn drain(&mut self) {
        while let Some(departure) = self.sender.poll_transmit() {
            let Departure { path, packet } = departure;
            self.sent.push((self.now, path, packet.seq));
            // Packets that the receiver holds, and packets on the way to it.
            let room = self.sender.config().agent.window as i64;
            let waiting = i64::from(packet.seq) + 1 - self.sink.delivered_packets() as i64;
            assert!(waiting <= room, "packet {} where {} are delivered", packet.seq, self.sink.delivered_packets());
            let Wire { service, delay } = self.wires[path];
            self.free_at[path] = self.free_at[path].max(self.now) + service;
            let after = self.free_at[path].since(self.now) + delay;
            self.put(departure, after);
        }
    }

    fn put(&mut self, departure: Departure, after: SimSpan) {
        let Departure { path, packet } = departure;
        let count = self.counts.entry((path, packet.kind == Kind::Data)).or_default();
        *count += 1;
        if !(self.is_lost)(self.now, path, packet.kind, *count - 1) {
            self.order += 1;
            self.events.insert((self.now + after, self.order), departure);
        }
    }

    /// When packets left by a path.
    fn times(&self, path: usize) -> Vec<SimTime> {
        self.sent.iter().filter(|sent| sent.1 == path).map(|sent| sent.0).collect()
    }

    /// For each packet, the paths over which it was sent.
    fn paths_of_packets(&self) -> BTreeMap<i32, BTreeSet<usize>> {
        let mut paths: BTreeMap<i32, BTreeSet<usize>> = BTreeMap::new();
        self.sent.iter().for_each(|&(_, path, seq)| _ = paths.entry(seq).or_default().insert(path));
        paths
    }
}

fn never(_: SimTime, _: usize, _: Kind, _: u64) -> bool {
    false
}

#[test]
fn parts_are_in_proportion_and_whole() {
    let parts = |rbuf, windows: &[f64]| shares(rbuf, windows.iter().copied()).collect::<Vec<_>>();
    assert_eq!(parts(100, &[7.0]), [100]);
    assert_eq!(parts(100, &[30.0, 10.0]), [75, 25]);
    assert_eq!(parts(10, &[2.0, 2.0, 2.0]), [3, 3, 4]);
    // A window that has grown without bound counts as much as the buffer, 100 packets.
    assert_eq!(parts(100, &[1e9, 25.0]), [80, 20]);
    assert_eq!(parts(100, &[0.5, 1e9, 2.0]), [1, 97, 2]);
    assert_eq!(parts(3, &[0.5, 90.0, 2.0]), [1, 1, 1]);
}

/// [multihoming-2010] sec. III: each path has its own window. With enough buffer, a loss on one path changes nothing on the
/// other.
#[test]
fn a_loss_on_one_path_does_not_change_the_others() {
    let wires = vec![wire(4, 40), wire(4, 60)];
    let clean = Pair::new(config(2, RBUF_LARGE), wires.clone(), never).run(None, 20);
    let lossy = Pair::new(config(2, RBUF_LARGE), wires, |_, path, kind, n| path == 1 && kind == Kind::Data && n == 500);
    let lossy = lossy.run(None, 20);
    assert_eq!((clean.sender.counters().window_cuts, lossy.sender.path_counters(1).window_cuts), (0, 1));
    assert_eq!(lossy.sender.path_counters(0).window_cuts, 0);
    assert_eq!(clean.times(0), lossy.times(0));
    assert_eq!(clean.sender.gauges(0), lossy.sender.gauges(0));
}

/// Packet 5 of path 1 is lost. From then on, SACKs of path 0 report a hole; SACKs of path 1 report three packets above it.
#[test]
fn duplicates_count_on_their_own_path_only() {
    let mut sender = Sender::new(config(2, 100.0));
    let mut sink = Sink::new(2);
    let mut now = SimTime::ZERO;
    let mut turn = |sender: &mut Sender, lost: &[i32]| {
        now += SimSpan::from_millis(100);
        let mut departures = vec![];
        while let Some(departure) = sender.poll_transmit() {
            departures.push(departure);
        }
        let arriving = departures.iter().filter(|it| !lost.contains(&it.packet.seq));
        arriving.for_each(|it| sink.handle(now, it.path, &it.packet));
        let mut resent = vec![];
        while let Some(answer) = sink.poll_transmit() {
            let before = sender.path_counters(answer.path).retransmitted_packets;
            sender.handle(now, answer.path, &answer.packet);
            if sender.path_counters(answer.path).retransmitted_packets > before {
                resent.push(answer.path);
            }
        }
        let paths: Vec<_> = departures.iter().map(|it| (it.path, it.packet.seq)).collect();
        (paths, resent)
    };
    sender.produce(SimTime::ZERO, None);
    // A SYN each, then two packets each.
    assert_eq!(turn(&mut sender, &[]), (vec![(0, 0), (1, 1)], vec![]));
    assert_eq!(turn(&mut sender, &[]), (vec![(0, 2), (0, 3), (1, 4), (1, 5)], vec![]));
    // The queue is empty: each ACK allows one more packet.
    let (sent, resent) = turn(&mut sender, &[10]);
    assert_eq!((&sent[..5], resent), (&[(0, 6), (0, 7), (0, 8), (0, 9), (1, 10)][..], vec![1]));
    assert_eq!(sent[5..], [(1, 11), (1, 12), (1, 13)]);
    // Path 0 sent eight packets on four ACKs, although the last three packets of path 1 reported the hole.
    let (sent, resent) = turn(&mut sender, &[]);
    assert_eq!(sent.iter().filter(|it| it.0 == 0).count(), 8);
    assert!(!resent.contains(&0), "{resent:?}");
    assert!(sent.contains(&(1, 10)), "the lost packet, over its path again: {sent:?}");
    assert_eq!(sender.path_counters(0).window_cuts, 0);
}

/// SYNs and data of all paths take numbers of one sequence space. An RTT sample belongs to the path of the SACK.
#[test]
fn each_path_has_its_own_rtt() {
    let pair = Pair::new(config(3, RBUF_LARGE), vec![wire(1, 10), wire(1, 50), wire(1, 200)], never).run(None, 10);
    for (path, base_ms) in [(0, 21), (1, 101), (2, 401)] {
        let base = pair.sender.gauges(path).rtt_base.expect("there were SACKs");
        assert_eq!(base, SimSpan::from_millis(base_ms), "path {path}");
    }
}

/// Equilibrium: every path is full and FAST keeps its packets queued, for any number of paths.
#[test]
fn two_to_eight_paths_add_up() {
    for paths in 2..=PATHS_MAX {
        let wires = (0..paths as u64).map(|path| wire(4, 20 + 10 * path)).collect();
        let pair = Pair::new(config(paths, RBUF_LARGE), wires, never).run(None, 30);
        // 250 packets a second on each path, except at the start.
        let most = 30 * 250 * paths as u64;
        let delivered = pair.sink.delivered_packets();
        assert!((most * 97 / 100..=most).contains(&delivered), "{paths} paths: {delivered} of {most}");
        assert_eq!(pair.sender.counters().retransmitted_packets, 0);
    }
}

/// Two paths of any speed carry at most rbuf per RTT: 40 packets in 100 ms.
#[test]
fn the_receive_buffer_bounds_the_sum() {
    let wires = vec![Wire { service: SimSpan::from_micros(1), delay: SimSpan::from_millis(50) }; 2];
    let pair = Pair::new(config(2, 40.0), wires, never).run(None, 20);
    let delivered = pair.sink.delivered_packets();
    assert!((7800..=8000).contains(&delivered), "{delivered}");
    assert_eq!(pair.sender.shares().collect::<Vec<_>>(), [20, 20]);
}

/// Path 1 dies for good after 5 s. The paper retransmits over the same path, so everything waits for it. With the option, the
/// other path fills the holes.
#[test]
fn a_dead_path_stops_the_connection_unless_others_help() {
    let run = |reinject| {
        let dies = |now: SimTime, path, _, _| path == 1 && now >= SimTime::ZERO + SimSpan::from_secs(5);
        let config = Config { reinject, ..config(2, 60.0) };
        Pair::new(config, vec![wire(4, 40), wire(4, 40)], dies).run(None, 20)
    };
    let at = |seconds| SimTime::ZERO + SimSpan::from_secs(seconds);
    let stopped = run(None);
    assert!(stopped.delivered_at < at(6), "{}", stopped.delivered_at);
    assert!(stopped.times(1).last() > Some(&at(19)), "it tries on");
    let helped = run(Some(SimSpan::from_secs(1)));
    assert!(helped.delivered_at > at(19), "{}", helped.delivered_at);
    // From 7 s on, 13 s of the remaining path.
    let delivered = helped.sink.delivered_packets() - stopped.sink.delivered_packets();
    assert!(delivered > 13 * 250 * 9 / 10, "{delivered}");
    let both = helped.paths_of_packets().values().filter(|paths| paths.len() == 2).count();
    assert!((1..=60).contains(&both), "{both} packets went over both paths");
}

/// A path that was silent and comes back continues where it stopped.
#[test]
fn a_path_that_comes_back_is_used_again() {
    let silent = SimTime::ZERO + SimSpan::from_secs(5)..SimTime::ZERO + SimSpan::from_secs(10);
    let is_silent = |now: SimTime, path, _, _| path == 1 && silent.contains(&now);
    for reinject in [None, Some(SimSpan::from_secs(1))] {
        let config = Config { reinject, ..config(2, 60.0) };
        let pair = Pair::new(config, vec![wire(4, 40), wire(4, 40)], is_silent).run(None, 30);
        let late = |path| pair.times(path).iter().filter(|&&time| time > silent.end + SimSpan::from_secs(2)).count();
        // 18 s of 250 packets each.
        assert!(late(0) > 4000 && late(1) > 4000, "{reinject:?}: {} and {}", late(0), late(1));
    }
}

/// The SACKs of one path are all lost. The SACKs of the other path carry the same information.
#[test]
fn the_buffer_is_freed_by_whatever_path_tells() {
    let is_lost =
        |now: SimTime, path, kind, _| path == 1 && kind == Kind::Ack && now >= SimTime::ZERO + SimSpan::from_secs(5);
    let pair = Pair::new(config(2, 60.0), vec![wire(4, 40), wire(4, 40)], is_lost).run(None, 20);
    assert!(pair.delivered_at > SimTime::ZERO + SimSpan::from_secs(19), "{}", pair.delivered_at);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn parts_add_up_to_the_buffer(rbuf in 8..5000_i32, windows in prop::collection::vec(0.0..1e5_f64, 1..=8)) {
        let parts: Vec<i32> = shares(rbuf, windows.iter().copied()).collect();
        prop_assert_eq!(parts.len(), windows.len());
        prop_assert_eq!(parts.iter().sum::<i32>(), rbuf);
        prop_assert!(parts.iter().all(|&part| part >= 1), "{:?}", parts);
    }

    /// Whatever packets and SACKs are lost, every packet is delivered once and in order. No packet is sent that the receiver has
    /// no room for (the fixture checks it). No packet changes its path unless another path may help.
    #[test]
    fn everything_arrives_in_order(
        seed in any::<u64>(),
        loss in 0.0..0.25_f64,
        rbuf in 8..200_i32,
        wires in prop::collection::vec((0..8_u64, 1..120_u64), 1..=8),
        reinject in prop::option::of(100..2000_u64),
    ) {
        let mut state = seed;
        // SplitMix64.
        let mut uniform = move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        };
        let wires: Vec<_> = wires.into_iter().map(|(service, delay)| wire(service, delay)).collect();
        let paths = wires.len();
        let reinject = reinject.map(SimSpan::from_millis);
        let config = Config { reinject, ..config(paths, f64::from(rbuf)) };
        let pair = Pair::new(config, wires, |_, _, _, _| uniform() < loss).run(Some(1500), 4000);
        prop_assert_eq!(pair.sink.delivered_packets(), 1500 + paths as u64);
        prop_assert_eq!(pair.sink.received().unique_packets, 1500 + paths as u64);
        prop_assert_eq!(pair.sender.acked_seq(), 1500 + paths as i32 - 1);
        if reinject.is_none() {
            prop_assert!(pair.paths_of_packets().values().all(|paths| paths.len() == 1));
        }
    }
}
