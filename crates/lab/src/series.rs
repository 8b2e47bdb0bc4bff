//! Series over time, and the functions that expressions apply to them.
//!
//! There are two kinds of series. A **variable**, such as a window or a queue, has a value from its first point on, which holds until the
//! next. **Events**, such as drops or arrivals of bits, have a time and a size. In bins of equal length, events become a
//! variable: their size per second.

use crate::comparison::Comparison;
use crate::decimate::decimate;
use crate::diagnostic;

/// The definition of a series: its name, its kind, and for the reference its unit and its meaning.
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

pub(crate) const FLOW_SERIES: &[Definition] = &[
    variable("window", "packets", "Congestion window, in segments of the first path MTU; several paths add up."),
    variable("ssthresh", "packets", "Slow start threshold; several paths add up."),
    variable(
        "rtt",
        "s",
        "The last RTT sample. FAST and `anabranch` have exact samples, other agents of ns-2 ticks of 10 ms. With several paths, \
         that of the first one.",
    ),
    variable("base_rtt", "s", "The least RTT that the law remembers: baseRTT. Only laws that have one."),
    variable("avg_rtt", "s", "The smoothed RTT: avgRTT of FAST, SRTT of the others."),
    variable("in_flight", "packets", "Packets sent and not yet acknowledged; several paths add up."),
    variable(
        "acked_seq",
        "packets",
        "The highest cumulatively acknowledged sequence number. It stays while a packet is missing; selective acknowledgements do \
         not count.",
    ),
    variable("peer_window", "packets", "The receive window of SCTP's receiver that the source knows."),
    variable("ipd", "s", "Inter-packet delay: the time between the last two acknowledgements at the source."),
    variable("held", "packets", "Packets that the receiver holds for a missing earlier packet."),
    events(
        "goodput",
        "bit",
        "Bits of payload that the application can read, in order; with `cbr` and `on_off`, all that arrive.",
    ),
    events("throughput", "bit", "All bits that arrive at the destination, headers and duplicates included."),
    events("resets", "1", "A reset of baseRTT by FAST with the rule of rrfast-2017."),
    events(
        "delay",
        "s",
        "A message that its reader has completely; its size is the time since its offer. Only `anabranch` with messages.",
    ),
];

/// The series of a stream of a flow.
pub(crate) const STREAM_SERIES: &[Definition] =
    &[events("goodput", "bit", "Bits of payload of this stream that the application can read, in order.")];

/// The series of a path of a flow.
pub(crate) const PATH_SERIES: &[Definition] = &[
    variable("window", "packets", "Its congestion window."),
    variable("ssthresh", "packets", "Its slow start threshold."),
    variable("in_flight", "packets", "Packets sent on it and not yet acknowledged."),
];

pub(crate) const LINK_SERIES: &[Definition] = &[
    variable("queue", "packets", "Packets in its queue."),
    events("drops", "1", "A packet dropped by its queue or its error models."),
    events("forwarded", "1", "A packet that arrived at its far end."),
];

/// The kind of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Variable,
    Events,
}

/// Other names for some series.
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

/// All series of the place at the beginning of a name, such as `flow.<id>`.
fn of_place(place: &str) -> Option<&'static [Definition]> {
    match place.split_once('.')?.0 {
        "flow" if stream(place).is_some() => Some(STREAM_SERIES),
        "flow" if path(place).is_some() => Some(PATH_SERIES),
        "flow" => Some(FLOW_SERIES),
        "link" => Some(LINK_SERIES),
        _ => None,
    }
}

/// The most similar name of a series, for an unknown name.
pub(crate) fn nearest(name: &str) -> Option<String> {
    let (place, wrong) = name.rsplit_once('.')?;
    let known: Vec<&str> = of_place(place)?.iter().map(|series| series.name).collect();
    let synonym = SYNONYMS.iter().find(|(other, _)| *other == wrong).map(|&(_, series)| series);
    let meant = synonym.filter(|series| known.contains(series)).or_else(|| diagnostic::nearest(wrong, &known))?;
    Some(format!("{place}.{meant}"))
}

