//! What happened over time: series and the questions that expressions ask of them.
//!
//! A series is of one of two kinds. A **variable** has a value from its first point on, which holds until the next: a window, a
//! queue. **Events** happen at a time and have a size: a drop, the arrival of some bits. In bins of equal length, events become
//! a variable: their size per second.

use crate::comparison::Comparison;
use crate::diagnostic;

/// A series: its name, what kind it is, and for the reference its unit and what it is.
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) unit: &'static str,
    pub(crate) meaning: &'static str,
}

const fn variable(name: &'static str, unit: &'static str, meaning: &'static str) -> Definition {
    Definition { name, kind: Kind::Variable, unit, meaning }
}

const fn events(name: &'static str, unit: &'static str, meaning: &'static str) -> Definition {
    Definition { name, kind: Kind::Events, unit, meaning }
}

/// The series of a flow.
pub(crate) const FLOW_SERIES: &[Definition] = &[
    variable("window", "packets", "Congestion window; several paths add up."),
    variable("ssthresh", "packets", "Slow start threshold; several paths add up."),
    variable(
        "rtt",
        "s",
        "The last RTT sample. FAST and `anabranch` have it as it is, other agents of ns-2 in ticks of 10 ms. Of several paths, \
         the first one's.",
    ),
    variable("base_rtt", "s", "The least RTT that the law remembers: baseRTT. Only laws that keep one."),
    variable("avg_rtt", "s", "The smoothed RTT: FAST's avgRTT, of others TCP's SRTT."),
    variable("in_flight", "packets", "Packets sent and not yet acknowledged; several paths add up."),
    variable(
        "acked_seq",
        "packets",
        "The number of the last packet up to which the source knows that all have arrived. It rests while one is missing, however \
         many that come after it are selectively acknowledged.",
    ),
    variable("peer_window", "packets", "The window that SCTP's receiver offers, as the source knows it."),
    variable(
        "ipd",
        "s",
        "Inter-packet delay: from the acknowledgement before to the last one that came back to the source.",
    ),
    variable("held", "packets", "Packets that the receiver holds because one before them is missing."),
    events(
        "goodput",
        "bit",
        "Bits of payload that the application can have, in order; of `cbr` and `on_off`, all that arrive.",
    ),
    events("throughput", "bit", "All bits that arrive at the destination, headers and what arrives again included."),
    events("resets", "1", "FAST with the rule of rrfast-2017 forgot its baseRTT."),
    events(
        "delay",
        "s",
        "A message that its reader has whole; its size is the time since it was offered. Only `anabranch` with messages.",
    ),
];

/// The series of a stream of a flow.
pub(crate) const STREAM_SERIES: &[Definition] =
    &[events("goodput", "bit", "Bits of payload of this stream that the application can have, in order.")];

/// The series of a path of a flow.
pub(crate) const PATH_SERIES: &[Definition] = &[
    variable("window", "packets", "Its congestion window."),
    variable("ssthresh", "packets", "Its slow start threshold."),
    variable("in_flight", "packets", "Packets sent on it and not yet acknowledged."),
];

/// The series of a link.
pub(crate) const LINK_SERIES: &[Definition] = &[
    variable("queue", "packets", "Packets in its queue."),
    events("drops", "1", "A packet that its queue or its errors dropped."),
    events("forwarded", "1", "A packet that came out at its far end."),
];

/// What kind of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Variable,
    Events,
}

/// What others call some series.
const SYNONYMS: [(&str, &str); 16] = [
    ("cwnd", "window"),
    ("congestion_window", "window"),
    ("rwnd", "peer_window"),
    ("srtt", "avg_rtt"),
    ("min_rtt", "base_rtt"),
    ("rtt_min", "base_rtt"),
    ("inflight", "in_flight"),
    ("flight", "in_flight"),
    ("outstanding", "in_flight"),
    ("rate", "throughput"),
    ("bandwidth", "throughput"),
    ("latency", "delay"),
    ("qlen", "queue"),
    ("backlog", "queue"),
    ("losses", "drops"),
    ("loss", "drops"),
];

