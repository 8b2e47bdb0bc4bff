//! Compares anabranch with other transports: `cargo run --release -- loopback | messages | cpu | wan | crowd`, in this folder.
//!
//! The rivals take turns in each round, so that other load affects all of them; the tables have medians and ranges. On loopback both ends are in one
//! process, each in a thread with its own runtime, and the processor time is that of both. `wan` has emulated links between processes.

mod crowd;
mod loopback;
mod rivals;
mod table;
mod transport;
mod udp;
mod wan;
mod work;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::rivals::Rival;
use crate::table::Column;
use crate::transport::Failed;
use crate::work::{Measured, Work};

#[derive(Parser)]
#[command(about = "anabranch beside other transports, in turns")]
struct Command {
    #[command(subcommand)]
    what: What,
}

#[derive(Args)]
struct Rounds {
    /// Rounds of each rival; on loopback one more round before fills caches and does not count
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Only these rivals, separated by commas
    #[arg(long, value_delimiter = ',')]
    only: Vec<Rival>,
}

#[derive(Subcommand)]
enum What {
    /// Goodput and processor time of large transfers
    Loopback {
        #[command(flatten)]
        rounds: Rounds,
        /// Concurrent streams
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
        streams: u32,
        /// Seconds of a round, after one more to begin
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
        seconds: u32,
    },
    /// Round-trip times of messages, one after the other
    Messages {
        #[command(flatten)]
        rounds: Rounds,
        /// The number of messages
        #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
        count: u32,
        /// Bytes of each message
        #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        bytes: u32,
    },
    /// Processor time for the same bytes, at rates that each rival can reach
    Cpu {
        #[command(flatten)]
        rounds: Rounds,
        /// Megabits a second, separated by commas
        #[arg(long, value_delimiter = ',', default_value = "10,100,1000", value_parser = clap::value_parser!(u32).range(1..=100_000))]
        rates: Vec<u32>,
        /// Seconds of a round, after one more to begin
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
        seconds: u32,
    },
    /// Goodput and messages over an emulated link of 100 Mbit/s with losses; Linux, as root
    Wan {
        #[command(flatten)]
        rounds: Rounds,
        /// Seconds of each transfer, its start included
        #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=120))]
        seconds: u32,
        /// The RTT of the link without a queue, in milliseconds
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=1000))]
        rtt: u32,
        /// Only cells with this text in their names: "goodput", "1 %"
        #[arg(long, default_value = "")]
        cell: String,
        /// The `anabranch` command, which emulates the links
        #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/release/anabranch"))]
        anabranch: PathBuf,
    },
    /// Many idle connections between two processes: processor time of a handshake, and memory; Linux
    Crowd {
        #[command(flatten)]
        rounds: Rounds,
        /// The number of connections
        #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        connections: u32,
    },
    /// One end of many connections
    #[command(hide = true)]
    CrowdEnd { rival: Rival, role: crowd::Role, connections: u32, hello: Option<String> },
    /// One end of a connection
    #[command(hide = true)]
    End { rival: Rival, work: Work, hello: Option<String> },
}

fn main() -> Result<(), Failed> {
    match Command::parse().what {
        What::Loopback { rounds, streams, seconds } => {
            let time = Duration::from_secs(seconds.into());
            let work = Work::Bulk { streams, warm: Duration::from_secs(1), time };
            on_loopback(&rounds, work, &BULK)
        }
        What::Cpu { rounds, rates, seconds } => {
            let (warm, time) = (Duration::from_secs(1), Duration::from_secs(seconds.into()));
            for megabits in rates {
                println!("\n{megabits} Mbit/s:\n");
                on_loopback(&rounds, Work::Steady { megabits, warm, time }, &BULK)?;
            }
            Ok(())
        }
        What::Messages { rounds, count, bytes } => {
            let work = Work::Ping { count, bytes: bytes as usize };
            on_loopback(
                &rounds,
                work,
                &[Column::new("p50 us", 1), Column::new("p99 us", 1), Column::new("CPU us each", 1)],
            )
        }
        What::Wan { rounds, seconds, rtt, cell, anabranch } => {
            const ALL: [Rival; 4] = [Rival::Anabranch, Rival::Quinn, Rival::QuinnBbr, Rival::QuinnAnabranch];
            let path = wan::Asked { cell: &cell, rtt, anabranch: &anabranch };
            wan::run(&rounds.rivals(&ALL), rounds.rounds, seconds, &path)
        }
        What::Crowd { rounds, connections } => {
            let columns = [
                Column::new("server: handshakes/s and core", 0),
                Column::new("bytes each", 0),
                Column::new("client: handshakes/s and core", 0),
            ];
            let mut rows: Vec<(Rival, Vec<Vec<f64>>)> =
                rounds.rivals(&[Rival::Anabranch, Rival::Quinn]).into_iter().map(|rival| (rival, vec![])).collect();
            for _ in 0..rounds.rounds {
                for (rival, row) in &mut rows {
                    // The memory of a client is that of its sockets, of which ours needs many here.
                    let [server, client] = crowd::measure(*rival, connections)?;
                    row.push(vec![1e6 / server.micros, server.bytes, 1e6 / client.micros]);
                }
            }
            table::print(&rows, &columns);
            Ok(())
        }
        What::CrowdEnd { rival, role, connections, hello } => crowd::end(rival, role, connections, hello.as_deref()),
        What::End { rival, work, hello } => wan::end(rival, work, hello.as_deref()),
    }
}

impl Rounds {
    fn rivals(&self, all: &[Rival]) -> Vec<Rival> {
        if self.only.is_empty() { all.to_vec() } else { self.only.clone() }
    }
}

fn on_loopback(rounds: &Rounds, work: Work, columns: &[Column]) -> Result<(), Failed> {
    const ALL: [Rival; 6] = [Rival::Anabranch, Rival::AnabranchAegis, Rival::Quinn, Rival::S2n, Rival::Tls, Rival::Udp];
    let mut rows: Vec<(Rival, Vec<Vec<f64>>)> = rounds.rivals(&ALL).into_iter().map(|rival| (rival, vec![])).collect();
    for round in 0..=rounds.rounds {
        for (rival, row) in &mut rows {
            if let Some(measured) = loopback::measure(*rival, work)?
                && round > 0
            {
                row.push(measured.numbers());
            }
        }
    }
    table::print(&rows, columns);
    Ok(())
}

/// The columns of bulk transfers.
const BULK: [Column; 2] = [Column::new("Gbit/s", 2), Column::new("CPU s/GB", 2)];

impl Measured {
    /// The numbers in the order of the columns.
    fn numbers(&self) -> Vec<f64> {
        match self {
            Self::Bulk { gigabits, cpu } => vec![*gigabits, *cpu],
            Self::Times { cpu, .. } => vec![self.quantile(0.5) * 1e6, self.quantile(0.99) * 1e6, cpu * 1e6],
        }
    }
}
