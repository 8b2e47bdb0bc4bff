//! `anabranch send`.

mod draw;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anabranch::units::shown;
use anabranch::{Admission, CodeError, CodeOffer, Config, Connection, Endpoint, Ticket};
use anabranch_transfer::{Compare, Item, Links, Options, Parcel, Progress};
use serde::Serialize;
use tokio::task::{JoinSet, spawn_blocking};

pub(super) use self::draw::{Side, draw};
use super::Ended;
use super::offer::Offer;
use super::relay::Way;
use crate::args::online::Listen;
use crate::args::relay::RelayName;
use crate::args::ticket;
use crate::args::transfer::Send;
use crate::failure::{Failure, Outcome};
use crate::terminal;

/// Sends, and reports the results.
pub(crate) fn send(args: &Send) -> Outcome {
    super::block_on(super::stop::or_interrupted(transfer(args)))
}

async fn transfer(args: &Send) -> Outcome {
    let (items, to) = destination(args)?;
    let parcel = packed(args, &items, &to).await?;
    let sender = Arc::new(Sender { parcel, offer: Offer::new("send"), is_multipath: args.multipath });
    let config = super::logged(Config { rate_max: args.rate, ..Config::default() }, &args.log);
    match to {
        To::Everyone(relay) => wait(args, sender, config, relay).await,
        To::Tickets(tickets) => {
            let endpoint = Arc::new(super::client(args.key.as_deref(), config)?);
            let mut sending = JoinSet::new();
            let count = tickets.len();
            for ticket in tickets {
                sending.spawn(Arc::clone(&sender).send_to(Arc::clone(&endpoint), ticket));
            }
            report(args, count, sending, &[endpoint]).await
        }
        To::Codes(relay, count) => {
            if count > 1 && args.key.is_some() {
                return Err(Failure::usage(
                    "a relay knows an end by its key, so each of several codes needs a new one: omit --key",
                ));
            }
            let mut endpoints = vec![];
            for _ in 0..count {
                endpoints.push(Arc::new(super::client(args.key.as_deref(), config.clone())?));
            }
            let mut sending = JoinSet::new();
            for (offer, endpoint) in offered(args, &endpoints, &relay).await?.into_iter().zip(&endpoints) {
                let (sender, endpoint) = (Arc::clone(&sender), Arc::clone(endpoint));
                sending.spawn(async move {
                    match offer.ticket().await {
                        Ok(ticket) => sender.send_to(endpoint, ticket).await,
                        Err(error) => Sent { to: None, result: Err(failed(&error)) },
                    }
                });
            }
            report(args, count, sending, &endpoints).await
        }
    }
}

/// Where the files go.
enum To {
    Tickets(Vec<Ticket>),
    /// To whoever types the codes that this relay offers, and how many of them.
    Codes(RelayName, usize),
    /// To whoever comes with the ticket, which names this relay.
    Everyone(Option<RelayName>),
}

/// What is sent to each receiver.
struct Sender {
    parcel: Arc<Parcel>,
    offer: Offer,
    is_multipath: bool,
}

/// The end of a transfer.
struct Sent {
    /// The receiver's key, if it was reached.
    to: Option<String>,
    result: Result<Ended, Failure>,
}

/// The lines of JSON.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum SendEvent<'a> {
    Offered {
        code: String,
    },
    Listening {
        ticket: &'a str,
    },
    Sent {
        to: Option<String>,
        #[serde(flatten)]
        ended: &'a Ended,
    },
    Broken {
        to: Option<String>,
        reason: &'a str,
    },
}

