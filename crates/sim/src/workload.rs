//! Workloads: the data that an application offers, and when.

use anabranch_units::SimSpan;

use crate::host::Offer;
use crate::id::Port;
use crate::rng::Stream;

/// The data offered to a host from a certain time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Endless data, offered at once.
    Bulk,
    /// A number of bytes, offered at once.
    Fixed {
        /// The number of bytes.
        bytes: u64,
    },
    /// Messages, one after the other over the streams of a connection.
    Messages(Messages),
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
        let Self::Messages(messages) = self else { return true };
        let moves = match messages.spacing {
            Spacing::Together => false,
            Spacing::Every(span) | Spacing::Exponential(span) => !span.is_zero(),
        };
        messages.streams > 0 && (moves || messages.count.is_some())
    }
}

/// The state of a workload.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    workload: Workload,
    port: Port,
    stream: Stream,
    /// Messages offered so far.
    offered: u64,
}

impl Schedule {
    pub(crate) fn new(workload: Workload, port: Port, stream: Stream) -> Self {
        Self { workload, port, stream, offered: 0 }
    }

    /// The present offer, and the time until the next one; `None` at the end.
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
                let span = match spacing {
                    Spacing::Together => SimSpan::ZERO,
                    Spacing::Every(span) => span,
                    Spacing::Exponential(mean) => self.stream.exponential_span(mean),
                };
                (offer, Some(span))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Substreams;

    fn offers(workload: Workload, limit: usize) -> Vec<(u32, u64, Option<u64>)> {
        let mut schedule = Schedule::new(workload, Port::FIRST, Substreams::new(1).stream("test"));
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
