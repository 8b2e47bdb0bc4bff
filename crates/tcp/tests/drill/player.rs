//! Plays a script: the calls go to our stack, its segments arrive and are expected at it, on a clock that is the script's.
//!
//! Differs from packetdrill in:
//!
//! * Segments that follow one another count as one that carries all they carry, as we do not offload segmentation.
//! * The order of options, and padding, do not matter.
//! * Assertions about the kernel's counters, and commands for the kernel, are skipped and counted. Of the commands, `tcp_timestamps=0` has its meaning.
//! * Settings of sockets count from the begin, as ours belong to the host. Nagle's algorithm is off, as with `anabranch tcp`.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

use anabranch_cc::{Settings as Law, registry};
use anabranch_proto::{Config, KeepAlive, Pacing};
use anabranch_tcp::{Mux, Settings, SocketId};
use anabranch_units::{Span, Time};
use bytes::Bytes;

use crate::calls::{Descriptor, Waiting};
use crate::packet::{self, Packet, TcpOption};
use crate::script::{Call, Script, Step, What, When};
use crate::text::Wrong;

/// How a script went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Everything was as the script says; so many assertions and commands were skipped.
    Holds { skipped: usize },
    /// Something was not.
    Fails(Wrong),
    /// The script, or what it asks for, cannot be played.
    Unplayable(Wrong),
}

/// What is said of the flag PSH. [rfc-9293] wants it on the last of what was written, and systems have it at other places, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Push {
    /// It is as the script says.
    Judged,
    /// It may be missing where the script has it.
    MayMiss,
}

/// Plays a script with this law.
pub(crate) fn play(text: &str, law: &str, push: Push) -> Verdict {
    let script = match Script::read(text) {
        Ok(script) => script,
        Err(wrong) => return Verdict::Unplayable(wrong),
    };
    let mut player = match Player::new(&script, law, push) {
        Ok(player) => player,
        Err(wrong) => return Verdict::Unplayable(wrong),
    };
    let mut skipped = 0;
    for step in &script.steps {
        match player.step(step) {
            Ok(Done::Played) => {}
            Ok(Done::Skipped) => skipped += 1,
            Err(Stop::Fails(what)) => return Verdict::Fails(Wrong { line: step.line, what }),
            Err(Stop::FailsAt(wrong)) => return Verdict::Fails(wrong),
            Err(Stop::Unplayable(what)) => return Verdict::Unplayable(Wrong { line: step.line, what }),
        }
    }
    match player.waiting.first() {
        Some(waiting) => Verdict::Fails(Wrong { line: waiting.line, what: "the call is never over".to_owned() }),
        None => Verdict::Holds { skipped },
    }
}

/// What became of a step.
pub(crate) enum Done {
    Played,
    Skipped,
}

/// Why a script does not go on.
pub(crate) enum Stop {
    Fails(String),
    FailsAt(Wrong),
    Unplayable(String),
}

/// The stack, and what a script knows of it.
pub(crate) struct Player {
    pub(crate) host: Mux,
    pub(crate) now: Time,
    /// The time of the step before.
    last: Time,
    /// Whether that time was exact: what follows an inexact one counts from what happened.
    is_anchored: bool,
    tolerance: Span,
    judges_stamps: bool,
    push: Push,
    /// By number.
    pub(crate) descriptors: BTreeMap<i64, Descriptor>,
    /// Calls that are not over.
    pub(crate) waiting: Vec<Waiting>,
    /// Segments that have left, and were not expected yet.
    left: VecDeque<(Time, Packet)>,
    pub(crate) flow: Option<Flow>,
    /// Ports of peers that were used.
    ports: u16,
}

/// The connection that segments belong to.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    port: u16,
    peer_port: u16,
    /// The initial numbers on the wire: ours, and the peer's, which is the script's.
    ours: Option<u32>,
    theirs: Option<u32>,
    /// Our clock of timestamps is this far ahead of the script's.
    stamps_ahead: Option<u32>,
}

