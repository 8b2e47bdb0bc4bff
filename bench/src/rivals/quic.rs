//! quinn, with datagrams of 1,452 bytes from the start, and with windows that neither loopback nor the emulated link fills.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anabranch_quinn_cc::LawConfig;
use bytes::Bytes;
use quinn::congestion::{BbrConfig, CubicConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, RecvStream, SendStream, ServerConfig, TransportConfig, VarInt};

use super::STREAMS_MAX;
use super::tls::{Identity, read_hello};
use crate::crowd::Kept;
use crate::transport::{BLOCK, Failed, Link, Listening, ReceiveSide, SendSide, Transport};

/// quinn with one of its congestion controllers, and with this credit of a stream and of a connection.
pub struct Quinn {
    pub law: Law,
    pub window: u64,
}

pub enum Law {
    Cubic,
    Bbr,
    /// The default law of this project.
    Anabranch,
}

impl Quinn {
    fn settings(&self) -> Result<Arc<TransportConfig>, Failed> {
        let mut transport = TransportConfig::default();
        let window = VarInt::from_u64(self.window)?;
        transport.stream_receive_window(window).receive_window(window).send_window(self.window);
        transport.initial_mtu(1452).mtu_discovery_config(None);
        transport.max_concurrent_uni_streams(STREAMS_MAX.into()).max_concurrent_bidi_streams(STREAMS_MAX.into());
        match self.law {
            Law::Cubic => transport.congestion_controller_factory(Arc::new(CubicConfig::default())),
            Law::Anabranch => transport.congestion_controller_factory(Arc::new(LawConfig::default())),
            Law::Bbr => transport.congestion_controller_factory(Arc::new(BbrConfig::default())),
        };
        Ok(Arc::new(transport))
    }
}

impl Transport for Quinn {
    type Link = Connection;

    async fn listen(&self, at: SocketAddr) -> Result<Listening<Connection>, Failed> {
        let identity = Identity::new()?;
        let tls = QuicServerConfig::try_from(identity.server()?)?;
        let mut settings = ServerConfig::with_crypto(Arc::new(tls));
        settings.transport_config(self.settings()?);
        let server = Endpoint::server(settings, at)?;
        let hello = identity.hello(server.local_addr()?);
        let link = Box::pin(async move { Ok(server.accept().await.ok_or("the socket is gone")?.await?) });
        Ok(Listening { hello, link })
    }

    async fn connect(&self, hello: &str) -> Result<Connection, Failed> {
        let (address, tls) = read_hello(hello)?;
        let mut settings = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
        settings.transport_config(self.settings()?);
        let mut client = Endpoint::client("0.0.0.0:0".parse()?)?;
        client.set_default_client_config(settings);
        Ok(client.connect(address, "localhost")?.await?)
    }
}

impl Link for Connection {
    type Send = SendStream;
    type Receive = RecvStream;

    async fn open(&self) -> Result<SendStream, Failed> {
        Ok(self.open_uni().await?)
    }

    async fn accept(&self) -> Result<RecvStream, Failed> {
        Ok(self.accept_uni().await?)
    }

    async fn call(&self) -> Result<(SendStream, RecvStream), Failed> {
        let (mut request, mut reply) = self.open_bi().await?;
        request.write_all(&[0]).await?;
        reply.read_all(1).await?;
        Ok((request, reply))
    }

    async fn answer(&self) -> Result<(SendStream, RecvStream), Failed> {
        let (mut reply, mut request) = self.accept_bi().await?;
        request.read_all(1).await?;
        reply.write_all(&[0]).await?;
        Ok((reply, request))
    }
}

impl SendSide for SendStream {
    async fn write(&mut self, bytes: Bytes) -> Result<(), Failed> {
        Ok(self.write_chunk(bytes).await?)
    }

    async fn finish(&mut self) -> Result<(), Failed> {
        Ok(Self::finish(self)?)
    }
}

impl ReceiveSide for RecvStream {
    async fn read(&mut self) -> Result<Option<Bytes>, Failed> {
        Ok(self.read_chunk(BLOCK, true).await?.map(|chunk| chunk.bytes))
    }
}

/// Accepts so many connections, and keeps them. One that is idle sends nothing, and is not given up.
pub async fn serve_crowd(count: u32, print: &impl Fn(&str) -> Result<(), Failed>) -> Result<Kept, Failed> {
    let identity = Identity::new()?;
    let tls = QuicServerConfig::try_from(identity.server()?)?;
    let mut settings = ServerConfig::with_crypto(Arc::new(tls));
    settings.transport_config(Arc::new(patient()));
    let server = Endpoint::server(settings, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    print(&identity.hello(server.local_addr()?))?;
    let mut all = vec![];
    for _ in 0..count {
        all.push(server.accept().await.ok_or("the socket is gone")?.await?);
    }
    Ok(Box::new((server, all)))
}

pub async fn call_crowd(hello: &str, count: u32) -> Result<Kept, Failed> {
    let (address, tls) = read_hello(hello)?;
    let mut settings = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    settings.transport_config(Arc::new(patient()));
    let mut client = Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    client.set_default_client_config(settings);
    let mut all = vec![];
    for _ in 0..count {
        all.push(client.connect(address, "localhost")?.await?);
    }
    Ok(Box::new((client, all)))
}

fn patient() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(None).mtu_discovery_config(None);
    transport
}
