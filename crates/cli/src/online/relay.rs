//! `anabranch relay`, and relays in other commands.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anabranch::{
    Admission, BindError, Connection, Endpoint, PathState, Relay, RelayCertificate, RelayConfig, RelayTcp, Ticket,
};
use anabranch_tunnel::ListenAt;
use serde::Serialize;

use crate::args::relay::{PORT, Relay as Args, RelayName, RelayServe};
use crate::failure::{Failure, Outcome};

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum RelayEvent {
    Listening {
        ticket: String,
        key: String,
        addresses: Vec<SocketAddr>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tcp: Option<SocketAddr>,
    },
    Counts {
        members: usize,
        members_over_tcp: usize,
        datagrams: u64,
        bytes: u64,
        datagrams_too_fast: u64,
        datagrams_congested: u64,
        datagrams_unknown: u64,
    },
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
    let certificate = certificate(args)?;
    let tcp_at = |address: SocketAddr| {
        let at = args.tcp?;
        let address = SocketAddr::new(at.ip.unwrap_or(address.ip()), at.port);
        let proxies = args.tcp_proxy.clone();
        let public_port = (!proxies.is_empty()).then_some(WEB);
        Some(RelayTcp { certificate: certificate.clone(), proxies, public_port, ..RelayTcp::at(address) })
    };
    let bind = |address| Relay::bind(address, &key, RelayConfig { tcp: tcp_at(address), ..config.clone() });
    // Without IPv6, as on some systems.
    let any: IpAddr = match std::net::UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)) {
        Ok(_) => Ipv6Addr::UNSPECIFIED.into(),
        Err(_) => Ipv4Addr::UNSPECIFIED.into(),
    };
    let relay = bind(args.address.unwrap_or((any, PORT).into())).map_err(|error| Failure::failed(explained(&error)))?;
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
        super::print_line(&RelayEvent::Listening { ticket, key, addresses, tcp: relay.tcp_address() })?;
    } else {
        let mut out = anstream::stdout();
        let port = addresses.first().map_or(PORT, SocketAddr::port);
        writeln!(out, "To receive files behind a NAT, with the name or address of this computer as HOST:\n")?;
        writeln!(out, "  anabranch recv --relay HOST:{port}\n")?;
        writeln!(out, "The same where somebody else could answer in its place:\n")?;
        writeln!(out, "  anabranch recv --relay {}@HOST:{port}\n", ticket.key())?;
        if let Some(port) = ticket.tcp_port() {
            writeln!(out, "Who cannot reach it over UDP comes to TCP port {port}.\n")?;
        }
        out.flush()?;
    }
    let counts = async {
        loop {
            tokio::time::sleep(MINUTE).await;
            let stats = relay.stats();
            let of = stats.forwarded;
            super::print_line(&RelayEvent::Counts {
                members: stats.members,
                members_over_tcp: stats.members_over_tcp,
                datagrams: of.datagrams,
                bytes: of.bytes,
                datagrams_too_fast: of.too_fast,
                datagrams_congested: of.congested,
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

/// The certificate that is named.
fn certificate(args: &RelayServe) -> Result<Option<RelayCertificate>, Failure> {
    let (Some(chain), Some(key)) = (&args.tls_cert, &args.tls_key) else { return Ok(None) };
    let read = |file: &Path| {
        std::fs::read(file).map_err(|error| Failure::usage(format!("{}: {error}", crate::terminal::named(file))))
    };
    let both = RelayCertificate::from_pem(&read(chain)?, &read(key)?);
    let wrong =
        |why| Failure::usage(format!("{} and {}: {why}", crate::terminal::named(chain), crate::terminal::named(key)));
    both.map(Some).map_err(wrong)
}

/// Why there is no relay, and what to do.
fn explained(error: &BindError) -> String {
    use std::io::ErrorKind::{AddrInUse, PermissionDenied};
    match error {
        BindError::Tcp(address, why) if why.kind() == PermissionDenied => format!(
            "{error}. Ports below 1024 need a right: CAP_NET_BIND_SERVICE, as the unit of systemd gives it, or --tcp {}:PORT with another one",
            shown_ip(address.ip())
        ),
        BindError::Tcp(_, why) if why.kind() == AddrInUse => {
            format!("{error}. A web server there may pass connections on to another port: --tcp-proxy")
        }
        _ => error.to_string(),
    }
}

fn shown_ip(ip: IpAddr) -> String {
    if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() }
}

/// The ticket of the relay with this name. A relay without a key is asked for it.
pub(super) async fn find(endpoint: &Endpoint, name: &RelayName) -> Result<Ticket, Failure> {
    let (host, key) = match name {
        RelayName::Ticket(ticket) => return Ok(ticket.clone()),
        RelayName::Host(host, key) => (host, key),
    };
    let unknown = |error| Failure::failed(format!("the relay {host} has no address: {error}"));
    let addresses: Vec<_> = tokio::net::lookup_host(host).await.map_err(unknown)?.take(ADDRESSES_MAX).collect();
    let found = match key {
        Some(key) => return Ticket::new(*key, addresses).map_err(|error| Failure::failed(format!("{host}: {error}"))),
        None => endpoint.find_relay(&addresses).await,
    };
    found.map_err(|error| Failure::failed(format!("the relay at {host} {error}")))
}

/// Makes an endpoint a member of a relay, if one is named.
pub(super) async fn join(endpoint: Endpoint, relay: Option<&RelayName>) -> Result<Endpoint, Failure> {
    let Some(relay) = relay else { return Ok(endpoint) };
    let relay = find(&endpoint, relay).await?;
    let endpoint = endpoint.with_relay(&relay).await.map_err(|error| Failure::failed(error.to_string()))?;
    say(&endpoint)?;
    Ok(endpoint)
}

/// Connects to a ticket.
pub(super) async fn connect(endpoint: &Endpoint, ticket: &Ticket) -> Result<Connection, Failure> {
    let connection = endpoint.connect(ticket).await.map_err(|error| Failure::failed(error.to_string()))?;
    if connection.paths().iter().any(anabranch::Path::is_relayed) {
        say(endpoint)?;
    }
    Ok(connection)
}

/// Says it if a relay is reached over TCP, once.
pub(super) fn say(endpoint: &Endpoint) -> Outcome {
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    if endpoint.relays_over_tcp().is_empty() || IS_SAID.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    for address in endpoint.relays_over_tcp() {
        writeln!(anstream::stderr(), "the relay does not answer over UDP: going over TCP, to {address}")?;
    }
    Ok(())
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

/// The port of a web server in front of a relay.
const WEB: u16 = 443;

/// Addresses of a relay.
const ADDRESSES_MAX: usize = 4;