/// All series of the place that a name begins with, such as `flow.<id>`.
fn of_place(place: &str) -> Option<&'static [Definition]> {
    match place.split_once('.')?.0 {
        "flow" if stream(place).is_some() => Some(STREAM_SERIES),
        "flow" if path(place).is_some() => Some(PATH_SERIES),
        "flow" => Some(FLOW_SERIES),
        "link" => Some(LINK_SERIES),
        _ => None,
    }
}

/// The name of the series that is probably meant by a name that none has.
pub(crate) fn nearest(name: &str) -> Option<String> {
    let (place, wrong) = name.rsplit_once('.')?;
    let known: Vec<&str> = of_place(place)?.iter().map(|series| series.name).collect();
    let synonym = SYNONYMS.iter().find(|(other, _)| *other == wrong).map(|&(_, series)| series);
    let meant = synonym.filter(|series| known.contains(series)).or_else(|| diagnostic::nearest(wrong, &known))?;
    Some(format!("{place}.{meant}"))
}

/// What to say of a name that was to be a series.
pub(crate) fn unknown(name: &str) -> String {
    let remedy = match (nearest(name), name.rsplit_once('.').and_then(|(place, _)| of_place(place))) {
        (Some(meant), _) => format!("did you mean `{meant}`?"),
        (None, Some(known)) => {
            format!("there are {}", known.iter().map(|series| series.name).collect::<Vec<_>>().join(", "))
        }
        (None, None) => "write flow.<id>.<series> or link.<id>.<series>, such as flow.f0.window".to_owned(),
    };
    format!("`{name}` is no series; {remedy}")
}

/// The kind of the series called `flow.<id>.<series>`, `flow.<id>.stream.<number>.<series>`,
/// `flow.<id>.path.<number>.<series>` or `link.<id>.<series>`, if the name
/// ends like one.
pub(crate) fn kind(name: &str) -> Option<Kind> {
    let (place, series) = name.rsplit_once('.')?;
    of_place(place)?.iter().find(|known| known.name == series).map(|known| known.kind)
}

/// A flow's id and the number of a stream from `<id>.stream.<number>`.
pub(crate) fn stream(place: &str) -> Option<(&str, u8)> {
    numbered(place, ".stream")
}

/// A flow's id and the number of a path from `<id>.path.<number>`.
pub(crate) fn path(place: &str) -> Option<(&str, u8)> {
    numbered(place, ".path")
}

fn numbered<'a>(place: &'a str, part: &str) -> Option<(&'a str, u8)> {
    let (flow, number) = place.rsplit_once('.')?;
    Some((flow.strip_suffix(part)?, number.parse().ok().filter(|&number| number > 0)?))
}

/// Points in the order of their times, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub(crate) kind: Kind,
    pub(crate) points: Vec<(f64, f64)>,
}

impl Series {
    /// Times in seconds, rising, and what is the case from then on, or how large what happens then is.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// Whether it is of events, which have a size, and not of a variable, which has a value until the next.
    pub fn is_of_events(&self) -> bool {
        self.kind == Kind::Events
    }

    pub(crate) fn variable(points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { kind: Kind::Variable, points: points.into_iter().collect() }
    }

    pub(crate) fn events(points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { kind: Kind::Events, points: points.into_iter().collect() }
    }

    /// The events of all of these, in the order of their times.
    pub(crate) fn merged(all: impl IntoIterator<Item = Self>) -> Self {
        let mut points: Vec<(f64, f64)> = all.into_iter().flat_map(|series| series.points).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { kind: Kind::Events, points }
    }

