//! `anabranch doctor`: tests the machine's features for the transport and the emulator.

use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};

use anabranch::{Config, Diagnosis};
use serde::Serialize;

use crate::args::Doctor;
use crate::failure::{Failure, Outcome};
use crate::online;
use crate::terminal::{Align, PLAIN, Table};

/// The result of one test.
#[derive(Serialize)]
struct Finding {
    what: &'static str,
    found: String,
    /// The remedy, if it would help.
    remedy: Option<String>,
}

/// Runs the tests and prints the results.
pub(crate) fn doctor(args: &Doctor) -> Outcome {
    let wanted = Config::default().socket_buffer;
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let failed = |error| Failure::failed(format!("two UDP sockets of this computer cannot communicate: {error}"));
    let socket = online::block_on(async { Diagnosis::of(here, wanted).await.map_err(failed) })?;
    let mut findings = of_socket(&socket, wanted);
    findings.push(ciphers());
    findings.extend(of_emulator());
    findings.push(of_kernel());
    if args.json {
        return online::print_line(&findings);
    }
    print(&findings)
}

fn of_socket(socket: &Diagnosis, wanted: usize) -> Vec<Finding> {
    let batches = |what, count: usize, name: &str, since: &str| Finding {
        what,
        found: if count > 1 { format!("up to {count} datagrams a call") } else { "one datagram a call".to_owned() },
        remedy: (count == 1).then(|| format!("{name} needs {since}; without it more processor time goes into calls")),
    };
    let yes_no = |is_there: bool| if is_there { "yes" } else { "no" }.to_owned();
    let buffer = |what, size: usize, key: &str| Finding {
        what,
        found: format!("{} kB", size / 1000),
        // Linux reports twice the requested size, for its own overhead.
        remedy: (size < wanted)
            .then(|| format!("sysctl -w net.core.{key}={wanted}: bursts are lost when a buffer is full")),
    };
    vec![
        batches("batches out (GSO)", socket.sent_at_once, "GSO", "Linux 4.18 or later, or Windows"),
        batches("batches in (GRO)", socket.received_at_once, "GRO", "Linux 5.0 or later, or Windows"),
        Finding {
            what: "ECN",
            found: yes_no(socket.has_ecn),
            remedy: (!socket.has_ecn)
                .then(|| "the system hides ECN marks from programs; losses signal congestion, later".to_owned()),
        },
        Finding {
            what: "receive timestamps",
            found: yes_no(socket.has_arrival_times),
            remedy: (!socket.has_arrival_times)
                .then(|| "a busy machine makes delays look longer; Linux has kernel timestamps".to_owned()),
        },
        buffer("receive buffer", socket.receive_buffer, "rmem_max"),
        buffer("send buffer", socket.send_buffer, "wmem_max"),
    ]
}

fn ciphers() -> Finding {
    let is_fast = anabranch::has_fast_aes();
    Finding {
        what: "AES instructions",
        found: if is_fast { "yes: AES-GCM" } else { "no: ChaCha20-Poly1305" }.to_owned(),
        remedy: (!is_fast).then(|| "none: it takes about three times the processor time a byte".to_owned()),
    }
}

/// The requirements of `anabranch link`.
fn of_emulator() -> Vec<Finding> {
    let is_root = fs::read_to_string("/proc/self/status").is_ok_and(|status| {
        status.lines().any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0"))
    });
    let tun = fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    let has_ip = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join("ip").is_file()));
    vec![
        Finding {
            what: "root",
            found: if is_root { "yes" } else { "no" }.to_owned(),
            remedy: (!is_root).then(|| "sudo anabranch link …: namespaces and devices need root".to_owned()),
        },
        Finding {
            what: "TUN devices",
            found: tun.as_ref().map_or_else(|error| format!("no: {error}"), |_| "yes".to_owned()),
            remedy: tun.is_err().then(|| "modprobe tun; in a container, --device /dev/net/tun".to_owned()),
        },
        Finding {
            what: "ip (iproute2)",
            found: if has_ip { "yes" } else { "no" }.to_owned(),
            remedy: (!has_ip).then(|| "apt-get install iproute2".to_owned()),
        },
    ]
}

/// The requirements of `anabranch kernel`.
fn of_kernel() -> Finding {
    let (found, remedy) = match crate::kernel::finding() {
        Ok(partly) => ("yes", partly),
        Err(lack) => ("no", Some(lack)),
    };
    Finding { what: "laws in the kernel", found: found.to_owned(), remedy }
}

fn print(findings: &[Finding]) -> Outcome {
    let mut table = Table::new(&[("", Align::Left), ("found", Align::Left), ("remedy", Align::Left)]);
    for finding in findings {
        let remedy = finding.remedy.clone().unwrap_or_default();
        table.row(vec![(finding.what.to_owned(), PLAIN), (finding.found.clone(), PLAIN), (remedy, PLAIN)]);
    }
    let mut out = anstream::stdout();
    write!(out, "{}", table.render(""))?;
    Ok(out.flush()?)
}
