//! The commands, over `anabranch_tcp::Host`.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anabranch_cc::{Settings as Law, registry};
use anabranch_tcp::{Config, Host, HostError, KeepAlive, Settings};
use anabranch_tunnel::{Target, socks};
use anabranch_units::Span;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy, copy_bidirectional, split};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::Semaphore;

use crate::args::tcp::{Connect, Device, From, Listen, Proxy, Tcp, To};
use crate::failure::{Failure, Outcome};
use crate::network;

/// Runs a command.
pub(crate) fn tcp(command: &Tcp) -> Outcome {
    network::block_on(async {
        match command {
            Tcp::Listen(args) => listen(args).await,
            Tcp::Connect(args) => connect(args).await,
            Tcp::Proxy(args) => proxy(args).await,
        }
    })
}

async fn listen(args: &Listen) -> Outcome {
    let host = open(&args.device)?;
    let mut listener =
        host.listen(args.port).map_err(|error| Failure::failed(format!("port {}: {error}", args.port)))?;
    for address in &args.device.addresses {
        anstream::eprintln!("waits at {address} port {}", args.port);
    }
    let stream = listener.accept().await.map_err(broken)?;
    // Others are refused.
    drop(listener);
    anstream::eprintln!("connected to {}", stream.peer_addr());
    pipe(stream).await
}

async fn connect(args: &Connect) -> Outcome {
    let host = open(&args.device)?;
    let stream = dial(&host, &args.device.addresses, args.peer).await.map_err(Failure::failed)?;
    pipe(stream).await
}

/// A connection to `peer` from our address of its family.
async fn dial(host: &Host, addresses: &[IpAddr], peer: SocketAddr) -> Result<anabranch_tcp::TcpStream, String> {
    let local = addresses.iter().find(|address| address.is_ipv4() == peer.is_ipv4());
    let local = local.ok_or_else(|| format!("{peer}: we have no address of that family: name one by --address"))?;
    host.connect(*local, peer).await.map_err(|error| format!("{peer}: {error}"))
}

/// Standard input to the peer, and the peer's data to standard output, until both have ended.
async fn pipe(stream: anabranch_tcp::TcpStream) -> Outcome {
    let (mut from, mut to) = split(stream);
    let there = async {
        copy(&mut tokio::io::stdin(), &mut to).await?;
        to.shutdown().await
    };
    let back = async {
        let mut out = tokio::io::stdout();
        copy(&mut from, &mut out).await?;
        out.flush().await
    };
    tokio::try_join!(there, back).map_err(broken)?;
    from.unsplit(to).finish(FINISH).await.map_err(broken)
}

fn broken(error: io::Error) -> Failure {
    Failure::failed(format!("the connection is broken: {error}"))
}

async fn proxy(args: &Proxy) -> Outcome {
    match (&args.from, &args.to) {
        (From::Kernel(_) | From::Socks(_) | From::Redirect(_), To::Kernel(_)) => {
            return Err(Failure::usage("one of --from and --to must be ours: tcp:PORT, tcp:ADDRESS:PORT or tcp"));
        }
        (From::Socks(_) | From::Redirect(_), To::Ours(_)) => {
            return Err(Failure::usage("connections that name their own targets go to them: write --to tcp"));
        }
        (From::Ours(_) | From::Kernel(_), To::OursAsAsked) => {
            return Err(Failure::usage(
                "these connections name no target: write --to tcp:ADDRESS:PORT, or --from socks:ADDRESS:PORT",
            ));
        }
        _ => {}
    }
    let host = open(&args.device)?;
    let mut door = Door::open(&host, args.from).await?;
    let target = Arc::new(((*host).clone(), args.to.clone(), args.device.addresses.clone()));
    let places = Arc::new(Semaphore::new(args.connections as usize));
    anstream::eprintln!("passes connections on");
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return Ok(()) };
        let Some(guest) = door.next().await? else { continue };
        let target = Arc::clone(&target);
        tokio::spawn(async move {
            if let Err(message) = guest.pass_on(&target).await {
                anstream::eprintln!("{message}");
            }
            drop(place);
        });
    }
}

/// A connection that can be read, written and reset.
trait Both: AsyncRead + AsyncWrite + Send + Unpin {
    /// Resets it: its peer must not take what has arrived for all.
    fn abort(&self);
}

impl Both for anabranch_tcp::TcpStream {
    fn abort(&self) {
        Self::abort(self);
    }
}

