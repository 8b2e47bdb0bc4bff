//! Classes of flows: the flows of a class have common arrivals, and their messages are counted together.

use anabranch_sim::Spacing;
use anabranch_units::{Rate, SimSpan};

use super::Flow;

/// The class of a flow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Class {
    pub(crate) name: String,
    /// The time from one flow of the class to the next.
    pub(crate) spacing: Spacing,
    pub(crate) empty_path: EmptyPath,
}

/// The shortest route of a flow without any other traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EmptyPath {
    /// The propagation delay to the destination.
    pub(crate) delay: SimSpan,
    /// The propagation delay of the reverse direction, for requests.
    pub(crate) delay_back: SimSpan,
    /// The rate of its slowest link.
    pub(crate) rate: Rate,
}

impl EmptyPath {
    /// The time of a message on the empty path: its payload at the rate of the slowest link, and the propagation delay; with a request, the
    /// propagation delay of both directions. Headers, handshakes and windows take no time.
    pub(crate) fn time_of(&self, bytes: u64, is_asked: bool) -> SimSpan {
        let sending = SimSpan::from_secs_f64(bytes as f64 * 8.0 / self.rate.bits_per_second() as f64);
        let back = if is_asked { self.delay_back } else { SimSpan::ZERO };
        sending.saturating_add(self.delay).saturating_add(back)
    }
}

/// The ranges of sizes in which messages of a class are counted, each with its suffix: small, medium and large messages have different
/// limits.
pub(crate) const RANGES: [(&str, std::ops::Range<u64>); 4] =
    [("", 0..u64::MAX), (".small", 0..100_001), (".medium", 100_001..1_000_001), (".large", 1_000_001..u64::MAX)];

/// The names of the classes of some flows, in the order of their first flows.
pub(crate) fn names(flows: &[Flow]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for class in flows.iter().filter_map(|flow| flow.class.as_ref()) {
        if !names.contains(&class.name.as_str()) {
            names.push(&class.name);
        }
    }
    names
}

/// The ids in reports: each class, and its ranges of sizes.
pub(crate) fn ids(flows: &[Flow]) -> Vec<String> {
    let names = names(flows).into_iter();
    names.flat_map(|name| RANGES.map(|(suffix, _)| format!("{name}{suffix}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 MB at 8 Mbit/s is a second, after 30 ms; the request takes 20 ms more.
    #[test]
    fn an_empty_path_takes_its_delay_and_the_time_to_send() {
        let ms = SimSpan::from_millis;
        let path = EmptyPath { delay: ms(30), delay_back: ms(20), rate: Rate::from_bits_per_second(8_000_000) };
        assert_eq!((path.time_of(1_000_000, false), path.time_of(1_000_000, true)), (ms(1030), ms(1050)));
    }
}
