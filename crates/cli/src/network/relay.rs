//! `anabranch relay`, and relays in other commands.

use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anabranch::{Admission, Connection, Endpoint, PathState, Relay, RelayConfig, Ticket};
use anabranch_tunnel::ListenAt;
use serde::Serialize;

use crate::args::relay::{PORT, Relay as Args, RelayName, RelayServe};
use crate::failure::{Failure, Outcome};

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Told {
    Listening { ticket: String, key: String, addresses: Vec<SocketAddr> },
    Counts { members: usize, datagrams: u64, bytes: u64, datagrams_too_fast: u64, datagrams_unknown: u64 },
}

/// `anabranch relay`.
pub(crate) fn relay(args: &Args) -> Outcome {
    let Args::Serve(args) = args;
    super::block_on(serve(args))
}

async fn serve(args: &RelayServe) -> Outcome {
    super::resources::raise_files();
    let key = super::identity(args.key.as_deref())?;
    let admission =
        if args.allow.is_empty() { Admission::Ticket } else { Admission::Keys(args.allow.iter().copied().collect()) };
    let config = RelayConfig {
        admission,
        members_max: args.members as usize,
        members_per_address: args.members_per_address as usize,
        rate: args.rate,
        ..RelayConfig::default()
    };
    let bind = |address| Relay::bind(address, &key, config.clone());
    let all = || bind((Ipv6Addr::UNSPECIFIED, PORT).into()).or_else(|_| bind((Ipv4Addr::UNSPECIFIED, PORT).into()));
    let relay = args.address.map_or_else(all, bind).map_err(|error| Failure::failed(error.to_string()))?;
    super::stop::register(relay.endpoint());
    if let Some(ListenAt(address)) = args.metrics {
        let refused = |error| Failure::failed(format!("cannot serve metrics at {address}: {error}"));
        let address = relay.endpoint().serve_metrics(address).map_err(refused)?;
        writeln!(anstream::stderr(), "metrics at http://{address}/metrics")?;
    }
    let ticket = relay.ticket();
    let addresses = ticket.addresses().to_vec();
    if args.json {
        let (ticket, key) = (ticket.to_string(), ticket.key().to_string());
        super::print_line(&Told::Listening { ticket, key, addresses })?;
    } else {
        let mut out = anstream::stdout();
        let port = addresses.first().map_or(PORT, SocketAddr::port);
        writeln!(out, "To receive files behind a NAT, with the name or address of this computer as HOST:\n")?;
        writeln!(out, "  anabranch recv --relay HOST:{port}\n")?;
        writeln!(out, "The same where somebody else could answer in its place:\n")?;
        writeln!(out, "  anabranch recv --relay {}@HOST:{port}\n", ticket.key())?;
        out.flush()?;
    }
    let counts = async {
        loop {
            tokio::time::sleep(MINUTE).await;
            let stats = relay.stats();
            let of = stats.forwarded;
            super::print_line(&Told::Counts {
                members: stats.members,
                datagrams: of.datagrams,
                bytes: of.bytes,
                datagrams_too_fast: of.too_fast,
                datagrams_unknown: of.unknown,
            })?;
        }
    };
    tokio::select! {
        () = relay.serve() => Err(Failure::failed("the socket is gone")),
        failed = counts, if args.json => failed,
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

/// The ticket of the relay with this name. A relay without a key is asked for it.
pub(super) async fn find(name: &RelayName) -> Result<Ticket, Failure> {
    let (host, key) = match name {
        RelayName::Ticket(ticket) => return Ok(ticket.clone()),
        RelayName::Host(host, key) => (host, key),
    };
    let unknown = |error| Failure::failed(format!("the relay {host} has no address: {error}"));
    let addresses: Vec<_> = tokio::net::lookup_host(host).await.map_err(unknown)?.take(ADDRESSES_MAX).collect();
    let found = match key {
        Some(key) => return Ticket::new(*key, addresses).map_err(|error| Failure::failed(format!("{host}: {error}"))),
        None => Relay::find(&addresses).await,
    };
    found.map_err(|error| Failure::failed(format!("the relay at {host} {error}")))
}

/// Makes an endpoint a member of a relay, if one is named.
pub(super) async fn join(endpoint: Endpoint, relay: Option<&RelayName>) -> Result<Endpoint, Failure> {
    let Some(relay) = relay else { return Ok(endpoint) };
    let relay = find(relay).await?;
    endpoint.with_relay(&relay).await.map_err(|error| Failure::failed(error.to_string()))
}

/// The way that a connection takes: through a relay, or not.
#[derive(Debug)]
pub(super) struct Way {
    begun: Instant,
    state: Mutex<Seen>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    is_relayed: bool,
    has_relay: bool,
    direct_after: Option<f64>,
}

/// How a connection went, in a document.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Went {
    /// `direct` or `relay`, at the end.
    way: &'static str,
    /// When a connection that began through a relay had another way, in seconds since it was established.
    direct_after_seconds: Option<f64>,
}

impl Way {
    pub(super) fn new() -> Self {
        Self { begun: Instant::now(), state: Mutex::default() }
    }

    /// Looks at the paths of a connection that is not over. Returns whether it goes through a relay.
    pub(super) fn look(&self, connection: &Connection) -> bool {
        let paths = connection.paths();
        let mut seen = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !paths.is_empty() {
            seen.has_relay |= paths.iter().any(anabranch::Path::is_relayed);
            seen.is_relayed = !paths.iter().any(|path| path.state == PathState::Live && !path.is_relayed());
            if seen.has_relay && !seen.is_relayed && seen.direct_after.is_none() {
                seen.direct_after = Some(self.begun.elapsed().as_secs_f64());
            }
        }
        seen.is_relayed
    }

    pub(super) fn went(&self) -> Went {
        let seen = *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Went { way: if seen.is_relayed { "relay" } else { "direct" }, direct_after_seconds: seen.direct_after }
    }

    /// An error of a connection, with what is to be known if a relay was on its way.
    pub(super) fn explain(&self, error: &str) -> String {
        if self.went().way == "direct" {
            return error.to_owned();
        }
        format!(
            "{error}. The connection went through its relay alone, as no direct way was found: is the relay still running? What has arrived \
             is kept, and the same command goes on"
        )
    }
}

/// How often counts are printed.
const MINUTE: Duration = Duration::from_secs(60);

/// Addresses of a relay.
const ADDRESSES_MAX: usize = 4;
