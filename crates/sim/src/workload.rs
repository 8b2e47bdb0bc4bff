//! Workloads: the data that an application offers, and when.

use anabranch_units::SimSpan;

use crate::host::Offer;
use crate::id::Port;
use crate::rng::Stream;
use crate::sizes::Sizes;

/// The data offered to a host from a certain time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Workload {
    /// Endless data, offered at once.
    Bulk,
    /// A number of bytes, offered at once.
    Fixed {
        /// The number of bytes.
        bytes: u64,
    },
    /// Messages of one size, one after the other over the streams of a connection.
    Messages(Messages),
    /// Messages with drawn sizes, one after the other on the first stream.
    Drawn(Drawn),
    /// Messages that the receiver requests. The two hosts do it themselves; the world offers nothing.
    Dialogue(Dialogue),
}

/// Messages with drawn sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    /// The sizes of the messages in bytes.
    pub sizes: Sizes,
    /// The number of messages.
    pub count: u32,
    /// The time between two messages.
    pub spacing: Spacing,
}

/// Requests and their answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dialogue {
    /// The sizes of the answers.
    pub sizes: Sizes,
    /// The number of requests.
    pub count: u32,
    /// Bytes of a request.
    pub request: u32,
    /// The mean think time from an answer to the next request; exponentially distributed.
    pub think: SimSpan,
}

/// A series of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    /// The bytes of each message.
    pub bytes: u64,
    /// The number of messages; `None` is endless.
    pub count: Option<u64>,
    /// Message m goes on stream `m mod streams`; at least 1.
    pub streams: u32,
    /// The time between two messages.
    pub spacing: Spacing,
}

/// The time between two messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Zero: all at once. Needs a `count`.
    Together,
    /// A constant time.
    Every(SimSpan),
    /// Exponential with this mean: a Poisson process.
    Exponential(SimSpan),
}

impl Workload {
    /// Whether the series advances in time or ends.
    pub(crate) fn is_valid(self) -> bool {
        let messages = match self {
            Self::Bulk | Self::Fixed { .. } => return true,
            Self::Messages(messages) => messages,
            Self::Drawn(drawn) => return drawn.sizes.is_valid(),
            // The hosts request and answer themselves.
            Self::Dialogue(_) => return false,
        };
        let moves = match messages.spacing {
            Spacing::Together => false,
            Spacing::Every(span) | Spacing::Exponential(span) => !span.is_zero(),
        };
        messages.streams > 0 && (moves || messages.count.is_some())
    }
}

impl Workload {
    /// The sizes of the workload's messages, if their number is finite. Random sizes are drawn from `stream`.
    pub fn amounts(self, mut stream: Stream) -> Option<Vec<u64>> {
        let mut drawn = |sizes: Sizes, count: u32| Some((0..count).map(|_| sizes.draw(&mut stream)).collect());
        match self {
            Self::Bulk => None,
            Self::Fixed { bytes } => Some(vec![bytes]),
            Self::Messages(Messages { bytes, count, .. }) => {
                Some(vec![bytes; usize::try_from(count?).unwrap_or(usize::MAX)])
            }
            Self::Drawn(Drawn { sizes, count, .. }) | Self::Dialogue(Dialogue { sizes, count, .. }) => {
                drawn(sizes, count)
            }
        }
    }
}

/// The state of a workload.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    workload: Workload,
    port: Port,
    stream: Stream,
    /// The drawn sizes of the messages.
    drawn: Vec<u64>,
    /// Messages offered so far.
    offered: u64,
}

impl Schedule {
    /// A workload at its start. `stream` draws its times, `sizes` its message sizes.
    pub(crate) fn new(workload: Workload, port: Port, stream: Stream, sizes: Stream) -> Self {
        let is_drawn = matches!(workload, Workload::Drawn(_));
        let drawn = is_drawn.then(|| workload.amounts(sizes)).flatten().unwrap_or_default();
        Self { workload, port, stream, drawn, offered: 0 }
    }

