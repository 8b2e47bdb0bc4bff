//! A transfer by quinn over loopback under a law of this project: `cargo run --release --example transfer -- cubic initial_window=20`; without a name under
//! `anabranch`. The server sends, and shows what its law knows of the path at the end.

#![expect(clippy::print_stdout, reason = "it is what the example shows")]

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use anabranch_quinn_cc::{LawConfig, LawController};
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivateKeyDer;
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig};

const BYTES: usize = 50 << 20;

type Failed = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("anabranch", String::as_str);
    let pairs = arguments.iter().skip(1).filter_map(|pair| pair.split_once('='));
    let law = LawConfig::named(name, pairs)?;

    let identity = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let key = PrivateKeyDer::try_from(identity.signing_key.serialize_der())?;
    let mut settings = ServerConfig::with_single_cert(vec![identity.cert.der().clone()], key)?;
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(law));
    settings.transport_config(Arc::new(transport));
    let server = Endpoint::server(settings, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let address = server.local_addr()?;

    let sending = async {
        let connection = server.accept().await.ok_or("the socket is gone")?.await?;
        let mut stream = connection.open_uni().await?;
        stream.write_all(&vec![7; BYTES]).await?;
        stream.finish()?;
        stream.stopped().await?;
        let law = connection.congestion_state().into_any().downcast::<LawController>();
        Ok::<_, Failed>(law.map_err(|_| "another controller")?)
    };

    let mut roots = RootCertStore::empty();
    roots.add(identity.cert.der().clone())?;
    let mut client = Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    client.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(roots))?);
    let receiving = async {
        let connection = client.connect(address, "localhost")?.await?;
        Ok::<_, Failed>(connection.accept_uni().await?.read_to_end(BYTES).await?)
    };
    let begin = Instant::now();
    let (law, read) = tokio::try_join!(sending, receiving)?;

    println!("{name}: {} MiB in {:.2?}", read.len() >> 20, begin.elapsed());
    for (gauge, value) in law.gauges().iter() {
        println!("  {gauge}: {value}");
    }
    Ok(())
}
