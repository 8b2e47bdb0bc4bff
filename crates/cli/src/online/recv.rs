//! `anabranch recv`.

use std::io::{self, IsTerminal as _, Write};
use std::sync::Arc;
use std::time::Instant;

use anabranch::units::{Rate, shown};
use anabranch::{Admission, Code, Config, Connection, Endpoint, Ticket};
use anabranch_transfer::{Existing, Progress, ReceiveError, Receiver, Summary, receive_into};
use serde::Serialize;
use tokio::task::JoinSet;

use super::Ended;
use super::offer::{Offer, Showing};
use super::relay::Way;
use super::send::{Side, draw};
use crate::args::online::Listen;
use crate::args::relay::RelayName;
use crate::args::transfer::{Recv, Sender};
use crate::failure::{Failure, Outcome};
use crate::terminal;

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum RecvEvent<'a> {
    Listening {
        ticket: &'a str,
    },
    Received {
        from: String,
        #[serde(flatten)]
        ended: &'a Ended,
    },
    Broken {
        from: String,
        reason: String,
    },
}

/// A transfer that has failed.
struct Broken {
    reason: String,
    /// Whether another one would fail, too.
    is_last: bool,
    /// Whether it was none: a connection that ended before anything was said, as the slower one of two ways to this end does.
    is_none: bool,
}

/// Prints a ticket, and receives until it is stopped, or once.
pub(crate) fn recv(args: &Recv) -> Outcome {
    super::block_on(super::stop::or_interrupted(wait(args)))
}

async fn wait(args: &Recv) -> Outcome {
    let offer = Offer::new("recv");
    let admission =
        if args.allow.is_empty() { Admission::Ticket } else { Admission::Keys(args.allow.iter().copied().collect()) };
    let config = super::logged(Config::default().admit(admission), &args.log);
    let named = args.listen.relay.as_ref();
    let code = match &args.sender {
        Some(Sender::Ticket(ticket)) => return fetch(args, config, ticket, &offer).await,
        Some(Sender::Code(code)) => match RelayName::or_of_environment(named).map_err(Failure::usage)? {
            Some(relay) => Some((code, relay)),
            None => return Err(Failure::usage("a code needs the relay that the other end uses: --relay HOST")),
        },
        None => None,
    };
    let is_once = args.once || args.stdout || code.is_some();
    let endpoint = super::bound(&args.listen, config)?;
    let endpoint = match &code {
        Some((code, relay)) => redeemed(endpoint, code, relay).await?,
        None => super::relay::join(endpoint, named).await?,
    };
    let ticket = endpoint.ticket().to_string();
    if code.is_some() {
        // The other end has the ticket.
    } else if args.json {
        super::print_line(&RecvEvent::Listening { ticket: &ticket })?;
    } else {
        let mut out = said_to(args);
        let what = if args.stdout {
            "To send something here".into()
        } else {
            format!("To send files into {}", shown(&args.to))
        };
        writeln!(out, "{what}:\n\n  anabranch send PATH... {ticket}\n")?;
        super::show_code(&mut out, &args.listen, &ticket)?;
        out.flush()?;
    }
    let target = Arc::new(Target::of(args));
    let mut transfers = JoinSet::new();
    loop {
        tokio::select! {
            // Only one can be written to the standard output.
            connection = endpoint.accept(), if !args.stdout || transfers.is_empty() => match connection {
                Some(connection) => {
                    let showing = offer.show(&connection);
                    transfers.spawn(receive(Arc::clone(&target), connection, showing));
                }
                None => return Err(Failure::failed("the socket is gone")),
            },
            Some(ended) = transfers.join_next() => {
                let Ok((from, ended)) = ended else { continue };
                let broken = ended.as_ref().err().filter(|broken| !broken.is_none);
                let reason = broken.map(|broken| broken.reason.clone());
                match tell(args, is_once, from, ended)? {
                    Some(outcome) if is_once => {
                        super::end_logs(&endpoint, &args.log).await;
                        return outcome;
                    }
                    // It waits for another one.
                    None if is_once => reason.iter().for_each(|reason| terminal::complain(reason)),
                    _ => {}
                }
            }
        }
    }
}

/// Comes to a sender that waits.
async fn fetch(args: &Recv, config: Config, ticket: &Ticket, offer: &Offer) -> Outcome {
    let Listen { address, key, qr, relay, metrics } = &args.listen;
    if address.is_some() || *qr || relay.is_some() || metrics.is_some() || !args.allow.is_empty() {
        let why = "with a ticket this end comes to the sender: --listen, --qr, --relay, --metrics and --allow are for an end that waits";
        return Err(Failure::usage(why));
    }
    let endpoint = super::client(key.as_deref(), config)?;
    let connection = super::relay::connect(&endpoint, ticket).await?;
    let showing = offer.show(&connection);
    let (from, ended) = receive(Arc::new(Target::of(args)), connection, showing).await;
    let reason = ended.as_ref().err().map(|broken| broken.reason.clone());
    let outcome = tell(args, true, from, ended)?;
    super::end_logs(&endpoint, &args.log).await;
    outcome.unwrap_or_else(|| Err(Failure::failed(reason.unwrap_or_default())))
}