/// Tells the files from the tickets, which are the last words. A relay that only the environment names is used if the last word is no ticket.
fn destination(args: &Send) -> Result<(Vec<OsString>, To), Failure> {
    let items = args.items.clone();
    let relay = RelayName::or_of_environment(args.relay.as_ref()).map_err(Failure::usage)?;
    if args.wait || args.relay.is_some() {
        let is_ticket = |word: &&OsString| word.to_str().is_some_and(ticket::is_one) && !Path::new(word).exists();
        if items.iter().any(|word| is_ticket(&word)) {
            let why =
                "with --wait or --relay this end waits for receivers, so there is no ticket of one among the words";
            return Err(Failure::usage(why));
        }
    }
    if args.wait {
        return Ok((items, To::Everyone(args.relay.clone())));
    }
    let last = items.last().and_then(|last| last.to_str()).unwrap_or_default();
    let is_named = last == STDIN && items.len() > 1 || ticket::is_one(last);
    if let Some(relay) = relay
        && (args.relay.is_some() || !is_named)
    {
        return Ok((items, To::Codes(relay, args.receivers.unwrap_or(1).into())));
    }
    if args.receivers.is_some() {
        let why = "--receivers says for how many receivers a sender waits: with --relay or --wait. Else there is a ticket for each";
        return Err(Failure::usage(why));
    }
    let wrong = |word: &OsStr, why| {
        Failure::usage(format!(
            "{}: {why}\nThe last word is the ticket that `anabranch recv` has printed; or use --relay for a code in its place, or --wait for a ticket of this end",
            shown(Path::new(word))
        ))
    };
    // The last word is a ticket. One before it may be a file that is named so.
    let is_last = |word: &OsString| items.last().is_some_and(|last| std::ptr::eq(last, word));
    let is_ticket =
        |word: &&OsString| word.to_str().is_some_and(ticket::is_one) && (is_last(word) || !Path::new(word).exists());
    let count = match items.iter().rev().take_while(is_ticket).count() {
        // The standard input, or what is no ticket, which is said.
        0 => 1,
        count => count,
    };
    let (paths, words) = items.split_at(items.len().saturating_sub(count));
    let is_stdin = |word: &OsString| word == STDIN;
    if paths.iter().any(is_stdin) && words.iter().any(is_stdin) {
        return Err(Failure::usage(
            "the standard input is sent, so it cannot have the ticket: use @FILE or env:VARIABLE",
        ));
    }
    let mut tickets: Vec<Ticket> = vec![];
    for word in words {
        tickets.extend(ticket::read_all(word.to_str().unwrap_or_default()).map_err(|why| wrong(word, why))?);
    }
    if tickets.is_empty() {
        return Err(wrong(OsStr::new(""), "there is no ticket".into()));
    }
    let mut known = BTreeSet::new();
    tickets.retain(|ticket| known.insert(*ticket.key().bytes()));
    if tickets.len() > RECEIVERS_MAX {
        return Err(Failure::usage(format!("{} tickets are more than {RECEIVERS_MAX}: send in turns", tickets.len())));
    }
    if paths.is_empty() && args.text.is_none() {
        return Err(Failure::usage("required arguments are missing: files or folders, in front of the ticket"));
    }
    Ok((paths.to_vec(), To::Tickets(tickets)))
}

/// Lists what is sent.
async fn packed(args: &Send, items: &[OsString], to: &To) -> Result<Arc<Parcel>, Failure> {
    let mut packed = vec![];
    for item in items {
        if item != STDIN {
            packed.push(Item::Path(PathBuf::from(item)));
            continue;
        }
        let is_for_one = match to {
            To::Tickets(tickets) => tickets.len() == 1,
            To::Codes(_, count) => *count == 1,
            To::Everyone(_) => args.receivers.is_none_or(|count| count == 1),
        };
        if args.verify || !is_for_one {
            let why =
                "the standard input can be read once: it goes to one receiver, and cannot be verified. Send a file";
            return Err(Failure::usage(why));
        }
        packed.push(Item::Stream { name: args.name.clone(), from: Box::new(std::io::stdin()) });
    }
    packed.extend(args.text.clone().map(Item::Text));
    let compare = match (args.verify, args.checksum) {
        (true, _) => Compare::Only,
        (false, true) => Compare::Content,
        (false, false) => Compare::SizeAndTime,
    };
    let links = if args.links || args.archive { Links::Copy } else { Links::Report };
    let options = Options { links, compare, archives: args.archive };
    let packed = spawn_blocking(move || Parcel::pack(packed, options)).await;
    let packed = packed.map_err(|_| Failure::failed("the list of files could not be made"))?;
    packed.map(Arc::new).map_err(|error| Failure::usage(error.to_string()))
}

