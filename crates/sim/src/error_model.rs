//! Error models: which packets a link loses before its queue.
//!
//! Every model counts the packets offered to it, from 0. In a chain of models, each gets only the packets that the earlier ones
//! pass.

use anabranch_units::settings::{Fields, Flaw, Part, PartKind, word_of};
use anabranch_units::{Bytes, Rate, SimSpan, SimTime};

use crate::rng::Stream;

/// The packets that are lost.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ErrorSpec {
    /// The link loses no packets.
    #[default]
    Nothing,
    /// The packets with these numbers, in the order of arrival.
    List(Vec<u64>),
    /// The first packet at or after each of these times.
    At(Vec<SimTime>),
    /// Each packet with this probability (ns-2's uniform error model with `unit pkt`: lost if `u < p`).
    PerPacket(f64),
    /// Each byte with this probability; the packet is lost if one of its bytes is.
    PerByte(f64),
    /// A channel with two states.
    GilbertElliott(GilbertElliott),
    /// The first `burst` of every `period` packets, from number `offset` on.
    Periodic {
        /// Packets from one loss to the next.
        period: u64,
        /// The first packet lost.
        offset: u64,
        /// Packets lost in a row.
        burst: u64,
    },
    /// Packets that exceed a rate, without queueing them: a token bucket (the generic cell rate algorithm, ITU-T I.371).
    Policer {
        /// The sustained rate, above zero.
        rate: Rate,
        /// The depth of the bucket: the burst that may pass at once.
        burst: Bytes,
    },
    /// Every packet from `from` to before `until`. Packets already in the queue or in flight pass.
    Outage {
        /// The beginning of the outage.
        from: SimTime,
        /// The end of the outage, after its beginning.
        until: SimTime,
    },
    /// Repeated outages: every packet within the first `length` of each period `every`, from `first` on.
    Outages {
        /// When the first outage begins.
        first: SimTime,
        /// The length of each outage, less than `every`.
        length: SimSpan,
        /// The time from the beginning of one outage to the beginning of the next.
        every: SimSpan,
    },
}

/// A channel that is good or bad (Gilbert, BSTJ 39, 1960; Elliott, BSTJ 42, 1963). It starts good. Each packet is lost with the
/// loss probability of the current state; then the state changes with its transition probability. In the long run the channel is
/// bad for `to_bad / (to_bad + to_good)` of the packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability, per packet, that a good channel turns bad.
    pub to_bad: f64,
    /// Probability, per packet, that a bad channel turns good. Its inverse is the mean length of a bad period in packets.
    pub to_good: f64,
    /// The loss probability while it is good: 0 in Gilbert's model.
    pub loss_good: f64,
    /// The loss probability while it is bad.
    pub loss_bad: f64,
}

impl Part for ErrorSpec {
    const NAME: &'static str = "error";
    const HELP: &'static str = "The packets that a link loses.";

    fn kinds() -> Vec<PartKind<Self>> {
        let kind = |word, synonyms, help, default| PartKind { word, synonyms, help, default };
        let burst = GilbertElliott { to_bad: 0.0, to_good: 1.0, loss_good: 0.0, loss_bad: 1.0 };
        let nothing = (Rate::from_bits_per_second(1), Bytes::new(0));
        vec![
            kind("none", &[], "No packets.", Self::Nothing),
            kind(
                "list",
                &[],
                "The packets with these numbers, counted from 0 in the order of arrival.",
                Self::List(vec![]),
            ),
            kind("at", &[], "The first packet at or after each of these times.", Self::At(vec![])),
            kind(
                "uniform",
                &["bernoulli", "iid"],
                "Each packet with the same probability, independently.",
                Self::PerPacket(0.0),
            ),
            kind(
                "per_byte",
                &[],
                "Each byte with the same probability; a packet is lost if one of its bytes is.",
                Self::PerByte(0.0),
            ),
            kind(
                "gilbert_elliott",
                &["gilbert", "gemodel"],
                "A channel that is good or bad (Gilbert and Elliott); it starts good.",
                Self::GilbertElliott(burst),
            ),
            kind(
                "periodic",
                &[],
                "The first `burst` of every `period` packets.",
                Self::Periodic { period: 1, offset: 0, burst: 1 },
            ),
            kind(
                "policer",
                &["token_bucket"],
                "Packets that exceed a rate, without a queue: a token bucket.",
                Self::Policer { rate: nothing.0, burst: nothing.1 },
            ),
        ]
    }

