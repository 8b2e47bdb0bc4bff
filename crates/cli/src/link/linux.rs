//! `anabranch link` on Linux.

mod text;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anabranch_emulator::linux::{self, Claim, DeviceCounts, Failure as Problem, Removed, State};
use anabranch_emulator::{InvalidName, Name, Plan, Settings, Status};
use anabranch_lab::scenario::Scenario;
use serde::Serialize;

use crate::args::link::{Check, Down, Exec, Link, Named, Sandbox, Up};
use crate::failure::{Failure, Outcome};
use crate::files::Inputs;
use crate::terminal::named;

/// `anabranch link`.
pub(crate) fn link(command: &Link) -> Outcome {
    if !matches!(command, Link::Sandbox(_)) {
        linux::can_emulate()?;
    }
    match command {
        Link::Sandbox(args) => sandbox(args),
        Link::Up(args) => up(args),
        Link::Down(args) => down(args),
        Link::Exec(args) => exec(args),
        Link::Restart(args) => restart(args),
        Link::Status(args) => status(args),
        Link::Check(args) => check(args),
    }
}

fn sandbox(args: &Sandbox) -> Outcome {
    let shell = || vec![std::env::var("SHELL").unwrap_or_else(|_| "sh".to_owned())];
    let command = if args.command.is_empty() { shell() } else { args.command.clone() };
    Err(linux::sandbox(&command).into())
}

fn up(args: &Up) -> Outcome {
    let name = name_of(args)?;
    let document = Inputs::default().read_document(&args.file, &args.overrides)?;
    let scenario = Scenario::parse(&document)?;
    let (network, notes) = (scenario.topology(), scenario.left_out());
    let settings = Settings {
        mtu: args.mtu,
        congestion_control: args.congestion_control.clone(),
        offload: args.offload,
        black_holes: args.black_holes,
    };
    // Errors of the network are found before anything is created.
    Plan::new(&name, &network, &settings)
        .map_err(|refusal| Failure::usage(format!("{}: {refusal}", named(&args.file))))?;
    let report = |plan: &Plan| -> Outcome {
        let mut out = anstream::stdout().lock();
        match args.json {
            true => {
                writeln!(out, "{}", serde_json::to_string(&plan_json(plan, &notes)).map_err(std::io::Error::from)?)?
            }
            false => write!(out, "{}", text::up(plan, &notes))?,
        }
        Ok(out.flush()?)
    };
    if !args.foreground {
        report(&start(&name)?)?;
        return Ok(());
    }
    let claim = if args.detached { Claim::inherited(&name) } else { Claim::new(&name)? };
    if args.detached {
        return Ok(linux::serve(claim, &file_of(args), network, &settings, |_| {})?);
    }
    take_down_when_interrupted(name.clone())?;
    let served = linux::serve(claim, &file_of(args), network, &settings, |plan| _ = report(plan));
    linux::down(&name)?;
    Ok(served?)
}

/// The absolute path of the scenario file, for `status`.
fn file_of(args: &Up) -> String {
    let path = fs::canonicalize(&args.file).unwrap_or_else(|_| args.file.clone());
    path.display().to_string()
}

