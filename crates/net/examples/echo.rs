//! An echo service: `echo` waits and prints a ticket, `echo TICKET WORDS…` sends words and prints the replies.
//!
//! A request is a stream, and so is its reply, which begins with the request's number: replies may overtake each other.

#![expect(clippy::print_stdout, reason = "it is what the example shows")]

use std::error::Error;

use anabranch::{Config, Connection, Endpoint, RecvStream, SecretKey, Ticket};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    match args.next() {
        None => serve().await,
        Some(ticket) => ask(&ticket.parse()?, args.collect()).await,
    }
}

async fn serve() -> Result<(), Box<dyn Error>> {
    let endpoint = Endpoint::server("127.0.0.1:0".parse()?, &SecretKey::generate()?, Config::default())?;
    println!("{}", endpoint.ticket());
    while let Some(connection) = endpoint.accept().await {
        tokio::spawn(async move {
            // One stream per request, until the peer closes; then this end closes, too.
            while let Ok(request) = connection.accept_stream().await {
                tokio::spawn(answer(connection.clone(), request));
            }
            _ = connection.close().await;
        });
    }
    Ok(())
}

async fn answer(connection: Connection, mut request: RecvStream) {
    // A request that is too long gets no reply.
    let Ok(request) = request.read_to_end(REQUEST_MAX).await else { return };
    let Ok(mut reply) = connection.open_stream().await else { return };
    // Number and words are sent back unchanged. If the peer is gone, no reply is needed.
    if reply.write_all_bytes(request).await.is_ok() {
        _ = reply.finish();
    }
}

async fn ask(ticket: &Ticket, words: Vec<String>) -> Result<(), Box<dyn Error>> {
    let endpoint = Endpoint::client(Config::default())?;
    let connection = endpoint.connect(ticket).await?;
    for (number, word) in words.iter().enumerate() {
        let mut request = connection.open_stream().await?;
        request.write_all(&(number as u32).to_le_bytes()).await?;
        request.write_all(word.as_bytes()).await?;
        request.finish()?;
    }
    let mut replies = vec![String::new(); words.len()];
    for _ in &words {
        let reply = connection.accept_stream().await?.read_to_end(REQUEST_MAX).await?;
        let (number, word) = reply.split_first_chunk().ok_or("a reply has a number")?;
        let place = replies.get_mut(u32::from_le_bytes(*number) as usize).ok_or("a reply has one of our numbers")?;
        *place = String::from_utf8_lossy(word).into_owned();
    }
    println!("{}", replies.join(" "));
    connection.close().await?;
    connection.closed().await?;
    Ok(())
}

/// Largest size of a request in bytes.
const REQUEST_MAX: usize = 1 << 20;
