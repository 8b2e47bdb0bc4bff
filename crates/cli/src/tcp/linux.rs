//! The commands, over `anabranch_tcp::Host`.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anabranch_cc::{Settings as Law, registry};
use anabranch_tcp::{Acknowledged, Config, Host, HostError, KeepAlive, Settings};
use anabranch_tunnel::{Target, socks};
use anabranch_units::Span;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy, copy_bidirectional, split};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::Semaphore;

use super::idle::{Counted, Moved};
use crate::args::tcp::{Connect, Device, From, Listen, Proxy, Tcp, To};
use crate::failure::{Failure, Outcome};
use crate::online;

/// Runs a command.
pub(crate) fn tcp(command: &Tcp) -> Outcome {
    online::block_on(async {
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
    // Wrong usage is told before the device is opened.
    let aim = aim(args.from, &args.to)?;
    let host = open(&args.device)?;
    let mut door = Door::open(&host, args.from, aim).await?;
    let idle = Duration::from_secs(args.idle.into());
    let dialler = Arc::new(Dialler { host: (*host).clone(), addresses: args.device.addresses.clone(), idle });
    let places = Arc::new(Semaphore::new(args.connections as usize));
    anstream::eprintln!("passes connections on");
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return Ok(()) };
        let Some((stream, aim)) = door.next().await? else { continue };
        let dialler = Arc::clone(&dialler);
        tokio::spawn(async move {
            if let Err(message) = dialler.pass_on(stream, aim).await {
                anstream::eprintln!("{message}");
            }
            drop(place);
        });
    }
}

/// Where a connection goes.
#[derive(Clone)]
enum Aim {
    /// By ours, to a peer.
    Ours(SocketAddr),
    /// By the kernel, to a host and port.
    Kernel(String),
    /// By ours, to the target that its client names by SOCKS5.
    Named,
}

/// Where the connections from there go; nothing if each has its own, because it was redirected.
fn aim(from: From, to: &To) -> Result<Option<Aim>, Failure> {
    match (from, to) {
        (From::Ours(_) | From::Kernel(_), To::Ours(peer)) => Ok(Some(Aim::Ours(*peer))),
        (From::Ours(_), To::Kernel(name)) => Ok(Some(Aim::Kernel(name.clone()))),
        (From::Socks(_), To::OursAsAsked) => Ok(Some(Aim::Named)),
        (From::Redirect(_), To::OursAsAsked) => Ok(None),
        (From::Kernel(_) | From::Socks(_) | From::Redirect(_), To::Kernel(_)) => {
            Err(Failure::usage("one of --from and --to must be ours: tcp:PORT, tcp:ADDRESS:PORT or tcp"))
        }
        (From::Socks(_) | From::Redirect(_), To::Ours(_)) => {
            Err(Failure::usage("connections that name their own targets go to them: write --to tcp"))
        }
        (From::Ours(_) | From::Kernel(_), To::OursAsAsked) => Err(Failure::usage(
            "these connections name no target: write --to tcp:ADDRESS:PORT, or --from socks:ADDRESS:PORT",
        )),
    }
}

/// A connection that can be read, written and reset.
trait Both: AsyncRead + AsyncWrite + Send + Unpin {
    /// Resets it: its peer must not take what has arrived for all.
    fn abort(&self);

    /// What its peer has acknowledged, if that is known.
    fn acknowledged(&self) -> Option<Acknowledged> {
        None
    }
}

impl Both for anabranch_tcp::TcpStream {
    fn abort(&self) {
        Self::abort(self);
    }

    fn acknowledged(&self) -> Option<Acknowledged> {
        Some(Self::acknowledged(self))
    }
}

impl Both for TcpStream {
    fn abort(&self) {
        // Its end is a reset then. Where that fails, the connection is gone.
        _ = self.set_zero_linger();
    }
}

/// Where connections come from.
struct Door {
    listener: Listening,
    /// Where they go; nothing if that is where each was going before nftables redirected it.
    aim: Option<Aim>,
}

enum Listening {
    Ours(anabranch_tcp::Listener),
    Kernel(TcpListener),
}

impl Door {
    async fn open(host: &Host, from: From, aim: Option<Aim>) -> Result<Self, Failure> {
        let listener = match from {
            From::Ours(port) => {
                let listener = host.listen(port);
                listener.map(Listening::Ours).map_err(|error| Failure::failed(format!("port {port}: {error}")))?
            }
            From::Kernel(at) | From::Socks(at) | From::Redirect(at) => {
                let listener = TcpListener::bind(at).await;
                listener.map(Listening::Kernel).map_err(|error| Failure::failed(format!("{at}: {error}")))?
            }
        };
        Ok(Self { listener, aim })
    }

    /// The next connection, and where it goes. The kernel may refuse one, such as when it has no more descriptors; that passes.
    async fn next(&mut self) -> Result<Option<(Box<dyn Both>, Aim)>, Failure> {
        let (stream, before): (Box<dyn Both>, _) = match &mut self.listener {
            Listening::Ours(listener) => (Box::new(listener.accept().await.map_err(broken)?), None),
            Listening::Kernel(listener) => match listener.accept().await {
                Ok((stream, _)) => {
                    let before = before_redirect(&stream);
                    let stream = prompt(stream);
                    (Box::new(stream) as _, before)
                }
                Err(_) => {
                    tokio::time::sleep(PAUSE).await;
                    return Ok(None);
                }
            },
        };
        let aim = self.aim.clone().or(before.map(Aim::Ours));
        if aim.is_none() {
            anstream::eprintln!("a connection came without being redirected: this port is for nftables' `redirect`");
            stream.abort();
        }
        Ok(aim.map(|aim| (stream, aim)))
    }
}