    /// Events in bins of `width` seconds from time 0 on, the last of which ends at `end`: their size per second.
    pub(crate) fn bins(&self, width: f64, end: f64) -> Result<Self, String> {
        let mut sums = vec![0.0; bin_count(width, end)?];
        for &(time, size) in &self.points {
            // An event at the very end is not lost.
            let bin = ((time / width) as usize).min(sums.len() - 1);
            sums[bin] += size;
        }
        let last = sums.len() - 1;
        let bin = |(bin, sum): (usize, f64)| {
            let start = bin as f64 * width;
            (start, sum / if bin == last { end - start } else { width })
        };
        Ok(Self::variable(sums.into_iter().enumerate().map(bin)))
    }

    /// The times of more than `width` seconds from one of these events to the next, or from the last one to `end`: events that
    /// happen when such a time begins, and are as large as it is long.
    pub(crate) fn pauses(&self, width: f64, end: f64) -> Self {
        let times = self.points.iter().map(|&(at, _)| at);
        let next = times.clone().skip(1).chain([end]);
        Self::events(times.zip(next).map(|(at, next)| (at, next - at)).filter(|&(_, length)| length > width))
    }

    /// The times at which a variable falls to at most `share` of what it was just before: events as large as it falls by.
    pub(crate) fn falls(&self, share: f64) -> Self {
        let pairs = self.points.windows(2).map(|pair| (pair[1].0, pair[0].1, pair[1].1));
        Self::events(
            pairs
                .filter(|&(_, before, after)| after <= share * before && after < before)
                .map(|(at, before, after)| (at, before - after)),
        )
    }

    /// What a variable was at `time`.
    pub(crate) fn value_at(&self, time: f64) -> Result<f64, String> {
        match self.points.partition_point(|&(at, _)| at <= time) {
            0 => Err(format!("it has no value at {time} s")),
            after => Ok(self.points[after - 1].1),
        }
    }

    /// The values of a variable from `from` to `to`, each with the time since when it held, at least `from`.
    fn between(&self, from: f64, to: f64) -> Result<Vec<(f64, f64)>, String> {
        if from > to {
            return Err(format!("{from} s is later than {to} s"));
        }
        let first = self.value_at(from).ok().map(|value| (from, value));
        let later = self.points.iter().copied().filter(|&(at, _)| from < at && at <= to);
        let held: Vec<(f64, f64)> = first.into_iter().chain(later).collect();
        if held.is_empty() { Err(format!("it has no value from {from} s to {to} s")) } else { Ok(held) }
    }

    /// The first of the least or largest values from `from` to `to`, and since when it held.
    pub(crate) fn extreme(&self, extreme: Extreme, from: f64, to: f64) -> Result<(f64, f64), String> {
        let held = self.between(from, to)?;
        let is_better = |value: f64, best: f64| match extreme {
            Extreme::Least => value < best,
            Extreme::Most => value > best,
        };
        let best = |best: (f64, f64), next: (f64, f64)| if is_better(next.1, best.1) { next } else { best };
        Ok(held.into_iter().reduce(best).expect("there is one value"))
    }

    /// Of a variable, its mean over the time from `from` to `to`; of events, their size per second.
    pub(crate) fn mean(&self, from: f64, to: f64) -> Result<f64, String> {
        if from >= to {
            return Err(format!("there is no time from {from} s to {to} s"));
        }
        if self.kind == Kind::Events {
            return Ok(self.sum(from, to) / (to - from));
        }
        let held = self.between(from, to)?;
        let ends = held.iter().skip(1).map(|&(at, _)| at).chain([to]);
        let area: f64 = held.iter().zip(ends).map(|(&(at, value), end)| value * (end - at)).sum();
        Ok(area / (to - held[0].0))
    }

