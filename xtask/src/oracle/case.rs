//! A random small topology with flows and other traffic, and the ns-2 script that runs it.
//!
//! ns-2's clock is a float. Two sums of delays may be equal on paper, as the arrival of a packet and the departure of the one
//! in service during slow start. Then the last bit decides which event is first, and so which packet is dropped.
//! There are two ways to compare in spite of this, and the cases take turns:
//!
//! * On a *lattice* ns-2's floats are exact: every time is a whole number of *steps* of 625 ps, every rate is [`RATE_LEAST`]
//!   times a power of two (a byte then takes 2^n steps), and ns-2's second is 2^16 steps. Times that are equal on paper are
//!   then equal in ns-2, and the order of insertion decides, as in our simulator. ns-2's traces round to a microsecond, which is
//!   less than a step of the world slowed down in this way.
//! * With *floats*, our world keeps time as ns-2 does, sum by sum. Rates, delays and starts can then be any numbers, also round
//!   ones, and times agree to the microsecond that ns-2's traces print.

use std::fmt::Write as _;

use anabranch_sim::Stream;
use anabranch_units::{PICO, Rate, SimSpan};

/// A dumbbell: each source on a link of its own, one bottleneck, one sink node or a node for each sink.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) agent: &'static str,
    pub(crate) clock: Clock,
    /// The duration in steps of the clock.
    pub(crate) steps: u64,
    access: Vec<Link>,
    bottleneck: Link,
    /// Links behind the bottleneck; empty if the sinks are at its end.
    exits: Vec<Link>,
    /// Packets that the error model before the bottleneck drops, counted from 0.
    pub(crate) losses: Vec<u64>,
    pub(crate) flows: Vec<Flow>,
    /// Traffic without acknowledgements. Its flow numbers follow those of the flows.
    pub(crate) traffic: Vec<Traffic>,
}

/// The clock of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// Steps of 625 ps in a slowed-down world.
    Lattice,
    /// Steps of a microsecond, which scripts write as milliseconds, and ns-2's own time.
    Floats,
}

/// A duplex link. The reverse direction has ns-2's default queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) rate: Rate,
    pub(crate) delay_steps: u64,
    pub(crate) limit: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) start_steps: u64,
    pub(crate) window: u32,
    pub(crate) payload: u32,
    pub(crate) delayed: bool,
}

/// A source of traffic without acknowledgements, beside a flow.
#[derive(Clone, Debug)]
pub(crate) struct Traffic {
    pub(crate) kind: TrafficKind,
    /// The flow whose ends it has.
    beside: usize,
    /// Whether it goes in the reverse direction.
    is_backward: bool,
    pub(crate) rate: Rate,
    pub(crate) size: u32,
    /// The times of its starts and stops, in steps.
    pub(crate) times: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrafficKind {
    Cbr,
    /// Bursts and silences with these means.
    OnOff {
        on: SimSpan,
        off: SimSpan,
    },
}

/// The agents that must agree with ns-2, by our name and ns-2's.
pub(crate) const AGENTS: &[(&str, &str)] = &[
    ("reno", "TCP/Reno"),
    ("newreno", "TCP/Newreno"),
    ("sack", "TCP/Sack1"),
    ("fack", "TCP/Fack"),
    ("vegas", "TCP/Vegas"),
    ("fs", "TCP/FS"),
    ("linux", "TCP/Linux"),
];

/// The least rate of the lattice in bit/s: a byte takes 2^15 steps.
const RATE_LEAST: u64 = 390_625;

impl Clock {
    /// The step of the case's times.
    pub(crate) const fn step(self) -> SimSpan {
        match self {
            Self::Lattice => SimSpan::from_ticks(625),
            Self::Floats => SimSpan::from_micros(1),
        }
    }

    /// Steps in a second of ns-2.
    pub(crate) const fn steps_per_second(self) -> f64 {
        match self {
            Self::Lattice => 65_536.0,
            Self::Floats => 1e6,
        }
    }

    /// The allowed difference of two times in steps: traces of floats are rounded, on both sides.
    pub(crate) const fn tolerance(self) -> u64 {
        match self {
            Self::Lattice => 0,
            Self::Floats => 1,
        }
    }

    fn milliseconds(self, ms: u64) -> u64 {
        SimSpan::from_millis(ms).ticks() / self.step().ticks()
    }

    /// The time of `packets` packets of traffic in steps, rounded down.
    fn packets(self, traffic: &Traffic, packets: u64) -> u64 {
        let bits = u128::from(packets) * u128::from(traffic.size) * 8;
        let ticks = bits * u128::from(PICO) / u128::from(traffic.rate.bits_per_second());
        (ticks / u128::from(self.step().ticks())) as u64
    }

