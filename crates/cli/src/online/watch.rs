//! `anabranch watch`: shows a running command.

mod view;

use std::io::{IsTerminal as _, Write as _};

use self::view::View;
use super::offer::{Frame, SHOWN_MAX};
use super::place;
use crate::args::online::Watch;
use crate::failure::{Failure, Outcome};

/// Shows a command, or lists the running ones.
pub(crate) fn watch(args: &Watch) -> Outcome {
    if cfg!(not(unix)) {
        return Err(Failure::failed("this system has no Unix sockets, which watch needs"));
    }
    let pid = match args.pid {
        Some(pid) => pid,
        None => match running()[..] {
            [] => return Err(Failure::failed("no command that could be watched is running as this user")),
            [pid] => pid,
            ref several => return list(several),
        },
    };
    let frames = frames(pid)?;
    if args.once || !std::io::stdout().is_terminal() { print(frames, args.once) } else { draw(frames) }
}

#[cfg(unix)]
fn running() -> Vec<u32> {
    place::running(&place::folder())
}

#[cfg(not(unix))]
fn running() -> Vec<u32> {
    vec![]
}

/// The frames of a process, until it ends.
#[cfg(unix)]
fn frames(pid: u32) -> Result<Frames, Failure> {
    use std::io::BufReader;
    use std::sync::mpsc::sync_channel;

    let none = |error| Failure::failed(format!("process {pid} cannot be watched: {error}"));
    let stream = place::connect(&place::place(&place::folder(), pid), PATIENCE).map_err(none)?;
    let (sender, receiver) = sync_channel(2);
    std::thread::spawn(move || {
        let mut lines = BufReader::new(stream);
        while let Some(frame) = read(&mut lines) {
            if sender.send(frame).is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}

#[cfg(not(unix))]
fn frames(_: u32) -> Result<Frames, Failure> {
    Err(Failure::failed("this system has no Unix sockets"))
}

/// Reads a frame, with limits on its length and content.
#[cfg(unix)]
fn read(lines: &mut impl std::io::BufRead) -> Option<Frame> {
    use std::io::{BufRead as _, Read as _};

    let mut line = String::new();
    lines.take(LINE_MAX).read_line(&mut line).ok()?;
    let mut frame: Frame = serde_json::from_str(&line).ok()?;
    frame.connections.truncate(SHOWN_MAX);
    frame.connections.iter_mut().for_each(|shown| shown.seen.paths.truncate(PATHS_MAX));
    Some(frame)
}

type Frames = std::sync::mpsc::Receiver<Frame>;

fn list(pids: &[u32]) -> Outcome {
    let mut out = anstream::stdout();
    writeln!(out, "several commands are running; name one:\n")?;
    for pid in pids {
        let command =
            frames(*pid).ok().and_then(|frames| frames.recv_timeout(PATIENCE).ok()).map(|frame| frame.command);
        let command = command.unwrap_or_else(|| "?".to_owned());
        writeln!(out, "  anabranch watch {pid}    {}", view::line(&command))?;
    }
    Ok(())
}

/// Prints text: once, when there is a rate, or every other second.
fn print(frames: Frames, once: bool) -> Outcome {
    let mut view = View::default();
    let mut count = 0_u32;
    while let Ok(frame) = frames.recv_timeout(PATIENCE) {
        view.add(frame);
        count += 1;
        if once && count == FRAMES_ONCE {
            break;
        }
        if !once && count.is_multiple_of(FRAMES_A_TEXT) {
            write!(anstream::stdout(), "{}", view.text())?;
        }
    }
    if !view.has_frame() {
        return Err(Failure::failed("the command shows nothing: it ended just now, or it is stopped"));
    }
    if once {
        write!(anstream::stdout(), "{}", view.text())?;
    }
    Ok(())
}

/// Draws on a terminal until the user types `q` or the command ends.
fn draw(frames: Frames) -> Outcome {
    use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};

    let mut terminal = ratatui::try_init().map_err(Failure::from)?;
    let mut view = View::default();
    let outcome = loop {
        match frames.recv_timeout(PATIENCE) {
            Ok(frame) => view.add(frame),
            Err(_) => break Ok(()),
        }
        if let Err(error) = terminal.draw(|screen| view.draw(screen)) {
            break Err(error.into());
        }
        let is_end = |event: Event| match event {
            Event::Key(key) => {
                let is_stopped = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
                is_stopped || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
            }
            _ => false,
        };
        match event::poll(std::time::Duration::ZERO)
            .and_then(|has| if has { event::read().map(is_end) } else { Ok(false) })
        {
            Ok(false) => {}
            Ok(true) => break Ok(()),
            Err(error) => break Err(error.into()),
        }
    };
    ratatui::restore();
    // The last state remains on the terminal.
    write!(anstream::stdout(), "{}", view.text())?;
    outcome
}

/// A command that sends nothing for this long has ended, or hangs.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// Half a second gives a rate.
const FRAMES_ONCE: u32 = 6;

const FRAMES_A_TEXT: u32 = 20;

/// A frame has some kilobytes a path.
#[cfg(unix)]
const LINE_MAX: u64 = 1 << 20;

/// The limit of paths of a connection.
const PATHS_MAX: usize = 16;

#[cfg(test)]
#[cfg(unix)]
mod tests;
