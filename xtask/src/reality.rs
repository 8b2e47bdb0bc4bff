//! `cargo xtask reality`: compares a simulated scenario with the same scenario over emulated links (`anabranch link`).
//!
//! The transport runs in both: in the simulator as a flow, in network namespaces as `anabranch bench` over UDP. The comparison has the goodput, the mean
//! queueing delay (the mean RTT less that of the empty path), and the lost segments. With `--tcp` the kernel's Reno, CUBIC and BBR run over the
//! same links by iperf3, for comparison. With `--kernel` the laws in the kernel are measured instead (`experiments/kernel/`). With `--write` the real values are
//! written into the experiments, whose report shows them beside the simulated ones.

mod cells;
mod kernel;
mod record;

use clap::Args;

use self::cells::{CELLS, Came, Cell};
use crate::links::{Links, Server, json, output};
use crate::machine::Machine;
use crate::run::{self, say};

/// The cells to compare.
#[derive(Args)]
pub(crate) struct Options {
    /// Duration of each transfer.
    #[arg(long, value_name = "SECONDS", default_value_t = SECONDS, value_parser = clap::value_parser!(u32).range(5..=600))]
    seconds: u32,
    /// Run only cells whose name contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Also run the kernel's Reno, CUBIC and BBR (Debian's package `iperf3`).
    #[arg(long)]
    tcp: bool,
    /// Measure the laws in the kernel, the experiments of `experiments/kernel/`, instead (Debian's package `iperf3`).
    #[arg(long, conflicts_with_all = ["tcp", "seconds"])]
    kernel: bool,
    /// How often each of their variants is measured; 0 compares, or writes, what `measured.csv` has.
    #[arg(long, value_name = "COUNT", default_value_t = 2, requires = "kernel", value_parser = clap::value_parser!(u32).range(0..=20))]
    runs: u32,
    /// Let receivers acknowledge each segment at once, as the simulated ones do: what delayed ACKs cost the laws in the kernel.
    #[arg(long, requires = "kernel", conflicts_with = "write")]
    quick_acks: bool,
    /// Take this build of the command instead of making a release build.
    #[arg(long, value_name = "FILE")]
    program: Option<String>,
    /// Write the measured values into the experiments.
    #[arg(long, conflicts_with = "seconds")]
    write: bool,
}

/// The duration of the experiments.
const SECONDS: u32 = 20;

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let anabranch = match &options.program {
        Some(program) => program.clone(),
        None => {
            run::run("cargo", &["build", "--release", "--locked", "--quiet"], &[])?;
            run::anabranch()?
        }
    };
    if options.kernel {
        let plan = kernel::Plan {
            anabranch: &anabranch,
            only: &options.only,
            runs: options.runs,
            write: options.write,
            quick_acks: options.quick_acks,
        };
        return kernel::run(&plan);
    }
    say("                         simulated                     real                          off");
    say(
        "cell                     Mbit/s  queueing ms  lost    Mbit/s  queueing ms  lost    goodput  queueing  load, stolen",
    );
    let (mut off, mut machine) = (0, Machine::new());
    for cell in CELLS.iter().filter(|cell| cell.name.contains(&options.only)) {
        let set = record::settings(cell)?;
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let simulated = simulated(&anabranch, cell, &set, options.seconds)?;
        let links = Links::up(&anabranch, NAME, cell.file, &set)?;
        _ = machine.load_and_stolen();
        let real = real(&anabranch, cell, options.seconds)?;
        off += u32::from(!print(cell, simulated, real, &machine.load_and_stolen()));
        if options.write {
            record::write(cell, real)?;
        }
        if options.tcp {
            for law in ["reno", "cubic", "bbr"] {
                let came = tcp(&anabranch, law, options.seconds)?;
                let load = machine.load_and_stolen();
                say(&format!(
                    "  the kernel's {law:<11}                              {}{load:>37}",
                    columns(cell, came)
                ));
            }
        }
        links.down()?;
    }
    say(&format!("{off} cells are off by more than 5 % in goodput, or by more than 10 % and 1 ms in queueing delay"));
    Ok(())
}

