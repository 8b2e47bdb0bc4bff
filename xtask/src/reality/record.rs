//! The experiments of `reality`: the settings of each variant, and its measured values.

use std::fs;

use toml::{Table, Value};

use super::cells::{Came, Cell};
use crate::run;

/// The settings of the variant, as `--set` takes them.
pub(super) fn settings(cell: &Cell) -> Result<Vec<String>, String> {
    let text = read(cell.file)?;
    settings_in(&text, cell.name).map_err(|problem| format!("{}: {problem}", cell.file))
}

fn settings_in(text: &str, name: &str) -> Result<Vec<String>, String> {
    let document: Table = text.parse().map_err(|error| format!("{error}"))?;
    let axis = document.get("axis").and_then(|axes| axes.get(0)).and_then(|axis| axis.get("values"));
    let variant = axis.and_then(|values| values.get(name)).and_then(Value::as_table);
    let variant = variant.ok_or_else(|| format!("the first axis has no value `{name}`"))?;
    let set = variant.iter().map(|(key, value)| match value {
        Value::String(text) => Ok(format!("{key}={text}")),
        Value::Integer(number) => Ok(format!("{key}={number}")),
        Value::Float(number) => Ok(format!("{key}={number}")),
        _ => Err(format!("`{name}` sets {key} to what is neither a string nor a number")),
    });
    set.collect()
}

/// Writes the real values into the rows of the tables.
pub(super) fn write(cell: &Cell, real: Came) -> Result<(), String> {
    let text = read(cell.file)?;
    let path = run::root().join(cell.file);
    fs::write(&path, written(&text, cell, real)).map_err(|error| format!("{}: {error}", path.display()))
}

/// The text with the real value in `"name" = [...]` of each table, by the table's column.
fn written(text: &str, cell: &Cell, real: Came) -> String {
    let row = format!("\"{}\" = [", cell.name);
    let mut column = "";
    let mut lines = vec![];
    for line in text.lines() {
        let value = match column {
            "goodput" => Some(format!("{:.2}", real.megabits)),
            "lost" => Some(format!("{}", real.lost)),
            "rtt" => real.rtt.map(|rtt| format!("\"{:.1}±{:.1}\"", rtt * 1e3, cell.allowance(rtt) * 1e3)),
            _ => None,
        };
        if let Some(name) = line.strip_prefix("columns = [\"") {
            column = name.trim_end_matches("\"]");
        } else if line.starts_with("[[") {
            column = "";
        }
        lines.push(match value.filter(|_| line.starts_with(&row)) {
            Some(value) => format!("{row}{value}]"),
            None => line.to_owned(),
        });
    }
    lines.join("\n") + "\n"
}

fn read(file: &str) -> Result<String, String> {
    let path = run::root().join(file);
    fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::super::cells::CELLS;
    use super::*;

    const TEXT: &str = "[[axis]]
name = \"link\"
[axis.values]
near = { \"link.there.rate\" = \"10Mbit/s\", \"link.there.queue.packets\" = 34, \"link.there.error.rate\" = 0.01 }
\"far\" = {}
[[table]]
columns = [\"goodput\"]
[table.rows]
\"near\" = [1]
\"far\" = [2]
[[table]]
columns = [\"rtt\"]
[table.rows]
\"near\" = [\"3±1\"]
[[figure]]
\"near\" = [4]
";

    #[test]
    fn a_variant_sets_what_its_axis_says() {
        let set = ["link.there.error.rate=0.01", "link.there.queue.packets=34", "link.there.rate=10Mbit/s"];
        let mut found = settings_in(TEXT, "near").unwrap();
        found.sort();
        assert_eq!(found, set);
        assert!(settings_in(TEXT, "far").unwrap().is_empty());
        assert_eq!(settings_in(TEXT, "else").unwrap_err(), "the first axis has no value `else`");
    }

    #[test]
    fn only_its_own_rows_are_written() {
        let cell = Cell { name: "near", file: "", rtt: 0.01, paths: false };
        let real = Came { megabits: 9.456, rtt: Some(0.04), lost: 7.0 };
        let changed = [("[1]", "[9.46]"), ("[\"3±1\"]", "[\"40.0±3.0\"]")];
        let expected = changed.iter().fold(TEXT.to_owned(), |text, (before, after)| text.replace(before, after));
        assert_eq!(written(TEXT, &cell, real), expected);
    }

    /// Each cell has a row that can be written.
    #[test]
    fn the_experiments_have_all_cells() {
        for cell in CELLS {
            settings(cell).unwrap();
            let text = read(cell.file).unwrap();
            let real = Came { megabits: -1.0, rtt: Some(-1.0), lost: -1.0 };
            assert!(written(&text, cell, real).contains(&format!("\"{}\" = [-1.00]", cell.name)), "{}", cell.name);
        }
    }
}
