//! `anabranch generate`: completions, man pages and the reference.

use std::fs;
use std::io::Write as _;

use anabranch_lab::reference;
use clap::CommandFactory as _;

use crate::args::{Anabranch, Generate};
use crate::failure::{Failure, Outcome};
use crate::files::{Folder, Inputs};
use crate::terminal::named;

pub(crate) fn generate(command: &Generate) -> Outcome {
    match command {
        Generate::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Anabranch::command(), "anabranch", &mut script);
            std::io::stdout().lock().write_all(&script)?;
            Ok(())
        }
        Generate::Man { folder } => {
            let folder = Folder::create(folder, [], &Inputs::default())?;
            let mut command = Anabranch::command();
            command.build();
            pages(&command, &folder)
        }
        Generate::Reference { folder, check: true } => {
            let is_stale =
                |(name, text): &(&str, String)| fs::read_to_string(folder.join(name)).ok().as_ref() != Some(text);
            match reference::documents().into_iter().find(is_stale) {
                None => Ok(()),
                Some((name, _)) => Err(Failure::failed(format!(
                    "{} is out of date; run `anabranch generate reference`",
                    named(folder.join(name))
                ))),
            }
        }
        Generate::Reference { folder, check: false } => {
            let folder = Folder::create(folder, [], &Inputs::default())?;
            reference::documents()
                .iter()
                .try_for_each(|(name, text)| folder.write(name, |out| out.write_all(text.as_bytes())))
        }
    }
}

/// The man pages of a command and its subcommands.
fn pages(command: &clap::Command, folder: &Folder) -> Outcome {
    let man = clap_mangen::Man::new(command.clone());
    folder.write(&man.get_filename(), |mut out| man.render(&mut out))?;
    command.get_subcommands().filter(|below| below.get_name() != "help").try_for_each(|below| pages(below, folder))
}
