//! The command that reproduces an outcome.

use std::path::Path;

/// The command that reproduces a paper, or everything without a key, from the folder of the file.
pub fn command(file: Option<&str>, paper: &str, seeds: Option<u32>) -> String {
    let mut command = "anabranch reproduce".to_owned();
    if !paper.is_empty() {
        command += &format!(" {}", quoted(paper));
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
