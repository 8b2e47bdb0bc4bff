//! Floods a server with handshakes from forged addresses: `flood TICKET COUNT RATE` sends COUNT initiations, RATE per second,
//! each from another address of 127.0.0.0/8, to the ticket's port of 127.0.0.1. They are genuine initiations of 5,000 clients
//! with a key each, so only their addresses are suspicious. The replies are not read.
//!
//! It prints a line when it is ready, starts when it reads a line, and prints a line at the end. `cargo xtask proofs` uses it.

#![expect(clippy::print_stdout, reason = "it is what the example prints")]

use std::error::Error;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use anabranch::{Config, Endpoint, SecretKey, Ticket};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let [ticket, count, rate] = &args[..] else { return Err("flood TICKET COUNT RATE".into()) };
    let (ticket, count, rate): (Ticket, u32, f64) = (ticket.parse()?, count.parse()?, rate.parse()?);
    let port = ticket.addresses().first().ok_or("a ticket has an address")?.port();
    let mut calls = vec![];
    for _ in 0..CALLERS {
        calls.push(call(&ticket).await?);
    }
    println!("ready");
    std::io::stdin().read_line(&mut String::new())?;
    let (begin, mut sent) = (Instant::now(), 0);
    for number in 0..count {
        let ahead = f64::from(number) / rate - begin.elapsed().as_secs_f64();
        if ahead > 0.001 {
            std::thread::sleep(Duration::from_secs_f64(ahead));
        }
        // Addresses up to 127.127.255.255: that is the largest COUNT.
        let address = Ipv4Addr::from_bits(Ipv4Addr::new(127, 16, 0, 1).to_bits() + number % (1 << 22));
        let socket = UdpSocket::bind((address, 0))?;
        sent += usize::from(socket.send_to(&calls[number as usize % calls.len()], ("127.0.0.1", port)).is_ok());
    }
    println!("sent {sent} in {:.1} s", begin.elapsed().as_secs_f64());
    Ok(())
}

/// The initiation of a new client.
async fn call(ticket: &Ticket) -> Result<Vec<u8>, Box<dyn Error>> {
    let deaf = tokio::net::UdpSocket::bind("127.0.0.1:0").await?;
    let ticket = Ticket::new(ticket.key(), vec![deaf.local_addr()?])?;
    let endpoint = Endpoint::bind("127.0.0.1:0".parse()?, &SecretKey::generate()?, Config::default())?;
    let mut datagram = vec![0; 2048];
    tokio::select! {
        _ = endpoint.connect(&ticket) => Err("nobody is there, and answers".into()),
        received = deaf.recv(&mut datagram) => {
            datagram.truncate(received?);
            Ok(datagram)
        }
    }
}

/// The number of clients.
const CALLERS: usize = 5000;
