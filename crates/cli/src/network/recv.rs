//! `anabranch recv`.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Instant;

use anabranch::units::shown;
use anabranch::{Admission, Code, Config, Connection, Endpoint};
use anabranch_transfer::{Existing, Progress, ReceiveError, Receiver};
use serde::Serialize;
use tokio::task::JoinSet;

use super::Ended;
use super::offer::{Offer, Showing};
use super::relay::Way;
use super::send::{Side, draw};
use crate::args::network::Recv;
use crate::args::relay::RelayName;
use crate::failure::{Failure, Outcome};
use crate::terminal;

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Told<'a> {
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
}

/// Prints a ticket, and receives until it is stopped, or once.
pub(crate) fn recv(args: &Recv) -> Outcome {
    super::block_on(wait(args))
}

async fn wait(args: &Recv) -> Outcome {
    let admission =
        if args.allow.is_empty() { Admission::Ticket } else { Admission::Keys(args.allow.iter().copied().collect()) };
    let named = args.listen.relay.as_ref();
    let code = match &args.code {
        None => None,
        Some(code) => match RelayName::or_of_environment(named).map_err(Failure::usage)? {
            Some(relay) => Some((code, relay)),
            None => return Err(Failure::usage("a code needs the relay that the other end uses: --relay HOST")),
        },
    };
    let is_once = args.once || code.is_some();
    let config = super::logged(Config::default().admit(admission), &args.log);
    let endpoint = super::bound(&args.listen, config)?;
    let endpoint = match &code {
        Some((code, relay)) => redeemed(endpoint, code, relay).await?,
        None => super::relay::join(endpoint, named).await?,
    };
    let ticket = endpoint.ticket().to_string();
    if code.is_some() {
        // The other end has the ticket.
    } else if args.json {
        super::print_line(&Told::Listening { ticket: &ticket })?;
    } else {
        let mut out = anstream::stdout();
        writeln!(out, "To send files into {}:\n\n  anabranch send PATH... {ticket}\n", shown(&args.to))?;
        super::show_code(&mut out, &args.listen, &ticket)?;
        out.flush()?;
    }
    let existing = if args.overwrite { Existing::Overwrite } else { Existing::Keep };
    let receiver = Receiver::new(&args.to, existing);
    let receiver = Arc::new(match args.rate {
        Some(rate) => receiver.ask_rate(rate),
        None => receiver,
    });
    let offer = Offer::new("recv");
    let mut transfers = JoinSet::new();
    loop {
        tokio::select! {
            connection = endpoint.accept() => match connection {
                Some(connection) => {
                    let showing = offer.show(&connection);
                    transfers.spawn(receive(Arc::clone(&receiver), connection, showing));
                }
                None => return Err(Failure::failed("the socket is gone")),
            },
            Some(ended) = transfers.join_next() => {
                let Ok((from, ended)) = ended else { continue };
                if let Some(outcome) = tell(args, is_once, from, ended)? && is_once {
                    super::end_logs(&endpoint, &args.log).await;
                    return outcome;
                }
            }
        }
    }
}

/// Gives the ticket of the endpoint to the end that shows this code.
async fn redeemed(endpoint: Endpoint, code: &Code, relay: &RelayName) -> Result<Endpoint, Failure> {
    let relay = super::relay::find(&endpoint, relay).await?;
    endpoint.redeem_code(&relay, code).await.map_err(|error| Failure::failed(error.to_string()))?;
    super::relay::say(&endpoint)?;
    Ok(endpoint)
}

async fn receive(receiver: Arc<Receiver>, connection: Connection, showing: Showing) -> (String, Result<Ended, Broken>) {
    let (begin, progress, way) = (Instant::now(), Arc::new(Progress::default()), Way::new());
    let from = connection.remote_key().to_string();
    let received = {
        let bar = terminal::Progress::of_bytes();
        tokio::select! {
            received = receiver.receive(&connection, Arc::clone(&progress)) => received,
            () = draw(&bar, &progress, &connection, &way, Side::Receives) => unreachable!("it goes on and on"),
        }
    };
    drop(showing);
    let broken = |error: ReceiveError| Broken {
        // A caller that said nothing was no sender; an interrupted one will resume.
        is_last: matches!(error, ReceiveError::Folder(..)),
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
                super::print_line(&Told::Received { from, ended: &ended })?;
            } else {
                writeln!(anstream::stdout(), "received {}", ended.line())?;
                ended.remark()?;
            }
            Ok(Some(ended.failure().map_or(Ok(()), |failure| once_or_said(is_once, failure))))
        }
        Err(Broken { is_last, reason }) => {
            let failure = Failure::failed(reason.clone());
            if args.json {
                super::print_line(&Told::Broken { from, reason })?;
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
