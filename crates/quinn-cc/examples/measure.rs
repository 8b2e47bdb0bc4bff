//! Goodput of quinn under a law, between two processes, over any network. The first waits, and prints a line for the second, which sends:
//!
//! ```console
//! measure receive 10.0.0.2:0 10 20          # measures from the 10th second on for 20 s, and prints Mbit/s
//! measure send "LINE" anabranch             # or any other law, or quinn's own: quinn-cubic, quinn-bbr
//! ```

#![expect(clippy::print_stdout, reason = "it is what the example shows")]

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_quinn_cc::{LawConfig, LawController};
use quinn::congestion::{BbrConfig, CubicConfig};
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig, VarInt};

type Failed = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["receive", at, warm, time] => {
            receive(at.parse()?, Duration::from_secs(warm.parse()?), Duration::from_secs(time.parse()?)).await
        }
        ["send", line, law] => send(line, law).await,
        _ => Err("measure receive ADDRESS:PORT WARM TIME, or measure send LINE LAW".into()),
    }
}

async fn receive(at: SocketAddr, warm: Duration, time: Duration) -> Result<(), Failed> {
    let identity = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let key = PrivateKeyDer::try_from(identity.signing_key.serialize_der())?;
    let mut settings = ServerConfig::with_single_cert(vec![identity.cert.der().clone()], key)?;
    settings.transport_config(Arc::new(transport()));
    let server = Endpoint::server(settings, at)?;
    let certificate: String = identity.cert.der().iter().map(|byte| format!("{byte:02x}")).collect();
    println!("{} {certificate}", server.local_addr()?);
    let connection = server.accept().await.ok_or("the socket is gone")?.await?;
    let begin = Instant::now();
    let mut stream = connection.accept_uni().await?;
    let (mut bytes, mut measured_from) = (0, None);
    while let Some(chunk) = stream.read_chunk(1 << 20, true).await? {
        let now = begin.elapsed();
        if now >= warm {
            measured_from.get_or_insert(now);
            bytes += chunk.bytes.len();
        }
        if now >= warm + time {
            break;
        }
    }
    let took = begin.elapsed().saturating_sub(measured_from.ok_or("it ended too early")?);
    println!("{:.1} Mbit/s", bytes as f64 * 8e-6 / took.as_secs_f64());
    connection.close(VarInt::from_u32(0), b"measured");
    server.wait_idle().await;
    Ok(())
}

async fn send(line: &str, law: &str) -> Result<(), Failed> {
    let (address, certificate) =
        line.split_once(' ').ok_or("the line of the other end is an address and a certificate")?;
    let pairs = (0..certificate.len() / 2).map(|place| u8::from_str_radix(&certificate[2 * place..2 * place + 2], 16));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(pairs.collect::<Result<Vec<u8>, _>>()?))?;
    let mut settings = ClientConfig::with_root_certificates(Arc::new(roots))?;
    let mut transport = transport();
    match law {
        "quinn-cubic" => transport.congestion_controller_factory(Arc::new(CubicConfig::default())),
        "quinn-bbr" => transport.congestion_controller_factory(Arc::new(BbrConfig::default())),
        law => transport.congestion_controller_factory(Arc::new(LawConfig::named(law, [])?)),
    };
    settings.transport_config(Arc::new(transport));
    let mut client = Endpoint::client(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
    client.set_default_client_config(settings);
    let connection = client.connect(address.parse()?, "localhost")?.await?;
    let mut stream = connection.open_uni().await?;
    let block = vec![7; 1 << 18];
    // The other end closes the connection when it has measured.
    while stream.write_all(&block).await.is_ok() {}
    let stats = connection.stats().path;
    println!("{law}: {} lost of {} packets, RTT {:.1?}", stats.lost_packets, stats.sent_packets, stats.rtt);
    if let Ok(law) = connection.congestion_state().into_any().downcast::<LawController>() {
        law.gauges().iter().for_each(|(gauge, value)| println!("  {gauge}: {value}"));
    }
    Ok(())
}

/// Datagrams of 1,452 bytes from the start, and credit for twice what 100 Mbit/s carry in 100 ms.
fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    let window = VarInt::from_u32(2_500_000);
    transport.stream_receive_window(window).receive_window(window).send_window(2_500_000);
    transport.initial_mtu(1452).mtu_discovery_config(None);
    transport
}
