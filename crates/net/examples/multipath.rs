//! One connection over several paths: `multipath` waits and prints a ticket; `multipath TICKET` sends for five seconds over every
//! interface of this computer, and prints how much each path carried.

#![expect(clippy::print_stdout, reason = "it is what the example shows")]

use std::error::Error;
use std::time::Duration;

use anabranch::{Config, Endpoint, SecretKey, Ticket};
use bytes::Bytes;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1) {
        None => receive().await,
        Some(ticket) => send(&ticket.parse()?).await,
    }
}

async fn receive() -> Result<(), Box<dyn Error>> {
    // One socket bound to all addresses suffices: the ticket names each address.
    let endpoint = Endpoint::server("[::]:0".parse()?, &SecretKey::generate()?, Config::default())?;
    println!("{}", endpoint.ticket());
    while let Some(connection) = endpoint.accept().await {
        tokio::spawn(async move {
            while let Ok(mut stream) = connection.accept_stream().await {
                while let Ok(Some(piece)) = stream.read_chunk(usize::MAX).await {
                    drop(piece);
                }
            }
            _ = connection.close().await;
        });
    }
    Ok(())
}

async fn send(ticket: &Ticket) -> Result<(), Box<dyn Error>> {
    let connection = Endpoint::client(Config::default())?.connect(ticket).await?;
    let more = connection.add_paths(ticket).await;
    println!("{} paths", 1 + more);
    let mut stream = connection.open_stream().await?;
    let block = Bytes::from(vec![7; 1 << 18]);
    let end = tokio::time::Instant::now() + Duration::from_secs(5);
    while let Ok(written) = tokio::time::timeout_at(end, stream.write_all_bytes(block.clone())).await {
        written?;
    }
    for path in connection.paths() {
        let (tally, rtt) = (path.report.tally, path.report.rtt_smoothed.unwrap_or_default());
        println!("{} -> {}: {} segments, {rtt} there and back", path.local, path.remote, tally.sent);
    }
    stream.reset(0);
    connection.close().await?;
    Ok(())
}
