//! Twenty scenarios of the repository, as requests to the module and as the laboratory runs them.

use std::fs;
use std::path::Path;

use anabranch_lab::document::Document;
use anabranch_lab::experiment::Experiment;
use anabranch_lab::run;
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

/// Answers a request that names no law of its own.
pub(crate) fn answer(request: &str, emit: &mut dyn FnMut(&Value)) {
    anabranch_web::answer(request, &mut |name| Err(format!("{name} is not here")), emit);
}