    /// Of a variable, the value below which it is for a share `share` of the time from `from` to `to`; of events from `from`
    /// on and before `to`, the size below which that share of them is.
    pub(crate) fn quantile(&self, share: f64, from: f64, to: f64) -> Result<f64, String> {
        check_share(share)?;
        // Values and their weights.
        let mut weighted: Vec<(f64, f64)> = match self.kind {
            Kind::Events => {
                let inside = self.points.iter().filter(|&&(at, _)| from <= at && at < to);
                inside.map(|&(_, size)| (size, 1.0)).collect()
            }
            Kind::Variable => {
                let held = self.between(from, to)?;
                let ends = held.iter().skip(1).map(|&(at, _)| at).chain([to]);
                held.iter().zip(ends).map(|(&(at, value), end)| (value, end - at)).collect()
            }
        };
        weighted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let wanted = share * weighted.iter().map(|&(_, weight)| weight).sum::<f64>();
        let mut below = 0.0;
        let reached = weighted.iter().find(|&&(_, weight)| {
            below += weight;
            below >= wanted
        });
        // Rounding may leave the last a little short of the sum.
        reached
            .or(weighted.last())
            .map(|&(value, _)| value)
            .ok_or_else(|| format!("nothing happens from {from} s to {to} s"))
    }

    /// The size of all events from `from` on and before `to`.
    pub(crate) fn sum(&self, from: f64, to: f64) -> f64 {
        // From 0 on: the sum of no floats is -0.
        self.points.iter().filter(|&&(at, _)| from <= at && at < to).fold(0.0, |sum, &(_, size)| sum + size)
    }

    /// The size of the largest event from `from` on and before `to`; 0 if there is none.
    pub(crate) fn largest(&self, from: f64, to: f64) -> f64 {
        self.points.iter().filter(|&&(at, _)| from <= at && at < to).fold(0.0, |largest, &(_, size)| size.max(largest))
    }

    /// How many events there were, or how often a variable came to compare so, from `from` on and before `to`.
    pub(crate) fn count(&self, condition: Option<(Comparison, f64)>, from: f64, to: f64) -> f64 {
        let is_inside = |at: f64| from <= at && at < to;
        let Some((comparison, right)) = condition else {
            return self.points.iter().filter(|&&(at, _)| is_inside(at)).count() as f64;
        };
        let mut held = false;
        let begins = |&&(at, value): &&(f64, f64)| {
            let before = std::mem::replace(&mut held, comparison.holds(value, right));
            held && !before && is_inside(at)
        };
        self.points.iter().filter(begins).count() as f64
    }

    /// The first time from `from` on at which a variable compares so, or an event happens.
    pub(crate) fn first_time(&self, condition: Option<(Comparison, f64)>, from: f64) -> Result<f64, String> {
        let later = || self.points.iter().copied().filter(|&(at, _)| at >= from);
        let found = match condition {
            None => later().next(),
            Some((comparison, right)) => {
                let now = self.value_at(from).ok().map(|value| (from, value));
                now.into_iter().chain(later()).find(|&(_, value)| comparison.holds(value, right))
            }
        };
        found.map(|(at, _)| at).ok_or_else(|| format!("it never happens from {from} s on"))
    }

    /// The last time up to `to` at which a variable compares so, or an event happens.
    pub(crate) fn last_time(&self, condition: Option<(Comparison, f64)>, to: f64) -> Result<f64, String> {
        let until = self.points.partition_point(|&(at, _)| at <= to);
        let never = || format!("it never happens up to {to} s");
        let Some((comparison, right)) = condition else {
            return self.points[..until].last().map(|&(at, _)| at).ok_or_else(never);
        };
        let last = self.points[..until].iter().rposition(|&(_, value)| comparison.holds(value, right));
        // It holds until the next value.
        last.map(|last| if last + 1 == until { to } else { self.points[last + 1].0 }).ok_or_else(never)
    }

