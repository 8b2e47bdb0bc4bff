//! `anabranch tunnel`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use anabranch::{Admission, Config, Endpoint, Lost, Ticket};
use anabranch_tunnel::{
    Common, ListenAt, OpenError, Permissions, PortForward, Ports, Shares, Target, Targets, Tunnel, forward, socks, udp,
};
use serde::Serialize;
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinSet;

use super::keep;
use super::offer::Offer;
use crate::args::online::{Tunnel as Args, TunnelServe, TunnelServer};
use crate::failure::{Failure, Outcome};
use crate::terminal;

/// The documents of `--json`.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum TunnelEvent {
    Listening { ticket: String },
    Forwarding { listen: String, target: String },
    Connected { to: String, paths: usize },
}

/// Serves, or connects and listens.
pub(crate) fn tunnel(args: &Args) -> Outcome {
    match (&args.serve, &args.ticket) {
        (Some(TunnelServer::Serve(serve)), _) => super::block_on(wait(serve)),
        (Some(TunnelServer::Vpn(vpn)), _) => super::vpn::vpn(vpn),
        (None, Some(ticket)) => super::block_on(call(args, ticket)),
        (None, None) => Err(Failure::usage("a ticket is missing: `anabranch tunnel serve` prints one")),
    }
}

async fn wait(args: &TunnelServe) -> Outcome {
    if args.targets.is_empty() && args.udp.is_empty() && !args.anywhere && !args.listens && args.vpn.is_empty() {
        return Err(Failure::usage(
            "nothing is allowed: name allowed targets (--to HOST:PORT, --to-udp HOST:PORT, or --anywhere), or allow listeners here (--listens) or \
             a virtual network (--vpn 10.90.0.1/24)",
        ));
    }
    let vpn = super::vpn::Server::open(args)?;
    let targets = |listed: &[Target]| {
        if args.anywhere { Targets::All } else { Targets::Listed(listed.iter().cloned().collect()) }
    };
    let permissions = Permissions { targets: targets(&args.targets), udp: targets(&args.udp), listens: args.listens };
    let admission =
        if args.allow.is_empty() { Admission::Ticket } else { Admission::Keys(args.allow.iter().copied().collect()) };
    let config = Config {
        connections_max: args.connections.map_or_else(super::resources::connections, |count| count as usize),
        connections_per_key: args.connections_per_key as usize,
        connections_per_address: args.connections_per_address as usize,
        ..super::sending(&args.sending)?.admit(admission)
    };
    let endpoint = super::server(&args.listen, super::logged(config, &args.log)).await?;
    let ticket = endpoint.ticket().to_string();
    if args.json {
        super::print_line(&TunnelEvent::Listening { ticket })?;
    } else {
        let mut out = anstream::stdout();
        writeln!(
            out,
            "To use this end of the tunnel, for example:\n\n  anabranch tunnel {ticket} --local 8080:HOST:80\n"
        )?;
        super::show_code(&mut out, &args.listen, &ticket)?;
        out.flush()?;
    }
    // The ticket has no address of the virtual network, which the tunnel itself cannot use.
    let (hub, network) = vpn.map(|vpn| vpn.begin(args.json)).transpose()?.unzip();
    let shares = Shares::new(super::resources::tcp_connections());
    let (offer, common) = (Offer::new("tunnel serve"), Common { ports: Ports::default(), shares, hub });
    tokio::select! {
        () = admit(&endpoint, &permissions, &common, &offer) => Err(Failure::failed("the socket is gone")),
        failed = async { match network { Some(network) => network.await, None => std::future::pending().await } } => failed,
    }
}

/// Serves clients.
async fn admit(endpoint: &Endpoint, permissions: &Permissions, common: &Common, offer: &Offer) {
    while let Some(connection) = endpoint.accept().await {
        let (permissions, common) = (permissions.clone(), common.clone());
        let showing = offer.show(&connection);
        // The other end reconnects after a loss.
        tokio::spawn(async move {
            // The other end reports the loss.
            _ = Tunnel::sharing(connection, permissions, common).run().await;
            drop(showing);
        });
    }
}

/// A listening port of this computer.
enum Door {
    Tcp(TcpListener, Target),
    Udp(Arc<UdpSocket>, Target),
    /// Each connection or packet names its own target.
    Socks(TcpListener),
}

async fn call(args: &Args, ticket: &Ticket) -> Outcome {
    if args.local.is_empty() && args.local_udp.is_empty() && args.remote.is_empty() && args.socks.is_empty() {
        return Err(Failure::usage("nothing to forward: use --local, --local-udp, --remote or --socks"));
    }
    let doors = doors(args).await?;
    // A server that was restarted is noticed by the next datagram that it gets.
    let config = Config { keep_alive: Some(keep::ASKED_EACH), ..super::sending(&args.sending)? };
    let endpoint = super::client(args.key.as_deref(), super::logged(config, &args.log))?;
    let offer = Offer::new("tunnel");
    keep::keep(args.json, async || serve(args, &endpoint, ticket, &doors, &offer).await).await?;
    keep::stop(&endpoint, &args.log).await
}

