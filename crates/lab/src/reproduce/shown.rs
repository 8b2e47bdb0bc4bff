//! A claim's numbers in words, as every report shows them.

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
    /// Decimals of our numbers: one more than the paper prints, unless it prints thousands.
    pub fn decimals(&self) -> usize {
        match &self.published {
            PublishedValue::Number(value) => {
                let printed = value.to_string().split_once('.').map_or(0, |(_, decimals)| decimals.len());
                printed + usize::from(value.abs() < 1000.0 && self.band.kind != "exact")
            }
            PublishedValue::Words(_) => {
                self.measured.ours.as_ref().map_or(0, |ours| usize::from(ours.value.abs() < 1000.0))
            }
        }
    }

    /// A number beside the claim's, with its decimals.
    pub fn number_shown(&self, value: f64) -> String {
        let decimals = self.decimals();
        format!("{value:.decimals$}")
    }

    /// Our mean, if something was measured.
    pub fn ours_shown(&self) -> Option<String> {
        self.measured.ours.as_ref().map(|ours| self.number_shown(ours.value))
    }

    /// Our standard deviation, if there were several seeds.
    pub fn sd_shown(&self) -> Option<String> {
        self.measured.ours.as_ref().filter(|ours| ours.seeds > 1).map(|ours| self.number_shown(ours.sd))
    }

    /// What our own transport gives in the place of ns-2's agents, if it has a part in the claim.
    pub fn engine_shown(&self) -> Option<String> {
        self.engine.as_ref()?;
        Some(self.measured.engine.as_ref().map_or_else(|| "–".to_owned(), |engine| self.number_shown(engine.value)))
    }

    /// How that stands to ns-2's agents: `+1.2 %` of a number, `holds` of an order, a time or a shape.
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

    /// How far our mean is from the published number: `-120 (-0.5 %)`; nothing if there are not both.
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
        // Of a percentage, a percentage says nothing.
        let has_share = self.unit != "%" && published.abs() > f64::EPSILON;
        Some(if has_share { format!("{shown} ({:+.1} %)", 100.0 * difference / published) } else { shown })
    }

    /// What must lie where: `published in 2..3`, `ours >= 2`; nothing if it must be exact.
    pub fn band_shown(&self) -> Option<String> {
        let show = |value: f64| self.number_shown(value);
        let interval = match (self.band.low, self.band.high) {
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
/// Where an item stands among others: tables, then figures, then the rest. Table 10 comes after Table 9: the shorter name first.
pub fn item_rank(item: &str) -> (bool, bool, usize, &str) {
    (!item.starts_with("table"), !item.starts_with("fig"), item.len(), item)
}
