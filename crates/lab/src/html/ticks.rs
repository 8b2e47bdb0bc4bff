//! Round numbers along an axis.

/// Multiples of 1, 2 or 5 times a power of ten from `low` to `high`, at most five of them besides the first, with the decimals that they need.
pub(super) fn ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let span = high - low;
    if !(span.is_finite() && span > 0.0) {
        return Vec::new();
    }
    let mut power = 1.0;
    let mut exponent = 0_i32;
    while power * 10.0 <= span {
        (power, exponent) = (power * 10.0, exponent + 1);
    }
    while power > span {
        (power, exponent) = (power / 10.0, exponent - 1);
    }
    // A step of the span's power of ten gives up to ten ticks, a tenth of it at least ten: a step between the two fits.
    let (step, decimals) = [(0.2, 1), (0.5, 1), (1.0, 0), (2.0, 0)]
        .into_iter()
        .map(|(part, more)| (part * power, more - exponent))
        .find(|(step, _)| span / step <= 5.0)
        .unwrap_or((5.0 * power, -exponent));
    let decimals = usize::try_from(decimals).unwrap_or(0);
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|index| (index as f64 * step, format!("{:.decimals$}", index as f64 * step))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let shown = |low, high| ticks(low, high).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(shown(0.0, 83.0), ["0", "20", "40", "60", "80"]);
        assert_eq!(shown(0.0, 1.15), ["0.0", "0.5", "1.0"]);
        assert_eq!(shown(0.0, 0.43), ["0.0", "0.1", "0.2", "0.3", "0.4"]);
        assert_eq!(shown(50.0, 99.0), ["50", "60", "70", "80", "90"]);
        assert_eq!(shown(-3.0, 3.0), ["-2", "0", "2"]);
        assert_eq!(shown(0.0, 1e6).len(), 6);
        assert!(shown(1.0, 1.0).is_empty() && shown(0.0, f64::NAN).is_empty());
    }
}