impl Player {
    fn new(script: &Script, law: &str, push: Push) -> Result<Self, Wrong> {
        let row = registry::find(law).map_err(|error| Wrong { line: 0, what: error.to_string() })?;
        let mut connection = Config {
            streams: 0,
            timestamps: !script.commands.contains("tcp_timestamps=0"),
            pacing: Pacing::ByLaw,
            receive_buffer: RECEIVE_BUFFER,
            receive_buffer_max: RECEIVE_BUFFER_MAX,
            idle_timeout: None,
            ..Config::new(Law::default_for(row))
        };
        for call in script.steps.iter().filter_map(Step::call).filter(|call| call.name == "setsockopt") {
            set(&mut connection, call);
        }
        let settings = Settings { addresses: vec![OURS.into()], connection, sockets_max: 100, backlog: 16 };
        let host = Mux::new(settings, [7; 32])
            .map_err(|error| Wrong { line: 0, what: format!("the settings are invalid: {error:?}") })?;
        Ok(Self {
            host,
            now: BEGIN,
            last: BEGIN,
            is_anchored: true,
            tolerance: script.tolerance,
            judges_stamps: script.judges_stamps,
            push,
            descriptors: BTreeMap::new(),
            waiting: vec![],
            left: VecDeque::new(),
            flow: None,
            ports: 0,
        })
    }

    fn step(&mut self, step: &Step) -> Result<Done, Stop> {
        let (from, until) = self.times(step.when);
        let done = match &step.what {
            What::Leaves(expected) => {
                self.expect(expected, from, until)?;
                Done::Played
            }
            What::Arrives(packet) => {
                self.advance(from)?;
                self.arrive(packet)?;
                Done::Played
            }
            What::Call(call) => {
                self.advance(from)?;
                let ends = call.ends.map(|ends| self.origin(step.when).saturating_add(Span::from_ticks(ends)));
                self.call(step.line, call, ends)?
            }
            What::Assertion | What::Command => {
                self.advance(from)?;
                Done::Skipped
            }
        };
        self.is_anchored = matches!(step.when, When::Between { from, until, .. } if from == until);
        self.last = if self.is_anchored { from } else { self.now };
        Ok(done)
    }

    /// The time from which a step counts.
    fn origin(&self, when: When) -> Time {
        match when {
            When::Between { is_relative: false, .. } => BEGIN,
            When::Between { is_relative: true, .. } if self.is_anchored => self.last,
            When::Between { .. } | When::Any => self.now,
        }
    }

    fn times(&self, when: When) -> (Time, Time) {
        let origin = self.origin(when);
        match when {
            When::Any => (self.now, Time::NEVER),
            When::Between { from, until, .. } => {
                (origin.saturating_add(Span::from_ticks(from)), origin.saturating_add(Span::from_ticks(until)))
            }
        }
    }

    /// Lets time pass.
    fn advance(&mut self, until: Time) -> Result<(), Stop> {
        while self.pass(until)? {}
        Ok(())
    }

    /// Lets time pass until something happens; false at `until`.
    fn pass(&mut self, until: Time) -> Result<bool, Stop> {
        self.flush()?;
        let timer = self.host.poll_timeout();
        if timer > until {
            self.now = self.now.max(until);
            return Ok(false);
        }
        self.now = self.now.max(timer);
        self.host.handle_timeout(self.now);
        self.flush()?;
        Ok(true)
    }

    /// Takes what the stack sends now, and ends calls that waited for it.
    pub(crate) fn flush(&mut self) -> Result<(), Stop> {
        loop {
            let mut bytes = vec![];
            let is_sent = self.host.poll_transmit(self.now, &mut bytes);
            while self.host.poll_event().is_some() {}
            if is_sent {
                let (packet, port, peer_port) =
                    Packet::of_bytes(&bytes).map_err(|error| Stop::Fails(format!("what is sent is wrong: {error}")))?;
                self.on_left(packet, port, peer_port);
            } else if !self.try_waiting(self.tolerance)? {
                return Ok(());
            }
        }
    }

    fn on_left(&mut self, packet: Packet, port: u16, peer_port: u16) {
        let is_syn = packet.has(packet::SYN);
        let flow = match &mut self.flow {
            // What belongs to another connection is not the script's business.
            Some(flow) if (flow.port, flow.peer_port) != (port, peer_port) && !is_syn => return,
            Some(flow) if (flow.port, flow.peer_port) == (port, peer_port) => flow,
            flow if is_syn => flow.insert(Flow { port, peer_port, ours: None, theirs: None, stamps_ahead: None }),
            _ => return,
        };
        if is_syn {
            flow.ours = Some(packet.seq);
        }
        self.left.push_back((self.now, packet));
    }