/// Prints a cell; returns whether the difference is small enough.
fn print(cell: &Cell, simulated: Came, real: Came, load: &str) -> bool {
    let goodput = real.megabits / simulated.megabits - 1.0;
    // The simulator reports one RTT for all paths, bench that of the first: these cannot be compared.
    let rtt = |came: Came| came.rtt.filter(|_| !cell.paths);
    let queueing = rtt(real).zip(rtt(simulated)).map(|(real, simulated)| real - simulated);
    let is_near =
        goodput.abs() <= 0.05 && queueing.is_none_or(|off| off.abs() <= cell.allowance(rtt(real).unwrap_or_default()));
    let queueing = queueing.map_or_else(|| "-".to_owned(), |off| format!("{:+.1} ms", off * 1e3));
    say(&format!(
        "{:<22} {}   {}   {:+6.1} %  {queueing:>8}{load:>13}{}",
        cell.name,
        columns(cell, simulated),
        columns(cell, real),
        goodput * 100.0,
        if is_near { "" } else { "  off" },
    ));
    is_near
}

fn columns(cell: &Cell, came: Came) -> String {
    let queueing =
        came.rtt.filter(|_| !cell.paths).map_or_else(|| "-".to_owned(), |rtt| format!("{:.1}", (rtt - cell.rtt) * 1e3));
    format!("{:>8.2} {queueing:>12} {:>5}", came.megabits, came.lost)
}

fn simulated(anabranch: &str, cell: &Cell, set: &[&str], seconds: u32) -> Result<Came, String> {
    let duration = format!("duration={seconds}s");
    let mut arguments = vec!["sim", "run", cell.file, "--json", "--set", &duration];
    set.iter().for_each(|set| arguments.extend(["--set", *set]));
    let outcome = json(&output(anabranch, &arguments)?)?;
    let flow = &outcome["flows"][0];
    let number = |key: &str| flow[key].as_f64().ok_or_else(|| format!("{}: no {key} of the flow", cell.name));
    let lost = number("dropped_packets")?;
    Ok(Came { megabits: number("goodput_bps")? / 1e6, rtt: flow["rtt_mean_s"].as_f64(), lost })
}

fn real(anabranch: &str, cell: &Cell, seconds: u32) -> Result<Came, String> {
    let mut server =
        Server::start(anabranch, &["link", "exec", "b", "--name", NAME, "--", anabranch, "bench", "serve", "--json"])?;
    let ticket = json(&server.line()?)?["ticket"].as_str().ok_or("no ticket")?.to_owned();
    let time = seconds.to_string();
    let bench = ["--", anabranch, "bench", &ticket, "--time", &time, "--json"];
    let several = if cell.paths { &["--multipath"][..] } else { &[] };
    // Restarts the scenario's clock, for changes over time.
    let arguments = [&["link", "exec", "a", "--name", NAME, "--restart"], &bench[..], several].concat();
    let measured = json(&output(anabranch, &arguments)?)?;
    let number = |key: &str| measured[key].as_f64().ok_or_else(|| format!("{}: bench does not tell {key}", cell.name));
    Ok(Came {
        megabits: number("bits_per_second")? / 1e6,
        rtt: measured["rtt_ms_mean"].as_f64().map(|rtt| rtt / 1e3),
        lost: number("segments_lost")?,
    })
}

fn tcp(anabranch: &str, law: &str, seconds: u32) -> Result<Came, String> {
    let _server = Server::start(anabranch, &["link", "exec", "b", "--name", NAME, "--", "iperf3", "--server"])?;
    std::thread::sleep(std::time::Duration::from_millis(500));
    let time = seconds.to_string();
    let client = ["--", "iperf3", "--client", "b", "--congestion", law, "--time", &time, "--json"];
    let arguments = [&["link", "exec", "a", "--name", NAME, "--restart"], &client[..]].concat();
    let measured = json(&output(anabranch, &arguments)?)?;
    let sender = &measured["end"]["streams"][0]["sender"];
    let bits = measured["end"]["sum_received"]["bits_per_second"].as_f64().ok_or("iperf3 tells no rate")?;
    let lost = sender["retransmits"].as_f64().unwrap_or_default();
    Ok(Came { megabits: bits / 1e6, rtt: sender["mean_rtt"].as_f64().map(|rtt| rtt / 1e6), lost })
}

/// The name of the links.
const NAME: &str = "reality";
