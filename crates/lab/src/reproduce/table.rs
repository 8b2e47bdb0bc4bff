//! An outcome as a table: CSV for programs, Markdown for pages.

use std::io::{self, Write};

use super::{JudgedClaim, Outcome, Total};
use crate::sweep::quoted;

impl Outcome {
    /// Writes a row for each claim as CSV (RFC 4180). Numbers are in the claim's unit; the cell of an unbounded end is empty.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "paper,experiment,item,title,source,counts_as,row,column,kind,unit,published,value,seeds,sd,band,band_low,band_high,verdict,\
             because,engine_value,engine_sd,engine_agrees,engine_because,is_coarse"
        )?;
        for paper in &self.papers {
            for experiment in &paper.experiments {
                for claim in &experiment.claims {
                    writeln!(out, "{}", csv_row(&paper.key, &experiment.item, claim)?)?;
                }
            }
        }
        Ok(())
    }

    /// Writes a table for each group of claims as Markdown, followed by the deviations with their reasons.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { version, hash, runs, .. } = self;
        writeln!(out, "# Published and ours\n\nanabranch {version}, {runs} runs, hash {hash}.\n\n{TOTALS_HEAD}")?;
        for total in self.totals() {
            let Total { under, claims, good, coarse, not_reproducible, .. } = total;
            let (name, unexplained) = (under.name(), total.open + total.missed);
            let verb = if under.is_result() { "reproduced" } else { "hold" };
            let deviate = total.deviate();
            writeln!(
                out,
                "| {name} | {claims} | {good} {verb} | {deviate} | {unexplained} | {not_reproducible} | {coarse} |"
            )?;
        }
        for paper in &self.papers {
            writeln!(out, "\n## {}: {}", paper.key, paper.title)?;
            for experiment in &paper.experiments {
                writeln!(out, "\n### {}\n\n{}\n\n`{}`", experiment.item, experiment.question, experiment.command)?;
                for group in experiment.claims.chunk_by(|a, b| a.title == b.title) {
                    writeln!(out, "\n**{}**\n\n{MARKDOWN_HEAD}", escaped(&group[0].title))?;
                    for claim in group {
                        writeln!(out, "{}", markdown_row(claim))?;
                    }
                    let mut reasons: Vec<&str> = group.iter().filter_map(|claim| claim.because.as_deref()).collect();
                    reasons.dedup();
                    reasons.iter().try_for_each(|because| writeln!(out, "\nBecause: {because}"))?;
                    let engines = group.iter().filter_map(|claim| claim.engine.as_ref());
                    let mut reasons: Vec<&str> = engines.filter_map(|engine| engine.because.as_deref()).collect();
                    reasons.dedup();
                    reasons.iter().try_for_each(|because| writeln!(out, "\nEngine: {because}"))?;
                }
                experiment.notes.iter().try_for_each(|note| writeln!(out, "\n{}", note.text))?;
            }
        }
        Ok(())
    }
}

const TOTALS_HEAD: &str = "| source | claims | within the band | deviate | of them unexplained | not reproducible | coarse |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |";

const MARKDOWN_HEAD: &str = "| | | published | ours | ± sd | unit | verdict | engine | to ours |\n| --- | --- | ---: | ---: | ---: | --- | --- | ---: | ---: |";

fn csv_row(paper: &str, experiment: &str, claim: &JudgedClaim) -> io::Result<String> {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let (ours, engine) = (claim.measured.ours.as_ref(), claim.measured.engine.as_ref());
    let fields = [
        paper.to_owned(),
        experiment.to_owned(),
        claim.item.clone(),
        claim.title.clone(),
        word(serde_json::to_value(claim.source)?),
        word(serde_json::to_value(claim.counts_as)?),
        claim.row.clone(),
        claim.column.clone(),
        word(serde_json::to_value(claim.kind)?),
        claim.unit.clone(),
        claim.published.to_string(),
        number(ours.map(|ours| ours.value)),
        ours.map_or(String::new(), |ours| ours.seeds.to_string()),
        number(ours.map(|ours| ours.sd)),
        claim.band.kind.to_owned(),
        number(claim.band.low),
        number(claim.band.high),
        claim.verdict.to_string(),
        claim.because.clone().unwrap_or_default(),
        number(engine.map(|engine| engine.value)),
        number(engine.map(|engine| engine.sd)),
        claim.engine.as_ref().map_or(String::new(), |engine| engine.agrees.to_string()),
        claim.engine.as_ref().and_then(|engine| engine.because.clone()).unwrap_or_default(),
        claim.is_coarse.to_string(),
    ];
    Ok(fields.iter().map(|field| quoted(field)).collect::<Vec<_>>().join(","))
}

fn markdown_row(claim: &JudgedClaim) -> String {
    let show = |value: f64| {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let ours = claim.measured.ours.as_ref();
    let cells = [
        claim.row.clone(),
        claim.column.clone(),
        claim.published.to_string(),
        ours.map_or("–".to_owned(), |ours| show(ours.value)),
        ours.filter(|ours| ours.seeds > 1).map_or(String::new(), |ours| show(ours.sd)),
        claim.unit.clone(),
        claim.verdict.to_string(),
        claim.engine_shown().unwrap_or_default(),
        claim.engine_stand_shown().unwrap_or_default(),
    ];
    format!("| {} |", cells.iter().map(|cell| escaped(cell)).collect::<Vec<_>>().join(" | "))
}

/// The text of a cell with escaped bars, as a bar would end the cell.
fn escaped(cell: &str) -> String {
    cell.replace('|', "\\|")
}
