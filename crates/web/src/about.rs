//! The laws and queues that there are, for the page's lists.

use anabranch_cc::registry::rows;
use anabranch_lab::own::Module;
use anabranch_sim::QueueSpec;
use anabranch_units::settings::{Kind, Parameter, Part as _};
use serde_json::{Value, json};

/// All of them.
pub(crate) fn about() -> Value {
    let laws: Vec<Value> = rows()
        .iter()
        .map(|row| {
            let settings: Vec<Value> = row.parameters().iter().map(setting).collect();
            json!({ "name": row.name, "summary": row.summary, "citation": row.citation, "settings": settings })
        })
        .collect();
    let queues: Vec<Value> =
        QueueSpec::kinds().iter().map(|kind| json!({ "name": kind.word, "summary": kind.help })).collect();
    json!({ "kind": "about", "version": env!("CARGO_PKG_VERSION"), "laws": laws, "queues": queues })
}

/// A law that is a module, in the form of the others.
pub(crate) fn law(module: &Module) -> Value {
    let settings = module.settings().iter().map(|setting| {
        json!({
            "name": setting.name, "help": setting.help, "unit": setting.unit,
            "allowed": format!("{} to {} {}", setting.least, setting.most, setting.unit).trim_end(),
            "value": setting.default.to_string(), "least": setting.least, "most": setting.most, "options": [],
        })
    });
    let gauges: Vec<&str> = module.gauge_names().collect();
    json!({
        "kind": "law", "name": module.name(), "digest": module.digest(), "hooks": module.hooks(), "gauges": gauges,
        "settings": settings.collect::<Vec<_>>(),
    })
}

fn setting(parameter: &Parameter) -> Value {
    let Parameter { name, help, unit, kind, value, .. } = parameter;
    let (least, most) = match kind {
        &Kind::Number { least, most } => (Some(least), Some(most)),
        _ => (None, None),
    };
    let options: Vec<&str> = match kind {
        Kind::Choice { options } => options.clone(),
        Kind::Switch => vec!["true", "false"],
        _ => Vec::new(),
    };
    json!({
        "name": name, "help": help, "unit": unit, "allowed": kind.to_string(), "value": value.to_string(), "least": least, "most": most,
        "options": options,
    })
}
