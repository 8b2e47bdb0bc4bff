//! `anabranch tunnel vpn`.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::time::Duration;

use anabranch::{Config, Connection, Endpoint, Lost, Ticket};
use anabranch_tunnel::vpn::{IpNetwork, Lease, MTU_MIN, Traffic};
use anabranch_tunnel::{Answer, OpenError, Permissions, Tunnel};
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::device::{Tun, host, networks_besides};
use super::routes::{Outer, Protocol, ROUTES_MAX, Routes};
use crate::args::online::{TunnelVpn as Args, VpnRoute};
use crate::failure::{Failure, Outcome};
use crate::online::offer::Offer;
use crate::online::{self, keep};

/// The documents of `--json`.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum VpnEvent<'a> {
    Connected {
        to: String,
        paths: usize,
        device: &'a str,
        addresses: Vec<String>,
        servers: Vec<String>,
        routes: Vec<String>,
    },
}

/// Connects, and carries the packets of a device.
pub(in crate::online) fn vpn(args: &Args) -> Outcome {
    online::block_on(async {
        if args.routes.len() > ROUTES_MAX / 2 {
            return Err(Failure::usage(format!(
                "there are {} routes; {} are allowed",
                args.routes.len(),
                ROUTES_MAX / 2
            )));
        }
        if !args.dns.is_empty() {
            Command::new("resolvectl").arg("--version").output().map_err(|error| {
                Failure::usage(format!(
                    "--dns needs systemd-resolved, and its command resolvectl does not run ({error}): leave --dns out, and set the name server as this system \
                     does it"
                ))
            })?;
        }
        let tun = Tun::open(&args.device)?;
        let config = Config { keep_alive: Some(keep::ASKED_EACH), ..online::sending(&args.sending)? };
        let endpoint = online::client(args.key.as_deref(), online::logged(config, &args.log))?;
        let (offer, mut place) = (Offer::new("tunnel vpn"), None);
        keep::keep(args.json, async || serve(args, &endpoint, &tun, &mut place, &offer).await).await?;
        drop(place);
        keep::stop(&endpoint, &args.log).await
    })
}

/// What the device has: addresses of this lease, and routes. They stay while the connection is made again, so that nothing leaves past the tunnel.
struct DeviceSetup {
    lease: Lease,
    routes: Routes,
}

/// Connects, and carries packets until the connection is lost (returns the loss) or the user stops the command (returns `None`).
async fn serve(
    args: &Args,
    endpoint: &Endpoint,
    tun: &Tun,
    place: &mut Option<DeviceSetup>,
    offer: &Offer,
) -> Result<Option<Lost>, Failure> {
    let connection = tokio::select! {
        connected = online::relay::connect(endpoint, &args.ticket) => connected?,
        _ = tokio::signal::ctrl_c() => return Ok(None),
    };
    let mut adding = JoinSet::new();
    if args.multipath {
        let (connection, ticket, name) = (connection.clone(), args.ticket.clone(), tun.name().to_owned());
        adding.spawn(async move { connection.add_paths_over(&ticket, |interface| interface != name).await });
        _ = tokio::time::timeout(PATHS_WITHIN, adding.join_next()).await;
    }
    let _showing = offer.show(&connection);
    let tunnel = Tunnel::new(connection.clone(), Permissions::default());
    let mut running = JoinSet::new();
    let run = tunnel.clone();
    running.spawn(async move { run.run().await });
    discover(&connection).await;
    let joined = tunnel.join(async |seat| {
        let lease = seat.lease().clone();
        let routed = routed(args, &lease)?;
        let own_ports = endpoint.local_addresses().iter().map(SocketAddr::port).collect();
        let place = settle(args, tun, place, &lease, &routed, &peers(&connection, &args.ticket))?;
        tell(args, &connection, tun, &lease, &routed)?;
        let traffic = Traffic { routed, own_ports };
        tokio::select! {
            ended = seat.run(tun, &traffic) => match ended {
                Ok(()) => Ok(Some(Lost::Reset)),
                Err(error) => Err(Failure::failed(format!("the device {} is gone: {error}", tun.name()))),
            },
            ended = running.join_next() => match ended {
                Some(Ok(Err(lost))) => Ok(Some(lost)),
                // The other end has closed; it may come back.
                _ => Ok(Some(Lost::Reset)),
            },
            failed = follow(&connection, &args.ticket, &mut place.routes) => Err(failed),
            _ = tokio::signal::ctrl_c() => Ok(None),
        }
    });
    let ended = joined.await.unwrap_or_else(|error| Err(Failure::failed(refusal(error))));
    if !matches!(ended, Ok(Some(_))) {
        connection.abort();
    }
    ended
}

