//! Man pages and completions, as the program itself writes them.

use std::path::Path;

use super::binary;
use super::name::Name;
use super::release::Release;

/// The same for all targets.
pub(super) struct Pages {
    pub(super) man: Vec<(Name, Vec<u8>)>,
    pub(super) completions: Vec<(Name, Vec<u8>)>,
}

/// The shells, and the names that they give to a script of completions.
const SHELLS: [(&str, &str); 3] = [("bash", "anabranch.bash"), ("fish", "anabranch.fish"), ("zsh", "_anabranch")];

pub(super) fn write(release: &Release, runner: &Option<String>, program: &Path) -> Result<Pages, String> {
    let folder = release.scratch("man")?;
    let runner = runner.as_deref();
    binary::told(runner, program, &["generate", "man", &folder.to_string_lossy()])?;
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut man = vec![];
    for entry in std::fs::read_dir(&folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|section| section == "1") {
            man.push((Name::of(&path)?, std::fs::read(&path).map_err(failed)?));
        }
    }
    man.sort();
    if man.is_empty() {
        return Err("the program has written no man pages".to_owned());
    }
    let script = |(shell, name)| {
        let script = binary::told(runner, program, &["generate", "completions", shell])?;
        Ok((Name::new(name)?, script.into_bytes()))
    };
    let completions = SHELLS.into_iter().map(script).collect::<Result<_, String>>()?;
    Ok(Pages { man, completions })
}
