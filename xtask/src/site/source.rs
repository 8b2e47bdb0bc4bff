//! The source of the book: the pages with links that hold in the site, drawings within the pages, and copies of the files that they link.

use std::collections::BTreeSet;
use std::path::Path;

use super::files::{self, copy, read, save};
use super::pages::{self, FOLDER, place, relative, target};
use super::{drawing, markdown};

/// Writes the source below `to`; returns the links to other sites.
pub(super) fn write(root: &Path, to: &Path) -> Result<BTreeSet<String>, String> {
    let mut all = vec![];
    files::list(root, FOLDER, &mut all)?;
    all.extend(pages::listed(root)?.into_iter().filter(|page| !page.starts_with("docs/")));
    let mut external = BTreeSet::new();
    let mut linked = BTreeSet::new();
    for path in &all {
        let into = to.join(place(path));
        if !path.ends_with(".md") {
            copy(&root.join(path), &into)?;
            continue;
        }
        let text = read(root, path)?;
        external.extend(markdown::external(&text));
        save(&into, &page(root, path, &text, &mut linked)?)?;
    }
    for path in linked.iter().filter(|path| !all.contains(path)) {
        copy(&root.join(path), &to.join(place(path)))?;
    }
    Ok(external)
}

/// A page as it stands in the book. `linked` gets the files that it links.
fn page(root: &Path, path: &str, text: &str, linked: &mut BTreeSet<String>) -> Result<String, String> {
    let own = place(path);
    let relinked = markdown::relinked(text, |link| {
        let (file, anchor) = target(path, &link.to)?;
        if file == path || pages::is_made(&file) {
            return None;
        }
        linked.insert(file.clone());
        let anchor = anchor.map_or(String::new(), |anchor| format!("#{anchor}"));
        Some(relative(&own, &place(&file)) + &anchor)
    });
    let mut fence = false;
    let mut whole = String::new();
    for line in relinked.lines() {
        fence ^= line.starts_with("```");
        let other = if fence { None } else { replaced(root, path, line)? };
        whole += other.as_deref().unwrap_or(line);
        whole.push('\n');
    }
    Ok(whole)
}

/// What stands in place of a line: a drawing itself for a picture of one, so that its colours are the theme's; the playground below a link to a scene.
fn replaced(root: &Path, page: &str, line: &str) -> Result<Option<String>, String> {
    let alone = |begin: &str| line.strip_prefix(begin)?.strip_suffix(')')?.split_once("](");
    if let Some((_, to)) = alone("![").filter(|(_, to)| to.ends_with(".svg")) {
        let file = pages::joined(page, to).ok_or_else(|| format!("{page}: {to} leads out of the repository"))?;
        let svg = drawing::without_style(&read(root, &file)?)?;
        return Ok(Some(format!("<figure class=\"picture\">\n{svg}\n</figure>\n")));
    }
    let scene = alone("[").filter(|(_, to)| !to.contains("](") && to.contains("playground.html#"));
    Ok(scene.map(|(text, to)| {
        format!("{line}\n\n<iframe class=\"playground\" src=\"{to}\" loading=\"lazy\" title=\"{text}\"></iframe>\n")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;

    /// A page beside docs/ moves into a folder, so its links are others; code is copied.
    #[test]
    fn links_of_a_moved_page_still_lead_where_they_did() {
        let mut linked = BTreeSet::new();
        let text =
            "[a](docs/eval.md#x) [b](PATENTS.md) [c](crates/web/Cargo.toml) [d](docs/lab/playground.html#tour=0.1)\n";
        let page = page(&run::root(), "CONTRIBUTING.md", text, &mut linked).expect("all is there");
        assert_eq!(
            page,
            "[a](../eval.md#x) [b](PATENTS.md) [c](../files/crates/web/Cargo.toml.txt) [d](docs/lab/playground.html#tour=0.1)\n"
        );
        assert_eq!(linked.len(), 3);
    }

    #[test]
    fn scene_that_stands_alone_is_shown_below_its_link() {
        let root = run::root();
        let shown = |line: &str| replaced(&root, "docs/explanation/mfast.md", line);
        let frame =
            shown("[Open it](../lab/playground.html#tour=0.1)").expect("nothing is read").expect("it is a scene");
        assert!(frame.contains("src=\"../lab/playground.html#tour=0.1\""), "{frame}");
        for line in ["See [it](../lab/playground.html#tour=0.1)", "[a](b.md)", "![a](b.png)"] {
            assert_eq!(shown(line), Ok(None), "{line}");
        }
    }
}