    /// Steps as seconds of ns-2; 16 decimals are exact for a 65536th.
    fn seconds(self, steps: u64) -> String {
        match self {
            Self::Lattice => format!("{:.16}", steps as f64 / self.steps_per_second()),
            Self::Floats => format!("{}", steps as f64 / self.steps_per_second()),
        }
    }

    /// A delay in the notation of scripts.
    fn delay(self, steps: u64) -> String {
        match self {
            Self::Lattice => self.seconds(steps),
            Self::Floats => format!("{}ms", steps as f64 / 1000.0),
        }
    }

    /// A rate in bits per second of ns-2. Without the "b" ns-2 would read bytes.
    fn rate(self, rate: Rate) -> String {
        let slowdown = self.steps_per_second() * self.step().as_secs_f64();
        match self {
            Self::Lattice => format!("{}b", rate.bits_per_second() as f64 * slowdown),
            Self::Floats => format!("{}b", rate.bits_per_second()),
        }
    }
}

impl Case {
    /// Draws a case.
    pub(crate) fn draw(agent: &'static str, clock: Clock, random: &mut Stream) -> Self {
        let count = 1 + below(random, 3);
        // Every other case with floats has round numbers, with many ties.
        let is_round = clock == Clock::Floats && below(random, 2) == 0;
        let rate = match clock {
            Clock::Lattice => RATE_LEAST << below(random, 5),
            Clock::Floats if is_round => 500_000 * (1 + below(random, 8)),
            Clock::Floats => 200_000 + below(random, 4_000_000),
        };
        let faster = |factor: u64, random: &mut Stream| match clock {
            Clock::Lattice => rate << below(random, factor),
            Clock::Floats if is_round => rate * (1 + below(random, 2 * factor)),
            Clock::Floats => rate + 1 + below(random, 2 * factor * rate),
        };
        let link = |rate: u64, delay_max_ms: u64, limit: u64, random: &mut Stream| Link {
            rate: Rate::from_bits_per_second(rate),
            delay_steps: if is_round {
                clock.milliseconds(1 + below(random, delay_max_ms))
            } else {
                clock.milliseconds(1) / 10 + below(random, clock.milliseconds(delay_max_ms))
            },
            limit: limit as u32,
        };
        let mut access = vec![];
        for _ in 0..count {
            let (rate, limit) = (faster(4, random), 50 + below(random, 100));
            access.push(link(rate, 20, limit, random));
        }
        let limit = 2 + below(random, 40);
        let bottleneck = link(rate, 120, limit, random);
        let mut exits = vec![];
        if below(random, 2) == 0 {
            for _ in 0..count {
                let rate = faster(3, random);
                exits.push(link(rate, 20, 50, random));
            }
        }
        let payload = 200 + below(random, 1300) as u32;
        let flow = |random: &mut Stream| Flow {
            start_steps: if is_round {
                clock.milliseconds(500 * below(random, 5))
            } else {
                below(random, clock.milliseconds(2000))
            },
            window: 2 + below(random, 80) as u32,
            payload: if is_round { payload } else { 200 + below(random, 1300) as u32 },
            delayed: below(random, 5) == 0,
        };
        let flows = (0..count).map(|_| flow(random)).collect();
        let steps = clock.milliseconds(20_000);
        let losses = draw_losses(random);
        let mut case = Self { agent, clock, steps, access, bottleneck, exits, losses, flows, traffic: vec![] };
        // On a lattice, traffic is slower than every link. A source with the rate of a link sends in step with it: its next packet and
        // the departure of the one in service are due at the same time and were inserted at the same time, and integer time does not
        // record which of the two was inserted first.
        let has_room = clock == Clock::Floats || case.bottleneck.rate.bits_per_second() > RATE_LEAST;
        for _ in 0..if has_room { below(random, 4) } else { 0 } {
            let traffic = case.draw_traffic(random);
            case.traffic.push(traffic);
        }
        case
    }

