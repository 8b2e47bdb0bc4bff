//! The commands, over `anabranch_bpf::kernel`.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal as _, Write as _};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anabranch_bpf::kernel::{self, Group, InstallError, Installed, LoadError, Namespace, Socket};
use anabranch_bpf::{Law, Settings};
use serde::Serialize;

use crate::args::kernel::{Default, Kernel, Load, Run, Set, Status, Unload};
use crate::failure::{Failure, Outcome};
use crate::online;
use crate::terminal::{Align, PLAIN, Table};

/// Runs a command.
pub(crate) fn kernel(command: &Kernel) -> Outcome {
    match command {
        Kernel::Load(args) => load(args),
        Kernel::Unload(args) => unload(args),
        Kernel::Status(args) => status(args),
        Kernel::Set(args) => set(args),
        Kernel::Default(args) => make_default(args),
        Kernel::Run(args) => run(args),
    }
}

/// What this machine lacks, for `anabranch doctor`, or what does not work on it.
pub(crate) fn finding() -> Result<Option<String>, String> {
    kernel::check(Law::Fast).map_err(|error| error.to_string())?;
    if let Err(error) = kernel::check(Law::Anabranch) {
        return Ok(Some(format!("only the papers' laws: {error}")));
    }
    let hidden = "the kernel is locked down (confidentiality): subflows of MPTCP are not coupled, and `status` does not tell \
                  their connection; lockdown=integrity lets laws read it";
    Ok(kernel::hides_subflows().then(|| hidden.to_owned()))
}

fn load(args: &Load) -> Outcome {
    let mut settings = Settings::of(args.law);
    change(&mut settings, &args.settings)?;
    kernel::install(args.law, &settings)?;
    say(&format!("{0} is loaded; programs choose it by name: iperf3 -C {0}", args.law))
}

fn unload(args: &Unload) -> Outcome {
    let loaded = kernel::installed()?;
    if let Some(law) = args.laws.iter().find(|law| !loaded.contains(law)) {
        return Err(InstallError::NotLoaded(*law).into());
    }
    let laws = if args.laws.is_empty() { &loaded } else { &args.laws };
    let defaults = defaults(Namespace::all().map_err(no_default)?);
    for &law in laws {
        let concerned = defaults.iter().filter(|(_, before)| before == law.name());
        let next: Vec<&str> =
            concerned.map(|(namespace, _)| namespace.reset()).collect::<Result<_, _>>().map_err(no_default)?;
        if let Some(name) = next.first() {
            say(&format!("the default of {} is {name} (was {law})", namespaces(next.len())))?;
        }
        kernel::remove(law)?;
    }
    if args.laws.is_empty() {
        kernel::sweep()?;
    }
    let names: Vec<&str> = laws.iter().map(|law| law.name()).collect();
    say(&match names.as_slice() {
        [] => "no law was loaded".to_owned(),
        names => format!("unloaded: {}; connections that have one keep it", names.join(", ")),
    })
}

/// Namespaces with their defaults, where they can be read.
fn defaults(namespaces: Vec<Namespace>) -> Vec<(Namespace, String)> {
    let with_default = |namespace: Namespace| namespace.default().ok().map(|default| (namespace, default));
    namespaces.into_iter().filter_map(with_default).collect()
}

fn namespaces(count: usize) -> String {
    format!("{count} network namespace{}", if count == 1 { "" } else { "s" })
}

fn no_default(error: io::Error) -> Failure {
    Failure::failed(format!("the default of a network namespace: {error}"))
}

fn set(args: &Set) -> Outcome {
    let loaded = kernel::installed()?;
    let laws = args.law.map_or(loaded, |law| vec![law]);
    if laws.is_empty() {
        return Err(Failure::failed("no law is loaded: anabranch kernel load anabranch"));
    }
    // All are checked before one is changed.
    let mut changed = vec![];
    for law in laws {
        let installed = Installed::open(law)?;
        let mut settings = installed.settings()?;
        change(&mut settings, &args.settings)
            .map_err(|failure| Failure { message: format!("{law}: {}", failure.message), ..failure })?;
        changed.push((installed, settings));
    }
    for (installed, settings) in &changed {
        installed.set(settings)?;
    }
    Ok(())
}

fn change(settings: &mut Settings, pairs: &[(String, String)]) -> Outcome {
    pairs
        .iter()
        .try_for_each(|(key, value)| settings.set(key, value).map_err(|problem| Failure::usage(problem.to_string())))
}

fn make_default(args: &Default) -> Outcome {
    Installed::open(args.law)?;
    if args.host {
        let all = Namespace::all().map_err(no_default)?;
        all.iter().try_for_each(|namespace| namespace.set(args.law)).map_err(no_default)?;
        return say(&format!("the default of {} is {}", namespaces(all.len()), args.law));
    }
    let own = Namespace::own();
    let before = own.default().map_err(no_default)?;
    own.set(args.law).map_err(no_default)?;
    say(&format!("the default of this network namespace is {} (was {before})", args.law))
}