/// Connects, and serves the ports until the connection is lost (returns the loss) or the user stops the command (returns `None`).
async fn serve(
    args: &Args,
    endpoint: &Endpoint,
    ticket: &Ticket,
    doors: &[Door],
    offer: &Offer,
) -> Result<Option<Lost>, Failure> {
    let connection = tokio::select! {
        connected = super::relay::connect(endpoint, ticket) => connected?,
        _ = tokio::signal::ctrl_c() => return Ok(None),
    };
    if args.multipath {
        connection.add_paths(ticket).await;
    }
    let _showing = offer.show(&connection);
    let paths = connection.paths();
    let to = paths.first().map(|path| if path.is_relayed() { "its relay".to_owned() } else { path.remote.to_string() });
    let to = to.unwrap_or_default();
    if args.json {
        super::print_line(&TunnelEvent::Connected { to, paths: paths.len() })?;
    } else {
        writeln!(anstream::stderr(), "connected to {to}")?;
    }
    let tunnel = Tunnel::new(connection.clone(), Permissions::default());
    let mut tasks = JoinSet::new();
    let running = tunnel.clone();
    tasks.spawn(async move { running.run().await });
    for PortForward { listen, target } in &args.remote {
        let asked = tunnel.listen_there(listen.ip(), listen.port(), target).await;
        let port = asked.map_err(|error| Failure::failed(format!("{listen} at the other end: {error}")))?;
        tell_forward(args, &format!("{} at the other end", SocketAddr::new(listen.ip(), port)), &target.to_string())?;
    }
    let serving = async {
        let mut serving = vec![];
        for door in doors {
            let tunnel = &tunnel;
            let failed = |target: &Target, error: OpenError| terminal::complain(&format!("{target}: {error}"));
            serving.push(Box::pin(async move {
                match door {
                    Door::Tcp(listener, target) => {
                        forward::forward(listener, tunnel, target, |error| failed(target, error)).await;
                    }
                    Door::Udp(socket, target) => {
                        udp::forward(socket, tunnel, target, |error| failed(target, error)).await;
                    }
                    Door::Socks(listener) => {
                        socks::serve(listener, tunnel, |error| terminal::complain(&error.to_string())).await;
                    }
                }
            }));
        }
        std::future::poll_fn(|cx| {
            serving.iter_mut().for_each(|door| _ = door.as_mut().poll(cx));
            std::task::Poll::<()>::Pending
        })
        .await;
    };
    tokio::select! {
        () = serving => unreachable!("doors stay open"),
        ended = tasks.join_next() => match ended {
            Some(Ok(Err(lost))) => Ok(Some(lost)),
            // The other end has closed; it may come back.
            _ => Ok(Some(Lost::Reset)),
        },
        _ = tokio::signal::ctrl_c() => {
            connection.abort();
            Ok(None)
        }
    }
}

/// Opens the ports of this computer, and prints them.
async fn doors(args: &Args) -> Result<Vec<Door>, Failure> {
    let mut doors = vec![];
    let failed =
        |listen: &SocketAddr, error: std::io::Error| Failure::failed(format!("cannot listen at {listen}: {error}"));
    let tcp = |listen: &SocketAddr| {
        let bound = anabranch_tunnel::bind(*listen).and_then(|listener| Ok((listener.local_addr()?, listener)));
        bound.map_err(|error| failed(listen, error))
    };
    for PortForward { listen, target } in &args.local {
        let (at, listener) = tcp(listen)?;
        tell_forward(args, &at.to_string(), &target.to_string())?;
        doors.push(Door::Tcp(listener, target.clone()));
    }
    for PortForward { listen, target } in &args.local_udp {
        let socket = UdpSocket::bind(listen).await.map_err(|error| failed(listen, error))?;
        let at = socket.local_addr().map_err(|error| failed(listen, error))?;
        tell_forward(args, &format!("{at} (UDP)"), &target.to_string())?;
        doors.push(Door::Udp(Arc::new(socket), target.clone()));
    }
    for ListenAt(listen) in &args.socks {
        let (at, listener) = tcp(listen)?;
        tell_forward(args, &at.to_string(), "the target of each SOCKS5 request")?;
        doors.push(Door::Socks(listener));
    }
    Ok(doors)
}

fn tell_forward(args: &Args, listen: &str, target: &str) -> Outcome {
    if args.json {
        return super::print_line(&TunnelEvent::Forwarding { listen: listen.to_owned(), target: target.to_owned() });
    }
    let mut out = anstream::stdout();
    writeln!(out, "{listen} forwards to {target}")?;
    Ok(out.flush()?)
}
