//! The command that reproduces an outcome.

use std::path::Path;

use super::folder::Which;

/// The command that reproduces these experiments, from the folder of the file.
pub fn command(file: Option<&str>, which: Which<'_>, seeds: Option<u32>) -> String {
    let mut command = "anabranch reproduce".to_owned();
    match which {
        Which::Papers => {}
        Which::All => command += " --all",
        Which::Named(papers) => papers.iter().for_each(|paper| command += &format!(" {}", quoted(paper))),
    }
    if let Some(seeds) = seeds {
        command += &format!(" --seeds {seeds}");
    }
    let folder = file.and_then(|file| Path::new(file).parent()?.parent()).and_then(Path::to_str);
    if let Some(folder) = folder.filter(|folder| !["", "experiments"].contains(folder)) {
        command += &format!(" --experiments {}", quoted(folder));
    }
    command
}

/// A word quoted for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "/._-+,@%".contains(sign);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