    /// The offer that is due, and the time until the next one; `None` at the end.
    pub(crate) fn next(&mut self) -> (Option<Offer>, Option<SimSpan>) {
        let message = self.offered;
        self.offered += 1;
        let offer = |stream, bytes| Some(Offer { port: self.port, stream, message, bytes });
        match self.workload {
            Workload::Bulk => (offer(0, None), None),
            Workload::Fixed { bytes } => (offer(0, Some(bytes)), None),
            Workload::Messages(Messages { count: Some(count), .. }) if message >= count => (None, None),
            Workload::Messages(Messages { bytes, count, streams, spacing }) => {
                let offer = offer((message % u64::from(streams)) as u32, Some(bytes));
                if count == Some(self.offered) {
                    return (offer, None);
                }
                (offer, Some(spacing.next(&mut self.stream)))
            }
            Workload::Drawn(Drawn { spacing, .. }) => {
                let Some(&bytes) = self.drawn.get(message as usize) else { return (None, None) };
                let offer = offer(0, Some(bytes));
                if self.offered == self.drawn.len() as u64 {
                    return (offer, None);
                }
                (offer, Some(spacing.next(&mut self.stream)))
            }
            Workload::Dialogue(_) => (None, None),
        }
    }
}

impl Spacing {
    fn next(self, stream: &mut Stream) -> SimSpan {
        match self {
            Self::Together => SimSpan::ZERO,
            Self::Every(span) => span,
            Self::Exponential(mean) => stream.exponential_span(mean),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Substreams;

    fn offers(workload: Workload, limit: usize) -> Vec<(u32, u64, Option<u64>)> {
        let streams = Substreams::new(1);
        let mut schedule = Schedule::new(workload, Port::FIRST, streams.stream("test"), streams.stream("sizes"));
        let mut offers = Vec::new();
        while offers.len() < limit {
            let (offer, next) = schedule.next();
            offers.extend(offer.map(|offer| (offer.stream, offer.message, offer.bytes)));
            if next.is_none() {
                break;
            }
        }
        offers
    }

    #[test]
    fn bulk_is_offered_once_and_without_end() {
        assert_eq!(offers(Workload::Bulk, 9), [(0, 0, None)]);
    }

    #[test]
    fn messages_go_round_the_streams() {
        let messages = Messages { bytes: 100, count: Some(5), streams: 2, spacing: Spacing::Together };
        let expected = [0, 1, 0, 1, 0].into_iter().zip(0..).map(|(stream, message)| (stream, message, Some(100)));
        assert_eq!(offers(Workload::Messages(messages), 9), expected.collect::<Vec<_>>());
    }

    /// The offered messages have the sizes that the receiver expects.
    #[test]
    fn drawn_messages_have_the_sizes_that_are_expected() {
        let sizes = Sizes::Pareto { shape: 1.2, least: 100, most: 100_000 };
        let workload = Workload::Drawn(Drawn { sizes, count: 5, spacing: Spacing::Every(SimSpan::from_millis(1)) });
        let expected = workload.amounts(Substreams::new(1).stream("sizes")).unwrap();
        let offered: Vec<_> = offers(workload, 9).into_iter().map(|(stream, _, bytes)| (stream, bytes)).collect();
        assert_eq!(offered, expected.iter().map(|&bytes| (0, Some(bytes))).collect::<Vec<_>>());
        assert!(expected.windows(2).any(|pair| pair[0] != pair[1]), "{expected:?}");
    }

    #[test]
    fn a_series_of_none_offers_nothing() {
        let messages = Messages { bytes: 100, count: Some(0), streams: 1, spacing: Spacing::Together };
        assert_eq!(offers(Workload::Messages(messages), 9), []);
    }

    #[test]
    fn an_endless_series_must_move() {
        let messages = Messages { bytes: 100, count: None, streams: 1, spacing: Spacing::Every(SimSpan::ZERO) };
        assert!(!Workload::Messages(messages).is_valid());
    }
}
