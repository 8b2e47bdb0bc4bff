//! Twenty scenarios of the repository, as requests to the module and as the laboratory runs them.

use std::fs;
use std::path::Path;

use anabranch_lab::document::Document;
use anabranch_lab::experiment::Experiment;
use anabranch_lab::run;
use anabranch_web::answer::Modules;
use serde_json::{Value, json};

/// Files with a variant each: agents of ns-2 and the transport, one path and several, every kind of queue and of error model that the papers have. Those of
/// mfast-2019, emfast-2019 and rrfast-2017 have ns-2's clock.
pub(crate) const SCENARIOS: [(&str, &[&str]); 20] = [
    ("experiments/mfast-2019/table2.toml", &["SCTP"]),
    ("experiments/mfast-2019/table2.toml", &["Fast TCP (8, 2)"]),
    ("experiments/mfast-2019/fig6.toml", &["MFast TCP"]),
    ("experiments/mfast-2019/bundling.toml", &["SCTP, four chunks"]),
    ("experiments/emfast-2019/recovery.toml", &[]),
    ("experiments/emfast-2019/fig4.toml", &["EMFast TCP"]),
    ("experiments/emfast-2019/loss-rate.toml", &["EMFast TCP", "0.01"]),
    ("experiments/multihoming-2010/random-loss.toml", &["0.01"]),
    ("experiments/multihoming-2010/fig10-loss.toml", &["fast_mh", "0.01"]),
    ("experiments/ctcp-2019/table2.toml", &["CTCP, third duplicate", "error=0.01"]),
    ("experiments/ctcp-2019/table3.toml", &["Vegas"]),
    ("experiments/ctcp-2019/fig5.toml", &["Linux"]),
    ("experiments/rrfast-2017/rerouting.toml", &["RRFast", "longer"]),
    ("experiments/analytic/one-flow.toml", &[]),
    ("experiments/analytic/shares.toml", &[]),
    ("experiments/law/fades.toml", &[]),
    ("experiments/law/reroutes.toml", &[]),
    ("experiments/law/short.toml", &[]),
    ("experiments/rivals/dctcp.toml", &[]),
    ("experiments/reality/two-paths.toml", &[]),
];

pub(crate) fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub(crate) fn experiment(name: &str) -> Experiment {
    let mut base = |base: &str| Ok(read(base));
    Experiment::parse(Document::parse_with(name, &read(name), &mut base).unwrap()).unwrap()
}

/// The first variant whose labels begin with these.
pub(crate) fn variant(experiment: &Experiment, labels: &[&str]) -> Vec<usize> {
    let variants = experiment.variants();
    let found = variants.into_iter().find(|variant| experiment.labels(variant).starts_with(labels));
    found.unwrap_or_else(|| panic!("{} has no variant {labels:?}", experiment.file()))
}

pub(crate) fn request(name: &str, labels: &[&str]) -> Value {
    let mut bases = serde_json::Map::new();
    for entry in fs::read_dir(root().join("experiments/common")).unwrap() {
        let name = format!("experiments/common/{}", entry.unwrap().file_name().to_string_lossy());
        bases.insert(name.clone(), json!(read(&name)));
    }
    json!({ "ask": "run", "file": { "name": name, "text": read(name), "bases": bases }, "variant": labels })
}

/// A request for each scenario, and the hash of the sources.
pub(crate) fn with_hashes() -> Vec<(Value, String)> {
    let asked = SCENARIOS.iter().map(|&(name, labels)| {
        let experiment = experiment(name);
        let variant = variant(&experiment, labels);
        let scenario = experiment.scenario(&variant).unwrap();
        (request(name, &experiment.labels(&variant)), run::run(&scenario).unwrap().hash)
    });
    asked.collect()
}

/// Answers a request, a JSON text, that names no law of its own.
pub(crate) fn answer(request: &str, emit: &mut dyn FnMut(&Value)) {
    let request = serde_json::from_str(request).unwrap();
    asked(&request, &mut |name| Err(format!("{name} is not here")), emit);
}

/// Asks as the page does, and gives its answers as the page puts them together.
pub(crate) fn asked(request: &Value, modules: &mut Modules<'_>, emit: &mut dyn FnMut(&Value)) {
    anabranch_web::answer(&packed(request), modules, &mut |answer, numbers| emit(&together(answer, numbers)));
}

/// An answer with the numbers of its points in it, as `page/answer.js` makes it.
pub(crate) fn together(answer: &Value, numbers: &[f64]) -> Value {
    let mut answer = answer.clone();
    let mut rest = numbers.iter();
    if let Some(Value::Array(points)) = answer.get_mut("points") {
        for curve in points {
            let count = curve.as_u64().unwrap() as usize;
            let times: Vec<f64> = rest.by_ref().take(count).copied().collect();
            let values: Vec<f64> = rest.by_ref().take(count).copied().collect();
            *curve = json!([times, values]);
        }
    }
    assert_eq!(rest.len(), 0, "every number is of a curve");
    answer
}

/// A request as `page/request.js` writes it.
pub(crate) fn packed(request: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut put = |key: &str, value: &Value| {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Array(span) => span.iter().map(Value::to_string).collect::<Vec<_>>().join(","),
            other => other.to_string(),
        };
        for text in [key, &value] {
            bytes.extend((text.len() as u32).to_le_bytes());
            bytes.extend(text.bytes());
        }
    };
    for (key, value) in request.as_object().unwrap().iter().chain(request["file"].as_object().into_iter().flatten()) {
        match (key.as_str(), value) {
            ("file", _) => {}
            ("bases", Value::Object(bases)) => bases.iter().for_each(|(name, text)| put(&format!("base {name}"), text)),
            ("set" | "variant", Value::Array(all)) => all.iter().for_each(|one| put(key, one)),
            ("laws", Value::Array(all)) => all.iter().for_each(|one| put("law", one)),
            _ => put(key, value),
        }
    }
    bytes
}
