//! Messages that do not wait for each other: a large one and many small ones at once, read in the order in which they are
//! complete.
//!
//! Each message is a stream of its own. The small ones have a higher priority, so the large one takes the remaining capacity.

#![expect(clippy::print_stdout, reason = "it is what the example shows")]

use std::error::Error;

use anabranch::{Config, Connection, Endpoint, Priority, SecretKey};
use bytes::Bytes;
use tokio::task::JoinSet;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Endpoint::server("127.0.0.1:0".parse()?, &SecretKey::generate()?, Config::default())?;
    let client = Endpoint::client(Config::default())?;
    let ticket = server.ticket();
    let (there, here) = tokio::join!(client.connect(&ticket), server.accept());
    let (there, here) = (there?, here.ok_or("the socket is gone")?);
    let reading = tokio::spawn(async move { read_all(here).await.map_err(|error| error.to_string()) });
    let mut large = there.open_stream().await?;
    let rest = tokio::spawn(async move {
        large.write_all_bytes(Bytes::from(vec![b'x'; 20 << 20])).await?;
        large.finish()
    });
    for number in 0..20 {
        let mut small = there.open_stream().await?;
        small.set_priority(Priority { level: 0, weight: 1 });
        small.write_all(format!("small {number}").as_bytes()).await?;
        small.finish()?;
    }
    rest.await??;
    there.close().await?;
    reading.await??;
    Ok(())
}

/// Reads each message in a task of its own, and prints the order in which they are complete.
async fn read_all(connection: Connection) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut messages = JoinSet::new();
    while let Ok(mut stream) = connection.accept_stream().await {
        messages.spawn(async move { stream.read_to_end(MESSAGE_MAX).await });
    }
    while let Some(message) = messages.join_next().await {
        let message = message??;
        match std::str::from_utf8(&message) {
            Ok(text) if message.len() < 100 => println!("{text}"),
            _ => println!("{} bytes", message.len()),
        }
    }
    connection.close().await?;
    Ok(())
}

/// Largest size of a message in bytes.
const MESSAGE_MAX: usize = 64 << 20;
