//! A claim's numbers as text, as all reports show them.

use std::fmt;

use super::{JudgedClaim, PublishedValue};
use crate::experiment::ClaimKind;

impl fmt::Display for PublishedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) => write!(f, "{value}"),
            Self::Words(words) => f.write_str(words),
        }
    }
}

impl PublishedValue {
    /// Whether it is a number.
    pub fn is_number(&self) -> bool {
        matches!(self, Self::Number(_))
    }
}

impl JudgedClaim {
    /// The decimals of our numbers: one more than the paper prints, unless it prints thousands. There are more if they are needed to show
    /// on which side of the band's end a number lies, or that it is not zero.
    pub fn decimals(&self) -> usize {
        let ours = self.measured.ours.as_ref().map(|ours| ours.value);
        let least = match &self.published {
            PublishedValue::Number(value) => {
                let printed = value.to_string().split_once('.').map_or(0, |(_, decimals)| decimals.len());
                printed + usize::from(value.abs() < 1000.0 && self.band.kind != "exact")
            }
            PublishedValue::Words(_) => ours.map_or(0, |ours| usize::from(ours.abs() < 1000.0)),
        };
        let engine = self.measured.engine.as_ref().map(|engine| engine.value);
        let judged = match (self.band.kind, &self.published) {
            ("prediction", PublishedValue::Number(published)) => Some(*published),
            _ => ours,
        };
        // The numbers that are compared with a band; our transport's only for an order, a time or a shape.
        let held = [judged, engine.filter(|_| self.kind != ClaimKind::Number)];
        let ends = [self.band.low, self.band.high];
        let is_told = |decimals: usize| {
            let round = |value: f64| format!("{value:.decimals$}").parse::<f64>().unwrap_or(value);
            let tells = |a: f64, b: f64| (a - b).abs() < SAME || round(a).partial_cmp(&round(b)) == a.partial_cmp(&b);
            held.iter().flatten().all(|&value| ends.iter().flatten().all(|&end| tells(value, end)))
                && ends[0].zip(ends[1]).is_none_or(|(low, high)| tells(low, high))
                && [ours, engine].iter().flatten().all(|&value| tells(value, 0.0))
        };
        (least..=DECIMALS_MAX.max(least)).find(|&decimals| is_told(decimals)).unwrap_or(least)
    }

    /// A number beside the claim's, with its decimals.
    pub fn number_shown(&self, value: f64) -> String {
        let decimals = self.decimals();
        let shown = format!("{value:.decimals$}");
        // A rounded `-0` is printed as `0`.
        if shown.trim_start_matches(['-', '0', '.']).is_empty() { shown.replace('-', "") } else { shown }
    }

    /// Our mean, if something was measured.
    pub fn ours_shown(&self) -> Option<String> {
        self.measured.ours.as_ref().map(|ours| self.number_shown(ours.value))
    }

    /// Our standard deviation, if there were several seeds.
    pub fn sd_shown(&self) -> Option<String> {
        self.measured.ours.as_ref().filter(|ours| ours.seeds > 1).map(|ours| self.number_shown(ours.sd))
    }

    /// The value of our own transport in place of ns-2's agents, if it has a part in the claim.
    pub fn engine_shown(&self) -> Option<String> {
        self.engine.as_ref()?;
        Some(self.measured.engine.as_ref().map_or_else(|| "–".to_owned(), |engine| self.number_shown(engine.value)))
    }

    /// The relation of this value to that of ns-2's agents: `+1.2 %` for a number, `holds` for an order, a time or a shape.
    pub fn engine_stand_shown(&self) -> Option<String> {
        let engine = self.engine.as_ref()?;
        if self.kind != ClaimKind::Number {
            return Some(if engine.agrees { "holds" } else { "does not hold" }.to_owned());
        }
        let (Some(ours), Some(engine)) = (&self.measured.ours, &self.measured.engine) else {
            return Some("not measured".to_owned());
        };
        let difference = engine.value - ours.value;
        Some(match (difference.abs() > f64::EPSILON, ours.value.abs() > f64::EPSILON) {
            (false, _) => "equal".to_owned(),
            (true, true) => format!("{:+.1} %", 100.0 * difference / ours.value.abs()),
            (true, false) => format!("{difference:+.0$}", self.decimals()),
        })
    }

    /// The difference of our mean from the published number: `-120 (-0.5 %)`; `None` unless there are both.
    pub fn difference_shown(&self) -> Option<String> {
        let (PublishedValue::Number(published), Some(ours)) = (&self.published, &self.measured.ours) else {
            return None;
        };
        let difference = ours.value - published;
        let decimals = self.decimals();
        let shown = format!("{difference:+.decimals$}");
        if shown.trim_start_matches(['+', '-', '0', '.']).is_empty() {
            return Some("0".to_owned());
        }
        // A percentage of a percentage would be confusing.
        let has_share = self.unit != "%" && published.abs() > f64::EPSILON;
        Some(if has_share { format!("{shown} ({:+.1} %)", 100.0 * difference / published) } else { shown })
    }

