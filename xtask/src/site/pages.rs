//! The pages of the site: which there are, where each stands in the book, and whether their links lead somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::files::{self, read};
use super::markdown::{self, Link};

/// The folder of the pages, and the list of them.
pub(super) const FOLDER: &str = "docs";
pub(super) const SUMMARY: &str = "docs/SUMMARY.md";

/// Where the book has pages that are not below [`FOLDER`], and other files of the project that a page links.
const PROJECT: &str = "project";
const FILES: &str = "files";

/// What the site makes: a link may lead there, though the repository has no such file. A folder ends with `/`.
pub(super) const MADE: [&str; 4] = ["docs/lab/", "docs/api/", "docs/man/", "docs/reference/commands.md"];

/// The playground, which is no page of the book.
const PLAYGROUND: &str = "docs/lab/playground.html";

/// Where a file of the repository stands in the book. Files of code get the ending `.txt`, so that a browser shows them.
pub(super) fn place(path: &str) -> String {
    match path.strip_prefix("docs/") {
        // As mdBook names it.
        Some(rest) => rest.strip_suffix("README.md").map_or(rest.to_owned(), |folder| format!("{folder}index.md")),
        None if path.ends_with(".md") && !path.contains('/') => format!("{PROJECT}/{path}"),
        None => format!("{FILES}/{path}.txt"),
    }
}

/// The file of the repository that a link of a page leads to, and its anchor; `None` if it leaves the repository.
pub(super) fn target(page: &str, to: &str) -> Option<(String, Option<String>)> {
    let (file, anchor) = to.split_once('#').map_or((to, None), |(file, anchor)| (file, Some(anchor.to_owned())));
    if file.is_empty() {
        return Some((page.to_owned(), anchor));
    }
    Some((joined(page, file)?, anchor))
}

/// The path that a file calls `to`, relative to its own folder.
pub(super) fn joined(file: &str, to: &str) -> Option<String> {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in to.split('/') {
        match part {
            "." | "" => {}
            ".." => _ = parts.pop()?,
            part => parts.push(part),
        }
    }
    let slash = if to.ends_with('/') { "/" } else { "" };
    Some(parts.join("/") + slash)
}

/// How a file calls another one, relative to its own folder.
pub(super) fn relative(from: &str, to: &str) -> String {
    let (from, to): (Vec<&str>, Vec<&str>) = (from.split('/').collect(), to.split('/').collect());
    let common = from[..from.len() - 1].iter().zip(&to[..to.len() - 1]).take_while(|(a, b)| a == b).count();
    let up = (common..from.len() - 1).map(|_| "..");
    up.chain(to[common..].iter().copied()).collect::<Vec<_>>().join("/")
}

/// The pages of the book in the order of the list, as paths in the repository.
pub(super) fn listed(root: &Path) -> Result<Vec<String>, String> {
    let links = markdown::links(&read(root, SUMMARY)?);
    links
        .iter()
        .map(|link| target(SUMMARY, &link.to).map(|(file, _)| file).ok_or_else(|| leaves(SUMMARY, link)))
        .collect()
}

fn leaves(page: &str, link: &Link) -> String {
    format!("{page}:{}: {} leads out of the repository", link.line, link.to)
}

/// Whether the site makes this file.
pub(super) fn is_made(path: &str) -> bool {
    MADE.iter().any(|made| path == *made || made.ends_with('/') && path.starts_with(made))
}

