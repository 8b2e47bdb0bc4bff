//! Outages, during which a link loses everything: single or periodic ones.

use anabranch_sim::ErrorSpec;
use anabranch_units::{SimSpan, SimTime};
use schemars::JsonSchema;

use super::values::Text;
use crate::diagnostic::Fault;

/// An outage of a link, or with `every` and `for` a periodic one. Packets in its queue or in flight on it get through.
#[derive(Clone, Copy, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "outage")]
pub(crate) struct OutageKeys {
    /// The begin of the (first) outage.
    from: Text<SimSpan>,
    /// The end of the outage. A periodic outage does not begin at this time or later; if absent, it repeats for ever.
    until: Option<Text<SimSpan>>,
    /// The time from the begin of one outage to the begin of the next. Only with `for`.
    every: Option<Text<SimSpan>>,
    /// The length of each outage: `{ from = "5s", until = "60s", every = "5s", for = "5ms" }` are eleven outages.
    #[serde(default, rename = "for")]
    lasting: Option<Text<SimSpan>>,
}

/// The limit of outages on a link: each packet is compared with all of them.
const OUTAGES_MAX: u64 = 10_000;

/// All outages of a link.
///
/// # Errors
/// The position and the key of an invalid one, and the reason.
pub(super) fn outages(keys: &[OutageKeys]) -> Result<Vec<ErrorSpec>, (usize, &'static str, Fault)> {
    let mut all = Vec::new();
    for (index, &OutageKeys { from, until, every, lasting }) in keys.iter().enumerate() {
        let from = from.0;
        let fail = |key, message: &str, remedy: &str| Err((index, key, Fault::new(message).remedy(remedy)));
        let Some(until) = until.map(|until| until.0) else {
            let (Some(every), Some(lasting)) = (every, lasting) else {
                return fail("from", "an outage never ends", "add `until`, or `every` and `for`");
            };
            let first = SimTime::ZERO.saturating_add(from);
            let endless = ErrorSpec::Outages { first, length: lasting.0, every: every.0 };
            if lasting.0.is_zero() || every.0 <= lasting.0 {
                return fail(
                    "for",
                    "outages without an end leave no time",
                    "make `for` more than 0, and less than `every`",
                );
            }
            all.push(endless);
            continue;
        };
        if until <= from {
            return fail("until", "an outage ends before it begins", "make `until` later than `from`");
        }
        let (every, lasting) = match (every, lasting) {
            (None, None) => (until.saturating_sub(from), until.saturating_sub(from)),
            (Some(every), Some(lasting)) => (every.0, lasting.0),
            (Some(_), None) => return fail("every", "nothing says how long each outage lasts", "add `for`"),
            (None, Some(_)) => {
                return fail("for", "nothing says when the next outage comes", "add `every`, or remove `for`");
            }
        };
        if lasting.is_zero() || every < lasting {
            return fail("for", "an outage has no time to last", "make `for` more than 0, and at most `every`");
        }
        let count = until.saturating_sub(from).ticks().div_ceil(every.ticks());
        if (all.len() as u64).saturating_add(count) > OUTAGES_MAX {
            let message = format!("a link with more than {OUTAGES_MAX} outages");
            return fail("every", &message, "make `every` longer, or `until` earlier");
        }
        all.extend((0..count).map(|number| {
            let begin = SimTime::ZERO.saturating_add(from).saturating_add(every.saturating_mul(number));
            ErrorSpec::Outage { from: begin, until: begin.saturating_add(lasting) }
        }));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(from: &str, until: &str, every: Option<&str>, lasting: Option<&str>) -> OutageKeys {
        let span = |text: &str| Text(text.parse().unwrap());
        OutageKeys { from: span(from), until: Some(span(until)), every: every.map(span), lasting: lasting.map(span) }
    }

    fn times(keys: OutageKeys) -> Result<Vec<(u64, u64)>, String> {
        let all = outages(&[keys]).map_err(|(_, key, fault)| format!("{key}: {}", fault.message))?;
        let millis = |time: SimTime| time.ticks() / 1_000_000_000;
        let times = |spec: &ErrorSpec| match spec {
            ErrorSpec::Outage { from, until } => (millis(*from), millis(*until)),
            other => panic!("{other:?} is no outage"),
        };
        Ok(all.iter().map(times).collect())
    }

    /// From 500 ms on one begins every 500 ms, but none at 2 s.
    #[test]
    fn alike_outages_are_written_out() {
        let alike = keys("500ms", "2s", Some("500ms"), Some("5ms"));
        assert_eq!(times(alike), Ok(vec![(500, 505), (1000, 1005), (1500, 1505)]));
        assert_eq!(
            times(keys("500ms", "1501ms", Some("500ms"), Some("5ms"))),
            Ok(vec![(500, 505), (1000, 1005), (1500, 1505)])
        );
        assert_eq!(times(keys("1s", "2s", None, None)), Ok(vec![(1000, 2000)]));
    }

    #[test]
    fn alike_outages_may_go_on_for_ever() {
        let endless = |lasting| OutageKeys { until: None, ..keys("15s", "0s", Some("15s"), lasting) };
        let (first, every) = (SimTime::ZERO + SimSpan::from_millis(15_000), SimSpan::from_millis(15_000));
        let expected = ErrorSpec::Outages { first, length: SimSpan::from_millis(100), every };
        assert_eq!(outages(&[endless(Some("100ms"))]).unwrap(), [expected]);
        for lasting in [None, Some("0s"), Some("15s")] {
            assert!(outages(&[endless(lasting)]).is_err(), "{lasting:?}");
        }
    }

    #[test]
    fn impossible_outage_is_refused_at_its_key() {
        let refused = |every, lasting| times(keys("1s", "2s", every, lasting)).unwrap_err();
        assert_eq!(refused(Some("1s"), None), "every: nothing says how long each outage lasts");
        assert_eq!(refused(None, Some("1s")), "for: nothing says when the next outage comes");
        assert_eq!(refused(Some("1ms"), Some("2ms")), "for: an outage has no time to last");
        assert_eq!(refused(Some("1ms"), Some("0s")), "for: an outage has no time to last");
        assert_eq!(refused(Some("1ps"), Some("1ps")), "every: a link with more than 10000 outages");
        assert!(times(keys("2s", "1s", None, None)).unwrap_err().contains("ends before it begins"));
    }
}
