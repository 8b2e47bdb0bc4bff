//! Queries to a running emulator: a line on a Unix socket in its folder, answered with a line of JSON.
//!
//! A separate thread waits for queries and passes them to the thread that moves packets, which never blocks on them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use super::{Failure, State, state};
use crate::name::Name;
use crate::status::Status;

/// A query and the channel for its answer.
pub(super) struct Request {
    pub(super) what: Question,
    pub(super) answer: Sender<Status>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Return the counters.
    Status,
    /// Return the counters, and restart.
    Restart,
    /// Return the counters, and stop.
    Stop,
}

/// The receiving end of queries, in the thread that moves packets. Its stream is readable when there are queries.
pub(super) struct Requests {
    pub(super) queue: Receiver<Request>,
    pub(super) wake: UnixStream,
}

/// Starts to answer queries to this emulator.
pub(super) fn listen(name: &Name) -> Result<Requests, Failure> {
    let path = state::socket(name);
    let failed = |error| Failure::failed(path.display(), error);
    let listener = UnixListener::bind(&path).map_err(failed)?;
    let (wake, waker) = UnixStream::pair().map_err(failed)?;
    for end in [&wake, &waker] {
        end.set_nonblocking(true).map_err(failed)?;
    }
    let (sender, queue) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // If a client hangs up, it gets no answer.
            _ = answer(&stream, &sender, &waker);
        }
    });
    Ok(Requests { queue, wake })
}

/// The time limit for a client. A slower client would block the others.
const PATIENCE: Duration = Duration::from_secs(2);

fn answer(stream: &UnixStream, sender: &Sender<Request>, mut waker: &UnixStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(LINE_MAX)).read_line(&mut line)?;
    let what = match line.trim() {
        "status" => Question::Status,
        "restart" => Question::Restart,
        "stop" => Question::Stop,
        _ => return Ok(()),
    };
    let (answer, answered) = mpsc::channel();
    let gone = |_| std::io::Error::from(std::io::ErrorKind::BrokenPipe);
    sender.send(Request { what, answer }).map_err(gone)?;
    // If the stream is full, it is readable anyway.
    _ = waker.write(&[0]);
    let status = answered.recv().map_err(|_| std::io::Error::from(std::io::ErrorKind::BrokenPipe))?;
    let mut stream = stream;
    writeln!(stream, "{}", serde_json::to_string(&status).map_err(std::io::Error::from)?)
}

/// Longer than any query.
const LINE_MAX: u64 = 64;

/// The counters of an emulator.
///
/// # Errors
/// If there is no emulator with this name, or it has crashed.
pub fn status(name: &Name) -> Result<Status, Failure> {
    ask(name, "status")
}

/// Restarts the scenario's clock, random numbers and counters. Packets in flight are lost. Returns the counters before the
/// restart.
///
/// # Errors
/// If there is no emulator with this name, or it has crashed.
pub fn restart(name: &Name) -> Result<Status, Failure> {
    ask(name, "restart")
}

/// Stops the thread that moves packets. Namespaces and devices remain.
pub(super) fn stop(name: &Name) -> Result<Status, Failure> {
    ask(name, "stop")
}

fn ask(name: &Name, question: &str) -> Result<Status, Failure> {
    let state = State::read(name)?;
    if !state.is_alive() {
        return Err(Failure::Failed(format!(
            "the emulator `{name}` has crashed: anabranch link down {name}, then up again"
        )));
    }
    let path = state::socket(name);
    let asked = || -> std::io::Result<String> {
        let mut stream = UnixStream::connect(&path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        writeln!(stream, "{question}")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = asked().map_err(|error| Failure::failed(path.display(), error))?;
    serde_json::from_str(&answer).map_err(|error| Failure::failed(path.display(), error))
}