impl Sender {
    async fn send_to(self: Arc<Self>, endpoint: Arc<Endpoint>, ticket: Ticket) -> Sent {
        let begin = Instant::now();
        match super::relay::connect(&endpoint, &ticket).await {
            Ok(connection) => {
                // An interface that leads nowhere is not waited for.
                let (other, is_multipath) = (connection.clone(), self.is_multipath);
                let paths = async move {
                    if is_multipath {
                        other.add_paths(&ticket).await;
                    }
                    std::future::pending().await
                };
                tokio::select! {
                    sent = self.send(connection, begin) => sent,
                    () = paths => unreachable!("it is never over"),
                }
            }
            Err(failure) => Sent { to: Some(ticket.key().to_string()), result: Err(failure) },
        }
    }

    async fn send(self: Arc<Self>, connection: Connection, begin: Instant) -> Sent {
        let to = Some(connection.remote_key().to_string());
        let showing = self.offer.show(&connection);
        let (progress, way) = (Arc::new(Progress::default()), Way::new());
        let sent = {
            let bar = terminal::Progress::of_bytes();
            let send = anabranch_transfer::send(&connection, Arc::clone(&self.parcel), Arc::clone(&progress));
            tokio::select! {
                sent = send => sent,
                () = draw(&bar, &progress, &connection, &way, Side::Sends) => unreachable!("it goes on and on"),
            }
        };
        drop((showing, connection));
        let result = sent.map_err(|error| Failure::failed(way.explain(&error.to_string())));
        let result = result.map(|summary| Ended::new(summary, begin.elapsed().as_secs_f64(), way.went()));
        Sent { to, result }
    }
}

/// Reports transfers as they end: a single one as the command's result, several each for itself.
async fn report(args: &Send, count: usize, mut sending: JoinSet<Sent>, endpoints: &[Arc<Endpoint>]) -> Outcome {
    let mut outcome = Ok(());
    while let Some(sent) = sending.join_next().await {
        let Ok(sent) = sent else { return Err(Failure::failed("a part of this program has failed")) };
        if count > 1 {
            tell(args, sent, &mut outcome)?;
            continue;
        }
        for endpoint in endpoints {
            super::end_logs(endpoint, &args.log).await;
        }
        let mut ended = sent.result?;
        ended.is_compared = args.checksum;
        if args.json {
            super::print_line(&ended)?;
        } else {
            writeln!(anstream::stdout(), "{}", ended.line("sent"))?;
            ended.remark(&mut anstream::stdout())?;
        }
        // Everything has arrived and both ends have closed: nothing is waited for.
        return ended.failure().map_or(Ok(()), Err);
    }
    for endpoint in endpoints {
        super::end_logs(endpoint, &args.log).await;
    }
    outcome
}

/// Tells how one of several transfers has ended. If not everything has arrived, the outcome says so.
fn tell(args: &Send, sent: Sent, outcome: &mut Outcome) -> Outcome {
    let who = sent.to.clone().unwrap_or_else(|| "a receiver".into());
    let failure = match sent.result {
        Ok(mut ended) => {
            ended.is_compared = args.checksum;
            if args.json {
                super::print_line(&SendEvent::Sent { to: sent.to, ended: &ended })?;
            } else {
                writeln!(anstream::stdout(), "{who}: {}", ended.line("sent"))?;
                ended.remark(&mut anstream::stdout())?;
            }
            ended.failure()
        }
        Err(failure) => {
            if args.json {
                super::print_line(&SendEvent::Broken { to: sent.to, reason: &failure.message })?;
            }
            Some(failure)
        }
    };
    let Some(failure) = failure else { return Ok(()) };
    terminal::complain(&format!("{who}: {}", failure.message));
    *outcome = Err(Failure { code: failure.code, ..Failure::failed("not everything has arrived at every receiver") });
    Ok(())
}

