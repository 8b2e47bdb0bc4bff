//! Connections of quinn over loopback, as a program has them.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use anabranch_quinn_cc::cc::registry;
use anabranch_quinn_cc::{LawConfig, LawController};
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivateKeyDer;
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig};

type Failed = Box<dyn Error + Send + Sync>;

/// Both ends of a connection; all sending is under `law`.
struct Pair {
    client: Endpoint,
    here: Connection,
    there: Connection,
}

impl Pair {
    async fn new(law: LawConfig) -> Result<Self, Failed> {
        let mut transport = TransportConfig::default();
        transport.congestion_controller_factory(Arc::new(law));
        let transport = Arc::new(transport);
        let identity = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
        let key = PrivateKeyDer::try_from(identity.signing_key.serialize_der())?;
        let mut settings = ServerConfig::with_single_cert(vec![identity.cert.der().clone()], key)?;
        settings.transport_config(transport.clone());
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = Endpoint::server(settings, any)?;
        let mut roots = RootCertStore::empty();
        roots.add(identity.cert.der().clone())?;
        let mut settings = ClientConfig::with_root_certificates(Arc::new(roots))?;
        settings.transport_config(transport);
        let mut client = Endpoint::client(any)?;
        client.set_default_client_config(settings);
        let connecting = client.connect(server.local_addr()?, "localhost")?;
        let accepting = async { server.accept().await.ok_or("the socket is gone")?.await.map_err(Failed::from) };
        let (there, here) = tokio::join!(connecting, accepting);
        Ok(Self { client, here: here?, there: there? })
    }

    /// The server sends so many bytes, of which each is right at the client.
    async fn carry(&self, bytes: usize) -> Result<(), Failed> {
        let data: Vec<u8> = (0..bytes).map(|place| (place % 251) as u8).collect();
        let mut stream = self.here.open_uni().await?;
        let sending = async {
            stream.write_all(&data).await?;
            stream.finish()?;
            Ok::<_, Failed>(stream.stopped().await?)
        };
        let receiving = async { Ok::<_, Failed>(self.there.accept_uni().await?.read_to_end(bytes).await?) };
        let both = async { tokio::try_join!(sending, receiving) };
        let (_, read) = tokio::time::timeout(Duration::from_secs(60), both).await??;
        assert!(read == data, "{} of {bytes} bytes, or others", read.len());
        Ok(())
    }

    /// The server's controller.
    fn law(&self) -> LawController {
        *self.here.congestion_state().into_any().downcast().expect("it is ours")
    }

    fn gauge(&self, name: &str) -> f64 {
        self.law().gauges().value(name).unwrap_or_else(|| panic!("no gauge `{name}`"))
    }
}

/// The window that quinn reports is the law's, in units of the first MTU, 1,200 bytes, or two datagrams. It grows; a machine that pauses may end the transfer
/// with a timeout, so the largest one counts.
#[tokio::test]
async fn bytes_move_under_the_default_law() -> Result<(), Failed> {
    let pair = Pair::new(LawConfig::default()).await?;
    let mut largest = 0;
    for _ in 0..20 {
        pair.carry(1 << 20).await?;
        let path = pair.here.stats().path;
        largest = largest.max(path.cwnd);
        let least = 2 * u64::from(path.current_mtu);
        assert_eq!(path.cwnd, ((pair.gauge("window") * 1200.0) as u64).max(least));
    }
    assert_eq!(pair.law().settings().row().name, "anabranch");
    assert!(largest > 12_000, "it has grown: {largest}");
    // Loopback has no propagation delay to speak of.
    let base = pair.gauge("rtt_base_s");
    assert!(base > 0.0 && base < 0.1, "{base}");
    Ok(())
}

#[tokio::test]
async fn bytes_move_under_every_law() -> Result<(), Failed> {
    for row in registry::rows() {
        let pair = Pair::new(LawConfig::named(row.name, [])?).await?;
        pair.carry(1 << 20).await.map_err(|error| format!("{}: {error}", row.name))?;
    }
    Ok(())
}

/// The client's NAT gives it another port: quinn copies the controller, and the law goes on with what it knows.
#[tokio::test]
async fn law_goes_on_behind_another_port() -> Result<(), Failed> {
    let pair = Pair::new(LawConfig::default()).await?;
    pair.carry(5 << 20).await?;
    let before = (pair.here.remote_address(), pair.gauge("rtt_base_s"));
    pair.client.rebind(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?)?;
    // The server hears of it by what the client sends.
    let mut stream = pair.there.open_uni().await?;
    stream.write_all(b"here").await?;
    stream.finish()?;
    assert_eq!(pair.here.accept_uni().await?.read_to_end(4).await?, b"here");
    assert_ne!(pair.here.remote_address(), before.0);
    assert!(pair.gauge("rtt_base_s") <= before.1, "the path is known");
    pair.carry(5 << 20).await
}