    fn word(&self) -> &'static str {
        word_of(self).unwrap_or("outages")
    }

    fn visit(&mut self, fields: &mut Fields<'_>) {
        match self {
            Self::Nothing | Self::Outage { .. } | Self::Outages { .. } => {}
            Self::List(packets) => fields.required().wholes("packets", packets, "The numbers of the packets"),
            Self::At(times) => fields.required().times("times", times, "The times of the losses"),
            Self::PerPacket(rate) | Self::PerByte(rate) => {
                fields.required().probability("rate", rate, "The probability, from 0 to 1");
            }
            Self::GilbertElliott(GilbertElliott { to_bad, to_good, loss_good, loss_bad }) => {
                let help = "Probability, per packet, that a good channel turns bad";
                fields.required().probability("to_bad", to_bad, help);
                let help = "Probability, per packet, that a bad channel turns good";
                fields.required().probability("to_good", to_good, help);
                fields.probability("loss_good", loss_good, "The loss probability while it is good");
                fields.probability("loss_bad", loss_bad, "The loss probability while it is bad");
            }
            Self::Periodic { period, offset, burst } => {
                fields.required().packets("period", period, "Packets from one loss to the next");
                fields.whole("offset", offset, "The first packet lost, counted from 0");
                fields.packets("burst", burst, "Packets lost in a row");
            }
            Self::Policer { rate, burst } => {
                fields.required().rate("rate", rate, "The sustained rate");
                let help = "The depth of the bucket: the burst that passes at once. Larger packets never pass";
                fields.required().bytes("burst", burst, help);
            }
        }
    }

    fn check(&self) -> Result<(), Flaw> {
        match self {
            Self::Periodic { period, burst, .. } if burst > period => {
                let message = format!("{burst} losses do not fit a period of {period} packets");
                Err(Flaw::new("burst", message, "make `burst` at most `period`"))
            }
            Self::Policer { rate, .. } if rate.bits_per_second() == 0 => {
                Err(Flaw::new("rate", "nothing passes a link of 0 bit/s", "use a rate above 0bit/s"))
            }
            Self::Policer { rate, .. } if rate.bits_per_second() > RATE_MAX => {
                Err(Flaw::new("rate", format!("no link sends {rate}"), "use a rate up to 1Tbit/s"))
            }
            Self::Outage { from, until } if from >= until => {
                Err(Flaw::new("until", "an outage ends before it begins", "make `until` later than `from`"))
            }
            Self::Outages { length, every, .. } if length.is_zero() || length >= every => {
                Err(Flaw::new("for", "outages leave no time", "make `for` more than 0, and less than `every`"))
            }
            _ => Ok(()),
        }
    }
}

/// The limit of a rate: at 1 Tbit/s a byte takes 8 ticks of the simulator's clock.
pub const RATE_MAX: u64 = 1_000_000_000_000;

/// The state of a model.
#[derive(Clone, Debug)]
pub(crate) struct ErrorModel {
    spec: ErrorSpec,
    stream: Stream,
    /// Packets offered so far: the number of the next.
    offered: u64,
    /// The number of list entries, or times, already used.
    passed: usize,
    bad: bool,
    /// When the bucket of a policer is full again.
    full_at: SimTime,
}

