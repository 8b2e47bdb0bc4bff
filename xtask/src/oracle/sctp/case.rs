//! A random case: each path is a dumbbell of its own, and an association has an interface on each.
//!
//! ns-2 has a node for each interface and, where there are several, a core node that picks between them. Packets never pass
//! the core.

use std::fmt::Write as _;

use anabranch_ns2::sctp::{Alternate, CmtOptions, Dormant, EndpointConfig, RetransmissionPolicy, Variant};
use anabranch_sim::Stream;
use anabranch_units::{Rate, SimSpan};

use crate::oracle::case::below;

/// The kinds of cases: one path, several with one in use, several at once.
pub(crate) const AGENTS: [&str; 3] = [PLAIN, MULTIHOMED, CMT];

const PLAIN: &str = "sctp";
const MULTIHOMED: &str = "sctp-multihomed";
const CMT: &str = "sctp-cmt";

/// A case to compare.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) config: EndpointConfig,
    pub(crate) paths: Vec<Path>,
    pub(crate) associations: Vec<Association>,
    pub(crate) end_ms: u64,
}

/// A bottleneck between two routers.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) core: Link,
    /// Packets that are lost in the forward and in the reverse direction, counted from 0.
    pub(crate) losses: [Vec<u64>; 2],
    /// The loss rate in the script.
    pub(crate) loss_rate: f32,
}

/// A duplex link. The reverse direction has ns-2's default queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) rate: Rate,
    pub(crate) delay: SimSpan,
    pub(crate) limit: u32,
}

/// Two ends, with a link on each side for each path.
#[derive(Clone, Debug)]
pub(crate) struct Association {
    pub(crate) start_ms: u64,
    /// The bytes to send; `None` is endless.
    pub(crate) bytes: Option<u64>,
    pub(crate) primary: usize,
    pub(crate) access: Vec<[Link; 2]>,
}

impl Case {
    pub(crate) fn draw(agent: &'static str, random: &mut Stream) -> Self {
        let is_round = below(random, 2) == 0;
        let (paths, associations) = match agent {
            PLAIN => (1, 1 + below(random, 3)),
            MULTIHOMED => (2 + below(random, 2), 1 + below(random, 2)),
            // The module keeps the destination served last in a static variable, which a second association would share.
            _ => (2 + below(random, 4) / 3, 1),
        };
        let config = draw_config(agent, random);
        let paths: Vec<Path> = (0..paths).map(|_| draw_path(agent, is_round, random)).collect();
        let associations = (0..associations)
            .map(|_| Association {
                start_ms: if is_round { 500 * below(random, 4) } else { below(random, 2000) },
                // An application of ns-2 has one stream.
                bytes: (config.streams == 1 && below(random, 4) == 0).then(|| 1 + below(random, 2_000_000)),
                primary: below(random, paths.len() as u64) as usize,
                access: paths
                    .iter()
                    .map(|path| {
                        [(); 2].map(|()| {
                            let limit = 30 + below(random, 100) as u32;
                            let rate = path.core.rate.bits_per_second() * (1 + below(random, 5));
                            draw_link(
                                rate + if is_round { 0 } else { below(random, 9999) },
                                20,
                                limit,
                                is_round,
                                random,
                            )
                        })
                    })
                    .collect(),
            })
            .collect();
        Self { config, paths, associations, end_ms: 40_000 }
    }

    /// Names of ns-2's nodes in the order of their numbers.
    pub(crate) fn nodes(&self) -> Vec<String> {
        let paths = 0..self.paths.len();
        let routers = paths.clone().flat_map(|path| [format!("r{path}"), format!("q{path}")]);
        let interfaces = (0..self.associations.len())
            .flat_map(|it| paths.clone().flat_map(move |path| [format!("a{it}_{path}"), format!("b{it}_{path}")]));
        routers.chain(interfaces).collect()
    }

    /// The links with the names of their ends, bottlenecks first.
    pub(crate) fn links(&self) -> Vec<(String, String, Link)> {
        let cores = self.paths.iter().enumerate().map(|(path, it)| (format!("r{path}"), format!("q{path}"), it.core));
        let access = self.associations.iter().enumerate().flat_map(|(index, it)| {
            it.access.iter().enumerate().flat_map(move |(path, &[near, far])| {
                [
                    (format!("a{index}_{path}"), format!("r{path}"), near),
                    (format!("q{path}"), format!("b{index}_{path}"), far),
                ]
            })
        });
        cores.chain(access).collect()
    }

