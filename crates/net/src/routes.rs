//! From which addresses the system can send: what a connection needs to know when its own address goes away.
//!
//! A path has a fixed local address, which its datagrams get as their source. If the system refuses to send from it, or if a path
//! is silent, the system's routes tell whether it would send from another address. No privilege and no monitor of the system is
//! needed: connecting a UDP socket looks the route up, and sends nothing.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use anabranch_proto::endpoint::Endpoint as Engine;
use anabranch_proto::{Address, FourTuple};
use anabranch_units::{Span, Time};

use crate::address;

/// The four-tuples of datagrams that the system refused to send.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    refused: Vec<Refused>,
}

#[derive(Clone, Copy, Debug)]
struct Refused {
    tuple: FourTuple,
    /// When its route is looked up again.
    look_at: Time,
    /// Whether a datagram was refused since the last look.
    is_refused: bool,
}

/// The route of a four-tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// The system has a route from its local address.
    Present,
    /// The system would send from another address.
    Other(IpAddr),
    /// The system has no route to its remote address.
    Missing,
}

impl Routes {
    /// The system did not send a datagram.
    pub(crate) fn on_error(&mut self, now: Time, tuple: FourTuple, error: &io::Error) {
        use io::ErrorKind::{
            AddrNotAvailable, HostUnreachable, InvalidInput, NetworkDown, NetworkUnreachable, PermissionDenied,
        };
        // Others say something of the datagram, such as its size, or of the system's memory.
        let kinds =
            [AddrNotAvailable, HostUnreachable, InvalidInput, NetworkDown, NetworkUnreachable, PermissionDenied];
        if !kinds.contains(&error.kind()) {
            return;
        }
        if let Some(refused) = self.refused.iter_mut().find(|refused| refused.tuple == tuple) {
            refused.is_refused = true;
        } else if self.refused.len() < REFUSED_MAX {
            // What is beyond the limit is tried again after its timeout.
            self.refused.push(Refused { tuple, look_at: now, is_refused: true });
        }
    }

    /// When to look again.
    pub(crate) fn deadline(&self) -> Time {
        self.refused.iter().map(|refused| refused.look_at).min().unwrap_or(Time::NEVER)
    }

    /// The four-tuple to look up now. [`Self::on_route`] must follow.
    pub(crate) fn due(&mut self, now: Time) -> Option<FourTuple> {
        self.refused.retain(|refused| refused.is_refused || refused.look_at > now);
        self.refused.iter().find(|refused| refused.look_at <= now).map(|refused| refused.tuple)
    }

    /// This is the route of a four-tuple whose datagrams were refused: informs its connections.
    pub(crate) fn on_route(&mut self, now: Time, tuple: FourTuple, route: Route, engine: &mut Engine) {
        let is_used = tell(now, tuple, route, engine);
        for refused in self.refused.iter_mut().filter(|refused| refused.tuple == tuple) {
            refused.look_at = now.saturating_add(LOOK_EVERY);
            // Without a route nothing is sent, and so nothing is refused.
            refused.is_refused = is_used && route == Route::Missing;
        }
    }
}

/// Informs the connections with a path of this four-tuple. Returns whether there are any.
fn tell(now: Time, tuple: FourTuple, route: Route, engine: &mut Engine) -> bool {
    match route {
        Route::Present => engine.on_reachable(now, tuple),
        Route::Other(ip) => engine.on_unreachable(now, tuple, Some(from(ip, tuple))),
        Route::Missing => engine.on_unreachable(now, tuple, None),
    }
}

/// A path is silent: if the system would send from another address by now, its connections move there.
pub(crate) fn on_silence(now: Time, tuple: FourTuple, route: Route, engine: &mut Engine) {
    if let Route::Other(ip) = route {
        engine.on_other_route(now, tuple, from(ip, tuple));
    }
}

/// The local end of a four-tuple, at another address.
fn from(ip: IpAddr, tuple: FourTuple) -> Address {
    address::of(SocketAddr::new(ip, tuple.local.port))
}

/// Looks a route up from the local address of a four-tuple, or from the address that the system would choose. `bound` is the
/// address of its socket, which must be bound to all addresses to send from another one.
pub(crate) fn look_up(bound: SocketAddr, tuple: FourTuple) -> Route {
    let (local, remote) = (address::plain(tuple.local), address::plain(tuple.remote));
    if source(SocketAddr::new(local.ip(), 0), remote).is_ok() { Route::Present } else { chosen(bound, tuple) }
}