impl ErrorModel {
    pub(crate) fn new(mut spec: ErrorSpec, stream: Stream) -> Self {
        match &mut spec {
            ErrorSpec::List(numbers) => {
                numbers.sort_unstable();
                numbers.dedup();
            }
            ErrorSpec::At(times) => times.sort_unstable(),
            _ => {}
        }
        Self { spec, stream, offered: 0, passed: 0, bad: false, full_at: SimTime::ZERO }
    }

    /// Whether the next packet, of `size` bytes at time `now`, is lost.
    pub(crate) fn strikes(&mut self, now: SimTime, size: u32) -> bool {
        let number = self.offered;
        self.offered += 1;
        match &self.spec {
            ErrorSpec::Nothing => false,
            ErrorSpec::List(numbers) => {
                let hit = numbers.get(self.passed) == Some(&number);
                self.passed += usize::from(hit);
                hit
            }
            ErrorSpec::At(times) => {
                let hit = times.get(self.passed).is_some_and(|&time| time <= now);
                self.passed += usize::from(hit);
                hit
            }
            &ErrorSpec::PerPacket(p) => self.stream.happens(p),
            &ErrorSpec::PerByte(p) => self.stream.happens(1.0 - power(1.0 - p, size)),
            &ErrorSpec::GilbertElliott(channel) => {
                let (loss, change) = match self.bad {
                    false => (channel.loss_good, channel.to_bad),
                    true => (channel.loss_bad, channel.to_good),
                };
                // Always two draws, so that the states do not depend on the losses.
                let lost = self.stream.happens(loss);
                self.bad ^= self.stream.happens(change);
                lost
            }
            &ErrorSpec::Periodic { period, offset, burst } => number >= offset && (number - offset) % period < burst,
            &ErrorSpec::Policer { rate, burst } => {
                let full_at = self.full_at.max(now).saturating_add(rate.transmission(Bytes::new(size.into())));
                let exceeds = full_at.since(now) > rate.transmission(burst);
                if !exceeds {
                    self.full_at = full_at;
                }
                exceeds
            }
            &ErrorSpec::Outage { from, until } => from <= now && now < until,
            &ErrorSpec::Outages { first, length, every } => {
                first <= now && now.since(first).ticks() % every.ticks() < length.ticks()
            }
        }
    }
}

