//! The sender: path selector and data dispatcher.

use std::collections::VecDeque;

use anabranch_units::{SimSpan, SimTime};

use super::path::{Origin, Path};
use super::{Departure, shares};
use crate::config::{Agent, SenderConfig};
use crate::counters::Counters;
use crate::packet::Packet;
use crate::ranges::Ranges;
use crate::sender::{Gauges, Sender as PathAgent};

/// Limit on the number of paths. Hosts have fewer interfaces.
pub const PATHS_MAX: usize = 8;

/// The settings of a sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The FAST agent, the same on each path. Its `window` is the receiver's buffer in packets, which all paths share.
    pub agent: SenderConfig,
    /// The number of paths, up to [`PATHS_MAX`].
    pub paths: usize,
    /// If a path times out after this long without a SACK, the other paths retransmit its flight, too. `None` is never, as in the
    /// paper.
    pub reinject: Option<SimSpan>,
}

/// The sender of a connection over several paths.
#[derive(Clone, Debug)]
pub struct Sender {
    config: Config,
    paths: Vec<Path>,
    /// The receiver's buffer in packets.
    rbuf: i32,
    /// Highest packet up to which the receiver is known to have everything.
    acked: i32,
    /// The packets above `acked` that are known to have arrived.
    above: Ranges,
    /// The next number of the common sequence space.
    next: i32,
    /// Data packets without a number yet; `None` is an endless supply.
    supply: Option<i32>,
    is_stopped: bool,
    /// The packets in flight on silent paths: number and path.
    orphans: VecDeque<(i32, usize)>,
    out: VecDeque<Departure>,
}

impl Sender {
    /// A sender that has not started.
    ///
    /// # Panics
    /// If there is no path or too many, if the agent is not FAST, or if the receiver's buffer has fewer packets than there are
    /// paths.
    pub fn new(config: Config) -> Self {
        assert!((1..=PATHS_MAX).contains(&config.paths), "{} paths", config.paths);
        assert!(matches!(config.agent.agent, Agent::Fast(_)), "the agent of a path is FAST's");
        let rbuf = config.agent.window as i32;
        assert!(rbuf >= config.paths as i32, "a packet for each path");
        Self {
            config,
            paths: vec![Path::new(PathAgent::new(config.agent)); config.paths],
            rbuf,
            acked: -1,
            above: Ranges::default(),
            next: 0,
            supply: Some(0),
            is_stopped: false,
            orphans: VecDeque::new(),
            out: VecDeque::new(),
        }
    }

    /// The application produces `packets` more, or an endless supply if `None`. What fits the windows is sent now.
    pub fn produce(&mut self, now: SimTime, packets: Option<u32>) {
        let packets = packets.map(|packets| i32::try_from(packets).unwrap_or(i32::MAX));
        self.supply = self.supply.zip(packets).map(|(supply, packets)| supply.saturating_add(packets));
        self.send_all(now);
    }

    /// The application stops: nothing new is sent from now on.
    pub fn stop(&mut self, now: SimTime) {
        (self.supply, self.is_stopped) = (Some(0), true);
        self.paths.iter_mut().for_each(|path| path.agent.stop(now));
        (0..self.paths.len()).for_each(|path| self.dispatch(now, path));
    }

    /// The current time in seconds by ns-2's own float clock. Call it before every other call, or never.
    pub fn handle_clock(&mut self, seconds: f64) {
        self.paths.iter_mut().for_each(|path| path.agent.handle_clock(seconds));
    }

    /// A SACK arrived over a path.
    pub fn handle(&mut self, now: SimTime, path: usize, sack: &Packet) {
        for &(left, right) in sack.sack.as_slice() {
            let left = left.max(self.acked + 1);
            if left < right {
                self.above.insert(left, right);
            }
        }
        self.acked = self.acked.max(sack.seq);
        self.above.remove_below(self.acked + 1);
        let seen = self.paths[path].translate(sack);
        self.paths[path].silent_since = now;
        self.act(now, path, |agent| agent.handle(now, &seen));
        // The window moved, and with it all shares. The path of this SACK sends first.
        let count = self.paths.len();
        (0..count).map(|turn| (path + turn) % count).for_each(|path| self.resume(now, path));
        self.paths.iter_mut().for_each(|path| path.forget(self.acked));
    }

    /// Handles the timeout that [`Sender::poll_timeout`] announced.
    pub fn handle_timeout(&mut self, now: SimTime) {
        for index in 0..self.paths.len() {
            if self.paths[index].agent.poll_timeout() > now || self.rests(index) {
                continue;
            }
            self.act(now, index, |agent| agent.handle_timeout(now));
            self.disown_if_silent(now, index);
        }
    }

    /// The next packet to put on the wire.
    pub fn poll_transmit(&mut self) -> Option<Departure> {
        self.out.pop_front()
    }

    /// When [`Sender::handle_timeout`] must be called.
    pub fn poll_timeout(&self) -> SimTime {
        self.paths.iter().map(|path| path.agent.poll_timeout()).min().unwrap_or(SimTime::NEVER)
    }

    /// The configuration of the sender.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Highest packet sent, -1 before the first.
    pub fn max_seq(&self) -> i32 {
        self.next - 1
    }

    /// Highest packet up to which the receiver is known to have everything, -1 before the first.
    pub fn acked_seq(&self) -> i32 {
        self.acked
    }

    /// The counters summed over all paths.
    pub fn counters(&self) -> Counters {
        self.paths.iter().fold(Counters::default(), |sum, path| sum.plus(&path.agent.counters()))
    }