/// What is wrong: a page that the list lacks or has twice, a link to a file or an anchor that is not there.
pub(super) fn problems(root: &Path) -> Result<Vec<String>, String> {
    let listed = listed(root)?;
    let mut problems = vec![];
    let mut seen = BTreeSet::new();
    problems.extend(
        listed.iter().filter(|page| !seen.insert(*page)).map(|page| format!("{SUMMARY}: {page} stands there twice")),
    );
    let mut all = vec![];
    files::list(root, FOLDER, &mut all)?;
    all.retain(|path| path.ends_with(".md"));
    let missing = all.iter().filter(|page| *page != SUMMARY && !seen.contains(page));
    problems.extend(missing.map(|page| format!("{SUMMARY}: {page} is missing: add a line for it")));
    all.extend(listed.iter().filter(|page| !page.starts_with("docs/")).cloned());
    all.push("README.md".to_owned());
    let mut anchors: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for page in &all {
        for link in markdown::links(&read(root, page)?) {
            problems
                .extend(problem(root, page, &link, &mut anchors)?.map(|what| format!("{page}:{}: {what}", link.line)));
        }
    }
    Ok(problems)
}

fn problem(
    root: &Path,
    page: &str,
    link: &Link,
    known: &mut BTreeMap<String, Vec<String>>,
) -> Result<Option<String>, String> {
    let Some((file, anchor)) = target(page, &link.to) else {
        return Ok(Some(format!("{} leads out of the repository", link.to)));
    };
    if file == PLAYGROUND {
        return Ok(anchor.and_then(|scene| super::playground::problem(root, &scene)));
    }
    if is_made(&file) {
        return Ok(None);
    }
    if !root.join(&file).exists() {
        return Ok(Some(format!("{} leads nowhere: there is no {file}", link.to)));
    }
    let Some(anchor) = anchor.filter(|_| file.ends_with(".md")) else { return Ok(None) };
    if !known.contains_key(&file) {
        known.insert(file.clone(), markdown::anchors(&read(root, &file)?));
    }
    Ok((!known[&file].contains(&anchor)).then(|| format!("{file} has no heading #{anchor}")))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::run;

    #[test]
    fn pages_are_all_listed_and_their_links_lead_somewhere() {
        let found = problems(&run::root()).unwrap_or_else(|error| panic!("{error}"));
        assert!(found.is_empty(), "{}", found.join("\n"));
    }

    #[test]
    fn link_that_leads_nowhere_is_named_with_its_line() {
        let root = run::root().join("target/site-of-a-test");
        _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("docs/part")).expect("a temporary folder can be made");
        let write = |path: &str, text: &str| fs::write(root.join(path), text).expect("it can be written");
        write("docs/SUMMARY.md", "[a](a.md)\n[a](a.md)\n[out](../OUT.md)\n");
        write(
            "docs/a.md",
            "# A b\n\n[b](part/b.md#b-1) [self](#a-b)\n[api](api/x/index.html) [gone](c.md) [deep](../../x)\n[bad](#none)\n",
        );
        write("docs/part/b.md", "# B\n## B\n[up](../a.md#a-b)\n");
        write("OUT.md", "[in](docs/a.md) [no](a.md)\n");
        write("README.md", "[x](OUT.md)\n");
        let found = problems(&root);
        fs::remove_dir_all(&root).expect("it can be removed");
        let expected = [
            "docs/SUMMARY.md: docs/a.md stands there twice",
            "docs/SUMMARY.md: docs/part/b.md is missing: add a line for it",
            "docs/a.md:4: c.md leads nowhere: there is no docs/c.md",
            "docs/a.md:4: ../../x leads out of the repository",
            "docs/a.md:5: docs/a.md has no heading #none",
            "OUT.md:1: a.md leads nowhere: there is no a.md",
        ];
        assert_eq!(found, Ok(expected.map(str::to_owned).to_vec()));
    }

    #[test]
    fn path_from_a_page_to_another_is_relative() {
        assert_eq!(relative("tutorial/a.md", "project/X.md"), "../project/X.md");
        assert_eq!(relative("a.md", "part/b.md"), "part/b.md");
        assert_eq!(relative("part/a.md", "part/b.md"), "b.md");
        assert_eq!(joined("docs/part/a.md", "../../crates/x.rs").as_deref(), Some("crates/x.rs"));
        assert_eq!(place("crates/plugin/x.rs"), "files/crates/plugin/x.rs.txt");
        assert_eq!(place("docs/wireshark/README.md"), "wireshark/index.md");
    }
}
