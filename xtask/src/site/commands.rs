//! The help of every command as a page, as the program itself prints it.

use std::fmt::Write as _;

use crate::links::output;

pub(super) fn page(anabranch: &str) -> Result<String, String> {
    let mut page = "# Commands\n\nWhat `anabranch help COMMAND` prints. [The command line](../commands.md) shows them at work. The same as man pages: `anabranch generate man FOLDER`, \
                    for a shell's completions `anabranch generate completions SHELL`.\n"
        .to_owned();
    add(anabranch, &[], &mut page)?;
    Ok(page)
}

fn add(anabranch: &str, command: &[&str], page: &mut String) -> Result<(), String> {
    let help = output(anabranch, &[command, &["--help"]].concat())?;
    let name = [&["anabranch"], command].concat().join(" ");
    let _ = write!(page, "\n## {name}\n\n```text\n{}\n```\n", help.trim_end());
    for below in commands(&help) {
        add(anabranch, &[command, &[below]].concat(), page)?;
    }
    Ok(())
}

/// The commands that a help lists.
fn commands(help: &str) -> Vec<&str> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // A line that goes on is indented deeper.
    let names = listed
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next().filter(|_| !line.starts_with("   ")));
    names.filter(|name| *name != "help").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_that_a_help_lists() {
        let help = "Links\n\nUsage: x\n\nCommands:\n  up    Create\n          and more\n  down  Remove\n  help  Print\n\nOptions:\n  -h, --help  Print\n";
        assert_eq!(commands(help), ["up", "down"]);
        assert!(commands("Usage: x\n").is_empty());
    }
}
