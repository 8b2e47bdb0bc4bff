//! Tables with medians and ranges of the measurements.

use crate::rivals::Rival;

/// A column, with a number of each round.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    name: &'static str,
    digits: usize,
}

impl Column {
    pub const fn new(name: &'static str, digits: usize) -> Self {
        Self { name, digits }
    }

    /// Median, least and most.
    fn cell(self, mut values: Vec<f64>) -> String {
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        let digits = self.digits;
        format!("{median:.digits$} ({:.digits$} to {:.digits$})", values[0], values[values.len() - 1])
    }
}

/// Prints a Markdown table with a row for each rival. A rival that was not measured has no row.
pub fn print(rows: &[(Rival, Vec<Vec<f64>>)], columns: &[Column]) {
    let head: Vec<&str> = columns.iter().map(|column| column.name).collect();
    println!("| | {} |", head.join(" | "));
    println!("| --- |{}", " --- |".repeat(columns.len()));
    for (rival, rounds) in rows.iter().filter(|(_, rounds)| !rounds.is_empty()) {
        let cells: Vec<String> = columns
            .iter()
            .enumerate()
            .map(|(place, column)| column.cell(rounds.iter().map(|round| round[place]).collect()))
            .collect();
        println!("| {} | {} |", rival.name(), cells.join(" | "));
    }
}