/// Searches for larger packets before the device has its MTU, as programs keep what they see first.
async fn discover(connection: &Connection) {
    for _ in 0..DISCOVERY_LOOKS {
        // It is refused, and begins a search.
        _ = connection.send_datagram(TOO_LARGE.into());
        let largest = connection.max_datagram_size().unwrap_or(0);
        if largest > usize::from(MTU_MIN) + HEAD_MOST {
            return;
        }
        sleep(LOOK_AGAIN).await;
    }
}

/// The networks that are routed to the tunnel.
fn routed(args: &Args, lease: &Lease) -> Result<Vec<IpNetwork>, Failure> {
    let has = |is_ipv4: bool| lease.addresses.iter().any(|address| address.own.is_ipv4() == is_ipv4);
    let mut routed = vec![];
    for route in &args.routes {
        match route {
            VpnRoute::To(network) if has(network.is_ipv4()) => routed.push(*network),
            VpnRoute::To(network) => {
                let family = if network.is_ipv4() { "IPv4" } else { "IPv6" };
                return Err(Failure::failed(format!(
                    "the server gives no address of {family}, so {network} cannot be reached through it"
                )));
            }
            VpnRoute::Default => {
                routed.extend([true, false].into_iter().filter(|is_ipv4| has(*is_ipv4)).map(IpNetwork::all))
            }
        }
    }
    Ok(routed)
}

/// Addresses and routes of this lease. What is there of the same lease stays.
fn settle<'a>(
    args: &Args,
    tun: &Tun,
    place: &'a mut Option<DeviceSetup>,
    lease: &Lease,
    routed: &[IpNetwork],
    peers: &BTreeSet<Outer>,
) -> Result<&'a mut DeviceSetup, Failure> {
    let is_inside = |peer: &&Outer| lease.addresses.iter().any(|address| address.own.has(peer.address.ip()));
    if let Some(Outer { address: peer, .. }) = peers.iter().find(is_inside) {
        return Err(Failure::failed(format!(
            "the server is at {}, an address of its own virtual network: it needs another --vpn",
            peer.ip()
        )));
    }
    if place.as_ref().is_none_or(|place| place.lease != *lease) {
        *place = None;
        check_overlap(lease, &networks_besides(tun.name()))?;
        let own: Vec<_> = lease.addresses.iter().map(|address| host(address.own.address)).collect();
        tun.set_addresses(&own)?;
        let routes = Routes::add(tun.name(), lease, routed, peers)?;
        ask_names(args, tun)?;
        *place = Some(DeviceSetup { lease: lease.clone(), routes });
        let has_only = |is_ipv4: bool| lease.addresses.iter().all(|address| address.own.is_ipv4() == is_ipv4);
        if args.routes.contains(&VpnRoute::Default) && has_only(true) {
            writeln!(
                anstream::stderr(),
                "note: the server gives no address of IPv6, so packets of IPv6 go past the tunnel, as before"
            )?;
        }
    }
    place.as_mut().ok_or_else(|| Failure::failed("there are no routes"))
}

/// Refuses a lease that would take over an address of this computer's own networks, such as that of its router.
fn check_overlap(lease: &Lease, networks: &[(String, IpNetwork)]) -> Outcome {
    for address in &lease.addresses {
        let is_ours =
            |(_, network): &&(String, IpNetwork)| network.has(address.own.address) || network.has(address.server);
        if let Some((device, network)) = networks.iter().find(is_ours) {
            return Err(Failure::failed(format!(
                "the server's virtual network {} has addresses of this computer's own network {network} ({device}): the server needs another --vpn",
                address.own.first()
            )));
        }
    }
    Ok(())
}