fn run(args: &Run) -> Outcome {
    Installed::open(args.law)?;
    let group = Group::make(args.law)?;
    // mptcpize changes what the program asks for as its sockets' protocol.
    let wrapper: &[&str] = if args.multipath { &["mptcpize", "run"] } else { &[] };
    let mut words = wrapper.iter().map(OsStr::new).chain(args.command.iter().map(OsString::as_os_str));
    let program = words.next().expect("a program is required");
    let mut command = Command::new(program);
    command.args(words);
    // An interrupt from the keyboard is for the program; this command still has to remove the group.
    ctrlc::set_handler(|| {}).map_err(|error| Failure::failed(error.to_string()))?;
    let outcome = group.spawn(&mut command).and_then(|mut child| child.wait());
    let path = group.path().to_owned();
    if let Err(error) = group.remove() {
        crate::terminal::complain(&format!("{}: {error}; programs still run in it", path.display()));
    }
    match outcome {
        Ok(status) if status.success() => Ok(()),
        // The program has said why.
        Ok(status) => Err(Failure {
            code: status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1),
            ..Failure::failed("")
        }),
        Err(error) if args.multipath => Err(Failure::usage(format!("mptcpize (Debian's package mptcpize): {error}"))),
        Err(error) => Err(Failure::usage(format!("{}: {error}", program.display()))),
    }
}

/// A loaded law.
#[derive(Serialize)]
struct LawStatus {
    law: &'static str,
    settings: serde_json::Map<String, serde_json::Value>,
    connections: Vec<Connection>,
}

/// A connection; windows and queues in segments.
#[derive(Serialize)]
struct Connection {
    local: String,
    remote: String,
    window: f64,
    queued: Option<f64>,
    base_rtt_ms: Option<f64>,
    average_rtt_ms: Option<f64>,
    mode: &'static str,
    reroutes: u32,
    /// The token of the MPTCP connection that it is a subflow of, as `ss` writes it.
    mptcp: Option<String>,
}

fn status(args: &Status) -> Outcome {
    let laws = laws()?;
    if args.json {
        return online::print_line(&laws);
    }
    let mut out = anstream::stdout().lock();
    write!(out, "{}", text(&laws))?;
    Ok(out.flush()?)
}

/// Prints the loaded laws and their connections: once, or every two seconds until the command is interrupted.
pub(crate) fn watch(once: bool) -> Outcome {
    let is_screen = !once && io::stdout().is_terminal();
    loop {
        let text = text(&laws()?);
        let mut out = anstream::stdout().lock();
        if is_screen {
            // To the upper left corner, and nothing below.
            write!(out, "\u{1b}[H\u{1b}[J")?;
        }
        write!(out, "{text}")?;
        out.flush()?;
        if once {
            return Ok(());
        }
        thread::sleep(Duration::from_secs(2));
    }
}

fn laws() -> Result<Vec<LawStatus>, Failure> {
    kernel::installed()?.into_iter().map(of_law).filter_map(Result::transpose).collect()
}

fn text(laws: &[LawStatus]) -> String {
    if laws.is_empty() {
        return "no law is loaded\n".to_owned();
    }
    let one = |law: &LawStatus| {
        let settings: Vec<String> = law.settings.iter().map(|(key, value)| format!("{key}={}", plain(value))).collect();
        format!("{}  {}\n{}", law.law, settings.join(" "), table(&law.connections).render("  "))
    };
    laws.iter().map(one).collect()
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The status of a law; `None` if another command has just unloaded it.
fn of_law(law: Law) -> Result<Option<LawStatus>, Failure> {
    let installed = match Installed::open(law) {
        Err(InstallError::NotLoaded(_)) => return Ok(None),
        opened => opened?,
    };
    let settings = installed.settings()?.pairs().into_iter();
    let settings = settings.map(|(key, value)| (key.to_owned(), value.into())).collect();
    let connections = installed.sockets()?.iter().map(Connection::of).collect();
    Ok(Some(LawStatus { law: law.name(), settings, connections }))
}

impl Connection {
    fn of(socket: &Socket) -> Self {
        let ms = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e6);
        Self {
            local: socket.local.to_string(),
            remote: socket.remote.to_string(),
            window: socket.window,
            queued: socket.queued,
            base_rtt_ms: ms(socket.base_rtt_ns),
            average_rtt_ms: ms(socket.average_rtt_ns),
            mode: socket.mode,
            reroutes: socket.reroutes,
            mptcp: socket.token.map(|token| format!("{token:x}")),
        }
    }
}

fn table(connections: &[Connection]) -> Table {
    let right = |head| (head, Align::Right);
    let mut table = Table::new(&[
        ("local", Align::Left),
        ("remote", Align::Left),
        right("window"),
        right("queued"),
        right("baseRTT ms"),
        right("avgRTT ms"),
        ("mode", Align::Left),
        ("mptcp", Align::Left),
    ]);
    for connection in connections {
        let number = |value: Option<f64>, digits| value.map_or_else(String::new, |value| format!("{value:.digits$}"));
        let cells = [
            connection.local.clone(),
            connection.remote.clone(),
            number(Some(connection.window), 1),
            number(connection.queued, 1),
            number(connection.base_rtt_ms, 3),
            number(connection.average_rtt_ms, 3),
            connection.mode.to_owned(),
            connection.mptcp.clone().unwrap_or_default(),
        ];
        table.row(cells.map(|cell| (cell, PLAIN)).to_vec());
    }
    table
}

fn say(line: &str) -> Outcome {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// What the machine lacks, and a law that is not loaded, is wrong usage; the rest is a failure.
impl From<InstallError> for Failure {
    fn from(error: InstallError) -> Self {
        match &error {
            InstallError::Load(load) if load.is_lack() => Self::usage(error.to_string()),
            _ => Self::failed(error.to_string()),
        }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        InstallError::from(error).into()
    }
}