impl Both for TcpStream {
    fn abort(&self) {
        // Its end is a reset then. Where that fails, the connection is gone.
        _ = self.set_zero_linger();
    }
}

/// Where connections come from.
enum Door {
    Ours(anabranch_tcp::Listener),
    Kernel(TcpListener, Naming),
}

/// How a connection of the kernel says where it wants to go.
#[derive(Clone, Copy)]
enum Naming {
    Nothing,
    Socks,
    Redirect,
}

/// A connection that came.
enum Guest {
    Plain(Box<dyn Both>),
    Socks(TcpStream),
    Redirect(TcpStream),
}

impl Door {
    async fn open(host: &Host, from: From) -> Result<Self, Failure> {
        let (at, naming) = match from {
            From::Ours(port) => {
                let listener = host.listen(port);
                return listener.map(Self::Ours).map_err(|error| Failure::failed(format!("port {port}: {error}")));
            }
            From::Kernel(at) => (at, Naming::Nothing),
            From::Socks(at) => (at, Naming::Socks),
            From::Redirect(at) => (at, Naming::Redirect),
        };
        let listener = TcpListener::bind(at).await.map_err(|error| Failure::failed(format!("{at}: {error}")))?;
        Ok(Self::Kernel(listener, naming))
    }

    /// The next connection. The kernel may refuse one, such as when it has no more descriptors; that passes.
    async fn next(&mut self) -> Result<Option<Guest>, Failure> {
        match self {
            Self::Ours(listener) => Ok(Some(Guest::Plain(Box::new(listener.accept().await.map_err(broken)?)))),
            Self::Kernel(listener, naming) => match listener.accept().await {
                Ok((stream, _)) => {
                    let stream = prompt(stream);
                    Ok(Some(match naming {
                        Naming::Nothing => Guest::Plain(Box::new(stream)),
                        Naming::Socks => Guest::Socks(stream),
                        Naming::Redirect => Guest::Redirect(stream),
                    }))
                }
                Err(_) => {
                    tokio::time::sleep(PAUSE).await;
                    Ok(None)
                }
            },
        }
    }
}

impl Guest {
    /// Opens the other side of the connection, and copies until both have ended.
    async fn pass_on(self, target: &(Host, To, Vec<IpAddr>)) -> Result<(), String> {
        let (host, to, addresses) = target;
        match self {
            Self::Plain(from) => {
                let opened: Result<Box<dyn Both>, String> = match to {
                    To::Ours(peer) => dial(host, addresses, *peer).await.map(|stream| Box::new(stream) as _),
                    To::Kernel(name) => {
                        let stream = TcpStream::connect(name).await;
                        stream.map(|stream| Box::new(prompt(stream)) as _).map_err(|error| format!("{name}: {error}"))
                    }
                    To::OursAsAsked => Err("a connection without a target".to_owned()),
                };
                let to = opened.inspect_err(|_| from.abort())?;
                join(from, to).await;
            }
            Self::Socks(mut from) => {
                let target = socks::target(&mut from).await.map_err(|error| format!("a client of SOCKS5: {error}"))?;
                let dialled = dial_name(host, addresses, &target).await;
                let failure = dialled.as_ref().err().map(io::Error::kind);
                _ = socks::answer(&mut from, failure).await;
                let to = dialled.map_err(|error| format!("{target}: {error}"))?;
                join(Box::new(from), Box::new(to)).await;
            }
            Self::Redirect(from) => {
                let peer = before_redirect(&from)?;
                let to = dial(host, addresses, peer).await.inspect_err(|_| Both::abort(&from))?;
                join(Box::new(from), Box::new(to)).await;
            }
        }
        Ok(())
    }
}

/// Copies in both directions until both have ended.
async fn join(mut from: Box<dyn Both>, mut to: Box<dyn Both>) {
    if copy_bidirectional(&mut from, &mut to).await.is_err() {
        from.abort();
        to.abort();
    }
}