    /// The script that runs the case in ns-2 and writes a trace of all links to `trace`.
    pub(crate) fn script(&self, trace: &str) -> String {
        let mut text = String::new();
        let mut line = |args: std::fmt::Arguments<'_>| {
            text.write_fmt(args).expect("a String takes any text");
            text.push('\n');
        };
        line(format_args!("Trace set show_sctphdr_ 1"));
        for (name, value) in settings(&self.config) {
            line(format_args!("Agent/SCTP set {name} {value}"));
        }
        let class = match self.config.variant {
            Variant::Plain => "SCTP",
            Variant::Cmt(options) => {
                for (name, value) in cmt_settings(&options) {
                    line(format_args!("Agent/SCTP/CMT set {name} {value}"));
                }
                "SCTP/CMT"
            }
        };
        line(format_args!("set ns [new Simulator]"));
        line(format_args!("set out [open {trace} w]"));
        line(format_args!("$ns trace-all $out"));
        for node in self.nodes() {
            line(format_args!("set {node} [$ns node]"));
        }
        for (from, to, link) in self.links() {
            let (rate, delay) = (link.rate.bits_per_second(), link.delay.ticks() as f64 / 1e9);
            line(format_args!("$ns duplex-link ${from} ${to} {rate}b {delay}ms DropTail"));
            line(format_args!("$ns queue-limit ${from} ${to} {}", link.limit));
        }
        for (path, it) in self.paths.iter().enumerate() {
            let (there, back) = (format!("$r{path} $q{path}"), format!("$q{path} $r{path}"));
            for (losses, ends) in it.losses.iter().zip([there, back]).filter(|(losses, _)| !losses.is_empty()) {
                let list: Vec<String> = losses.iter().map(u64::to_string).collect();
                line(format_args!("set em [new ErrorModel/List]"));
                line(format_args!("$em droplist {{{}}}", list.join(" ")));
                line(format_args!("$em unit packet"));
                line(format_args!("$ns lossmodel $em {ends}"));
            }
        }
        for (index, it) in self.associations.iter().enumerate() {
            for side in ["a", "b"] {
                let agent = format!("{side}{index}");
                line(format_args!("set {agent} [new Agent/{class}]"));
                line(format_args!("${agent} set fid_ {index}"));
                if self.paths.len() == 1 {
                    line(format_args!("$ns attach-agent ${agent}_0 ${agent}"));
                    continue;
                }
                line(format_args!("set core [$ns node]"));
                for path in 0..self.paths.len() {
                    line(format_args!("$ns multihome-add-interface $core ${agent}_{path}"));
                }
                line(format_args!("$ns multihome-attach-agent $core ${agent}"));
            }
            line(format_args!("$ns connect $a{index} $b{index}"));
            line(format_args!("$a{index} set-primary-destination $b{index}_{}", it.primary));
            for (path, loss) in self.paths.iter().map(|path| path.loss_rate).enumerate() {
                line(format_args!("$a{index} set-destination-lossrate $b{index}_{path} {loss}"));
            }
            let bytes = it.bytes.map_or(-1, |bytes| bytes as i64);
            line(format_args!("$ns at {} \"$a{index} send {bytes}\"", seconds(it.start_ms)));
        }
        line(format_args!("$ns at {} \"$ns flush-trace; close $out; exit 0\"", seconds(self.end_ms)));
        line(format_args!("$ns run"));
        text
    }
}

fn draw_config(agent: &str, random: &mut Stream) -> EndpointConfig {
    let policies = [
        RetransmissionPolicy::Asap,
        RetransmissionPolicy::Same,
        RetransmissionPolicy::Ssthresh,
        RetransmissionPolicy::LossRate,
        RetransmissionPolicy::Window,
    ];
    let mostly = |random: &mut Stream| below(random, 5) > 0;
    let variant = if agent == CMT {
        Variant::Cmt(CmtOptions {
            split_fast_retransmit: mostly(random),
            window_update: mostly(random),
            delayed_ack: mostly(random),
            policy: policies[below(random, 5) as usize],
        })
    } else {
        Variant::Plain
    };
    // No other size works: see `Endpoint::produce`.
    let mtu = 4 * (75 + below(random, 301) as u32);
    // Every third case bundles several chunks in a packet.
    let chunk = match below(random, 3) {
        0 => 20 + below(random, 200) as u32,
        _ => mtu - 32,
    };
    EndpointConfig {
        mtu,
        chunk,
        receive_buffer: [8_000, 20_000, 65_536, 150_000, 1_000_000][below(random, 5) as usize],
        ssthresh: [4_000, 20_000, 65_536, 1_000_000][below(random, 4) as usize],
        window_floor: 1 + below(random, 4) as u32,
        streams: [1, 1, 2, 5, 16][below(random, 5) as usize],
        sack_delay: mostly(random).then(|| SimSpan::from_millis(50 * (1 + below(random, 5)))),
        limits_bursts: mostly(random),
        rto_min: SimSpan::from_millis([200, 500, 1000][below(random, 3) as usize]),
        missing_reports: 2 + below(random, 3) as u32,
        unordered: below(random, 6) == 0,
        alternate: [Alternate::Never, Alternate::Always, Alternate::Timeouts][below(random, 3) as usize],
        dormant: [Dormant::Hop, Dormant::Primary, Dormant::Last][below(random, 3) as usize],
        path_errors_max: if agent == MULTIHOMED { 1 + below(random, 5) as u32 } else { 5 },
        heartbeat_s: mostly(random).then(|| 1 + below(random, 10) as u32),
        ..EndpointConfig::new(variant)
    }
}