/// `base^exponent` by repeated squaring. Multiplication gives the same bits on every machine, `powf` does not.
fn power(base: f64, exponent: u32) -> f64 {
    let (mut result, mut square, mut left) = (1.0, base, exponent);
    while left > 0 {
        if left % 2 == 1 {
            result *= square;
        }
        square *= square;
        left /= 2;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Substreams;

    fn losses(spec: ErrorSpec, packets: u64, size: u32) -> Vec<u64> {
        let mut model = ErrorModel::new(spec, Substreams::new(1).stream("test"));
        (0..packets).filter(|_| model.strikes(SimTime::ZERO, size)).collect()
    }

    /// Five standard deviations of a binomial count.
    #[track_caller]
    fn assert_binomial(count: usize, packets: u64, p: f64) {
        let (mean, deviation) = (packets as f64 * p, (packets as f64 * p * (1.0 - p)).sqrt());
        assert!((count as f64 - mean).abs() < 5.0 * deviation, "{count} losses, expected {mean} ± {deviation}");
    }

    #[test]
    fn a_list_loses_what_it_names() {
        assert_eq!(losses(ErrorSpec::List(vec![7, 0, 3, 3]), 10, 1000), [0, 3, 7]);
    }

    #[test]
    fn a_time_loses_the_first_packet_from_then_on() {
        let at = |ms| SimTime::ZERO + SimSpan::from_millis(ms);
        let spec = ErrorSpec::At(vec![at(7), at(3), at(7)]);
        let mut model = ErrorModel::new(spec, Substreams::new(1).stream("test"));
        let lost: Vec<u64> = (0..20).step_by(2).filter(|&ms| model.strikes(at(ms), 1000)).collect();
        assert_eq!(lost, [4, 8, 10]);
    }

    #[test]
    fn periodic_losses_come_in_bursts() {
        let spec = ErrorSpec::Periodic { period: 5, offset: 2, burst: 2 };
        assert_eq!(losses(spec, 14, 1000), [2, 3, 7, 8, 12, 13]);
    }

    /// 8 Mbit/s are one 1000-byte packet per millisecond. Packets arrive at twice that rate, so each takes half a packet out of
    /// the bucket of ten. The first 19 pass (the 19th finds one left: 10 - 18/2), then every other one.
    #[test]
    fn a_policer_passes_its_rate_and_its_burst() {
        let spec = ErrorSpec::Policer { rate: Rate::from_bits_per_second(8_000_000), burst: Bytes::new(10_000) };
        let mut model = ErrorModel::new(spec, Substreams::new(1).stream("test"));
        let arrival = |number: u64| SimTime::ZERO + SimSpan::from_micros(500) * number;
        let lost: Vec<u64> = (0..40).filter(|&number| model.strikes(arrival(number), 1000)).collect();
        assert_eq!(lost, [19, 21, 23, 25, 27, 29, 31, 33, 35, 37, 39]);
        // After a pause of 5 ms the bucket has 5 packets more. A packet that is too large is lost.
        let later = arrival(40) + SimSpan::from_millis(5);
        assert!(model.strikes(later, 7000));
        assert!(!model.strikes(later, 5000));
    }

    #[test]
    fn an_outage_loses_all_that_comes_while_it_lasts() {
        let at = |ms| SimTime::ZERO + SimSpan::from_millis(ms);
        let mut model =
            ErrorModel::new(ErrorSpec::Outage { from: at(3), until: at(6) }, Substreams::new(1).stream("test"));
        let lost: Vec<u64> = (0..9).filter(|&ms| model.strikes(at(ms), 1000)).collect();
        assert_eq!(lost, [3, 4, 5]);
    }

    /// An outage of 2 ms every 4 ms, from 3 ms on.
    #[test]
    fn outages_come_again_and_again() {
        let at = |ms| SimTime::ZERO + SimSpan::from_millis(ms);
        let spec = ErrorSpec::Outages { first: at(3), length: SimSpan::from_millis(2), every: SimSpan::from_millis(4) };
        let mut model = ErrorModel::new(spec, Substreams::new(1).stream("test"));
        let lost: Vec<_> = (0..14).filter(|&ms| model.strikes(at(ms), 1000)).collect();
        assert_eq!(lost, [3, 4, 7, 8, 11, 12]);
    }

    #[test]
    fn losses_per_packet_are_binomial() {
        assert_binomial(losses(ErrorSpec::PerPacket(0.01), 1_000_000, 1).len(), 1_000_000, 0.01);
    }

    #[test]
    fn a_packet_needs_all_its_bytes() {
        // 1 - (1 - 10^-5)^1000 = 0.009 950 2.
        assert_binomial(losses(ErrorSpec::PerByte(1e-5), 1_000_000, 1000).len(), 1_000_000, 0.009_950_2);
    }

    #[test]
    fn two_state_channel_has_stationary_loss_and_bursts() {
        // Bad for 0.01 / (0.01 + 0.1) = 1/11 of the packets, in bad periods of 10 packets.
        let spec =
            ErrorSpec::GilbertElliott(GilbertElliott { to_bad: 0.01, to_good: 0.1, loss_good: 0.0, loss_bad: 1.0 });
        let lost = losses(spec, 1_000_000, 1000);
        let bursts = 1 + lost.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
        // About 9091 bad periods of geometric length: the mean length has a standard deviation of 10/sqrt(9091) = 0.1.
        let length = lost.len() as f64 / bursts as f64;
        assert!((length - 10.0).abs() < 0.5, "mean burst {length}");
        assert!((lost.len() as f64 / 1e6 - 1.0 / 11.0).abs() < 0.007, "loss {}", lost.len());
    }
}