/// Gives systemd-resolved the name servers of the device; they go with it.
fn ask_names(args: &Args, tun: &Tun) -> Outcome {
    if args.dns.is_empty() {
        return Ok(());
    }
    let servers: Vec<_> = args.dns.iter().map(IpAddr::to_string).collect();
    let of_all = ["~.".to_owned()];
    for (what, values) in [("dns", &servers[..]), ("domain", &of_all)] {
        let ran = Command::new("resolvectl").args([what, tun.name()]).args(values).output();
        let failed = match ran {
            Ok(output) if output.status.success() => continue,
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        return Err(Failure::failed(format!("`resolvectl {what}` failed: {failed}")));
    }
    Ok(())
}

/// Where the tunnel's own datagrams go: the addresses of the ticket, of its relay, and of the paths.
fn peers(connection: &Connection, ticket: &Ticket) -> BTreeSet<Outer> {
    let relay = ticket.relay();
    let of_relay = relay.into_iter().flat_map(Ticket::addresses);
    let port = relay.and_then(Ticket::tcp_port);
    let over_tcp = port.into_iter().flat_map(|port| {
        let address = move |address: &SocketAddr| SocketAddr::new(address.ip(), port);
        of_relay.clone().map(move |of| Outer { protocol: Protocol::Tcp, address: address(of) })
    });
    let over_tcp: Vec<_> = over_tcp.collect();
    let paths = connection.paths();
    let of_paths = paths.iter().filter(|path| !path.is_relayed()).map(|path| &path.remote);
    let over_udp = ticket.addresses().iter().chain(of_relay).chain(of_paths);
    over_udp.map(|address| Outer { protocol: Protocol::Udp, address: *address }).chain(over_tcp).collect()
}

/// Keeps the datagrams of new paths out of the tunnel.
async fn follow(connection: &Connection, ticket: &Ticket, routes: &mut Routes) -> Failure {
    loop {
        sleep(LOOK_EACH).await;
        if let Err(failure) = routes.except(&peers(connection, ticket)) {
            return failure;
        }
    }
}

fn tell(args: &Args, connection: &Connection, tun: &Tun, lease: &Lease, routed: &[IpNetwork]) -> Outcome {
    let paths = connection.paths();
    let to = paths.first().map(|path| if path.is_relayed() { "its relay".to_owned() } else { path.remote.to_string() });
    let (to, count, device) = (to.unwrap_or_default(), paths.len(), tun.name());
    let addresses: Vec<_> = lease.addresses.iter().map(|address| address.own.address.to_string()).collect();
    let servers: Vec<_> = lease.addresses.iter().map(|address| address.server.to_string()).collect();
    let of_lease = lease.addresses.iter().map(|address| address.own.first());
    let routes: Vec<_> = of_lease.chain(routed.iter().copied()).map(|network| network.to_string()).collect();
    if args.json {
        return online::print_line(&VpnEvent::Connected { to, paths: count, device, addresses, servers, routes });
    }
    let (own, server, routes) = (addresses.join(" and "), servers.join(" and "), routes.join(", "));
    writeln!(anstream::stderr(), "connected to {to}, paths: {count}")?;
    Ok(writeln!(anstream::stderr(), "{device} has {own}; the other end is {server}; through the tunnel: {routes}")?)
}

fn refusal(error: OpenError) -> String {
    match error {
        OpenError::Refused(Answer::Forbidden) => {
            "the server does not allow a virtual network: it needs `anabranch tunnel serve --vpn 10.90.0.1/24`"
                .to_owned()
        }
        OpenError::Refused(Answer::Full) => "all addresses of the server's virtual network are in use".to_owned(),
        OpenError::NoAnswer => {
            "the server does not answer, or gives no private address: is it of this version?".to_owned()
        }
        error => error.to_string(),
    }
}

/// How long the first paths are waited for; others join later.
const PATHS_WITHIN: Duration = Duration::from_secs(2);

/// How often new paths are looked for.
const LOOK_EACH: Duration = Duration::from_millis(200);

/// A datagram that no path of an Ethernet carries.
const TOO_LARGE: &[u8] = &[0; 1472];

/// What a datagram has before its packet, at most.
const HEAD_MOST: usize = 16;

/// A second: the probes of path MTU discovery have had some round trips.
const DISCOVERY_LOOKS: u32 = 20;
const LOOK_AGAIN: Duration = Duration::from_millis(50);