/// Starts this command again without a terminal, and waits until the emulator is up.
fn start(name: &Name) -> Result<Plan, Failure> {
    let claim = Claim::new(name)?;
    let (log, log_path) = claim.log()?;
    let program = std::env::current_exe().map_err(|error| Failure::failed(error.to_string()))?;
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1)).args(["--foreground", "--detached"]);
    // The current folder may be removed, and must not keep its file system busy.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let mut child = linux::detached(&mut command).spawn().map_err(|error| Failure::failed(error.to_string()))?;
    loop {
        if linux::status(name).is_ok() {
            return Ok(State::read(name)?.plan);
        }
        if let Ok(Some(_)) = child.try_wait() {
            let told = fs::read_to_string(&log_path).unwrap_or_default();
            linux::down(name)?;
            let told = told.trim().trim_start_matches("error: ");
            return Err(Failure::failed(format!("the emulator did not come up: {told}")));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An interrupt of the foreground takes everything down.
fn take_down_when_interrupted(name: Name) -> Outcome {
    let handler = move || {
        let code = match linux::down(&name) {
            Ok(_) => 0,
            Err(problem) => {
                crate::terminal::complain(&problem.to_string());
                1
            }
        };
        std::process::exit(code);
    };
    ctrlc::set_handler(handler).map_err(|error| Failure::failed(error.to_string()))
}

fn down(args: &Down) -> Outcome {
    let names = match &args.name {
        Some(name) => vec![known(name)?],
        None if args.all => linux::names(),
        None if linux::names().len() > 1 => vec![only(None)?],
        None => linux::names(),
    };
    let mut out = anstream::stdout().lock();
    if names.is_empty() {
        return Ok(writeln!(out, "nothing was up")?);
    }
    for name in names {
        let Removed { namespaces, programs, was_there } = linux::down(&name)?;
        if !was_there {
            return Err(Failure::failed(format!("nothing was up as `{name}`{}", others())));
        }
        let kind = if programs == 1 { "program" } else { "programs" };
        writeln!(out, "{name}: removed {namespaces} namespaces, stopped {programs} {kind} in them")?;
    }
    Ok(())
}

/// The names that are up, as the end of a message.
fn others() -> String {
    let names: Vec<_> = linux::names().into_iter().map(String::from).collect();
    if names.is_empty() { String::new() } else { format!("; up are: {}", names.join(", ")) }
}

fn exec(args: &Exec) -> Outcome {
    let name = only(args.name.as_deref())?;
    let state = State::read(&name)?;
    let hosts = &state.plan.hosts;
    let Some(host) = hosts.iter().find(|host| host.name == args.host) else {
        let known = hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(Failure::usage(format!("{name} has no host `{}`; it has {known}", args.host)));
    };
    if args.restart {
        linux::restart(&name)?;
    }
    Err(linux::exec(&name, &host.namespace, &args.command).into())
}

fn restart(args: &Named) -> Outcome {
    let name = only(args.name.as_deref())?;
    let before = linux::restart(&name)?;
    show(&name, &before, args.json)
}

fn status(args: &Named) -> Outcome {
    let name = only(args.name.as_deref())?;
    show(&name, &linux::status(&name)?, args.json)
}

fn show(name: &Name, status: &Status, json: bool) -> Outcome {
    let plan = State::read(name)?.plan;
    let unread: u64 = unread(&plan).unread_packets;
    let mut out = anstream::stdout().lock();
    match json {
        true => {
            let document = StatusJson { name: name.as_str(), unread_packets: unread, status };
            writeln!(out, "{}", serde_json::to_string_pretty(&document).map_err(std::io::Error::from)?)?;
        }
        false => write!(out, "{}", text::status(name.as_str(), status, unread))?,
    }
    Ok(())
}

fn check(args: &Check) -> Outcome {
    let mut rows = vec![];
    for (&rate, &delay) in args.rates.iter().flat_map(|rate| args.delays.iter().map(move |delay| (rate, delay))) {
        if rate.bits_per_second() == 0 {
            return Err(Failure::usage("--rate: nothing passes a link of 0 bit/s; use a rate above it"));
        }
        rows.push(linux::check(&linux::Check { rate, delay, span: Duration::from_secs(args.seconds) })?);
    }
    let mut out = anstream::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string_pretty(&rows).map_err(std::io::Error::from)?)?,
        false => write!(out, "{}", text::check(&rows))?,
    }
    Ok(())
}

/// Packets dropped by all devices of the hosts.
fn unread(plan: &Plan) -> DeviceCounts {
    let devices = plan.hosts.iter().flat_map(|host| host.interfaces.iter().map(move |interface| (host, interface)));
    // A device that is gone counts nothing.
    let counts = devices.filter_map(|(host, interface)| linux::device_counts(&host.namespace, &interface.device).ok());
    DeviceCounts { unread_packets: counts.map(|counts| counts.unread_packets).sum() }
}

/// The JSON document of a status.
#[derive(Serialize)]
struct StatusJson<'a> {
    name: &'a str,
    /// Packets that devices dropped because the emulator did not read them in time.
    unread_packets: u64,
    #[serde(flatten)]
    status: &'a Status,
}

fn plan_json(plan: &Plan, notes: &[String]) -> serde_json::Value {
    let interface = |interface: &anabranch_emulator::InterfacePlan| {
        serde_json::json!({
            "device": interface.device, "link": interface.link, "ipv4": interface.ipv4, "ipv6": interface.ipv6,
        })
    };
    let host = |host: &anabranch_emulator::HostPlan| {
        let interfaces: Vec<_> = host.interfaces.iter().map(interface).collect();
        serde_json::json!({ "name": host.name, "namespace": host.namespace, "interfaces": interfaces })
    };
    let hosts: Vec<_> = plan.hosts.iter().map(host).collect();
    serde_json::json!({ "name": plan.name, "hosts": hosts, "notes": notes })
}

/// The given name, or the only emulator's.
fn only(name: Option<&str>) -> Result<Name, Failure> {
    if let Some(name) = name {
        return known(name);
    }
    match &linux::names()[..] {
        [name] => Ok(name.clone()),
        [] => Err(Failure::usage("no links are up; type anabranch link up FILE")),
        _ => Err(Failure::usage(format!("several are up, name one of them{}", others()))),
    }
}

/// The given name, or that of the given file.
fn known(name: &str) -> Result<Name, Failure> {
    let file = Path::new(name);
    match file.extension().is_some_and(|extension| extension == "toml") {
        true => Name::of_file(file).map_err(invalid),
        false => name.parse().map_err(invalid),
    }
}

fn name_of(args: &Up) -> Result<Name, Failure> {
    match &args.name {
        Some(name) => name.parse().map_err(invalid),
        None => Name::of_file(&args.file).map_err(invalid),
    }
}

fn invalid(name: InvalidName) -> Failure {
    Failure::usage(name.to_string())
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Usage(message) => Self::usage(message),
            Problem::Failed(message) => Self::failed(message),
        }
    }
}
