//! The time of a page: `proofs page`, one of its ways at a time.

use std::path::Path;

use super::outcome::Values;
use crate::links::Links;
use crate::proofs::{Bench, NAME, page};

/// The experiment whose flows are pages.
pub(super) const EXPERIMENT: &str = "page";
/// Pages of a run.
const PAGES: usize = 12;

/// The median of some pages by HTTP/2, and the longest, in ms.
pub(super) fn run(anabranch: &str, scenario: &Path, way: &str) -> Result<Values, String> {
    let bench = Bench::new(Path::new(anabranch).parent(), None)?;
    let links = Links::up(anabranch, NAME, &scenario.to_string_lossy(), &[])?;
    let seconds = page::times(&bench, way, PAGES)?;
    links.down()?;
    let value = |name: &str, percent| (name.to_owned(), 1e3 * page::percentile(&seconds, percent));
    Ok(vec![value("page", 50), value("longest", 99)])
}
