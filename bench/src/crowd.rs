//! Many idle connections: what a handshake costs either end, and how much memory a connection holds afterwards.
//!
//! Each end is a process with one thread. A connection counts when both ends have it. Memory is what the process has gained (its resident set), so that
//! allocators and tasks are included, but no buffers of the kernel.

use std::any::Any;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use anabranch::{Config, Endpoint, SecretKey, Ticket};
use clap::ValueEnum;

use crate::rivals::{Rival, ours, quic};
use crate::transport::Failed;
use crate::work::cpu_seconds;

/// An end of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    Server,
    Client,
}

/// Whatever keeps connections open.
pub type Kept = Box<dyn Any>;

/// Processor time and memory of a process for a connection.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub micros: f64,
    pub bytes: f64,
}

/// Opens `count` connections between two processes. Returns the costs of the server and of the client.
pub fn measure(rival: Rival, count: u32) -> Result<[Cost; 2], Failed> {
    let (mut server, mut answers) = spawn(rival, Role::Server, count, None)?;
    let hello = line(&mut answers)?;
    let (mut client, mut calls) = spawn(rival, Role::Client, count, Some(&hello))?;
    let costs = [parse(&line(&mut answers)?)?, parse(&line(&mut calls)?)?];
    for end in [&mut client, &mut server] {
        drop(end.stdin.take());
        end.wait()?;
    }
    Ok(costs)
}

fn spawn(rival: Rival, role: Role, count: u32, hello: Option<&str>) -> Result<(Child, BufReader<ChildStdout>), Failed> {
    let mut command = Command::new(std::env::current_exe()?);
    let role = role.to_possible_value().ok_or("it has a name")?;
    command.arg("crowd-end").arg(rival.word().ok_or("it has a name")?).arg(role.get_name()).arg(count.to_string());
    let mut child = command.args(hello).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let lines = BufReader::new(child.stdout.take().ok_or("it is piped")?);
    Ok((child, lines))
}

fn line(from: &mut BufReader<ChildStdout>) -> Result<String, Failed> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    if line.is_empty() { Err("the other process has ended".into()) } else { Ok(line.trim_end().to_owned()) }
}

fn parse(line: &str) -> Result<Cost, Failed> {
    let (micros, bytes) = line.split_once(' ').ok_or("two numbers")?;
    Ok(Cost { micros: micros.parse()?, bytes: bytes.parse()? })
}

/// One end. It prints its greeting, if it is the server, and its costs, and keeps everything until its input ends.
pub fn end(rival: Rival, role: Role, count: u32, hello: Option<&str>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let print = |line: &str| -> Result<(), Failed> {
            println!("{line}");
            Ok(std::io::stdout().flush()?)
        };
        let before = (cpu_seconds(), resident()?);
        let kept = match (rival, role, hello) {
            (Rival::Anabranch, Role::Server, _) => serve_ours(count, &print).await?,
            (Rival::Anabranch, Role::Client, Some(hello)) => call_ours(hello, count).await?,
            (Rival::Quinn, Role::Server, _) => quic::serve_crowd(count, &print).await?,
            (Rival::Quinn, Role::Client, Some(hello)) => quic::call_crowd(hello, count).await?,
            _ => return Err("only anabranch and quinn".into()),
        };
        let cpu = cpu_seconds() - before.0;
        // What belongs to the handshake is given up, and what is idle has rested.
        tokio::time::sleep(REST).await;
        let each = |all: f64| all / f64::from(count);
        print(&format!("{:.1} {:.0}", each(cpu * 1e6), each(resident()? - before.1)))?;
        tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await??;
        drop(kept);
        Ok(())
    })
}

/// One that is idle sends nothing, and is not given up.
fn settings() -> Config {
    let hour = Duration::from_secs(3600);
    Config { connections_max: 1 << 20, keep_alive: None, idle_timeout: hour, ..Config::default() }
}

async fn serve_ours(count: u32, print: &impl Fn(&str) -> Result<(), Failed>) -> Result<Kept, Failed> {
    let server = ours::listening(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), settings())?;
    print(&server.ticket().to_string())?;
    let mut all = vec![];
    for _ in 0..count {
        all.push(server.accept().await.ok_or("the socket is gone")?);
    }
    Ok(Box::new((server, all)))
}

/// An address may do 50 handshakes at once, and then 20 a second. So there are many, as with many clients.
async fn call_ours(hello: &str, count: u32) -> Result<Kept, Failed> {
    let ticket: Ticket = hello.parse()?;
    let (mut all, mut endpoints) = (vec![], vec![]);
    for number in 0..count {
        if number % EACH == 0 {
            let [.., high, low] = (number / EACH + 2).to_be_bytes();
            let address = SocketAddr::from((Ipv4Addr::new(127, 1, high, low), 0));
            endpoints.push(Endpoint::bind(address, &SecretKey::generate()?, settings())?);
        }
        let client = endpoints.last().ok_or("there is one")?;
        all.push(client.connect(&ticket).await?);
    }
    Ok(Box::new((endpoints, all)))
}

/// The memory of this process in bytes.
fn resident() -> Result<f64, Failed> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("Linux tells it")?;
    Ok(kilobytes.trim().trim_end_matches(" kB").parse::<f64>()? * 1024.0)
}

/// Connections of a client's socket.
const EACH: u32 = 40;

const REST: Duration = Duration::from_secs(5);