    /// A segment of the script arrives.
    fn arrive(&mut self, packet: &Packet) -> Result<(), Stop> {
        if packet.has(packet::SYN) && !packet.has(packet::ACK) && self.flow.is_none() {
            let listening = self.descriptors.values().find_map(Descriptor::listening);
            self.ports += 1;
            let flow = Flow {
                port: listening.unwrap_or(PORT),
                peer_port: PEER_PORT_FIRST + self.ports,
                ours: None,
                theirs: Some(packet.seq),
                stamps_ahead: None,
            };
            self.flow = Some(flow);
        }
        let Some(flow) = &mut self.flow else {
            return Err(Stop::Unplayable("the segment belongs to no connection".to_owned()));
        };
        let is_syn = packet.has(packet::SYN);
        if is_syn {
            flow.theirs.get_or_insert(packet.seq);
        }
        let (ours, theirs) = (flow.ours.unwrap_or(0), flow.theirs.unwrap_or(0));
        let mut live = packet.clone();
        live.seq = if is_syn { packet.seq } else { packet.seq.wrapping_add(theirs) };
        // Without a number, the flag acknowledges the script's zero.
        let ack = packet.ack.or(packet.has(packet::ACK).then_some(0));
        live.ack = ack.map(|ack| ack.wrapping_add(ours));
        for option in live.options.iter_mut().flatten() {
            match option {
                TcpOption::Sack(blocks) => {
                    for (left, right) in blocks {
                        (*left, *right) = (left.wrapping_add(ours), right.wrapping_add(ours));
                    }
                }
                TcpOption::Stamps { echo, .. } if packet.has(packet::ACK) => {
                    *echo = echo.wrapping_add(flow.stamps_ahead.unwrap_or(0));
                }
                _ => {}
            }
        }
        let bytes = live.to_bytes((THEIRS, flow.peer_port), (OURS, flow.port));
        self.host.handle_packet(self.now, &Bytes::from(bytes));
        self.flush()
    }

    /// A segment must leave between two times.
    fn expect(&mut self, expected: &Packet, from: Time, until: Time) -> Result<(), Stop> {
        let latest = if until == Time::NEVER { self.now + PATIENCE } else { until.saturating_add(self.tolerance) };
        self.flush()?;
        while self.left.is_empty() && self.pass(latest)? {}
        let Some((at, first)) = self.left.pop_front() else {
            return Err(Stop::Fails(format!("`{expected}` is not sent until {}", shown(self.now))));
        };
        let mut whole = self.scripted(&first);
        // One segment of the script may be several.
        while whole.len < expected.len && !whole.has(packet::SYN) {
            while self.left.is_empty() && self.pass(latest)? {}
            let Some((_, next)) = self.left.front() else { break };
            let next = self.scripted(next);
            let follows = next.seq == whole.seq.wrapping_add(whole.len) && next.ack == whole.ack;
            if !follows || whole.has(packet::FIN) {
                break;
            }
            whole.len += next.len;
            whole.flags |= next.flags;
            self.left.pop_front();
        }
        self.compare(expected, &whole)?;
        let earliest = if from.since(BEGIN) > self.tolerance { from - self.tolerance } else { BEGIN };
        if at < earliest || at > latest {
            return Err(Stop::Fails(format!(
                "`{expected}` is sent at {}, not between {} and {}",
                shown(at),
                shown(from),
                shown(until)
            )));
        }
        // Meanwhile the script's time is that of the step.
        if from != until {
            self.now = self.now.max(at);
            return Ok(());
        }
        self.advance(from)
    }

    /// A captured segment in the script's numbers.
    fn scripted(&self, packet: &Packet) -> Packet {
        let mut packet = packet.clone();
        let Some(flow) = &self.flow else { return packet };
        let (ours, theirs) = (flow.ours.unwrap_or(0), flow.theirs.unwrap_or(0));
        packet.seq = packet.seq.wrapping_sub(ours);
        packet.ack = packet.ack.map(|ack| ack.wrapping_sub(theirs));
        for option in packet.options.iter_mut().flatten() {
            if let TcpOption::Sack(blocks) = option {
                for (left, right) in blocks {
                    (*left, *right) = (left.wrapping_sub(theirs), right.wrapping_sub(theirs));
                }
            }
        }
        packet
    }

    fn compare(&mut self, expected: &Packet, sent: &Packet) -> Result<(), Stop> {
        let differ =
            |what: &str| Err(Stop::Fails(format!("{what} differ: `{expected}` is expected, `{sent}` is sent")));
        if (sent.seq, sent.len) != (expected.seq, expected.len) {
            return differ("numbers");
        }
        let may_miss = if self.push == Push::MayMiss { expected.flags & packet::PSH } else { 0 };
        if sent.flags | may_miss != expected.flags {
            return differ("flags");
        }
        if expected.has(packet::ACK) && sent.ack != expected.ack {
            return differ("acknowledgements");
        }
        if expected.window.is_some_and(|window| sent.window != Some(window)) {
            return Err(Stop::Fails(format!(
                "windows differ: {:?} is expected, {:?} is sent",
                expected.window, sent.window
            )));
        }
        if expected.ecn.is_some() && sent.ecn != expected.ecn {
            return differ("codepoints");
        }
        let Some(options) = &expected.options else { return Ok(()) };
        let sorted = |options: &[TcpOption]| -> Vec<String> {
            let options = options.iter().filter(|option| !option.is_padding());
            let mut names: Vec<_> = options
                .map(|option| match option {
                    TcpOption::Stamps { echo, .. } => format!("TS ecr {echo}"),
                    option => option.to_string(),
                })
                .collect();
            names.sort();
            names
        };
        if sorted(options) != sorted(sent.options.as_deref().unwrap_or_default()) {
            return differ("options");
        }
        self.compare_stamps(options, sent)
    }