    /// Traffic that starts and stops at random times, or exactly when a packet of any traffic is due or a flow starts.
    fn draw_traffic(&self, random: &mut Stream) -> Traffic {
        let is_round = below(random, 4) > 0;
        let (rate, size) = match self.clock {
            Clock::Lattice => {
                let doublings = (self.bottleneck.rate.bits_per_second() / RATE_LEAST).ilog2();
                (RATE_LEAST << below(random, doublings.into()), 40 + below(random, 1400))
            }
            // Most of these intervals are not exact as doubles, and many are no whole number of microseconds.
            Clock::Floats if is_round => (100_000 * (1 + below(random, 20)), 100 * (1 + below(random, 14))),
            Clock::Floats => (50_000 + below(random, 2_000_000), 40 + below(random, 1400)),
        };
        let kind = match self.clock {
            // Draws from ns-2's stream are on no lattice.
            Clock::Floats if below(random, 3) == 0 => {
                let mean = |random: &mut Stream| SimSpan::from_millis(10 + below(random, 1000));
                TrafficKind::OnOff { on: mean(random), off: mean(random) }
            }
            _ => TrafficKind::Cbr,
        };
        let (rate, size) = (Rate::from_bits_per_second(rate), size as u32);
        let mut traffic = Traffic {
            kind,
            beside: below(random, self.flows.len() as u64) as usize,
            is_backward: below(random, 4) == 0,
            rate,
            size,
            times: vec![],
        };
        let mut start = match below(random, 3) {
            0 => below(random, self.clock.milliseconds(3000)),
            1 => self.flows[below(random, self.flows.len() as u64) as usize].start_steps,
            _ => match self.traffic.first() {
                Some(other) => other.times[0].0 + self.clock.packets(other, below(random, 200)),
                None => self.clock.milliseconds(500 * below(random, 5)),
            },
        };
        for _ in 0..1 + below(random, 3) {
            // Forty-two of these intervals are a whole number of microseconds if a few of them are.
            let stop = start + self.clock.packets(&traffic, 42 * (1 + below(random, 20)));
            let stop = if is_round { stop } else { stop + 1 + below(random, 10_000) };
            if stop >= self.steps {
                break;
            }
            traffic.times.push((start, stop));
            // The next start is at once or later.
            start = stop + self.clock.packets(&traffic, below(random, 3) * below(random, 100));
        }
        if traffic.times.is_empty() {
            traffic.times.push((start.min(self.steps / 2), self.steps - 1));
        }
        traffic
    }

    /// The nodes between which traffic goes.
    pub(crate) fn ends(&self, traffic: &Traffic) -> (String, String) {
        let (source, sink) = (format!("s{}", traffic.beside), self.sink_node(traffic.beside));
        if traffic.is_backward { (sink, source) } else { (source, sink) }
    }

    /// Names of the nodes in the order of ns-2's numbers.
    pub(crate) fn nodes(&self) -> Vec<String> {
        let sources = (0..self.flows.len()).map(|flow| format!("s{flow}"));
        let exits = (0..self.exits.len()).map(|flow| format!("d{flow}"));
        sources.chain(["r".to_owned(), "q".to_owned()]).chain(exits).collect()
    }

    pub(crate) fn sink_node(&self, flow: usize) -> String {
        if self.exits.is_empty() { "q".to_owned() } else { format!("d{flow}") }
    }

    /// All links with their ends.
    pub(crate) fn links(&self) -> Vec<(String, String, Link)> {
        let access = self.access.iter().enumerate().map(|(flow, &link)| (format!("s{flow}"), "r".to_owned(), link));
        let exits = self.exits.iter().enumerate().map(|(flow, &link)| ("q".to_owned(), format!("d{flow}"), link));
        access.chain([("r".to_owned(), "q".to_owned(), self.bottleneck)]).chain(exits).collect()
    }

