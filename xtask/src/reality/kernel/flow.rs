//! The flows of a scenario.

use anabranch_units::{Bytes, Span};
use toml::Table;

/// A flow of the scenario.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Flow {
    pub(super) id: String,
    pub(super) from: String,
    pub(super) to: String,
    /// In seconds.
    pub(super) start: f64,
    /// The law's name in the simulator; of `mpfast` its name on one path, as the kernel's `fast` couples subflows itself.
    pub(super) law: String,
    /// As `anabranch kernel load` takes them.
    pub(super) settings: Vec<String>,
    /// The links of its paths; none if it is no multipath flow.
    pub(super) paths: Vec<String>,
    /// Its receive buffer in bytes.
    pub(super) buffer: Option<u64>,
}

/// The flows of a scenario without axes, and its duration in seconds. Starts are within `start_jitter`, of one run after the other in steps of the golden
/// ratio, which fill it evenly.
pub(super) fn flows(text: &str, run: u32) -> Result<(Vec<Flow>, f64), String> {
    let document: Table = text.parse().map_err(|error| format!("{error}"))?;
    let seconds = time(document.get("duration"))?.ok_or("no duration")?;
    let all = document.get("flow").and_then(toml::Value::as_array).ok_or("no flows")?;
    let mut flows = vec![];
    let part = (f64::from(run) * GOLDEN).fract();
    for table in all.iter().filter_map(toml::Value::as_table) {
        let word = |key: &str| table.get(key).and_then(toml::Value::as_str).map(str::to_owned);
        let id = word("id").ok_or("a flow has no id")?;
        let cc = table.get("cc").and_then(toml::Value::as_table).ok_or_else(|| format!("flow {id} has no cc"))?;
        let flow = Flow {
            from: word("from").ok_or_else(|| format!("flow {id} has no from"))?,
            to: word("to").ok_or_else(|| format!("flow {id} has no to"))?,
            start: time(table.get("start"))?.unwrap_or_default()
                + part * time(table.get("start_jitter"))?.unwrap_or_default(),
            law: cc.get("name").and_then(toml::Value::as_str).unwrap_or_default().replace("mpfast", "fast"),
            settings: settings(cc)?,
            paths: paths(table.get("paths")),
            buffer: word("rbuf").map(|text| buffer(&text)).transpose()?,
            id,
        };
        let count = table.get("count").and_then(toml::Value::as_integer).unwrap_or(1);
        for number in 0..count {
            flows.push(Flow { id: flow.id.replace('#', &number.to_string()), ..flow.clone() });
        }
    }
    flows.sort_by(|a, b| a.start.total_cmp(&b.start));
    Ok((flows, seconds))
}

/// 2/(1 + √5).
const GOLDEN: f64 = 0.618_034;

fn time(value: Option<&toml::Value>) -> Result<Option<f64>, String> {
    let Some(value) = value else { return Ok(None) };
    let text = value.as_str().ok_or("a time is a number with a unit")?;
    let span: Span = text.parse().map_err(|error| format!("{text}: {error}"))?;
    Ok(Some(span.as_secs_f64()))
}

fn paths(value: Option<&toml::Value>) -> Vec<String> {
    let paths = value.and_then(toml::Value::as_array).into_iter().flatten();
    paths.filter_map(|path| path.get("first")?.as_str().map(str::to_owned)).collect()
}

fn buffer(text: &str) -> Result<u64, String> {
    let bytes: Bytes = text.parse().map_err(|error| format!("{text}: {error}"))?;
    Ok(bytes.count())
}

fn settings(cc: &Table) -> Result<Vec<String>, String> {
    let others = cc.iter().filter(|(key, _)| *key != "name");
    let pairs = others.map(|(key, value)| match value {
        toml::Value::String(text) => Ok(format!("{key}={text}")),
        toml::Value::Integer(number) => Ok(format!("{key}={number}")),
        toml::Value::Float(number) => Ok(format!("{key}={number}")),
        _ => Err(format!("cc.{key}: the kernel takes a number or a word")),
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_have_start_law_and_settings() {
        let text = "duration = \"5s\"\n[[flow]]\nid = \"b\"\nfrom = \"h0\"\nto = \"h1\"\nstart = \"2500ms\"\nstart_jitter = \"1s\"\n\
                    cc = { name = \"mpfast\", alpha = 10, loss = \"composite\" }\nrbuf = \"1MB\"\n\
                    paths = [{ first = \"one\", last = \"one\" }, { first = \"two\", last = \"two\" }]\n\
                    [[flow]]\nid = \"f#\"\ncount = 2\nfrom = \"h0\"\nto = \"h1\"\ncc = { name = \"bbr1\" }\n";
        let (found, seconds) = flows(text, 1).unwrap();
        let ids: Vec<&str> = found.iter().map(|flow| flow.id.as_str()).collect();
        assert_eq!((ids, seconds), (vec!["f0", "f1", "b"], 5.0));
        assert!((found[2].start - 3.118_034).abs() < 1e-9, "{}", found[2].start);
        assert_eq!(found[0].law, "bbr1");
        assert_eq!(
            (found[2].law.as_str(), &found[2].settings[..]),
            ("fast", &["alpha=10", "loss=composite"].map(str::to_owned)[..])
        );
        assert_eq!((&found[2].paths[..], found[2].buffer), (&["one", "two"].map(str::to_owned)[..], Some(1_000_000)));
    }
}
