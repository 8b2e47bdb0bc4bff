//! The page on adding a law is followed: its law is in the list of these tests, and its own test is one of them.

use crate::conformance;
use crate::registry::{Settings, rows};

/// `tests/conformance.rs` has the laws of the crate; the law of the page is in the list of unit tests alone.
#[test]
fn law_of_page_does_what_every_law_must() {
    let row = rows().iter().find(|row| row.name == "gentle").unwrap();
    let settings = Settings::default_for(row);
    assert!(row.build(&settings).copy().is_some(), "it cannot be copied");
    conformance::grows(&|| row.build(&settings)).unwrap();
}

/// The blocks of the page are the law that these tests compile, the lines that list it, and its test.
#[test]
fn page_shows_whole_law_its_lines_and_its_test() {
    let page = include_str!("../../../../docs/adding-a-congestion-controller.md");
    let mut blocks = page.split("```rust\n").skip(1).filter_map(|rest| rest.split_inclusive("\n```\n").next());
    let mut block = || blocks.next().and_then(|block| block.strip_suffix("```\n"));
    assert!(block() == Some(include_str!("gentle.rs")), "the page does not show gentle.rs");
    let listed: Vec<&str> = include_str!("../law.rs").lines().map(str::trim).collect();
    for line in block().unwrap().lines() {
        assert!(listed.windows(2).any(|pair| pair == ["#[cfg(test)]", line]), "{line}");
    }
    assert!(block() == Some(include_str!("gentle/tests.rs")), "the page does not show gentle/tests.rs");
    assert_eq!(block(), None);
}
