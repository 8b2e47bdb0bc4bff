//! Every command on the pages is one.

use std::fs;
use std::path::Path;

use super::Anabranch;
use clap::Parser as _;

/// The lines of the blocks of commands on a page that call the command, without comments.
fn commands(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_inside = false;
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(language) => is_inside = ["console", "sh"].contains(&language),
            None if is_inside => {
                let line = line.split(" #").next().unwrap_or_default();
                let line = line.split(['|', '>']).next().unwrap_or_default().trim();
                let line = line.strip_prefix("sudo ").unwrap_or(line);
                found.extend(line.starts_with("anabranch ").then(|| line.to_owned()));
            }
            None => {}
        }
    }
    found
}

#[test]
fn every_command_on_the_pages_is_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages: Vec<_> = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.push(root.join("README.md"));
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    let key = anabranch::SecretKey::generate().unwrap().public();
    let ticket = anabranch::Ticket::new(key, vec!["127.0.0.1:1".parse().unwrap()]).unwrap().to_string();
    let mut count = 0;
    for page in pages {
        for line in commands(&fs::read_to_string(&page).unwrap()) {
            // A ticket is long, and pages write its beginning.
            let line = line.replace("ab1...", &ticket);
            if let Err(error) = Anabranch::try_parse_from(line.split(' ').filter(|word| !word.is_empty())) {
                panic!("{}: `{line}`: {error}", page.display());
            }
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
}