fn draw_path(agent: &str, is_round: bool, random: &mut Stream) -> Path {
    let rate = if is_round { 500_000 * (1 + below(random, 8)) } else { 200_000 + below(random, 4_000_000) };
    let limit = 3 + below(random, 40) as u32;
    let core = draw_link(rate, 120, limit, is_round, random);
    let mut there = draw_losses(random);
    if agent == MULTIHOMED && below(random, 2) == 0 {
        // An outage of several timeouts.
        let first = 20 + below(random, 300);
        there.extend(first..first + 10 + below(random, 60));
        there.sort_unstable();
        there.dedup();
    }
    let back = if below(random, 2) == 0 { draw_losses(random) } else { vec![] };
    Path { core, losses: [there, back], loss_rate: below(random, 4) as f32 / 8.0 }
}

fn draw_link(rate: u64, delay_max_ms: u64, limit: u32, is_round: bool, random: &mut Stream) -> Link {
    let delay = if is_round {
        SimSpan::from_millis(1 + below(random, delay_max_ms))
    } else {
        SimSpan::from_micros(100 + below(random, delay_max_ms * 1000))
    };
    Link { rate: Rate::from_bits_per_second(rate), delay, limit }
}

fn draw_losses(random: &mut Stream) -> Vec<u64> {
    let mut losses: Vec<u64> = (0..below(random, 15)).map(|_| below(random, 900)).collect();
    if below(random, 3) == 0 {
        let first = below(random, 400);
        losses.extend(first..first + below(random, 8));
    }
    // Sometimes a part of the handshake.
    if below(random, 6) == 0 {
        losses.push(below(random, 4));
    }
    losses.sort_unstable();
    losses.dedup();
    losses
}

/// ns-2's names of the settings.
fn settings(config: &EndpointConfig) -> Vec<(&'static str, String)> {
    let flag = |is_on: bool| u8::from(is_on).to_string();
    let seconds = |span: SimSpan| span.as_secs_f64().to_string();
    vec![
        ("mtu_", config.mtu.to_string()),
        ("dataChunkSize_", config.chunk.to_string()),
        ("initialRwnd_", config.receive_buffer.to_string()),
        ("initialSsthresh_", config.ssthresh.to_string()),
        ("initialCwnd_", config.window_floor.to_string()),
        ("numOutStreams_", config.streams.to_string()),
        ("useDelayedSacks_", flag(config.sack_delay.is_some())),
        ("sackDelay_", seconds(config.sack_delay.unwrap_or_default())),
        ("useMaxBurst_", flag(config.limits_bursts)),
        ("initialRto_", seconds(config.rto_initial)),
        ("minRto_", seconds(config.rto_min)),
        ("maxRto_", seconds(config.rto_max)),
        ("fastRtxTrigger_", config.missing_reports.to_string()),
        ("unordered_", flag(config.unordered)),
        ("rtxToAlt_", (config.alternate as u8).to_string()),
        ("dormantAction_", (config.dormant as u8).to_string()),
        ("pathMaxRetrans_", config.path_errors_max.to_string()),
        ("associationMaxRetrans_", config.association_errors_max.to_string()),
        ("maxInitRetransmits_", config.init_retries_max.to_string()),
        ("heartbeatInterval_", config.heartbeat_s.unwrap_or(0).to_string()),
    ]
}

/// The same for CMT, without the possibly-failed state.
fn cmt_settings(options: &CmtOptions) -> Vec<(&'static str, String)> {
    let flag = |is_on: bool| u8::from(is_on).to_string();
    vec![
        ("useCmtPF_", flag(false)),
        ("useCmtReordering_", flag(options.split_fast_retransmit)),
        ("useCmtCwnd_", flag(options.window_update)),
        ("useCmtDelAck_", flag(options.delayed_ack)),
        ("eCmtRtxPolicy_", (options.policy as u8).to_string()),
    ]
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}