/// Prints a ticket, and sends to those who come.
async fn wait(args: &Send, sender: Arc<Sender>, config: Config, relay: Option<RelayName>) -> Outcome {
    let admission =
        if args.allow.is_empty() { Admission::Ticket } else { Admission::Keys(args.allow.iter().copied().collect()) };
    let listen = Listen { address: args.listen, key: args.key.clone(), qr: false, relay, metrics: None };
    let endpoint = super::server(&listen, config.admit(admission)).await?;
    let ticket = endpoint.ticket().to_string();
    if args.json {
        super::print_line(&SendEvent::Listening { ticket: &ticket })?;
    } else {
        let mut out = anstream::stdout();
        writeln!(out, "On other computers:\n\n  anabranch recv {ticket}\n")?;
        out.flush()?;
    }
    let mut sending = JoinSet::new();
    let (mut outcome, mut ended) = (Ok(()), 0);
    // What is read once goes to one.
    let reads = args.items.iter().any(|item| item == STDIN);
    let wanted = if reads { 1 } else { args.receivers.map_or(usize::MAX, usize::from) };
    while ended < wanted {
        tokio::select! {
            connection = endpoint.accept(), if sending.len() < RECEIVERS_MAX.min(wanted - ended) => match connection {
                Some(connection) => _ = sending.spawn(Arc::clone(&sender).send(connection, Instant::now())),
                None => return Err(Failure::failed("the socket is gone")),
            },
            Some(sent) = sending.join_next() => {
                let Ok(sent) = sent else { continue };
                // Who was interrupted may come again, but for what can be read once.
                let has_ended = sent.result.is_ok() || reads && sender.parcel.is_used_up();
                let mut so_far = Ok(());
                tell(args, sent, &mut so_far)?;
                if has_ended {
                    ended += 1;
                    outcome = outcome.and(so_far);
                }
            }
        }
    }
    super::end_logs(&endpoint, &args.log).await;
    outcome
}

/// Shows a code of each endpoint, to be typed at another end.
async fn offered(args: &Send, endpoints: &[Arc<Endpoint>], relay: &RelayName) -> Result<Vec<CodeOffer>, Failure> {
    let mut offers = vec![];
    for endpoint in endpoints {
        let relay_ticket = super::relay::find(endpoint, relay).await?;
        offers.push(endpoint.offer_code(&relay_ticket).await.map_err(|error| failed(&error))?);
        super::relay::say(endpoint)?;
    }
    let count = endpoints.len();
    let mut out = anstream::stdout();
    if !args.json {
        writeln!(
            out,
            "{}:\n",
            if count == 1 { "On the other computer" } else { "On the other computers, one code each" }
        )?;
    }
    for offer in &offers {
        let code = offer.code();
        if args.json {
            super::print_line(&SendEvent::Offered { code: code.to_string() })?;
        } else {
            let option = args.relay.as_ref().map_or_else(String::new, |relay| format!(" --relay {relay}"));
            writeln!(out, "  anabranch recv{option} {code}")?;
        }
    }
    if !args.json {
        writeln!(out)?;
        out.flush()?;
    }
    Ok(offers)
}

fn failed(error: &CodeError) -> Failure {
    Failure::failed(error.to_string())
}

/// The word for the standard input.
const STDIN: &str = "-";

/// Receivers at the same time.
const RECEIVERS_MAX: usize = 256;