    /// The points from `from` to `to` for a drawing, at most about [`DRAWN_MAX`]: where there are more, the first, the least,
    /// the largest and the last of each of many equal parts, so that no spike is lost.
    pub(crate) fn drawn(&self, from: f64, to: f64) -> Vec<(f64, f64)> {
        let first = match self.kind {
            Kind::Variable => self.value_at(from).ok().map(|value| (from, value)),
            Kind::Events => None,
        };
        let inside = self.points.iter().copied().filter(|&(at, _)| {
            let is_later = if first.is_some() { from < at } else { from <= at };
            is_later && at <= to
        });
        let points: Vec<(f64, f64)> = first.into_iter().chain(inside).collect();
        if points.len() <= DRAWN_MAX {
            return points;
        }
        let parts = DRAWN_MAX / 4;
        let part = |at: f64| (((at - from) / (to - from) * parts as f64) as usize).min(parts - 1);
        let mut drawn = Vec::with_capacity(DRAWN_MAX);
        for bucket in points.chunk_by(|a, b| part(a.0) == part(b.0)) {
            let least = (0..bucket.len()).reduce(|a, b| if bucket[b].1 < bucket[a].1 { b } else { a });
            let most = (0..bucket.len()).reduce(|a, b| if bucket[b].1 > bucket[a].1 { b } else { a });
            let mut kept: Vec<usize> = [Some(0), least, most, Some(bucket.len() - 1)].into_iter().flatten().collect();
            kept.sort_unstable();
            kept.dedup();
            drawn.extend(kept.into_iter().map(|index| bucket[index]));
        }
        drawn
    }
}

/// Into how many bins of `width` seconds a run that ends at `end` is cut.
pub(crate) fn bin_count(width: f64, end: f64) -> Result<usize, String> {
    // What is left of the run by rounding alone is no bin.
    let count = (end / width - 1e-9).ceil();
    if width > 0.0 && width <= end && count <= BINS_MAX {
        return Ok(count as usize);
    }
    Err(format!(
        "a run of {end} s cannot be cut into bins of {width} s: use from {} to {end}, which makes at most {BINS_MAX} of them",
        end / BINS_MAX
    ))
}

/// Whether a quantile can be asked for this share.
pub(crate) fn check_share(share: f64) -> Result<(), String> {
    match (0.0..=1.0).contains(&share) {
        true => Ok(()),
        false => Err(format!("{share} is no share: use 0 to 1, such as 0.95 for the 95th percentile")),
    }
}

/// Which end of some values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extreme {
    Least,
    Most,
}

/// Points of one curve: more than a screen has columns.
const DRAWN_MAX: usize = 2000;