/// A connection to the first address of a target that answers, of those that the kernel's resolver knows.
async fn dial_name(host: &Host, addresses: &[IpAddr], target: &Target) -> Result<anabranch_tcp::TcpStream, io::Error> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "no address of that name");
    for peer in lookup_host((target.host(), target.port())).await?.take(TRIED_MAX) {
        let Some(local) = addresses.iter().find(|address| address.is_ipv4() == peer.is_ipv4()) else {
            failure = io::Error::new(io::ErrorKind::NetworkUnreachable, "we have no address of its family");
            continue;
        };
        match host.connect(*local, peer).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Where a connection was going before nftables redirected it to us.
fn before_redirect(from: &TcpStream) -> Result<SocketAddr, String> {
    let at = from.local_addr().map_err(|error| error.to_string())?;
    let socket = SockRef::from(from);
    let before = match at.ip() {
        IpAddr::V4(_) => socket.original_dst_v4(),
        IpAddr::V6(_) => socket.original_dst_v6(),
    };
    let before = before.ok().and_then(|address| address.as_socket()).filter(|&before| before != at);
    before.ok_or_else(|| {
        Both::abort(from);
        format!("a connection came to {at} without being redirected: this port is for nftables' `redirect`")
    })
}

/// A stream of the kernel that sends at once what it is given: the pieces have waited at their sender already if they should. With Nagle's algorithm
/// the second piece of an answer waits for a delayed acknowledgement, some 40 ms.
fn prompt(stream: TcpStream) -> TcpStream {
    // Where it fails, the connection is gone, which reading tells.
    _ = stream.set_nodelay(true);
    stream
}

/// A host whose connections are reset when the command ends, by a signal or otherwise.
struct Guarded(Host);

impl Deref for Guarded {
    type Target = Host;

    fn deref(&self) -> &Host {
        &self.0
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.0.abort_all();
    }
}

/// Opens the device, gives it the kernel's addresses, and starts our host behind it.
fn open(args: &Device) -> Result<Guarded, Failure> {
    let row = registry::find(&args.law).map_err(|error| Failure::usage(error.to_string()))?;
    let mut connection = Config::new(Law::default_for(row));
    connection.timestamps = true;
    connection.streams = args.streams.into();
    connection.keep_alive = Some(KEEP_ALIVE);
    connection.idle_timeout = None;
    // Many connections are slow or idle: buffers grow where they are used.
    (connection.receive_buffer, connection.receive_buffer_max) = (BUFFER, 64 * BUFFER);
    (connection.send_buffer, connection.send_buffer_max) = (BUFFER, 64 * BUFFER);
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| Failure::failed(format!("no random numbers: {error}")))?;
    let settings =
        Settings { addresses: args.addresses.clone(), connection, sockets_max: SOCKETS_MAX, backlog: BACKLOG };
    let host = Host::open(args.device.as_str(), settings, seed).map(Guarded).map_err(|error| match &error {
        HostError::Device { error: cause, .. } if cause.kind() == io::ErrorKind::PermissionDenied => {
            Failure::usage(format!("{error}: run it as root, or with CAP_NET_ADMIN"))
        }
        HostError::Device { error: cause, .. } if cause.kind() == io::ErrorKind::NotFound => {
            Failure::usage(format!("{error}: load the kernel's module with modprobe tun"))
        }
        HostError::Device { .. } => Failure::usage(error.to_string()),
        HostError::Settings(_) => Failure::failed(error.to_string()),
    })?;
    if !args.as_is {
        for prefix in &args.kernel {
            ip(&["address", "replace", &prefix.to_string(), "dev", args.device.as_str(), "nodad"])?;
        }
        ip(&["link", "set", args.device.as_str(), "up", "txqueuelen", "5000"])?;
    }
    Ok(host)
}

fn ip(arguments: &[&str]) -> Outcome {
    let output = Command::new("ip").args(arguments).output();
    let output = output.map_err(|error| Failure::failed(format!("ip: {error}: apt-get install iproute2")))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Failure::failed(format!(
            "ip {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
    }
}

/// Addresses of a name that are tried.
const TRIED_MAX: usize = 4;

/// Sockets and waiting connections of our host.
const SOCKETS_MAX: usize = 100_000;
const BACKLOG: usize = 1024;

/// Bytes of the buffers of a connection at its begin.
const BUFFER: u64 = 256 << 10;

/// After our end, the time without acknowledgements after which the peer is given up.
const FINISH: Duration = Duration::from_secs(60);

/// A connection may be idle as long as its peer answers.
const KEEP_ALIVE: KeepAlive = KeepAlive { idle: Span::from_secs(300), ..KeepAlive::USUAL };

/// After the kernel has refused to accept.
const PAUSE: Duration = Duration::from_millis(100);
