//! `anabranch cc`: the registry of congestion laws, and controllers of one's own.

mod own;

use std::io::Write as _;

use anabranch_cc::registry::{self, Kind, Row};
use anabranch_lab::load::transport;
use serde_json::{Value, json};

use crate::args::Cc;
use crate::failure::{Failure, Outcome};
use crate::terminal::{Align, BOLD, DIM, PLAIN, Table};

pub(crate) fn cc(command: &Cc) -> Outcome {
    let mut out = anstream::stdout().lock();
    match command {
        Cc::List { json: true } => {
            let laws: Vec<Value> = registry::rows().iter().map(described).collect();
            writeln!(out, "{:#}", json!({ "schema": "anabranch-cc/1", "laws": laws }))?;
        }
        Cc::List { json: false } => {
            let mut table = Table::new(&[("name", Align::Left), ("law", Align::Left), ("source", Align::Left)]);
            for row in registry::rows() {
                let cells = [(row.name, BOLD), (row.summary, PLAIN), (row.citation, DIM)];
                table.row(cells.map(|(text, style)| (text.to_owned(), style)).to_vec());
            }
            write!(out, "{}", table.render(""))?;
        }
        Cc::Show { name, json } => {
            let row = registry::find(name).map_err(|error| Failure::usage(error.to_string()))?;
            match json {
                true => writeln!(out, "{:#}", described(row))?,
                false => write!(out, "{}", shown(row))?,
            }
        }
        Cc::New(args) => {
            drop(out);
            return own::new(args);
        }
        Cc::Check(args) => {
            drop(out);
            return own::check(args);
        }
    }
    Ok(())
}

fn described(row: &Row) -> Value {
    let parameters: Vec<Value> = row
        .parameters()
        .iter()
        .map(|parameter| {
            let mut described = json!({
                "name": parameter.name,
                "help": parameter.help,
                "unit": parameter.unit,
                "default": parameter.value.to_string(),
                "allowed": parameter.kind.to_string(),
            });
            if let Kind::Choice { options } = &parameter.kind {
                described["options"] = json!(options);
            }
            if let Some(kind) = parameter.only {
                described["only"] = json!(kind);
            }
            described
        })
        .collect();
    json!({ "name": row.name, "summary": row.summary, "citation": row.citation, "parameters": parameters })
}

fn shown(row: &Row) -> String {
    let mut table = Table::new(&[
        ("parameter", Align::Left),
        ("default", Align::Right),
        ("unit", Align::Left),
        ("allowed", Align::Left),
        ("meaning", Align::Left),
    ]);
    for parameter in row.parameters() {
        let help = match parameter.only {
            Some(kind) => format!("{kind}: {}", parameter.help),
            None => parameter.help.to_owned(),
        };
        table.row(vec![
            (parameter.name, BOLD),
            (parameter.value.to_string(), PLAIN),
            (parameter.unit.to_owned(), PLAIN),
            (parameter.kind.to_string(), DIM),
            (help, PLAIN),
        ]);
    }
    let name = row.name;
    format!(
        "{BOLD}{name}{BOLD:#}: {} {DIM}({}){DIM:#}\n\n{}\n{}",
        row.summary,
        row.citation,
        table.render(""),
        usage(name)
    )
}

/// The transports that can use a law.
fn usage(name: &str) -> String {
    let line = |transport: &str| format!("In a scenario: transport = \"{transport}\", cc = {{ name = \"{name}\" }}\n");
    let ns2 = match transport::fast_laws().contains(&name) {
        true => line("ns2/fast") + "(docs/reference/scenario.md says which of the parameters ns-2's agent has)\n",
        false => String::new(),
    };
    line("anabranch") + &ns2
}
