//! The TCP side of a relay, for members whose network blocks UDP.
//!
//! Everybody may connect, so each step has a limit of time, and connections have limits: all together, and by the address that they come
//! from. A connection that is no member's soon ends, so that nobody holds places without the proof of a key.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::carrier;
use crate::endpoint::Endpoint;
use crate::error::BindError;
use crate::websocket;

/// How a relay takes members over TCP.
#[derive(Clone, Debug)]
pub struct RelayTcp {
    /// The address to listen at. Port 443 is the one that networks let through.
    pub address: SocketAddr,
    /// The certificate for TLS; without one, the relay makes one that it signs itself. Members rely on neither: the key of the relay proves
    /// who it is.
    pub certificate: Option<RelayCertificate>,
    /// Addresses of web servers in front of the relay. What they say in `X-Forwarded-For` is taken for the address of a member.
    pub proxies: Vec<IpAddr>,
    /// The port that members are told; that of `address` if there is none.
    pub public_port: Option<u16>,
}

/// A certificate and its private key.
#[derive(Debug)]
pub struct RelayCertificate {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl RelayTcp {
    /// Listens at this address, with a certificate of its own.
    pub fn at(address: SocketAddr) -> Self {
        Self { address, certificate: None, proxies: vec![], public_port: None }
    }
}

impl RelayCertificate {
    /// Reads a chain of certificates, the relay's own first, and the private key, both as PEM.
    ///
    /// # Errors
    /// If there is no certificate, no private key, or they do not belong together.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, String> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(|error| format!("the certificate is no PEM: {error}"))?;
        if chain.is_empty() {
            return Err("there is no certificate in the file".to_owned());
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("there is no private key: {error}"))?;
        let both = Self { chain, key };
        server_config(&both).map_err(|error| format!("certificate and key cannot be used: {error}"))?;
        Ok(both)
    }

    /// A new one, which it signs itself.
    fn new() -> Result<Self, String> {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).map_err(|error| error.to_string())?;
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
        Ok(Self { chain: vec![made.cert.der().clone()], key })
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("address", &self.address).field("guests", &self.guests).finish_non_exhaustive()
    }
}

impl Clone for RelayCertificate {
    fn clone(&self) -> Self {
        Self { chain: self.chain.clone(), key: self.key.clone_key() }
    }
}

/// The limits of connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) all: usize,
    /// Of one IPv4 address, or the first 64 bits of an IPv6 address.
    pub(crate) each: usize,
}

/// A TCP port that takes members.
pub(crate) struct Door {
    listener: TcpListener,
    tls: TlsAcceptor,
    proxies: Vec<IpAddr>,
    guests: Arc<Guests>,
    address: SocketAddr,
    pub(crate) public_port: u16,
}

/// Who is there, by networks.
#[derive(Debug)]
struct Guests {
    limits: Limits,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    networks: BTreeMap<IpAddr, usize>,
}

/// A place, until it is dropped.
#[derive(Debug)]
struct GuestPlace {
    guests: Arc<Guests>,
    /// `None` for a proxy, until it has told whose connection it is.
    network: Option<IpAddr>,
}

impl Door {
    pub(crate) fn open(config: &RelayTcp, limits: Limits) -> Result<Self, BindError> {
        let no_socket = |error| BindError::Tcp(config.address, error);
        let listener = std::net::TcpListener::bind(config.address).map_err(no_socket)?;
        listener.set_nonblocking(true).map_err(no_socket)?;
        let listener = TcpListener::from_std(listener).map_err(no_socket)?;
        let address = listener.local_addr().map_err(no_socket)?;
        let certificate = config.certificate.clone().map_or_else(RelayCertificate::new, Ok);
        let tls = certificate.and_then(|certificate| server_config(&certificate)).map_err(BindError::Certificate)?;
        Ok(Self {
            listener,
            tls: TlsAcceptor::from(Arc::new(tls)),
            proxies: config.proxies.iter().map(IpAddr::to_canonical).collect(),
            guests: Arc::new(Guests { limits, counts: Mutex::default() }),
            address,
            public_port: config.public_port.unwrap_or(address.port()),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes connections, until this is dropped.
    pub(crate) async fn serve(&self, endpoint: &Endpoint) {
        let mut tasks = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                Some(_) = tasks.join_next() => continue,
            };
            let Ok((stream, from)) = accepted else {
                // Too many open files, mostly.
                tokio::time::sleep(ERROR_PAUSE).await;
                continue;
            };
            let is_proxy = self.proxies.contains(&from.ip().to_canonical());
            let network = if is_proxy { None } else { Some(from.ip()) };
            // What finds no place is closed.
            if let Some(place) = GuestPlace::take(&self.guests, network) {
                tasks.spawn(attend(endpoint.uncounted(), self.tls.clone(), stream, from, place));
            }
        }
    }
}

/// Serves a connection as long as it is a member's.
async fn attend(endpoint: Endpoint, tls: TlsAcceptor, stream: TcpStream, from: SocketAddr, mut place: GuestPlace) {
    let opened = tokio::time::timeout(OPEN_WITHIN, websocket::answer(stream, &tls)).await;
    let Ok(Ok((socket, forwarded))) = opened else { return };
    let mut from = from;
    if place.network.is_none() {
        // Without a word of the proxy, it is the proxy itself.
        from.set_ip(forwarded.unwrap_or(from.ip()));
        if !place.settle(from.ip()) {
            return;
        }
    }
    let carrier = endpoint.add_carrier(from);
    let no_member = async {
        tokio::time::sleep(JOIN_WITHIN).await;
        if carrier.outbox().is_settled() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = carrier::run(&carrier, endpoint.clock(), socket) => {}
        () = no_member => {}
    }
}

fn server_config(certificate: &RelayCertificate) -> Result<ServerConfig, String> {
    let RelayCertificate { chain, key } = certificate.clone();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    let config = config.with_no_client_auth().with_single_cert(chain, key);
    let mut config = config.map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![websocket::ALPN.to_vec()];
    Ok(config)
}

impl GuestPlace {
    fn take(guests: &Arc<Guests>, ip: Option<IpAddr>) -> Option<Self> {
        let network = ip.map(network);
        let mut counts = guests.lock();
        if counts.all >= guests.limits.all || network.is_some_and(|network| !counts.enter(network, guests.limits.each))
        {
            return None;
        }
        counts.all += 1;
        Some(Self { guests: Arc::clone(guests), network })
    }

