//! `anabranch cc new` and `anabranch cc check`, for a user's own controllers.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use anabranch_cc::conformance;
use anabranch_cc::registry::{LossContract, LossResponse};
use anabranch_lab::files;
use anabranch_plugin::template::{self, Language};
use anabranch_plugin::{FILE_MAX, Faults, Law, Module};

use crate::args::{CcCheck, CcNew, LanguageArg, LossArg};
use crate::failure::{Failure, Outcome};
use crate::terminal::{Align, BOLD, DIM, PLAIN, Table, named};

/// Writes a project into a new folder.
pub(super) fn new(args: &CcNew) -> Outcome {
    let language = match args.language {
        LanguageArg::Rust => Language::Rust,
        LanguageArg::C => Language::C,
        LanguageArg::Python => Language::Python,
    };
    let name = args.name.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let project = template::project(name, language).map_err(Failure::usage)?;
    let folder = &args.name;
    let refuse = |path: &Path, error: &io::Error| {
        let path = named(path);
        Failure::usage(match error.kind() {
            io::ErrorKind::AlreadyExists => {
                format!("{path}: is there already, and nothing is written over; choose another name")
            }
            _ => format!("{path}: cannot be written: {error}; name a folder that you may write to"),
        })
    };
    fs::create_dir(folder).map_err(|error| refuse(folder, &error))?;
    for file in &project.files {
        let path = folder.join(&file.name);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(|error| refuse(parent, &error))?;
        fs::File::create_new(&path)
            .and_then(|mut out| out.write_all(file.text.as_bytes()))
            .map_err(|error| refuse(&path, &error))?;
    }
    let mut out = anstream::stdout().lock();
    writeln!(
        out,
        "{}: {}",
        named(folder),
        project.files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>().join(", ")
    )?;
    writeln!(out, "Next:\n  cd {}", folder.display())?;
    for command in &project.commands {
        writeln!(out, "  {command}")?;
    }
    Ok(())
}

/// Shows the hooks, settings and gauges of a module, and checks it against the rules for every law.
pub(super) fn check(args: &CcCheck) -> Outcome {
    let name = named(&args.file);
    let bytes = read(&args.file).map_err(|reason| Failure::usage(format!("{name}: {reason}")))?;
    let module = Arc::new(Module::new(&name, bytes).map_err(|error| Failure::failed(error.to_string()))?);
    let mut law = Law::new(Arc::clone(&module));
    for setting in &args.set {
        let (key, value) = setting
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("--set {setting}: there is no `=`; write key=value")))?;
        law.set(key.trim(), value.trim()).map_err(|fault| Failure::usage(format!("--set {setting}: {fault}")))?;
    }
    let faults = Faults::default();
    let settings = law.settings("", &faults);
    let citation = "";
    let loss = match args.loss {
        LossArg::Shrinks => LossResponse::Shrinks,
        LossArg::ShrinksUnlessRandom => LossResponse::ShrinksUnlessRandom { citation },
        LossArg::MayHold => LossResponse::MayHold { citation },
        LossArg::Holds => LossResponse::Holds { citation },
    };
    let contract =
        LossContract { shrinks_above: args.shrinks_above, timeout_window_max: args.timeout_window_max, loss };
    let outcome = conformance::check(&|| settings.row().build(&settings), &contract, args.cases);
    if let Some(fault) = faults.first() {
        return Err(Failure::missed(fault));
    }
    outcome.map_err(|violation| Failure::missed(format!("{name}: {violation}")))?;
    let mut out = anstream::stdout().lock();
    write!(out, "{}", described(&module))?;
    writeln!(out, "It does what every law must, in {} random stories.", args.cases)?;
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let remedy = "name a WASM module; `anabranch cc new NAME` writes a project that makes one";
    let refuse = |reason: String| format!("cannot be read: {reason}; {remedy}");
    let mut bytes = Vec::new();
    let file = files::open(path).map_err(|error| refuse(error.to_string()))?;
    io::Read::read_to_end(&mut io::Read::take(file, FILE_MAX + 1), &mut bytes)
        .map_err(|error| refuse(error.to_string()))?;
    Ok(bytes)
}

fn described(module: &Module) -> String {
    let mut text = String::new();
    let gauges: Vec<&str> = module.gauge_names().collect();
    let _ = writeln!(text, "{BOLD}{}{BOLD:#}: SHA-256 {}", module.name(), module.digest());
    let _ = writeln!(text, "hooks: {}", module.hooks().join(", "));
    let _ = writeln!(text, "gauges: {}", gauges.join(", "));
    if module.settings().is_empty() {
        return text;
    }
    let mut table = Table::new(&[
        ("setting", Align::Left),
        ("default", Align::Right),
        ("unit", Align::Left),
        ("allowed", Align::Left),
        ("meaning", Align::Left),
    ]);
    for setting in module.settings() {
        table.row(vec![
            (setting.name.clone(), BOLD),
            (setting.default.to_string(), PLAIN),
            (setting.unit.clone(), PLAIN),
            (format!("{} to {}", setting.least, setting.most), DIM),
            (setting.help.clone(), PLAIN),
        ]);
    }
    text + &table.render("")
}
