//! The commands of a page, run in order with the page's own scenario.

use std::fs;

use crate::support::{anabranch, assert_exit, folder, repository};

/// The texts of a page's blocks in a language.
pub(crate) fn blocks(page: &str, language: &str) -> Vec<String> {
    let page = fs::read_to_string(repository().join(page)).unwrap();
    let blocks = page.split("\n```").skip(1).step_by(2);
    blocks.filter_map(|block| Some(block.strip_prefix(language)?.strip_prefix('\n')?.to_owned() + "\n")).collect()
}

#[test]
fn the_commands_of_the_simulator_run_as_they_are_written() {
    let folder = folder("pages_commands");
    let scenario = blocks("docs/commands.md", "toml").remove(0).replace("60s", "2s");
    for file in ["scenario.toml", "a.toml", "b.toml"] {
        fs::write(folder.join(file), &scenario).unwrap();
    }
    let mut run = 0;
    let blocks = blocks("docs/commands.md", "console");
    let mut lines: Vec<&str> = blocks.iter().flat_map(|block| block.lines()).collect();
    // The page shows one of three machines.
    let others =
        ["2", "3"].map(|shard| format!("anabranch sim sweep scenario.toml --shard {shard}/3 --rows {shard}.csv"));
    let merge = lines.iter().position(|line| line.contains("sim merge")).expect("the page has it");
    lines.splice(merge..merge, others.iter().map(String::as_str));
    for line in lines {
        let command = line.split(" #").next().unwrap_or_default();
        let Some(arguments) = command.strip_prefix("anabranch ") else { continue };
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        if !["sim", "compare", "cc"].contains(&arguments[0]) {
            continue;
        }
        assert_exit(&anabranch(&folder, &arguments), 0);
        run += 1;
    }
    assert_eq!(run, 15);
    for made in ["traces", "run.html", "sweep.csv", "rows.csv", "grid.html", "mine/Makefile"] {
        assert!(folder.join(made).exists(), "{made}");
    }
}
