//! The measures of a scenario, asked of what iperf3 told.
//!
//! A flow's `window` and `rtt` are what the sender's TCP says ten times a second: its window in segments, and the RTT smoothed over some eight ACKs. Its `goodput`
//! is what the receiver's program has read in each tenth of a second. `dropped_packets` of a flow counts segments sent again; of a link, what the link lost.

use anabranch_lab::expression::{Expression, ExpressionError, Found, Series};
use serde_json::Value;

use super::transfer::Transfer;

/// Measures with their values, in the order of the file.
pub(super) type Values = Vec<(String, f64)>;

pub(super) fn values(
    measures: &[(String, String)],
    ids: &[String],
    transfers: &[Transfer],
    status: &Value,
    end: f64,
) -> Result<Values, String> {
    let told = Told { ids, transfers, status, end };
    let value = |(name, text): &(String, String)| -> Result<(String, f64), String> {
        let expression = Expression::parse(text).map_err(|error| error.to_string())?;
        let expression = expression.written_out(&|_| ids.to_vec()).map_err(|error| error.to_string())?;
        let answer = expression.evaluate_run(&mut |name, _| told.gauge(name), &mut |name| told.series(name));
        Ok((name.clone(), answer.map_err(|error| format!("{name}: {error}"))?))
    };
    measures.iter().map(value).collect()
}

struct Told<'a> {
    ids: &'a [String],
    transfers: &'a [Transfer],
    status: &'a Value,
    end: f64,
}

impl Told<'_> {
    fn flow(&self, id: &str) -> Option<&Transfer> {
        self.ids.iter().position(|known| known == id).map(|index| &self.transfers[index])
    }

    fn gauge(&self, name: &str) -> Result<f64, ExpressionError> {
        let found = match name.split('.').collect::<Vec<_>>()[..] {
            ["flow", id, gauge] => self.flow(id).and_then(|flow| gauge_of(flow, gauge)),
            ["link", id, "dropped_packets"] => self.dropped(id),
            _ => None,
        };
        found.ok_or_else(|| ExpressionError::new(format!("nothing tells `{name}` of the kernel")))
    }

    fn dropped(&self, id: &str) -> Option<f64> {
        let link = self.status["links"].as_array()?.iter().find(|link| link["id"] == id)?;
        Some(link["lost_packets"].as_f64()? + link["dropped_packets"].as_f64()?)
    }

    fn series(&self, name: &str) -> Result<Found, ExpressionError> {
        let found = match name.split('.').collect::<Vec<_>>()[..] {
            ["flow", id, series] => self.flow(id).and_then(|flow| series_of(flow, series)),
            _ => None,
        };
        let series = found.ok_or_else(|| ExpressionError::new(format!("nothing tells `{name}` of the kernel")))?;
        Ok(Found { series: Some(series), end: self.end })
    }
}

fn gauge_of(flow: &Transfer, gauge: &str) -> Option<f64> {
    let end = &flow.told["end"];
    match gauge {
        "goodput_bps" => end["sum_received"]["bits_per_second"].as_f64(),
        "dropped_packets" | "retransmitted_packets" => end["sum_sent"]["retransmits"].as_f64(),
        "rtt_mean_s" => {
            let samples = samples(flow, "rtt");
            Some(samples.iter().map(|(_, us)| us / 1e6).sum::<f64>() / samples.len() as f64)
        }
        _ => None,
    }
}

fn series_of(flow: &Transfer, series: &str) -> Option<Series> {
    let scaled = |key, scale: f64| {
        let points = samples(flow, key).into_iter().map(|(at, value)| (at, value / scale)).collect();
        Series::new(false, points)
    };
    Some(match series {
        "window" => scaled("snd_cwnd", flow.told["start"]["tcp_mss_default"].as_f64()?),
        "rtt" => scaled("rtt", 1e6),
        "goodput" => received(flow)?,
        _ => return None,
    })
}

/// What the sender told at the end of each interval.
fn samples(flow: &Transfer, key: &str) -> Vec<(f64, f64)> {
    let intervals = flow.told["intervals"].as_array().into_iter().flatten();
    let streams = intervals.filter_map(|interval| interval["streams"].get(0));
    streams.filter_map(|stream| Some((flow.began + stream["end"].as_f64()?, stream[key].as_f64()?))).collect()
}

/// Bits that the receiver read, in the middle of each of its intervals.
fn received(flow: &Transfer) -> Option<Series> {
    let intervals = flow.told["server_output_json"]["intervals"].as_array()?.iter();
    let point = |interval: &Value| {
        let sum = &interval["sum"];
        let middle = (sum["start"].as_f64()? + sum["end"].as_f64()?) / 2.0;
        Some((flow.began + middle, 8.0 * sum["bytes"].as_f64()?))
    };
    Some(Series::new(true, intervals.filter_map(point).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer() -> Transfer {
        let told = r#"{ "start": { "tcp_mss_default": 1000 },
            "intervals": [{ "streams": [{ "end": 1, "rtt": 2000, "snd_cwnd": 8000 }] }, { "streams": [{ "end": 2, "rtt": 4000, "snd_cwnd": 4000 }] }],
            "end": { "sum_sent": { "retransmits": 3 }, "sum_received": { "bits_per_second": 5e6 } },
            "server_output_json": { "intervals": [{ "sum": { "start": 0, "end": 1, "bytes": 100 } }, { "sum": { "start": 1, "end": 2, "bytes": 50 } }] } }"#;
        Transfer { began: 10.0, told: serde_json::from_str(told).unwrap() }
    }

    fn asked(expression: &str) -> Result<f64, String> {
        let status: Value =
            serde_json::from_str(r#"{ "links": [{ "id": "wan", "lost_packets": 7, "dropped_packets": 2 }] }"#).unwrap();
        let measures = [("it".to_owned(), expression.to_owned())];
        values(&measures, &["f".to_owned()], &[transfer()], &status, 12.0).map(|values| values[0].1)
    }

    #[test]
    fn measures_are_answered_from_what_iperf_told() {
        let expected = [
            ("flow.f.goodput_bps / 1e6", 5.0),
            ("flow.f.dropped_packets + link.wan.dropped_packets", 12.0),
            ("flow.f.rtt_mean_s * 1e3", 3.0),
            ("first_time(flow.f.window <= 4, 10)", 12.0),
            ("mean(flow.f.goodput, 10, 11)", 800.0),
            ("jain(mean(flow.#.goodput, 10, 12))", 1.0),
        ];
        for (expression, value) in expected {
            let found = asked(expression).unwrap();
            assert!((found - value).abs() < 1e-9, "{expression}: {found}, not {value}");
        }
    }

    #[test]
    fn measure_without_an_answer_is_named() {
        for expression in
            ["flow.f.timeouts", "link.wan.utilisation", "mean(flow.f.in_flight, 0, 1)", "flow.g.goodput_bps"]
        {
            assert!(asked(expression).unwrap_err().contains("nothing tells"), "{expression}");
        }
    }
}
