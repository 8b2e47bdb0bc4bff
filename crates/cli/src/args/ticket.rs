//! The ticket in the arguments: as text, from a file, from standard input, or from the environment.
//!
//! A ticket admits whoever has it, unless the other end lists keys, and other users read the arguments of a process. A ticket in another place
//! is never shown. One among the arguments is hidden at once: the command starts itself again with the ticket in its environment, which
//! only the same user may read. Until then others could see it for some milliseconds.

use std::io::Read as _;
use std::path::Path;

use anabranch::{Ticket, TicketError};
use anabranch_lab::files;

/// Reads a ticket from the place that an argument names.
///
/// # Errors
/// If it cannot be read, or is no ticket.
pub(crate) fn read(argument: &str) -> Result<Ticket, String> {
    let text = if argument == "-" {
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
    };
    text.parse().map_err(|error: TicketError| error.to_string())
}

/// Starts this command again without its ticket among the arguments, if it has one there. It goes on if that fails.
#[cfg(unix)]
pub(crate) fn hide() {
    use std::ffi::OsString;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if !arguments.get(1).is_some_and(|command| ["bench", "send", "tunnel"].iter().any(|one| command == one)) {
        return;
    }
    let mut tickets = arguments
        .iter_mut()
        .skip(2)
        .filter(|argument| argument.to_str().is_some_and(|text| text.parse::<Ticket>().is_ok()));
    // Of two, one is the name of a file, and nobody knows which.
    let (Some(argument), None) = (tickets.next(), tickets.next()) else { return };
    let ticket = std::mem::replace(argument, format!("{VARIABLE}{HIDDEN}").into());
    let Ok(program) = std::env::current_exe() else { return };
    // This returns only on failure.
    _ = Command::new(program).arg0(&arguments[0]).args(&arguments[1..]).env(HIDDEN, ticket).exec();
}

#[cfg(not(unix))]
pub(crate) fn hide() {}

/// An argument that begins so names a variable of the environment.
const VARIABLE: &str = "env:";

/// The variable of a hidden ticket.
#[cfg(unix)]
const HIDDEN: &str = "ANABRANCH_TICKET";

/// The longest ticket has some hundred letters.
const BYTES_MAX: u64 = 4096;