    /// The condition of the band: `published in 2..3`, `ours >= 2`; `None` if the numbers must be equal.
    pub fn band_shown(&self) -> Option<String> {
        let show = |value: f64| self.number_shown(value);
        let interval = match (self.band.low, self.band.high) {
            // Truncated numbers are below the upper end.
            (Some(low), Some(high)) if self.band.kind == "truncated" => format!(">= {}, < {}", show(low), show(high)),
            (Some(low), Some(high)) => format!("in {}..{}", show(low), show(high)),
            (Some(low), None) if self.band.kind == "above" => format!("> {}", show(low)),
            (Some(low), None) => format!(">= {}", show(low)),
            (None, Some(high)) => format!("<= {}", show(high)),
            (None, None) => return None,
        };
        match self.band.kind {
            "exact" => None,
            "prediction" => Some(format!("published {interval}")),
            _ => Some(format!("ours {interval}")),
        }
    }
}

/// The limit of decimals.
const DECIMALS_MAX: usize = 6;
/// Numbers that differ by less look equal with six decimals.
const SAME: f64 = 1e-6;

/// `Table 2` of `table2`, `Figure 5` of `fig5`; anything else is its own name.
pub fn item_name(item: &str) -> String {
    let numbered = |prefix: &str, word: &str| {
        let number = item.strip_prefix(prefix)?;
        number.starts_with(|first: char| first.is_ascii_digit()).then(|| format!("{word} {number}"))
    };
    numbered("table", "Table").or_else(|| numbered("fig", "Figure")).unwrap_or_else(|| match item {
        "text" => "Text".to_owned(),
        other => other.to_owned(),
    })
}

/// The rank of an item for sorting: tables, then figures, then the rest. Shorter names are first, so Table 10 comes after Table 9.
pub fn item_rank(item: &str) -> (bool, bool, usize, &str) {
    (!item.starts_with("table"), !item.starts_with("fig"), item.len(), item)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{CountsAs, Source};
    use crate::reproduce::{BesideEngine, JudgedBand, Measured, Measurement};
    use crate::verdict::Verdict;

    fn measurement(value: f64) -> Measurement {
        Measurement { value, seeds: 1, sd: 0.0, low: value, high: value }
    }

    fn claim(published: PublishedValue, kind: &'static str, ends: [Option<f64>; 2], ours: f64) -> JudgedClaim {
        JudgedClaim {
            item: String::new(),
            title: String::new(),
            source: Source::Paper,
            counts_as: CountsAs::Result,
            cite: String::new(),
            row: String::new(),
            column: String::new(),
            kind: if published.is_number() { ClaimKind::Number } else { ClaimKind::Order },
            unit: String::new(),
            published,
            measured: Measured { ours: Some(measurement(ours)), engine: None },
            engine: None,
            band: JudgedBand { kind, low: ends[0], high: ends[1] },
            verdict: Verdict::Reproduced,
            because: None,
            is_missed: false,
            is_open: false,
            is_coarse: false,
        }
    }

    fn words(kind: &'static str, ends: [Option<f64>; 2], ours: f64) -> JudgedClaim {
        claim(PublishedValue::Words("a > b".to_owned()), kind, ends, ours)
    }

    #[track_caller]
    fn assert_shown(claim: &JudgedClaim, ours: &str, band: &str) {
        assert_eq!((claim.ours_shown().as_deref(), claim.band_shown().as_deref()), (Some(ours), Some(band)));
    }

    #[test]
    fn a_number_that_decides_is_not_rounded_away() {
        let above = [Some(0.0), None];
        assert_shown(&words("above", above, -0.0012), "-0.001", "ours > 0.000");
        assert_shown(&words("above", above, 0.5), "0.5", "ours > 0.0");
        assert_shown(&words("above", above, -1e-9), "0.0", "ours > 0.0");
        assert_shown(&words("mean", [Some(0.95), Some(1.0)], 0.97), "0.97", "ours in 0.95..1.00");
        let beyond = claim(PublishedValue::Number(57.0), "truncated", [Some(57.0), Some(58.0)], 58.0146);
        assert_shown(&beyond, "58.01", "ours >= 57.00, < 58.00");
        let within = claim(PublishedValue::Number(57.0), "truncated", [Some(57.0), Some(58.0)], 57.0);
        assert_shown(&within, "57.0", "ours >= 57.0, < 58.0");
        let outside = claim(PublishedValue::Number(43.0), "prediction", [Some(39.3), Some(42.96)], 41.0);
        assert_shown(&outside, "41.00", "published in 39.30..42.96");
    }

    #[test]
    fn small_lead_of_engine_is_not_rounded_away() {
        let mut order = words("above", [Some(0.0), None], 12.0);
        order.measured.engine = Some(measurement(-0.04));
        order.engine = Some(BesideEngine { agrees: false, because: None, is_missed: false });
        assert_eq!((order.engine_shown().as_deref(), order.ours_shown().as_deref()), (Some("-0.04"), Some("12.00")));
    }
}
