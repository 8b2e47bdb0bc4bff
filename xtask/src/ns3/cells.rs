//! The cases, each a law on a network: their labels in the experiment, and their names and arguments for ns-3.

use std::fmt;

/// A law on a network.
#[derive(Clone, Copy)]
pub(super) struct Cell {
    law: &'static Law,
    network: &'static Network,
}

struct Law {
    /// Its label in the experiment.
    name: &'static str,
    /// The name in ns-3.
    theirs: &'static str,
    /// Further settings for ns-3.
    settings: &'static [&'static str],
    networks: &'static [Network],
}

struct Network {
    /// Its label in the experiment.
    name: &'static str,
    flows: usize,
    /// The program's arguments.
    arguments: &'static [&'static str],
    /// The number of runs: more than one if there is randomness.
    runs: u32,
}

const LAWS: [Law; 7] = [
    Law { name: "Reno", theirs: "TcpLinuxReno", settings: &[], networks: &NETWORKS },
    Law { name: "CUBIC", theirs: "TcpCubic", settings: &[], networks: &NETWORKS },
    Law { name: "BBR, version 1", theirs: "TcpBbr", settings: &[], networks: &NETWORKS },
    Law { name: "Vegas", theirs: "TcpVegas", settings: &[], networks: &NETWORKS },
    Law { name: "LEDBAT", theirs: "TcpLedbat", settings: &[], networks: &NETWORKS },
    Law {
        name: "Westwood+",
        theirs: "TcpWestwood",
        settings: &["--ns3::TcpWestwood::ProtocolType=WestwoodPlus"],
        networks: &NETWORKS,
    },
    Law { name: "DCTCP", theirs: "TcpDctcp", settings: &[], networks: &MARKS },
];

const NETWORKS: [Network; 7] = [
    Network { name: "17 packets", flows: 1, arguments: &["--packets=17"], runs: 1 },
    Network { name: "33 packets", flows: 1, arguments: &["--packets=33"], runs: 1 },
    Network { name: "100 packets", flows: 1, arguments: &["--packets=100"], runs: 1 },
    Network { name: "0.1 % lost", flows: 1, arguments: &["--packets=100", "--loss=0.001"], runs: 5 },
    Network { name: "1 % lost", flows: 1, arguments: &["--packets=100", "--loss=0.01"], runs: 5 },
    Network { name: "two, 33 packets", flows: 2, arguments: &["--packets=33"], runs: 5 },
    Network { name: "two, 100 packets", flows: 2, arguments: &["--packets=100"], runs: 5 },
];

const MARKS: [Network; 2] = [
    Network { name: "marks from 10", flows: 1, arguments: &["--packets=100", "--red-mark=10"], runs: 1 },
    Network { name: "two, marks from 10", flows: 2, arguments: &["--packets=100", "--red-mark=10"], runs: 5 },
];

/// All cases.
pub(super) fn all() -> impl Iterator<Item = Cell> {
    LAWS.iter().flat_map(|law| law.networks.iter().map(move |network| Cell { law, network }))
}

impl Cell {
    /// Whether these are the labels of this case.
    pub(super) fn is(&self, law: &str, network: &str) -> bool {
        self.law.name == law && self.network.name == network
    }

    /// Whether one of its labels contains `text`.
    pub(super) fn contains(&self, text: &str) -> bool {
        self.law.name.contains(text) || self.network.name.contains(text)
    }

    pub(super) fn runs(&self) -> u32 {
        self.network.runs
    }

    /// The arguments of the ns-3 program.
    pub(super) fn arguments(&self, seed: u32) -> Vec<String> {
        let laws = vec![self.law.theirs; self.network.flows].join(",");
        let settings = self.law.settings.iter().chain(self.network.arguments).map(|argument| (*argument).to_owned());
        [format!("--laws={laws}"), format!("--seed={seed}")].into_iter().chain(settings).collect()
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.law.name, self.network.name)
    }
}

/// The figures of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figures {
    /// Delivered segments per second, of all flows.
    pub(super) rate: f64,
    /// The mean number of packets in the queue.
    pub(super) queue: f64,
    /// The least goodput of a flow over the mean goodput.
    pub(super) lesser: f64,
}

/// Payload bits of a segment in the ns-3 program.
const SEGMENT: f64 = 8.0 * 1448.0;

impl Figures {
    /// The figures of flows with these goodputs in bit/s.
    pub(super) fn of(goodputs: &[f64], queue: f64) -> Self {
        let all: f64 = goodputs.iter().sum();
        let least = goodputs.iter().copied().fold(f64::INFINITY, f64::min);
        Self { rate: all / SEGMENT, queue, lesser: least * goodputs.len() as f64 / all }
    }

    /// The mean of at least one run.
    pub(super) fn mean(runs: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        Self { rate: mean(|run| run.rate), queue: mean(|run| run.queue), lesser: mean(|run| run.lesser) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 8.688 and 2.896 Mbit/s are 750 and 250 segments a second; the lesser flow has half of its fair share.
    #[test]
    fn figures_count_packets_and_shares() {
        let one = Figures::of(&[8.688e6, 2.896e6], 20.0);
        assert_eq!(one, Figures { rate: 1000.0, queue: 20.0, lesser: 0.5 });
        let other = Figures { rate: 800.0, queue: 10.0, lesser: 1.0 };
        assert_eq!(Figures::mean(&[one, other]), Figures { rate: 900.0, queue: 15.0, lesser: 0.75 });
    }
}