/// As [`look_up`], without a preference for the present local address.
pub(crate) fn chosen(bound: SocketAddr, tuple: FourTuple) -> Route {
    let (local, remote) = (address::plain(tuple.local), address::plain(tuple.remote));
    match source(any(remote), remote) {
        Ok(ip) if ip == local.ip() || !bound.ip().is_unspecified() => Route::Present,
        Ok(ip) => Route::Other(ip),
        Err(_) => Route::Missing,
    }
}

/// The source address that the system chooses for a destination. Nothing is sent.
pub(crate) fn routed(bound: SocketAddr, remote: SocketAddr) -> IpAddr {
    source(any(remote), remote).unwrap_or(bound.ip())
}

/// The source address of datagrams from `local` to `remote`.
fn source(local: SocketAddr, remote: SocketAddr) -> io::Result<IpAddr> {
    let socket = UdpSocket::bind(local)?;
    socket.connect(remote)?;
    Ok(socket.local_addr()?.ip().to_canonical())
}

/// All local addresses of the family of `remote`.
fn any(remote: SocketAddr) -> SocketAddr {
    if remote.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() }
}

/// The interval between two looks at one route: a connection goes on soon after its network has come back, and a look costs three
/// system calls.
const LOOK_EVERY: Span = Span::from_millis(250);

/// Four-tuples to look up at a time.
const REFUSED_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use anabranch_proto::endpoint::EndpointConfig;
    use anabranch_proto::seal::SealConfig;

    use super::*;
    use crate::key::SecretKey;

    fn tuple(local: &str, remote: &str) -> FourTuple {
        let [local, remote] = [local, remote].map(|text| address::of(text.parse().unwrap()));
        FourTuple { local, remote }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// 192.0.2.1 belongs to nobody, and to this computer neither; 127.0.0.1 does.
    #[test]
    fn route_from_an_address_that_is_gone_is_another_one() {
        let (all, one) = ("[::]:7".parse().unwrap(), "127.0.0.1:7".parse().unwrap());
        let (present, gone) = (tuple("127.0.0.1:7", "127.0.0.1:9"), tuple("192.0.2.1:7", "127.0.0.1:9"));
        assert_eq!((look_up(all, present), chosen(all, present)), (Route::Present, Route::Present));
        let other = Route::Other("127.0.0.1".parse().unwrap());
        assert_eq!((look_up(all, gone), chosen(all, gone)), (other, other));
        assert_eq!(chosen(one, gone), Route::Present, "a socket with an address sends from no other");
        let far = tuple("127.0.0.2:7", "127.0.0.1:9");
        assert_eq!(look_up(all, far), Route::Present, "a path from an address that the system would not choose");
    }

    /// A connection whose address is gone: its route is looked up at once, then four times a second, until it is known.
    #[test]
    fn refused_tuple_is_looked_up_until_it_has_a_route() {
        let config = EndpointConfig { connections_max: 8, seal: SealConfig::default(), server: None };
        let key = SecretKey::generate().unwrap();
        let mut engine = Engine::new(Time::ZERO, key.engine(), config, [7; 32]);
        let tuple = tuple("192.0.2.1:7", "127.0.0.1:9");
        let stamp = crate::clock::timestamp(&mut Span::from_secs(1));
        let connection = crate::Config::default().connection();
        engine.connect(at(0), stamp, key.public().0, tuple, connection).unwrap();
        let mut routes = Routes::default();
        routes.on_error(at(10), tuple, &io::ErrorKind::NetworkUnreachable.into());
        assert_eq!((routes.due(at(10)), routes.deadline()), (Some(tuple), at(10)));
        routes.on_route(at(10), tuple, Route::Missing, &mut engine);
        assert_eq!((routes.due(at(10)), routes.deadline()), (None, at(260)));
        assert_eq!(routes.due(at(260)), Some(tuple), "without a route nothing is sent, and it is looked up again");
        routes.on_route(at(260), tuple, Route::Present, &mut engine);
        assert_eq!((routes.due(at(510)), routes.deadline()), (None, Time::NEVER));
    }

    #[test]
    fn errors_that_say_nothing_of_the_route_are_ignored() {
        let (mut routes, tuple) = (Routes::default(), tuple("127.0.0.1:7", "127.0.0.1:9"));
        for kind in [io::ErrorKind::WouldBlock, io::ErrorKind::OutOfMemory, io::ErrorKind::ConnectionRefused] {
            routes.on_error(at(0), tuple, &kind.into());
        }
        assert_eq!(routes.due(at(0)), None);
        for number in 0..1000_u16 {
            let tuple = FourTuple { remote: Address { port: number, ..tuple.remote }, ..tuple };
            routes.on_error(at(0), tuple, &io::ErrorKind::PermissionDenied.into());
        }
        assert_eq!(routes.refused.len(), REFUSED_MAX);
    }
}
