//! TLS 1.3 by rustls over the kernel's TCP, with a connection for each stream; and the certificates for all rivals with TLS.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use rcgen::{CertifiedKey, KeyPair};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::transport::{BLOCK, Failed, Link, Listening, ReceiveSide, SendSide, Transport};

/// A certificate for `localhost`, and its key.
pub struct Identity(CertifiedKey<KeyPair>);

impl Identity {
    pub fn new() -> Result<Self, Failed> {
        Ok(Self(rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?))
    }

    pub fn certificate(&self) -> Vec<u8> {
        self.0.cert.der().to_vec()
    }

    pub fn key(&self) -> Vec<u8> {
        self.0.signing_key.serialize_der()
    }

    /// The line that the other end needs.
    pub fn hello(&self, address: SocketAddr) -> String {
        let hex: String = self.certificate().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{address} {hex}")
    }

    pub fn server(&self) -> Result<ServerConfig, Failed> {
        let key = PrivateKeyDer::try_from(self.key())?;
        Ok(ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![self.0.cert.der().clone()], key)?)
    }
}

/// The address and the certificate of the other end.
pub fn read_certificate(hello: &str) -> Result<(SocketAddr, Vec<u8>), Failed> {
    let (address, hex) = hello.split_once(' ').ok_or("the other end has not said who it is")?;
    let digits: Vec<u8> = hex.chars().map(|digit| digit.to_digit(16).unwrap_or(0) as u8).collect();
    Ok((address.parse()?, digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()))
}

/// The address, and client settings that trust the certificate.
pub fn read_hello(hello: &str) -> Result<(SocketAddr, ClientConfig), Failed> {
    let (address, certificate) = read_certificate(hello)?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(certificate))?;
    let settings = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok((address, settings))
}

/// Only the cipher that all rivals have.
fn provider() -> Arc<CryptoProvider> {
    let cipher_suites = vec![TLS13_AES_128_GCM_SHA256];
    Arc::new(CryptoProvider { cipher_suites, ..rustls::crypto::ring::default_provider() })
}

pub struct Tls;

/// Makes TCP connections.
#[derive(Clone)]
pub enum Connection {
    Server(Arc<(TcpListener, TlsAcceptor)>),
    Client(SocketAddr, TlsConnector),
}

/// A TLS stream of either role.
pub trait Both: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Both for T {}

impl Transport for Tls {
    type Link = Connection;

    async fn listen(&self, at: SocketAddr) -> Result<Listening<Connection>, Failed> {
        let identity = Identity::new()?;
        let acceptor = TlsAcceptor::from(Arc::new(identity.server()?));
        let listener = TcpListener::bind(at).await?;
        let hello = identity.hello(listener.local_addr()?);
        let link = Connection::Server(Arc::new((listener, acceptor)));
        Ok(Listening { hello, link: Box::pin(async { Ok(link) }) })
    }

    async fn connect(&self, hello: &str) -> Result<Connection, Failed> {
        let (address, tls) = read_hello(hello)?;
        Ok(Connection::Client(address, TlsConnector::from(Arc::new(tls))))
    }
}

impl Connection {
    async fn pair(&self) -> Result<(Writing, Reading), Failed> {
        let stream: Box<dyn Both> = match self {
            Self::Server(server) => {
                let (tcp, _) = server.0.accept().await?;
                tcp.set_nodelay(true)?;
                Box::new(server.1.accept(tcp).await?)
            }
            Self::Client(address, connector) => {
                let tcp = TcpStream::connect(address).await?;
                tcp.set_nodelay(true)?;
                Box::new(connector.connect(ServerName::try_from("localhost")?, tcp).await?)
            }
        };
        let (read, write) = tokio::io::split(stream);
        Ok((Writing(write), Reading { stream: read, buffer: BytesMut::new() }))
    }
}

impl Link for Connection {
    type Send = Writing;
    type Receive = Reading;

    async fn open(&self) -> Result<Writing, Failed> {
        Ok(self.pair().await?.0)
    }

    async fn accept(&self) -> Result<Reading, Failed> {
        Ok(self.pair().await?.1)
    }

    async fn call(&self) -> Result<(Writing, Reading), Failed> {
        self.pair().await
    }

    async fn answer(&self) -> Result<(Writing, Reading), Failed> {
        self.pair().await
    }
}

/// The writing half.
pub struct Writing(WriteHalf<Box<dyn Both>>);

/// The reading half.
pub struct Reading {
    stream: ReadHalf<Box<dyn Both>>,
    buffer: BytesMut,
}

impl SendSide for Writing {
    async fn write(&mut self, bytes: Bytes) -> Result<(), Failed> {
        self.0.write_all(&bytes).await?;
        Ok(self.0.flush().await?)
    }

    async fn finish(&mut self) -> Result<(), Failed> {
        Ok(self.0.shutdown().await?)
    }
}

impl ReceiveSide for Reading {
    /// Reads into a reused buffer, as a program would.
    async fn read(&mut self) -> Result<Option<Bytes>, Failed> {
        self.buffer.reserve(BLOCK);
        let count = self.stream.read_buf(&mut self.buffer).await?;
        Ok((count > 0).then(|| self.buffer.split().freeze()))
    }
}