/// The error message for an unknown name of a series.
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
    /// Times in seconds, rising, each with the new value of a variable or the size of an event.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// A series of events, or of a variable's values, at these points, which are in the order of their times.
    pub fn new(is_of_events: bool, points: Vec<(f64, f64)>) -> Self {
        Self { kind: if is_of_events { Kind::Events } else { Kind::Variable }, points }
    }

    /// Whether it is a series of events, and not a variable.
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

    /// The size of the events per second, in bins of `width` seconds from time 0 to `end`.
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

    /// The pauses of more than `width` seconds from one event to the next, or from the last one to `end`. Each is an event at the
    /// beginning of the pause, with its length as size.
    pub(crate) fn pauses(&self, width: f64, end: f64) -> Self {
        let times = self.points.iter().map(|&(at, _)| at);
        let next = times.clone().skip(1).chain([end]);
        Self::events(times.zip(next).map(|(at, next)| (at, next - at)).filter(|&(_, length)| length > width))
    }

    /// The times at which a variable falls to at most `share` of its value before: events with the difference as size.
    pub(crate) fn falls(&self, share: f64) -> Self {
        let pairs = self.points.windows(2).map(|pair| (pair[1].0, pair[0].1, pair[1].1));
        Self::events(
            pairs
                .filter(|&(_, before, after)| after <= share * before && after < before)
                .map(|(at, before, after)| (at, before - after)),
        )
    }

    /// The value of a variable at `time`.
    pub(crate) fn value_at(&self, time: f64) -> Result<f64, String> {
        match self.points.partition_point(|&(at, _)| at <= time) {
            0 => Err(format!("it has no value at {time} s")),
            after => Ok(self.points[after - 1].1),
        }
    }

    /// The values of a variable from `from` to `to`, each with the time of its begin, at least `from`.
    fn between(&self, from: f64, to: f64) -> Result<Vec<(f64, f64)>, String> {
        if from > to {
            return Err(format!("{from} s is later than {to} s"));
        }
        let first = self.value_at(from).ok().map(|value| (from, value));
        let later = self.points.iter().copied().filter(|&(at, _)| from < at && at <= to);
        let held: Vec<(f64, f64)> = first.into_iter().chain(later).collect();
        if held.is_empty() { Err(format!("it has no value from {from} s to {to} s")) } else { Ok(held) }
    }

    /// The time and value of the first least or largest value from `from` to `to`.
    pub(crate) fn extreme(&self, extreme: Extreme, from: f64, to: f64) -> Result<(f64, f64), String> {
        let held = self.between(from, to)?;
        let is_better = |value: f64, best: f64| match extreme {
            Extreme::Least => value < best,
            Extreme::Most => value > best,
        };
        let best = |best: (f64, f64), next: (f64, f64)| if is_better(next.1, best.1) { next } else { best };
        Ok(held.into_iter().reduce(best).expect("there is one value"))
    }

    /// The mean of a variable over the time from `from` to `to`, or the size of events per second.
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

    /// The value that a variable does not exceed for a share `share` of the time from `from` to `to`; for events, the size that this share
    /// of the events from `from` on and before `to` does not exceed.
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
        // By rounding, the last weight may be a little less than the sum.
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

    /// The number of events, or of the times at which a variable begins to fulfil the condition, from `from` on and before `to`.
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

    /// The first time from `from` on at which a variable fulfils the condition, or an event happens.
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

    /// The last time up to `to` at which a variable fulfils the condition, or an event happens.
    pub(crate) fn last_time(&self, condition: Option<(Comparison, f64)>, to: f64) -> Result<f64, String> {
        let until = self.points.partition_point(|&(at, _)| at <= to);
        let never = || format!("it never happens up to {to} s");
        let Some((comparison, right)) = condition else {
            return self.points[..until].last().map(|&(at, _)| at).ok_or_else(never);
        };
        let last = self.points[..until].iter().rposition(|&(_, value)| comparison.holds(value, right));
        // The value holds until the next one.
        last.map(|last| if last + 1 == until { to } else { self.points[last + 1].0 }).ok_or_else(never)
    }

    /// The points from `from` to `to` for a drawing, at most about [`DRAWN_MAX`].
    pub(crate) fn drawn(&self, from: f64, to: f64) -> Vec<(f64, f64)> {
        self.drawn_in(from, to, DRAWN_MAX)
    }

    /// The points from `from` to `to` for a drawing, at most about `most`. If there are more, each of many equal parts keeps its first, least, largest
    /// and last point, so that no spike is lost.
    pub(crate) fn drawn_in(&self, from: f64, to: f64, most: usize) -> Vec<(f64, f64)> {
        let first = match self.kind {
            Kind::Variable => self.value_at(from).ok().map(|value| (from, value)),
            Kind::Events => None,
        };
        let begin = self.points.partition_point(|&(at, _)| if first.is_some() { at <= from } else { at < from });
        let inside = &self.points[begin..];
        let inside = &inside[..inside.partition_point(|&(at, _)| at <= to)];
        let kept = decimate(inside.len(), |index| inside[index], (from, to), most);
        first.into_iter().chain(kept.into_iter().map(|index| inside[index])).collect()
    }
}

