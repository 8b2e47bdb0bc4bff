//! Workloads: the data that an application offers, and when.

use anabranch_units::SimSpan;
use anabranch_units::settings::{Fields, Flaw, Part, PartKind};

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

/// The time between two messages: none, or one of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spacing {
    /// A constant time.
    pub every: Option<SimSpan>,
    /// The mean of an exponential time: a Poisson process.
    pub every_mean: Option<SimSpan>,
}

/// The limit of messages with drawn sizes: they are drawn before the run.
const DRAWN_MAX: u32 = 100_000;

/// The limit of a request: it fits into any send buffer.
const REQUEST_MAX: u32 = 10_000;

impl Part for Workload {
    const NAME: &'static str = "workload";
    const HELP: &'static str = "The data of an application, from the start of its flow on. Agents of ns-2 send whole packets: the last packet \
                                of a message is padded. With several streams, message m is sent on stream m modulo their number.";

    fn kinds() -> Vec<PartKind<Self>> {
        let kind = |word, help, default| PartKind { word, synonyms: &[], help, default };
        let (sizes, spacing) = (Sizes::Constant(0), Spacing::default());
        let messages = Messages { bytes: 0, count: None, streams: 1, spacing };
        // A request is a GET of HTTP.
        let dialogue = Dialogue { sizes, count: 1, request: 200, think: SimSpan::ZERO };
        vec![
            kind("bulk", "Endless data.", Self::Bulk),
            kind("fixed", "A number of bytes, offered at once.", Self::Fixed { bytes: 0 }),
            kind("messages", "Messages, one after the other.", Self::Messages(messages)),
            kind(
                "drawn",
                "Messages of random sizes, one after the other on one stream, as chunks of a video. With a `count` of 1, the default, it \
                 is one flow of a random size.",
                Self::Drawn(Drawn { sizes, count: 1, spacing }),
            ),
            kind(
                "requests",
                "Requests of the receiver, which the sender answers, one after the other. Only `anabranch`.",
                Self::Dialogue(dialogue),
            ),
        ]
    }

    fn visit(&mut self, fields: &mut Fields<'_>) {
        match self {
            Self::Bulk => {}
            Self::Fixed { bytes } => fields.required().bytes("bytes", bytes, "The number of bytes"),
            Self::Messages(Messages { bytes, count, spacing, .. }) => {
                fields.required().bytes("bytes", bytes, "The bytes of each message");
                fields.packets("count", count, "The number of messages; endless if absent");
                spacing.visit(fields);
            }
            Self::Drawn(Drawn { sizes, count, spacing }) => {
                fields.required().part("sizes", sizes, "The sizes");
                fields.packets("count", count, "The number of messages");
                spacing.visit(fields);
            }
            Self::Dialogue(Dialogue { sizes, count, request, think }) => {
                fields.required().part("sizes", sizes, "The sizes of the answers");
                fields.required().packets("count", count, "The number of requests");
                fields.bytes("request", request, "The bytes of a request, up to `10kB`");
                fields.time("think_mean", think, "The mean of the random time from an answer to the next request");
            }
        }
    }

    fn check(&self) -> Result<(), Flaw> {
        match self {
            Self::Fixed { bytes: 0 } | Self::Messages(Messages { bytes: 0, .. }) => {
                Err(Flaw::new("bytes", "there is nothing to send in 0B", "use 1B or more"))
            }
            Self::Bulk | Self::Fixed { .. } => Ok(()),
            Self::Messages(Messages { count, spacing, .. }) => spacing.check(count.is_some()),
            Self::Drawn(Drawn { count, .. }) | Self::Dialogue(Dialogue { count, .. }) if *count > DRAWN_MAX => {
                let message = format!("a flow with more than {DRAWN_MAX} drawn messages");
                Err(Flaw::new("count", message, "use several flows"))
            }
            Self::Drawn(Drawn { sizes, spacing, .. }) => sizes.check().and_then(|()| spacing.check(true)),
            Self::Dialogue(Dialogue { request: 1..=REQUEST_MAX, sizes, .. }) => sizes.check(),
            Self::Dialogue(_) => {
                let message = format!("a request is from 1 to {REQUEST_MAX} bytes long");
                Err(Flaw::new("request", message, "use request = \"200B\""))
            }
        }
    }
}

impl Workload {
    /// Whether a world can offer it. The hosts of a dialogue ask and answer themselves.
    pub(crate) fn is_offered(&self) -> bool {
        let is_for_hosts = matches!(self, Self::Dialogue(_) | Self::Messages(Messages { streams: 0, .. }));
        !is_for_hosts && self.check().is_ok()
    }

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
    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.time("every", &mut self.every, "The time between messages; all at once if absent");
        let help = "The mean of that time if it is random: a Poisson process";
        fields.time("every_mean", &mut self.every_mean, help);
    }

    /// Checks that one key at most tells the time, and that a series with it moves or is finite.
    ///
    /// # Errors
    /// The flaw.
    pub fn check(&self, is_finite: bool) -> Result<(), Flaw> {
        match (self.every, self.every_mean) {
            (Some(_), Some(_)) => Err(Flaw::new("every_mean", "`every` and `every_mean` say two things", "keep one")),
            (None, None) if is_finite => Ok(()),
            (Some(span), None) | (None, Some(span)) if !span.is_zero() => Ok(()),
            _ => {
                let message = "nothing says when these messages end or come";
                Err(Flaw::new("", message, "add count = 100, or every = \"20ms\""))
            }
        }
    }

    /// Whether messages come one after the other.
    pub fn is_series(self) -> bool {
        self != Self::default()
    }

    /// The time to the next message.
    pub fn next(self, stream: &mut Stream) -> SimSpan {
        match self.every_mean {
            Some(mean) => stream.exponential_span(mean),
            None => self.every.unwrap_or(SimSpan::ZERO),
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
        let messages = Messages { bytes: 100, count: Some(5), streams: 2, spacing: Spacing::default() };
        let expected = [0, 1, 0, 1, 0].into_iter().zip(0..).map(|(stream, message)| (stream, message, Some(100)));
        assert_eq!(offers(Workload::Messages(messages), 9), expected.collect::<Vec<_>>());
    }

    /// The offered messages have the sizes that the receiver expects.
    #[test]
    fn drawn_messages_have_the_sizes_that_are_expected() {
        let sizes = Sizes::Pareto { shape: 1.2, least: 100, most: 100_000 };
        let spacing = Spacing { every: Some(SimSpan::from_millis(1)), every_mean: None };
        let workload = Workload::Drawn(Drawn { sizes, count: 5, spacing });
        let expected = workload.amounts(Substreams::new(1).stream("sizes")).unwrap();
        let offered: Vec<_> = offers(workload, 9).into_iter().map(|(stream, _, bytes)| (stream, bytes)).collect();
        assert_eq!(offered, expected.iter().map(|&bytes| (0, Some(bytes))).collect::<Vec<_>>());
        assert!(expected.windows(2).any(|pair| pair[0] != pair[1]), "{expected:?}");
    }

    #[test]
    fn a_series_of_none_offers_nothing() {
        let messages = Messages { bytes: 100, count: Some(0), streams: 1, spacing: Spacing::default() };
        assert_eq!(offers(Workload::Messages(messages), 9), []);
    }

    #[test]
    fn an_endless_series_must_move() {
        let spacing = Spacing { every: Some(SimSpan::ZERO), every_mean: None };
        let messages = Messages { bytes: 100, count: None, streams: 1, spacing };
        assert!(Workload::Messages(messages).check().is_err());
    }
}
