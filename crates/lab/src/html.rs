//! The report: an outcome as one HTML file that needs nothing else, neither a network nor a server.
//!
//! From the top:
//!
//! * `page` is the frame: head, masthead, contents, colophon. It brings the style, the script and uPlot along.
//! * `overview` shows every claim as a square; `paper` is the section of a paper, `experiment` that of one of its files.
//! * `table` holds published numbers against ours, with an `interval` in each row; `bars` draws a whole table.
//! * `setup` shows what was run, `anomalies` the claims that deviate, `coarse` the claims that say little.
//! * `alike` groups equal parts of a network; `network` draws one of each group; `charts` passes the series of a figure, thinned out, to the script.
//! * `evaluation` is the report of an evaluation: criteria in place of papers. `field` is that of random networks: distributions, and the worst draws.
//! * `run` is the report of one run or of several beside each other, with `cdf` for distributions; `grid` is that of a sweep; both have round `ticks`.
//! * `words` has the names of things.
//!
//! All content of an outcome is text: the templates escape it, and `charts` writes JSON that cannot end its script.

mod alike;
mod anomalies;
mod bars;
mod cdf;
mod charts;
mod coarse;
mod drawing;
mod engine;
mod evaluation;
mod experiment;
mod field;
mod grid;
mod interval;
mod overview;
mod page;
mod paper;
mod run;
mod setup;
mod table;
mod ticks;
mod words;

pub use evaluation::{evaluation_page, evaluation_page_beside};
pub use field::field_page;
pub use grid::sweep_page;
pub use page::{FONT, STYLE, THEME, UPLOT, UPLOT_STYLE, page, page_beside};
pub use run::run_page;

use crate::reproduce::DescribedNetwork;

/// The drawing of a network without its report, if it is small enough.
pub(crate) fn drawn_network(topology: &DescribedNetwork) -> Option<String> {
    drawing::network(&alike::Alike::of(topology, &[])).map(maud::Markup::into_string)
}

#[cfg(test)]
mod tests;