/// The number of bins of `width` seconds in a run that ends at `end`.
pub(crate) fn bin_count(width: f64, end: f64) -> Result<usize, String> {
    // A rest that is only a rounding error is no bin.
    let count = (end / width - 1e-9).ceil();
    if width > 0.0 && width <= end && count <= BINS_MAX {
        return Ok(count as usize);
    }
    Err(format!(
        "a run of {end} s cannot be cut into bins of {width} s: use from {} to {end}, which makes at most {BINS_MAX} of them",
        end / BINS_MAX
    ))
}

/// Checks the share of a quantile.
pub(crate) fn check_share(share: f64) -> Result<(), String> {
    match (0.0..=1.0).contains(&share) {
        true => Ok(()),
        false => Err(format!("{share} is no share: use 0 to 1, such as 0.95 for the 95th percentile")),
    }
}

/// The least or the largest value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extreme {
    Least,
    Most,
}

/// The limit of points in a curve: more than a screen has columns.
const DRAWN_MAX: usize = 2000;

/// The limit of bins: more are a mistake in the width.
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

    /// An interval includes its begin and excludes its end: 20 + 30 in the second from 1 to 2.
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
        // 40 in the half second of the last bin, from 3.5 s on; and rounding makes no bin: 0.7 / 0.1 > 7.
        assert_eq!(arrivals().bins(3.5, 4.0).unwrap(), Series::variable([(0.0, 60.0 / 3.5), (3.5, 80.0)]));
        assert_eq!(arrivals().bins(0.1, 0.7 + 1e-12).unwrap().points.len(), 7);
    }

    /// A change from 8 to 4 is a fall to a half, from 4 to 3 it is none; an equal value is no fall.
    #[test]
    fn a_fall_is_to_a_share_of_what_was_before() {
        let window = Series::variable([(1.0, 8.0), (2.0, 4.0), (3.0, 3.0), (4.0, 9.0), (5.0, 9.0), (6.0, 1.0)]);
        assert_eq!(window.falls(0.5), Series::events([(2.0, 4.0), (6.0, 8.0)]));
        assert_eq!(window.falls(1.0), Series::events([(2.0, 4.0), (3.0, 1.0), (6.0, 8.0)]));
        assert_eq!(window.falls(0.75).count(None, 0.0, 4.0) as u64, 2);
    }

    /// A pause of 2.5 s from 1.5 s to 4 s, and one of 1 s from 4 s to the end at 5 s; the time before the first event is no pause.
    #[test]
    fn a_pause_begins_with_the_event_before_it() {
        let pauses = |width| arrivals().pauses(width, 5.0);
        assert_eq!(pauses(0.5), Series::events([(1.5, 2.5), (4.0, 1.0)]));
        assert_eq!(pauses(1.0), Series::events([(1.5, 2.5)]), "a pause is longer than the width");
        let largest = |width, from| pauses(width).largest(from, 5.0);
        assert_eq!((largest(0.5, 0.0), largest(0.5, 2.0), largest(9.0, 0.0)), (2.5, 1.0, 0.0));
    }

    /// Above 2 from 2 s to 3 s and from 4 s to 6 s: this counts twice, and the value at 5 s does not count again.
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
