//! s2n-quic, with packets as long as quinn's and the same windows.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use s2n_quic::client::{Client, Connect};
use s2n_quic::connection::{Handle, ReceiveStreamAcceptor, StreamAcceptor};
use s2n_quic::provider::io::tokio as io;
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::rustls as tls;
use s2n_quic::server::Server;
use s2n_quic::stream::{ReceiveStream, SendStream};
use tokio::sync::Mutex;

use super::tls::{Identity, read_certificate};
use super::{STREAMS_MAX, WINDOW};
use crate::transport::{Failed, Link, Listening, ReceiveSide, SendSide, Transport};

pub struct S2n;

/// A connection, and the endpoint that lives as long as it.
#[derive(Clone)]
pub struct Connection {
    handle: Handle,
    unidirectional: Arc<Mutex<ReceiveStreamAcceptor>>,
    bidirectional: Arc<Mutex<s2n_quic::connection::BidirectionalStreamAcceptor>>,
    _end: Arc<End>,
}

enum End {
    Server(#[expect(dead_code, reason = "it is held")] Server),
    Client(#[expect(dead_code, reason = "it is held")] Client),
}

impl Connection {
    fn new(connection: s2n_quic::Connection, end: End) -> Self {
        let (handle, acceptor): (Handle, StreamAcceptor) = connection.split();
        let (bidirectional, unidirectional) = acceptor.split();
        Self {
            handle,
            unidirectional: Arc::new(Mutex::new(unidirectional)),
            bidirectional: Arc::new(Mutex::new(bidirectional)),
            _end: Arc::new(end),
        }
    }
}

/// The socket. s2n-quic counts the lengths of IP packets, with the headers of IPv4 and UDP.
fn socket(at: SocketAddr) -> Result<io::Provider, Failed> {
    const MTU: u16 = 1452 + 28;
    let io = io::Builder::default().with_receive_address(at)?;
    let io = io.with_max_mtu(MTU)?.with_initial_mtu(MTU)?;
    Ok(io.build()?)
}

fn limits() -> Result<Limits, Failed> {
    let limits = Limits::new().with_data_window(WINDOW)?.with_unidirectional_data_window(WINDOW)?;
    let limits = limits.with_bidirectional_local_data_window(WINDOW)?.with_bidirectional_remote_data_window(WINDOW)?;
    let limits =
        if let Ok(x) = std::env::var("S2NBUF") { limits.with_max_send_buffer_size(x.parse()?)? } else { limits };
    let streams = u64::from(STREAMS_MAX);
    let limits = limits.with_max_open_local_unidirectional_streams(streams)?;
    Ok(limits.with_max_open_remote_unidirectional_streams(streams)?)
}

impl Transport for S2n {
    type Link = Connection;

    async fn listen(&self, at: SocketAddr) -> Result<Listening<Connection>, Failed> {
        let identity = Identity::new()?;
        let tls = tls::Server::builder().with_certificate(identity.certificate(), identity.key())?.build()?;
        let builder = Server::builder().with_tls(tls)?.with_limits(limits()?)?;
        let mut server = builder.with_io(socket(at)?)?.start()?;
        let hello = identity.hello(server.local_addr()?);
        let link = Box::pin(async move {
            let connection = server.accept().await.ok_or("the socket is gone")?;
            Ok(Connection::new(connection, End::Server(server)))
        });
        Ok(Listening { hello, link })
    }

    async fn connect(&self, hello: &str) -> Result<Connection, Failed> {
        let (address, certificate) = read_certificate(hello)?;
        let tls = tls::Client::builder().with_certificate(certificate)?.build()?;
        let builder = Client::builder().with_tls(tls)?.with_limits(limits()?)?;
        let client = builder.with_io(socket("0.0.0.0:0".parse()?)?)?.start()?;
        let connection = client.connect(Connect::new(address).with_server_name("localhost")).await?;
        Ok(Connection::new(connection, End::Client(client)))
    }
}

impl Link for Connection {
    type Send = SendStream;
    type Receive = ReceiveStream;

    async fn open(&self) -> Result<SendStream, Failed> {
        Ok(self.handle.clone().open_send_stream().await?)
    }

    async fn accept(&self) -> Result<ReceiveStream, Failed> {
        let stream = self.unidirectional.lock().await.accept_receive_stream().await?;
        stream.ok_or_else(|| "the connection is closed".into())
    }

    async fn call(&self) -> Result<(SendStream, ReceiveStream), Failed> {
        let (mut reply, mut request) = self.handle.clone().open_bidirectional_stream().await?.split();
        request.send(Bytes::from_static(&[0])).await?;
        reply.read_all(1).await?;
        Ok((request, reply))
    }

    async fn answer(&self) -> Result<(SendStream, ReceiveStream), Failed> {
        let stream = self.bidirectional.lock().await.accept_bidirectional_stream().await?;
        let (mut request, mut reply) = stream.ok_or("the connection is closed")?.split();
        request.read_all(1).await?;
        reply.send(Bytes::from_static(&[0])).await?;
        Ok((reply, request))
    }
}

impl SendSide for SendStream {
    async fn write(&mut self, bytes: Bytes) -> Result<(), Failed> {
        Ok(self.send(bytes).await?)
    }

    async fn finish(&mut self) -> Result<(), Failed> {
        Ok(Self::finish(self)?)
    }
}

impl ReceiveSide for ReceiveStream {
    async fn read(&mut self) -> Result<Option<Bytes>, Failed> {
        Ok(self.receive().await?)
    }
}