/// More bins than this are a mistake in the width.
const BINS_MAX: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 from 1 s on, 5 from 2 s on, 3 from 4 s on.
    fn stairs() -> Series {
        Series::variable([(1.0, 1.0), (2.0, 5.0), (4.0, 3.0)])
    }

    /// Sizes 10, 20, 30 and 40 at 0.5, 1.0, 1.5 and 4.0 s.
    fn arrivals() -> Series {
        Series::events([(0.5, 10.0), (1.0, 20.0), (1.5, 30.0), (4.0, 40.0)])
    }

    #[test]
    fn a_variable_holds_until_the_next_point() {
        assert_eq!(stairs().value_at(1.0), Ok(1.0));
        assert_eq!(stairs().value_at(3.9), Ok(5.0));
        assert_eq!(stairs().value_at(100.0), Ok(3.0));
        assert_eq!(stairs().value_at(0.9), Err("it has no value at 0.9 s".to_owned()));
    }

    #[test]
    fn extremes_hold_from_the_start_of_the_interval() {
        assert_eq!(stairs().extreme(Extreme::Most, 1.0, 1.5), Ok((1.0, 1.0)));
        assert_eq!(stairs().extreme(Extreme::Most, 1.0, 9.0), Ok((2.0, 5.0)));
        assert_eq!(stairs().extreme(Extreme::Least, 3.0, 9.0), Ok((4.0, 3.0)));
        assert_eq!(stairs().extreme(Extreme::Most, 3.0, 3.5), Ok((3.0, 5.0)));
        assert!(
            stairs().extreme(Extreme::Most, 0.0, 0.5).is_err() && stairs().extreme(Extreme::Most, 2.0, 1.0).is_err()
        );
    }

    /// 1 for 1 s, 5 for 2 s, 3 for 1 s: 14 in 4 s.
    #[test]
    fn the_mean_of_a_variable_is_over_time() {
        assert_eq!(stairs().mean(1.0, 5.0), Ok(3.5));
        assert_eq!(stairs().mean(3.0, 5.0), Ok(4.0));
        assert!(stairs().mean(2.0, 2.0).is_err());
    }

    /// An interval has its first instant and not its last: 20 + 30 in the second from 1 to 2.
    #[test]
    fn events_add_up() {
        assert_eq!((arrivals().sum(1.0, 2.0), arrivals().count(None, 1.0, 2.0)), (50.0, 2.0));
        assert_eq!((arrivals().sum(1.0, 1.5), arrivals().count(None, 1.6, 4.0)), (20.0, 0.0));
        assert_eq!(arrivals().mean(0.0, 5.0), Ok(20.0));
        assert!(arrivals().sum(5.0, 9.0).is_sign_positive(), "nothing is not less than nothing");
        let bins = arrivals().bins(0.5, 2.0).unwrap();
        assert_eq!(bins, Series::variable([(0.0, 0.0), (0.5, 20.0), (1.0, 40.0), (1.5, 140.0)]));
        assert!(arrivals().bins(0.0, 2.0).is_err() && arrivals().bins(1e-9, 2.0).is_err());
        assert!(arrivals().bins(2.0, 2.0).is_ok() && arrivals().bins(2.1, 2.0).is_err());
        // 40 in the half second that is left of the bin from 3.5 s on, and no bin of what rounding leaves: 0.7 / 0.1 > 7.
        assert_eq!(arrivals().bins(3.5, 4.0).unwrap(), Series::variable([(0.0, 60.0 / 3.5), (3.5, 80.0)]));
        assert_eq!(arrivals().bins(0.1, 0.7 + 1e-12).unwrap().points.len(), 7);
    }

    /// From 8 to 4 it is halved, from 4 to 3 it is not, and nothing falls to itself.
    #[test]
    fn a_fall_is_to_a_share_of_what_was_before() {
        let window = Series::variable([(1.0, 8.0), (2.0, 4.0), (3.0, 3.0), (4.0, 9.0), (5.0, 9.0), (6.0, 1.0)]);
        assert_eq!(window.falls(0.5), Series::events([(2.0, 4.0), (6.0, 8.0)]));
        assert_eq!(window.falls(1.0), Series::events([(2.0, 4.0), (3.0, 1.0), (6.0, 8.0)]));
        assert_eq!(window.falls(0.75).count(None, 0.0, 4.0) as u64, 2);
    }

    /// Between 1.5 s and 4 s are 2.5 s, and after 4 s until the end at 5 s is one; what comes before the first event is none.
    #[test]
    fn a_pause_begins_with_the_event_before_it() {
        let pauses = |width| arrivals().pauses(width, 5.0);
        assert_eq!(pauses(0.5), Series::events([(1.5, 2.5), (4.0, 1.0)]));
        assert_eq!(pauses(1.0), Series::events([(1.5, 2.5)]), "a pause is longer than the width");
        let largest = |width, from| pauses(width).largest(from, 5.0);
        assert_eq!((largest(0.5, 0.0), largest(0.5, 2.0), largest(9.0, 0.0)), (2.5, 1.0, 0.0));
    }

    /// Above 2 from 2 s to 3 s and from 4 s to 6 s; that it is still so at 5 s is nothing new.
    #[test]
    fn a_variable_comes_to_compare_so_many_times() {
        let spikes = Series::variable([(1.0, 1.0), (2.0, 5.0), (3.0, 2.0), (4.0, 3.0), (5.0, 4.0), (6.0, 0.0)]);
        let count = |from, to| spikes.count(Some((Comparison::Above, 2.0)), from, to);
        assert_eq!((count(0.0, 9.0), count(2.0, 4.0), count(2.5, 9.0)), (2.0, 1.0, 1.0));
    }

    /// From 1 s to 5 s: 1 for 1 s, 3 for 1 s, 5 for 2 s. Of the sizes 10, 20, 30, 40 a quarter is at most 10.
    #[test]
    fn quantiles_are_of_time_or_of_events() {
        let quantiles =
            |series: &Series, from, to| [0.25, 0.3, 0.5, 0.51, 1.0].map(|share| series.quantile(share, from, to));
        assert_eq!(quantiles(&stairs(), 1.0, 5.0), [1.0, 3.0, 3.0, 5.0, 5.0].map(Ok));
        assert_eq!(quantiles(&arrivals(), 0.0, 9.0), [10.0, 20.0, 20.0, 30.0, 40.0].map(Ok));
        assert!(arrivals().quantile(0.5, 5.0, 9.0).is_err() && stairs().quantile(1.5, 1.0, 5.0).is_err());
    }

    #[test]
    fn streams_and_paths_count_from_1_to_255() {
        assert_eq!(stream("flow.f.stream.255"), Some(("flow.f", 255)));
        for place in ["flow.f.stream.0", "flow.f.stream.256", "flow.f.stream.x", "flow.stream"] {
            assert_eq!(stream(place), None, "{place}");
        }
        assert_eq!((kind("flow.f.stream.2.goodput"), kind("flow.f.stream.2.window")), (Some(Kind::Events), None));
        assert_eq!((path("f.path.2"), path("f.path.0"), path("f.stream.2")), (Some(("f", 2)), None, None));
        assert_eq!((kind("flow.f.path.2.window"), kind("flow.f.path.2.goodput")), (Some(Kind::Variable), None));
    }

    #[test]
    fn times_of_conditions() {
        let first = |comparison, right, from| stairs().first_time(Some((comparison, right)), from);
        assert_eq!(first(Comparison::AtLeast, 2.0, 0.0), Ok(2.0));
        assert_eq!(first(Comparison::AtLeast, 2.0, 3.0), Ok(3.0));
        assert_eq!(first(Comparison::Below, 5.0, 2.5), Ok(4.0));
        assert_eq!(first(Comparison::Above, 5.0, 0.0), Err("it never happens from 0 s on".to_owned()));
        let last = |comparison, right, to| stairs().last_time(Some((comparison, right)), to);
        assert_eq!(last(Comparison::AtLeast, 4.0, 9.0), Ok(4.0));
        assert_eq!(last(Comparison::AtLeast, 4.0, 3.0), Ok(3.0));
        assert!(last(Comparison::Above, 5.0, 9.0).is_err());
        assert_eq!((arrivals().first_time(None, 0.6), arrivals().last_time(None, 3.0)), (Ok(1.0), Ok(1.5)));
        assert!(arrivals().first_time(None, 5.0).is_err() && arrivals().last_time(None, 0.0).is_err());
    }

    /// Of 100,000 points, the one that is a spike is drawn.
    #[test]
    fn a_drawing_keeps_spikes() {
        let points = (0..100_000).map(|index| (f64::from(index), if index == 76_543 { 9.0 } else { 1.0 }));
        let drawn = Series::variable(points).drawn(0.0, 1e5);
        assert!(drawn.len() <= DRAWN_MAX && drawn.contains(&(76_543.0, 9.0)), "{} points", drawn.len());
        assert!(drawn.is_sorted_by_key(|&(at, _)| at));
        assert_eq!(stairs().drawn(3.0, 3.5), [(3.0, 5.0)]);
    }
}