    /// The counters of one path.
    ///
    /// # Panics
    /// If there is no path of this index.
    pub fn path_counters(&self, path: usize) -> Counters {
        self.paths[path].agent.counters()
    }

    /// The current variables of one path.
    ///
    /// # Panics
    /// If there is no path of this index.
    pub fn gauges(&self, path: usize) -> Gauges {
        self.paths[path].agent.gauges()
    }

    /// The current share of each path in the receiver's buffer, in packets.
    pub fn shares(&self) -> impl Iterator<Item = i32> {
        shares(self.rbuf, self.paths.iter().map(|path| path.agent.core.window))
    }

    /// Whether a path has nothing outstanding while the connection waits for other paths. Its timer is off then, and starts again
    /// with the next packet of the path. The module, which has no such wait, would let it run on from the last ACK.
    fn rests(&mut self, path: usize) -> bool {
        let core = &mut self.paths[path].agent.core;
        let rests = core.highest_ack == core.max_seq && self.acked + 1 < self.next;
        if rests {
            core.cancel_timer();
        }
        rests
    }

    /// Every path sends what it may, in turn.
    fn send_all(&mut self, now: SimTime) {
        for path in 0..self.paths.len() {
            if self.paths[path].agent.may_send() {
                self.rests(path);
                self.act(now, path, PathAgent::send);
            }
        }
    }

    /// A path that had stopped at the edge of the receiver's buffer sends what it may, if the edge has moved.
    fn resume(&mut self, now: SimTime, path: usize) {
        let agent = &self.paths[path].agent;
        let stopped_at = agent.core.edge.unwrap_or(i32::MAX);
        if agent.may_send() && agent.core.next > stopped_at && self.edge(path).0 > stopped_at {
            self.rests(path);
            self.act(now, path, PathAgent::send);
        }
    }

    /// Calls the agent of a path, with the room that the receiver has for this path.
    fn act(&mut self, now: SimTime, path: usize, what: impl FnOnce(&mut PathAgent)) {
        let (edge, share) = self.edge(path);
        let orphans = self.orphans_for(path);
        let agent = &mut self.paths[path].agent;
        agent.core.now = now;
        (agent.core.edge, agent.core.share) = (Some(edge), f64::from(share));
        // After a stop, a path sends only the packets that it takes over from silent paths.
        if !self.is_stopped || orphans > 0 {
            let supply =
                self.supply.map(|supply| supply.saturating_add(orphans).saturating_add(agent.core.max_seq + 1));
            agent.core.supply(supply);
        }
        what(agent);
        self.dispatch(now, path);
    }

    /// The highest packet that a path may send, and its share of the receiver's buffer.
    fn edge(&self, path: usize) -> (i32, i32) {
        let share = self.shares().nth(path).expect("each path has a part");
        let Path { agent, .. } = &self.paths[path];
        let core = &agent.core;
        let free = self.acked + self.rbuf - self.max_seq();
        // A SYN carries no data.
        let supply = self.supply.map_or(i32::MAX, |supply| supply.saturating_add(i32::from(core.max_seq < 0)));
        let new = (share - self.paths[path].occupied(self.acked)).min(free).min(supply).max(0);
        // The agent remembers at most as many packets as fit the receiver's buffer.
        let edge = (core.max_seq + new + self.orphans_for(path)).min(core.highest_ack + self.rbuf);
        (edge.max(core.max_seq), share)
    }

    /// Gives the packets that an agent sends their numbers in the common sequence space.
    fn dispatch(&mut self, now: SimTime, index: usize) {
        while let Some(packet) = self.paths[index].agent.poll_transmit() {
            if self.paths[index].is_new(packet.seq) {
                let origin = self.adopt(index).unwrap_or_else(|| {
                    self.next += 1;
                    let is_syn = self.config.agent.syn && packet.seq == 0;
                    self.supply = self.supply.map(|supply| supply - i32::from(!is_syn));
                    Origin::New(self.next - 1)
                });
                let path = &mut self.paths[index];
                path.append(origin);
                if packet.seq == path.agent.core.highest_ack + 1 {
                    path.silent_since = now;
                }
            }
            let seq = self.paths[index].number(packet.seq);
            self.out.push_back(Departure { path: index, packet: Packet { seq, ..packet } });
        }
    }

    /// After a timeout of a path: if it has been silent for too long, the other paths are to send its flight, too.
    fn disown_if_silent(&mut self, now: SimTime, index: usize) {
        let path = &mut self.paths[index];
        let is_silent = self.config.reinject.is_some_and(|after| now.since(path.silent_since) >= after);
        if self.config.paths == 1 || !is_silent {
            return;
        }
        self.orphans.extend(path.disown().map(|number| (number, index)));
        self.orphans.retain(|&(number, _)| number > self.acked && !self.above.contains(number));
        self.send_all(now);
    }

    fn is_missing(&self, number: i32) -> bool {
        number > self.acked && !self.above.contains(number)
    }

    /// The number of packets that a path can take over from silent paths.
    fn orphans_for(&self, path: usize) -> i32 {
        self.orphans.iter().filter(|&&(number, from)| from != path && self.is_missing(number)).count() as i32
    }

    fn adopt(&mut self, path: usize) -> Option<Origin> {
        let missing = |&(number, from): &(i32, usize)| from != path && self.is_missing(number);
        let index = self.orphans.iter().position(missing)?;
        self.orphans.remove(index).map(|(number, _)| Origin::Adopted(number))
    }
}