    /// The script that runs the case in ns-2 and writes a trace of all links to `trace`.
    pub(crate) fn script(&self, trace: &str) -> String {
        let agent = AGENTS.iter().find(|(ours, _)| *ours == self.agent).map_or("", |(_, theirs)| *theirs);
        let mut text = String::new();
        let mut line = |args: std::fmt::Arguments<'_>| {
            text.write_fmt(args).expect("a String takes any text");
            text.push('\n');
        };
        let milliseconds = |ms: u64| self.clock.seconds(self.clock.milliseconds(ms));
        if self.clock == Clock::Lattice {
            // Clocks and timers are slowed down, too.
            line(format_args!("Agent/TCP set tcpTick_ {}", milliseconds(10)));
            line(format_args!("Agent/TCP set minrto_ {}", milliseconds(200)));
            line(format_args!("Agent/TCP set maxrto_ {}", milliseconds(60_000)));
            line(format_args!("Agent/TCP set rtxcur_init_ {}", milliseconds(3000)));
            line(format_args!("Agent/TCP set rttvar_init_ {}", milliseconds(12_000)));
            line(format_args!("Agent/TCP/Linux set minrto_ {}", milliseconds(200)));
            line(format_args!("Agent/TCP/Linux set maxrto_ {}", milliseconds(120_000)));
            line(format_args!("Agent/TCP/Linux set rtxcur_init_ {}", milliseconds(3000)));
            line(format_args!("Agent/TCPSink/DelAck set interval_ {}", milliseconds(100)));
            line(format_args!("Agent/TCPSink/Sack1/DelAck set interval_ {}", milliseconds(100)));
        }
        line(format_args!("set ns [new Simulator]"));
        line(format_args!("set out [open {trace} w]"));
        line(format_args!("$ns trace-all $out"));
        for node in self.nodes() {
            line(format_args!("set {node} [$ns node]"));
        }
        for (from, to, link) in self.links() {
            let (rate, delay) = (self.clock.rate(link.rate), self.clock.delay(link.delay_steps));
            line(format_args!("$ns duplex-link ${from} ${to} {rate} {delay} DropTail"));
            line(format_args!("$ns queue-limit ${from} ${to} {}", link.limit));
        }
        if !self.losses.is_empty() {
            let list: Vec<String> = self.losses.iter().map(u64::to_string).collect();
            line(format_args!("set em [new ErrorModel/List]"));
            line(format_args!("$em droplist {{{}}}", list.join(" ")));
            line(format_args!("$em unit packet"));
            line(format_args!("$ns lossmodel $em $r $q"));
        }
        for (index, flow) in self.flows.iter().enumerate() {
            let sack = if ["sack", "fack", "linux"].contains(&self.agent) { "/Sack1" } else { "" };
            let delayed = if flow.delayed { "/DelAck" } else { "" };
            line(format_args!("set tcp{index} [new Agent/{agent}]"));
            line(format_args!("$tcp{index} set window_ {}", flow.window));
            line(format_args!("$tcp{index} set packetSize_ {}", flow.payload));
            line(format_args!("$tcp{index} set fid_ {index}"));
            line(format_args!("set sink{index} [new Agent/TCPSink{sack}{delayed}]"));
            line(format_args!("$ns attach-agent $s{index} $tcp{index}"));
            line(format_args!("$ns attach-agent ${} $sink{index}", self.sink_node(index)));
            line(format_args!("$ns connect $tcp{index} $sink{index}"));
            line(format_args!("set ftp{index} [new Application/FTP]"));
            line(format_args!("$ftp{index} attach-agent $tcp{index}"));
            line(format_args!("$ns at {} \"$ftp{index} start\"", self.clock.seconds(flow.start_steps)));
        }
        for (index, traffic) in (self.flows.len()..).zip(&self.traffic) {
            let (source, sink) = self.ends(traffic);
            line(format_args!("set udp{index} [new Agent/UDP]"));
            line(format_args!("$udp{index} set packetSize_ {}", traffic.size));
            line(format_args!("$udp{index} set fid_ {index}"));
            line(format_args!("set null{index} [new Agent/Null]"));
            line(format_args!("$ns attach-agent ${source} $udp{index}"));
            line(format_args!("$ns attach-agent ${sink} $null{index}"));
            line(format_args!("$ns connect $udp{index} $null{index}"));
            match traffic.kind {
                TrafficKind::Cbr => line(format_args!("set app{index} [new Application/Traffic/CBR]")),
                TrafficKind::OnOff { on, off } => {
                    line(format_args!("set app{index} [new Application/Traffic/Exponential]"));
                    line(format_args!("$app{index} set burst_time_ {}", on.as_secs_f64()));
                    line(format_args!("$app{index} set idle_time_ {}", off.as_secs_f64()));
                }
            }
            line(format_args!("$app{index} set packetSize_ {}", traffic.size));
            line(format_args!("$app{index} set rate_ {}", self.clock.rate(traffic.rate)));
            line(format_args!("$app{index} attach-agent $udp{index}"));
            for &(start, stop) in &traffic.times {
                line(format_args!("$ns at {} \"$app{index} start\"", self.clock.seconds(start)));
                line(format_args!("$ns at {} \"$app{index} stop\"", self.clock.seconds(stop)));
            }
        }
        line(format_args!("$ns at {} \"$ns flush-trace; close $out; exit 0\"", self.clock.seconds(self.steps)));
        line(format_args!("$ns run"));
        text
    }
}

/// A whole number below `bound`.
pub(crate) fn below(random: &mut Stream, bound: u64) -> u64 {
    (random.uniform() * bound as f64) as u64
}

fn draw_losses(random: &mut Stream) -> Vec<u64> {
    let mut losses: Vec<u64> = (0..below(random, 12)).map(|_| below(random, 600)).collect();
    // Sometimes several in a row, or one of the first packets, the SYN included.
    if below(random, 3) == 0 {
        let first = below(random, 300);
        losses.extend(first..first + below(random, 6));
    }
    if below(random, 8) == 0 {
        losses.push(below(random, 4));
    }
    losses.sort_unstable();
    losses.dedup();
    losses
}