    /// It is known now who it is. Returns whether there is a place.
    fn settle(&mut self, ip: IpAddr) -> bool {
        let network = network(ip);
        let is_in = self.guests.lock().enter(network, self.guests.limits.each);
        self.network = is_in.then_some(network);
        is_in
    }
}

impl Drop for GuestPlace {
    fn drop(&mut self) {
        let mut counts = self.guests.lock();
        counts.all -= 1;
        let Some(network) = self.network else { return };
        if let Some(count) = counts.networks.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                counts.networks.remove(&network);
            }
        }
    }
}

impl Guests {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        // Nothing panics while it is locked.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn enter(&mut self, network: IpAddr, most: usize) -> bool {
        let count = self.networks.get(&network).copied().unwrap_or_default();
        if count < most {
            self.networks.insert(network, count + 1);
        }
        count < most
    }
}

/// What counts as one: an IPv4 address, or the first 64 bits of an IPv6 address.
fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => std::net::Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
        ip @ IpAddr::V4(_) => ip,
    }
}

/// TLS and WebSocket together. Four round trips, some of which may be lost.
const OPEN_WITHIN: Duration = Duration::from_secs(10);

/// The handshake inside, which is repeated after 1, 3 and 7 s.
const JOIN_WITHIN: Duration = Duration::from_secs(15);

const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// The name in a certificate that nobody checks.
const NAME: &str = "anabranch";

#[cfg(test)]
mod tests {
    use super::*;

    fn guests(all: usize, each: usize) -> Arc<Guests> {
        Arc::new(Guests { limits: Limits { all, each }, counts: Mutex::default() })
    }

    fn ip(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn places_are_limited_by_network_and_in_total() {
        let guests = guests(4, 2);
        let take = |text| GuestPlace::take(&guests, ip(text));
        let (one, two) = (take("192.0.2.1"), take("::ffff:192.0.2.1"));
        assert!(one.is_some() && two.is_some() && take("192.0.2.1").is_none());
        let (three, four) = (take("2001:db8::1"), take("2001:db8::2"));
        assert!(three.is_some() && four.is_some() && take("2001:db8:0:1::1").is_none(), "four in total");
        drop(one);
        assert!(take("2001:db8::3").is_none(), "its network has two");
        let again = take("192.0.2.1");
        assert!(again.is_some());
        drop((again, two, three, four));
        let counts = guests.lock();
        assert_eq!((counts.all, counts.networks.len()), (0, 0));
    }

    /// A proxy has one address for all its clients, who have their own limits.
    #[test]
    fn clients_of_a_proxy_count_by_their_own_addresses() {
        let guests = guests(9, 1);
        let mut places: Vec<_> = (0..3).map(|_| GuestPlace::take(&guests, None).unwrap()).collect();
        let settled = ["192.0.2.1", "192.0.2.2", "192.0.2.1"].map(|text| text.parse().unwrap());
        let settled: Vec<_> = places.iter_mut().zip(settled).map(|(place, ip)| place.settle(ip)).collect();
        assert_eq!(settled, [true, true, false]);
        drop(places);
        let counts = guests.lock();
        assert_eq!((counts.all, counts.networks.len()), (0, 0));
    }

    #[test]
    fn certificate_and_key_are_read_and_wrong_ones_named() {
        let made = rcgen::generate_simple_self_signed(["relay.example".to_owned()]).unwrap();
        let pem = |label: &str, der: &[u8]| {
            let text = base64(der);
            format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n").into_bytes()
        };
        let chain = pem("CERTIFICATE", made.cert.der());
        let key = pem("PRIVATE KEY", &made.signing_key.serialize_der());
        let both = RelayCertificate::from_pem(&chain, &key).unwrap();
        assert!(!format!("{both:?}").contains(&format!("{:?}", &made.signing_key.serialize_der()[..4])));
        let other = RelayCertificate::new().unwrap();
        let other = pem("PRIVATE KEY", other.key.secret_der());
        for (chain, key, word) in [
            (&b""[..], &key[..], "no certificate"),
            (&key, &key, "no certificate"),
            (&chain, &chain, "no private key"),
            (&chain, b"", "no private key"),
            (&chain, &other, "cannot be used"),
        ] {
            let error = RelayCertificate::from_pem(chain, key).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    fn base64(bytes: &[u8]) -> String {
        const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let quad = |chunk: &[u8]| {
            let number = (0..3).fold(0_usize, |sum, place| sum << 8 | usize::from(*chunk.get(place).unwrap_or(&0)));
            let letter = move |place: usize| match place <= chunk.len() {
                true => char::from(LETTERS[number >> (18 - 6 * place) & 63]),
                false => '=',
            };
            (0..4).map(letter).collect::<String>()
        };
        bytes.chunks(3).map(quad).collect()
    }
}