    /// The first timestamp tells how our clock and the script's differ.
    fn compare_stamps(&mut self, expected: &[TcpOption], sent: &Packet) -> Result<(), Stop> {
        let value = |options: &[TcpOption]| {
            options.iter().find_map(|option| match option {
                TcpOption::Stamps { value, .. } => Some(*value),
                _ => None,
            })
        };
        let (Some(expected), Some(sent)) = (value(expected), value(sent.options.as_deref().unwrap_or_default())) else {
            return Ok(());
        };
        let Some(flow) = &mut self.flow else { return Ok(()) };
        let ahead = *flow.stamps_ahead.get_or_insert(sent.wrapping_sub(expected));
        let off = i64::from(sent.wrapping_sub(ahead).wrapping_sub(expected) as i32).unsigned_abs();
        if self.judges_stamps && Span::from_millis(off) > self.tolerance {
            let is = sent.wrapping_sub(ahead);
            return Err(Stop::Fails(format!("timestamps differ: {expected} is expected, {is} is sent")));
        }
        Ok(())
    }

    /// A new socket: what follows belongs to another connection.
    pub(crate) fn begin_flow(&mut self) {
        self.flow = None;
        self.left.clear();
    }

    /// A free descriptor as systems number them.
    pub(crate) fn next_descriptor(&self) -> i64 {
        (3..).find(|number| !self.descriptors.contains_key(number)).unwrap_or(3)
    }

    /// The connection of a descriptor.
    pub(crate) fn connection(&self, number: i64) -> Option<SocketId> {
        self.descriptors.get(&number).and_then(Descriptor::connection)
    }
}

impl Step {
    fn call(&self) -> Option<&Call> {
        match &self.what {
            What::Call(call) => Some(call),
            _ => None,
        }
    }
}

/// A setting of a socket that is one of our host's.
fn set(connection: &mut Config, call: &Call) {
    let [_, _, name, value, ..] = &call.arguments[..] else { return };
    let value: u64 = value.trim_matches(['[', ']']).trim().parse().unwrap_or(0);
    let seconds = Span::from_secs(value);
    let keep_alive = connection.keep_alive.unwrap_or(KeepAlive::USUAL);
    match name.as_str() {
        // The system takes twice as much, for its own records.
        "SO_SNDBUF" => connection.send_buffer = 2 * value,
        "TCP_MAXSEG" => connection.mss = value as u16,
        "TCP_USER_TIMEOUT" => connection.user_timeout = Some(Span::from_millis(value)),
        "TCP_KEEPIDLE" => connection.keep_alive = Some(KeepAlive { idle: seconds, ..keep_alive }),
        "TCP_KEEPINTVL" => connection.keep_alive = Some(KeepAlive { interval: seconds, ..keep_alive }),
        "TCP_KEEPCNT" => connection.keep_alive = Some(KeepAlive { probes_max: value as u32, ..keep_alive }),
        _ => {}
    }
}

/// A time since the begin of the script.
pub(crate) fn shown(time: Time) -> String {
    if time == Time::NEVER {
        return "the end".to_owned();
    }
    format!("{:.6} s", time.since(BEGIN).as_secs_f64())
}

/// Our addresses and the peer's: those that packetdrill has.
pub(crate) const OURS: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 1);
pub(crate) const THEIRS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// The port that `bind(3, ..., ...)` means.
pub(crate) const PORT: u16 = 8080;

const PEER_PORT_FIRST: u16 = 50_000;

/// The clock at the begin of a script.
const BEGIN: Time = Time::from_ticks(1_000_000_000_000);

/// How long a segment without a time is waited for.
const PATIENCE: Span = Span::from_secs(100);

/// The receive buffer, and the size to which it grows: that gives a window scale of 8, as the scripts have.
const RECEIVE_BUFFER: u64 = 64 << 10;
const RECEIVE_BUFFER_MAX: u64 = 3 << 20;