/// Where what comes goes.
enum Target {
    Folder(Receiver),
    Output(Option<Rate>),
}

impl Target {
    fn of(args: &Recv) -> Self {
        if args.stdout {
            return Self::Output(args.rate);
        }
        let existing = if args.overwrite { Existing::Overwrite } else { Existing::Keep };
        let receiver = Receiver::new(&args.to, existing);
        Self::Folder(match args.rate {
            Some(rate) => receiver.ask_rate(rate),
            None => receiver,
        })
    }

    async fn receive(&self, connection: &Connection, progress: Arc<Progress>) -> Result<Summary, ReceiveError> {
        match self {
            Self::Folder(receiver) => receiver.receive(connection, progress).await,
            Self::Output(rate) => receive_into(connection, output(), *rate, progress).await,
        }
    }
}

/// The standard output; on a terminal, without what a terminal would obey.
fn output() -> Box<dyn Write + Send> {
    let out = io::stdout();
    if out.is_terminal() { Box::new(terminal::Tame::new(out)) } else { Box::new(out) }
}

/// Where people read what this command says.
fn said_to(args: &Recv) -> Box<dyn Write> {
    if args.stdout { Box::new(anstream::stderr()) } else { Box::new(anstream::stdout()) }
}

/// Gives the ticket of the endpoint to the end that shows this code.
async fn redeemed(endpoint: Endpoint, code: &Code, relay: &RelayName) -> Result<Endpoint, Failure> {
    let relay = super::relay::find(&endpoint, relay).await?;
    endpoint.redeem_code(&relay, code).await.map_err(|error| Failure::failed(error.to_string()))?;
    super::relay::say(&endpoint)?;
    Ok(endpoint)
}

async fn receive(target: Arc<Target>, connection: Connection, showing: Showing) -> (String, Result<Ended, Broken>) {
    let (begin, progress, way) = (Instant::now(), Arc::new(Progress::default()), Way::new());
    let from = connection.remote_key().to_string();
    let received = {
        let bar = terminal::Progress::of_bytes();
        tokio::select! {
            received = target.receive(&connection, Arc::clone(&progress)) => received,
            () = draw(&bar, &progress, &connection, &way, Side::Receives) => unreachable!("it goes on and on"),
        }
    };
    drop(showing);
    let broken = |error: ReceiveError| Broken {
        is_none: matches!(error, ReceiveError::Lost(_)) && progress.total() == (0, 0),
        // A caller that said nothing was no sender; an interrupted one will resume. What was written to the output cannot be resumed.
        is_last: match (&error, &*target) {
            (ReceiveError::Folder(..) | ReceiveError::Output(_) | ReceiveError::Fault(_), _) => true,
            (_, Target::Output(_)) => progress.done().1 > 0,
            (_, Target::Folder(_)) => false,
        },
        reason: way.explain(&error.to_string()),
    };
    (from, received.map(|summary| Ended::new(summary, begin.elapsed().as_secs_f64(), way.went())).map_err(broken))
}

/// Reports the result of a transfer. Returns the command's result if this was its only transfer; `None` if it was no complete
/// transfer.
fn tell(args: &Recv, is_once: bool, from: String, ended: Result<Ended, Broken>) -> Result<Option<Outcome>, Failure> {
    match ended {
        Ok(ended) => {
            if args.json {
                super::print_line(&RecvEvent::Received { from, ended: &ended })?;
            } else {
                let mut out = said_to(args);
                writeln!(out, "{}", ended.line("received"))?;
                for text in &ended.texts {
                    let lines: Vec<_> = text.lines().map(shown).collect();
                    writeln!(out, "\n{}\n", lines.join("\n"))?;
                }
                ended.remark(&mut out)?;
            }
            Ok(Some(ended.failure().map_or(Ok(()), |failure| once_or_said(is_once, failure))))
        }
        Err(Broken { is_none: true, .. }) => Ok(None),
        Err(Broken { is_last, reason, .. }) => {
            let failure = Failure::failed(reason.clone());
            if args.json {
                super::print_line(&RecvEvent::Broken { from, reason })?;
            }
            let outcome = once_or_said(is_once, failure);
            Ok(is_last.then_some(outcome))
        }
    }
}

/// Prints a failure at once if the command continues.
fn once_or_said(is_once: bool, failure: Failure) -> Outcome {
    if !is_once {
        terminal::complain(&failure.message);
    }
    Err(failure)
}
