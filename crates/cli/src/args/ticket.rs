//! The ticket in the arguments: as text, from a file, from standard input, or from the environment.
//!
//! A ticket admits whoever has it, unless the other end lists keys, and other users read the arguments of a process. A ticket in another place
//! is never shown. One among the arguments is hidden at once: the command starts itself again with the ticket in its environment, which
//! only the same user may read. Until then others could see it for some milliseconds.

use std::io::Read as _;
use std::path::Path;

use anabranch::{Ticket, TicketError};
use anabranch_lab::files;

/// Whether an argument is a ticket, or names a place of one other than the standard input.
pub(crate) fn is_one(argument: &str) -> bool {
    ["@", VARIABLE].iter().any(|begin| argument.starts_with(begin)) || argument.parse::<Ticket>().is_ok()
}

/// Reads a ticket from the place that an argument names.
///
/// # Errors
/// If it cannot be read, or is no ticket, or if there are several.
pub(crate) fn read(argument: &str) -> Result<Ticket, String> {
    text(argument)?.parse().map_err(|error: TicketError| error.to_string())
}

/// Reads the tickets from the place that an argument names, with blanks or line ends between them.
///
/// # Errors
/// If it cannot be read, or something in it is no ticket.
pub(crate) fn read_all(argument: &str) -> Result<Vec<Ticket>, String> {
    let text = text(argument)?;
    let words = if text.trim().is_empty() { vec![""] } else { text.split_whitespace().collect() };
    words.into_iter().map(|word| word.parse().map_err(|error: TicketError| error.to_string())).collect()
}

fn text(argument: &str) -> Result<String, String> {
    Ok(if argument == "-" {
        let mut text = String::new();
        let read = std::io::stdin().lock().take(BYTES_MAX).read_to_string(&mut text);
        read.map_err(|error| format!("standard input cannot be read: {error}"))?;
        text
    } else if let Some(file) = argument.strip_prefix('@') {
        let mut text = String::new();
        let read = files::open(Path::new(file)).and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text));
        read.map_err(|error| format!("{file} cannot be read: {error}"))?;
        text
    } else if let Some(name) = argument.strip_prefix(VARIABLE) {
        std::env::var(name).map_err(|error| format!("the variable {name} of the environment: {error}"))?
    } else {
        argument.to_owned()
    })
}

/// Starts this command again without its tickets among the arguments, if it has some there. It goes on if that fails.
#[cfg(unix)]
pub(crate) fn hide() {
    use std::ffi::OsString;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if !arguments.get(1).is_some_and(|command| ["bench", "recv", "send", "tunnel"].iter().any(|one| command == one)) {
        return;
    }
    let mut hidden = vec![];
    for at in 2..arguments.len() {
        let is_ticket = arguments[at].to_str().is_some_and(|text| text.parse::<Ticket>().is_ok());
        // The value of an option is none, and a file may have such a name.
        let is_value = arguments[at - 1].to_str().is_some_and(|before| VALUED.contains(&before));
        if is_ticket && !is_value && !Path::new(&arguments[at]).exists() {
            let name = if hidden.is_empty() { HIDDEN.to_owned() } else { format!("{HIDDEN}_{}", hidden.len() + 1) };
            let ticket = std::mem::replace(&mut arguments[at], format!("{VARIABLE}{name}").into());
            hidden.push((name, ticket));
        }
    }
    if hidden.is_empty() {
        return;
    }
    let Ok(program) = std::env::current_exe() else { return };
    // This returns only on failure.
    _ = Command::new(program).arg0(&arguments[0]).args(&arguments[1..]).envs(hidden).exec();
}

#[cfg(not(unix))]
pub(crate) fn hide() {}

/// An argument that begins so names a variable of the environment.
const VARIABLE: &str = "env:";

/// The variable of a hidden ticket, and the begin of that of further ones.
#[cfg(unix)]
const HIDDEN: &str = "ANABRANCH_TICKET";

/// Options with values that may look like a ticket, as that of a relay, which admits nobody to an end.
#[cfg(unix)]
const VALUED: [&str; 6] = ["--relay", "--text", "--name", "--key", "--to", "--qlog"];

/// The longest ticket has some hundred letters, and a sender has at most a few hundred receivers.
const BYTES_MAX: u64 = 256 << 10;
