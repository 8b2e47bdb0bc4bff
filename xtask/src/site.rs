//! `cargo xtask site`: the pages of docs/ as a book, with what makes it a site: the playground, the report, the commands' help and the libraries' API.
//!
//! * `pages` has the pages and checks their links, which a test does without mdBook; `markdown` reads a page; `playground` knows its scenes.
//! * `source` writes the book's source, `mdbook` finds the program that builds it, `commands` writes the help of the commands as a page.
//! * `links` checks the links of what was built. `files` reads and writes.
//! * `pictures` simulates the papers' pictures, `charts` draws stored figures, both by `drawing`; `cargo xtask generate` writes them.

mod charts;
mod commands;
mod drawing;
mod files;
mod links;
mod markdown;
mod mdbook;
mod pages;
mod pictures;
mod playground;
mod source;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use clap::Args;

use crate::run::{self, say};

/// How the site is made.
#[derive(Args)]
pub(crate) struct Options {
    /// Install mdBook in the target folder if it is missing.
    #[arg(long)]
    install: bool,
    /// Leave out the libraries' API and the report, which take minutes.
    #[arg(long)]
    quick: bool,
    /// Also ask other sites whether what the pages link is there; it needs curl.
    #[arg(long)]
    external: bool,
}

/// The site in cargo's target folder.
const FOLDER: &str = "site";

/// The page that simulates, and the page of the papers' numbers, whose links lead to scenarios of the other one beside it.
const PLAYGROUND: &str = "playground.html";
const REPORT: &str = "report.html";

/// The crates whose API the site has: those that a program uses.
const CRATES: [&str; 6] =
    ["anabranch", "anabranch-quinn-cc", "anabranch-lab", "anabranch-sim", "anabranch-cc", "anabranch-units"];

/// Builds the site, and checks its links.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let root = run::root();
    fail(&pages::problems(&root)?, "links of pages")?;
    let mdbook = mdbook::program(options.install)?;
    run::run("cargo", &["build", "--release", "--locked", "--quiet"], &[])?;
    let anabranch = run::anabranch()?;
    run::remove_in_target(FOLDER)?;
    let target = run::target()?;
    let (source, html) = (target.join(FOLDER).join("source"), target.join(FOLDER).join("html"));
    let mut external = source::write(&root, &source.join("src"))?;
    files::copy(&root.join("xtask/site/book.toml"), &source.join("book.toml"))?;
    files::save(&source.join("site.css"), &style(&root)?)?;
    files::save(&source.join("src/reference/commands.md"), &commands::page(&anabranch)?)?;
    run::run(&mdbook, &["build", &source.to_string_lossy(), "--dest-dir", &html.to_string_lossy()], &[])?;
    let (lab, man) = (html.join("lab"), html.join("man"));
    [&lab, &man].iter().try_for_each(fs::create_dir_all).map_err(|error| format!("{}: {error}", html.display()))?;
    run::run(&anabranch, &["playground", "--write", &lab.join(PLAYGROUND).to_string_lossy()], &[])?;
    run::run(&anabranch, &["generate", "man", &man.to_string_lossy()], &[])?;
    if options.quick {
        say("left out: the libraries' API and the report");
    } else {
        api(&target, &html)?;
        report(&anabranch, &target, &lab)?;
    }
    let mut problems = links::problems(&html, &["lab/", "api/"])?;
    problems.retain(|problem| !(options.quick && (problem.contains("api/") || problem.contains(REPORT))));
    if options.external {
        external.retain(|link| !link.contains("localhost"));
        say(&format!("asking for {} links to other sites", external.len()));
        problems.extend(links::external(&external)?);
    }
    fail(&problems, "links of the site")?;
    say(&format!("every link leads somewhere; open {}", html.join("index.html").display()));
    Ok(())
}

fn fail(problems: &[String], what: &str) -> Result<(), String> {
    if problems.is_empty() { Ok(()) } else { Err(format!("{what} are wrong:\n  {}", problems.join("\n  "))) }
}

/// The site's style, the drawings' and their colours in each of mdBook's themes.
fn style(root: &Path) -> Result<String, String> {
    let own = files::read(root, "xtask/site/site.css")?;
    let (light, dark, drawing) = (drawing::LIGHT, drawing::DARK, drawing::STYLE);
    Ok(format!(
        "{own}\n.drawing {{ {} }}\n.navy .drawing, .coal .drawing, .ayu .drawing {{ {} }}\n{drawing}",
        light.trim(),
        dark.trim()
    ))
}

/// The API of the libraries, as rustdoc makes it.
fn api(target: &Path, html: &Path) -> Result<(), String> {
    let mut arguments = vec!["doc", "--no-deps", "--locked", "--quiet"];
    arguments.extend(CRATES.iter().flat_map(|name| ["--package", name]));
    // Into the usual folder, where what is compiled is used again; only these crates are copied.
    run::run("cargo", &arguments, &[("RUSTDOCFLAGS", "-D warnings")])?;
    let doc = target.join("doc");
    let names: BTreeSet<String> = CRATES.iter().map(|name| name.replace('-', "_")).collect();
    for entry in fs::read_dir(&doc).map_err(|error| format!("{}: {error}", doc.display()))? {
        let entry = entry.map_err(|error| error.to_string())?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_shared = matches!(name.as_str(), "static.files" | "search.index" | "trait.impl" | "type.impl")
            || entry.path().is_file();
        if names.contains(&name) || is_shared {
            files::copy(&entry.path(), &html.join("api").join(&name))?;
        }
    }
    for name in &names {
        let from = doc.join("src").join(name);
        files::copy(&from, &html.join("api/src").join(name))?;
    }
    Ok(())
}

/// The report of the last `cargo xtask test`, or a new one: some six minutes of processor time.
fn report(anabranch: &str, target: &Path, lab: &Path) -> Result<(), String> {
    let folder = target.join("reproduction");
    if !folder.join(REPORT).is_file() {
        run::run(anabranch, &["reproduce", "--all", "--out", &folder.to_string_lossy()], &[])?;
    }
    [REPORT, PLAYGROUND].iter().try_for_each(|page| files::copy(&folder.join(page), &lab.join(page)))
}

/// Writes the drawings, or only compares them; returns those that are stale.
pub(crate) fn drawings(check: bool) -> Result<Vec<String>, String> {
    let root = run::root();
    let mut stale = vec![];
    for (path, svg) in [pictures::all(&root)?, charts::all(&root)?].concat() {
        if check {
            if fs::read_to_string(root.join(&path)).ok().as_deref() != Some(&svg) {
                stale.push(path);
            }
        } else {
            files::save(&root.join(&path), &svg)?;
        }
    }
    Ok(stale)
}
