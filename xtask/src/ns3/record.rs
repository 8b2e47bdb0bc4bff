//! Writes the figures of ns-3 into the tables of the experiment.

use super::cells::{Cell, Figures};

/// The text with ns-3's figures in the cells of each table. The table's `measure` names the quantity, the row the law and the column the network.
/// Other cells stay.
pub(super) fn written(text: &str, measured: &[(Cell, Figures)]) -> String {
    let (mut measure, mut columns) = (String::new(), Vec::new());
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.starts_with("[[") {
            (measure, columns) = (String::new(), Vec::new());
        } else if let Some(name) = line.strip_prefix("measure = \"") {
            name.trim_end_matches('"').clone_into(&mut measure);
        } else if let Some(list) = line.strip_prefix("columns = ") {
            columns = values(list).into_iter().map(|name| name.trim_matches('"').to_owned()).collect();
        }
        let row =
            line.strip_prefix('"').and_then(|line| line.split_once("\" = [")).map(|(law, list)| (law, values(list)));
        lines.push(match row {
            Some((law, old)) if !measure.is_empty() && old.len() == columns.len() => {
                let cell = |(column, old): (&String, String)| {
                    let found = measured.iter().find(|(cell, _)| cell.is(law, column));
                    found.and_then(|(_, figures)| shown(&measure, figures)).unwrap_or(old)
                };
                format!("\"{law}\" = [{}]", columns.iter().zip(old).map(cell).collect::<Vec<_>>().join(", "))
            }
            _ => line.to_owned(),
        });
    }
    lines.join("\n") + "\n"
}

/// The values of a one-line list. A comma in a string does not end a value.
fn values(list: &str) -> Vec<String> {
    let list = list.trim_start_matches('[').trim_end_matches(']');
    let (mut found, mut is_string) = (vec![String::new()], false);
    for character in list.chars() {
        is_string ^= character == '"';
        match (character, found.last_mut()) {
            (',', _) if !is_string => found.push(String::new()),
            (_, Some(last)) => last.push(character),
            (_, None) => {}
        }
    }
    found.into_iter().map(|value| value.trim().to_owned()).collect()
}

/// A quantity as a cell of the table; a queue has a tolerance.
fn shown(measure: &str, figures: &Figures) -> Option<String> {
    match measure {
        "rate" => Some(format!("{:.0}", figures.rate)),
        "queue" => Some(format!("\"{:.1}±{:.1}\"", figures.queue, (0.25 * figures.queue).max(3.0))),
        "lesser" => Some(format!("{:.2}", figures.lesser)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::{EXPERIMENT, cells};
    use super::*;
    use crate::run;

    const TEXT: &str = "[[table]]
measure = \"queue\"
columns = [\"17 packets\", \"two, 33 packets\", \"other\"]
[table.rows]
\"Reno\" = [\"1±3\", 2, 3]
\"BBR, version 1\" = [4, 5, 6]
\"Nobody's\" = [7, 8, 9]
[[figure]]
\"Reno\" = [1, 2, 3]
";

    #[test]
    fn only_what_was_measured_is_written() {
        let figures = Figures { rate: 800.4, queue: 20.0, lesser: 1.0 };
        let measured: Vec<(Cell, Figures)> = cells::all().map(|cell| (cell, figures)).collect();
        let expected = TEXT
            .replace("\"Reno\" = [\"1±3\", 2, 3]\n\"", "\"Reno\" = [\"20.0±5.0\", \"20.0±5.0\", 3]\n\"")
            .replace("[4, 5, 6]", "[\"20.0±5.0\", \"20.0±5.0\", 6]");
        assert_eq!(written(TEXT, &measured), expected);
    }

    /// Each case has a cell for its figures, so that no case is measured in vain.
    #[test]
    fn the_experiment_has_all_cases() {
        let text = fs::read_to_string(run::root().join(EXPERIMENT)).unwrap();
        for cell in cells::all() {
            let marked = written(&text, &[(cell, Figures { rate: -1.0, queue: -1.0, lesser: -1.0 })]);
            assert!(marked.contains("-1"), "{cell}");
        }
    }
}