/// Opens the other sides of connections.
struct Dialler {
    host: Host,
    addresses: Vec<IpAddr>,
    /// How long a connection may be idle.
    idle: Duration,
}

impl Dialler {
    /// Opens the other side of a connection, and copies until both have ended, or nothing has moved for too long. If it cannot be opened, the connection
    /// is reset; but a client of SOCKS5 gets an answer and an end.
    async fn pass_on(&self, mut from: Box<dyn Both>, aim: Aim) -> Result<(), String> {
        let opened: Result<Box<dyn Both>, String> = match aim {
            Aim::Ours(peer) => dial(&self.host, &self.addresses, peer).await.map(|stream| Box::new(stream) as _),
            Aim::Kernel(name) => {
                let stream = TcpStream::connect(&name).await;
                stream.map(|stream| Box::new(prompt(stream)) as _).map_err(|error| format!("{name}: {error}"))
            }
            Aim::Named => Ok(self.answer(&mut from).await?),
        };
        let to = opened.inspect_err(|_| from.abort())?;
        let peers = [from.acknowledged(), to.acknowledged()];
        let acked = || peers.iter().flatten().map(Acknowledged::bytes).fold(0, u64::wrapping_add);
        let moved = Moved::default();
        let [mut from, mut to] = [from, to].map(|stream| Counted { stream, moved: moved.clone() });
        let is_over = tokio::select! {
            copied = copy_bidirectional(&mut from, &mut to) => copied.is_ok(),
            () = moved.stops(self.idle, acked) => false,
        };
        if !is_over {
            from.stream.abort();
            to.stream.abort();
        }
        Ok(())
    }

    /// Connects to the target that a client of SOCKS5 names, and tells it.
    async fn answer(&self, client: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Result<Box<dyn Both>, String> {
        let target = socks::target(client).await.map_err(|error| format!("a client of SOCKS5: {error}"))?;
        let dialled = self.dial_name(&target).await;
        // A client that is gone is noticed when its data is copied.
        _ = socks::answer(client, dialled.as_ref().err().map(io::Error::kind)).await;
        dialled.map(|stream| Box::new(stream) as _).map_err(|error| format!("{target}: {error}"))
    }

    /// A connection to the first address of a target that answers, of those that the kernel's resolver knows.
    async fn dial_name(&self, target: &Target) -> io::Result<anabranch_tcp::TcpStream> {
        let mut failure = io::Error::new(io::ErrorKind::NotFound, "no address of that name");
        for peer in lookup_host((target.host(), target.port())).await?.take(TRIED_MAX) {
            let Some(local) = self.addresses.iter().find(|address| address.is_ipv4() == peer.is_ipv4()) else {
                failure = io::Error::new(io::ErrorKind::NetworkUnreachable, "we have no address of its family");
                continue;
            };
            match self.host.connect(*local, peer).await {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }
}

/// Where a connection of the kernel was going before nftables redirected it to us, if it did.
fn before_redirect(stream: &TcpStream) -> Option<SocketAddr> {
    let at = stream.local_addr().ok()?;
    let socket = SockRef::from(stream);
    let before = match at.ip() {
        IpAddr::V4(_) => socket.original_dst_v4(),
        IpAddr::V6(_) => socket.original_dst_v6(),
    };
    before.ok()?.as_socket().filter(|&before| before != at)
}

/// A stream of the kernel that sends at once what it is given: the pieces have waited at their sender already if they should. With Nagle's algorithm
/// the second piece of an answer waits for a delayed acknowledgement, some 40 ms.
fn prompt(stream: TcpStream) -> TcpStream {
    // Where it fails, the connection is gone, which reading tells.
    _ = stream.set_nodelay(true);
    // A peer that is gone is noticed on this side as on ours.
    _ = SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KERNEL_KEEP_ALIVE));
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
    connection.mss = args.mtu - HEADERS;
    connection.streams = args.streams.into();
    connection.paths_max = args.paths;
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
        let mtu = args.mtu.to_string();
        ip(&["link", "set", args.device.as_str(), "up", "mtu", &mtu, "txqueuelen", "5000"])?;
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

/// Bytes of the headers of IPv4 and TCP without options.
const HEADERS: u16 = 40;

/// Bytes of the buffers of a connection at its begin.
const BUFFER: u64 = 256 << 10;

/// After our end, the time without acknowledgements after which the peer is given up.
const FINISH: Duration = Duration::from_secs(60);

/// A connection may be idle as long as its peer answers.
const KEEP_ALIVE: KeepAlive = KeepAlive { idle: Span::from_secs(300), ..KeepAlive::USUAL };

/// The same for connections of the kernel.
const KERNEL_KEEP_ALIVE: Duration = Duration::from_secs(300);

/// After the kernel has refused to accept.
const PAUSE: Duration = Duration::from_millis(100);
