//! Network namespaces: actions in them, by the command `ip` or by a thread that enters them.

use std::fs;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tun_rs::{DeviceBuilder, SyncDevice};

use super::Failure;
use crate::name::{Name, Namespace};
use crate::plan::{HostPlan, Plan, Settings};

/// The folder of named namespaces, as `ip netns` uses it.
const NAMESPACES: &str = "/run/netns";

/// Runs a program to its end and returns its output.
///
/// # Errors
/// If the program is missing or fails; with its message.
pub(super) fn run(program: &str, arguments: &[&str], input: Option<&str>) -> Result<String, Failure> {
    let what = || format!("{program} {}", arguments.join(" "));
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Failure::Failed(format!("the program `{program}` is missing: apt-get install iproute2"))
        }
        _ => Failure::failed(what(), error),
    })?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // A program that does not read its input reports the reason itself.
        _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| Failure::failed(what(), error))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(Failure::failed(what(), String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// Runs `work` in a namespace, on a thread of its own. Descriptors and processes that it creates belong to the namespace.
///
/// # Errors
/// If there is no such namespace, or `work` fails.
pub fn within<T: Send>(namespace: &Namespace, work: impl FnOnce() -> Result<T, Failure> + Send) -> Result<T, Failure> {
    let path = path(namespace);
    let file = fs::File::open(&path).map_err(|error| Failure::failed(path.display(), error))?;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|error| Failure::failed(path.display(), error))?;
            work()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Creates the namespace of a host and its devices, without addresses.
///
/// # Errors
/// If the system refuses.
pub(super) fn make(host: &HostPlan, settings: &Settings) -> Result<Vec<SyncDevice>, Failure> {
    run("ip", &["netns", "add", host.namespace.as_str()], None)?;
    within(&host.namespace, || {
        for (name, value) in Plan::sysctls(settings) {
            let path = Path::new("/proc/sys/net").join(name);
            // A kernel without IPv6 lacks the IPv6 settings.
            if path.exists() || name == "ipv4/tcp_congestion_control" {
                fs::write(&path, &value).map_err(|error| unset(&path, &value, &error))?;
            }
        }
        let builder = |device: &str| {
            let builder = DeviceBuilder::new().name(device).enable(false);
            builder.with(|linux| _ = linux.offload(settings.offload))
        };
        let open = |device: &str| {
            let device = builder(device).build_sync()?;
            device.set_nonblocking(true).map(|()| device)
        };
        let open = |device: &str| open(device).map_err(|error| Failure::failed(format!("TUN device {device}"), error));
        let devices = host.interfaces.iter().map(|interface| open(&interface.device)).collect::<Result<_, _>>()?;
        run("ip", &["-4", "-batch", "-"], Some(&host.ipv4_commands))?;
        if Path::new("/proc/sys/net/ipv6").exists() {
            run("ip", &["-6", "-batch", "-"], Some(&host.ipv6_commands))?;
        }
        Ok(devices)
    })
}

fn unset(path: &Path, value: &str, error: &io::Error) -> Failure {
    let remedy = if path.ends_with("tcp_congestion_control") {
        format!("; the kernel has: {}", read("/proc/sys/net/ipv4/tcp_available_congestion_control").trim())
    } else {
        String::new()
    };
    Failure::Failed(format!("{}: cannot be set to {value}: {error}{remedy}", path.display()))
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

pub(super) fn all_of(emulator: &Name) -> Vec<Namespace> {
    let entries = fs::read_dir(NAMESPACES).into_iter().flatten().flatten();
    let all = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<Namespace>().ok());
    all.filter(|namespace| namespace.is_of(emulator)).collect()
}

/// Processes in a namespace, except this one.
pub(super) fn processes(namespace: &Namespace) -> Vec<i32> {
    let own = std::process::id() as i32;
    let listed = run("ip", &["netns", "pids", namespace.as_str()], None).unwrap_or_default();
    listed.lines().filter_map(|line| line.trim().parse().ok()).filter(|&id| id != own).collect()
}

/// Removes a namespace without processes. Returns false if it does not exist.
///
/// # Errors
/// If the system refuses.
pub(super) fn remove(namespace: &Namespace) -> Result<bool, Failure> {
    let is_there = path(namespace).exists();
    if is_there {
        // Closing TCP sockets keep the namespace and its devices for minutes, so they are ended. If the kernel cannot do it, they
        // expire.
        _ = run("ss", &["-N", namespace.as_str(), "-K"], None);
        run("ip", &["netns", "del", namespace.as_str()], None)?;
    }
    Ok(is_there)
}

/// Replaces this process by a program in a namespace, which sees the emulator's host names in `/etc/hosts`. Returns only on failure.
pub fn exec(emulator: &Name, namespace: &Namespace, command: &[String]) -> Failure {
    // `ip` gives the program a mount namespace of its own, and the devices of its network in `/sys`.
    let mut ip = Command::new("ip");
    ip.args(["netns", "exec", namespace.as_str(), "sh", "-c", SHOW_HOSTS, "anabranch link exec"]);
    ip.arg(super::state::hosts(emulator));
    Failure::failed("ip netns exec", ip.args(command).exec())
}

/// Shows the file that is the first argument as `/etc/hosts` to the program that is the second. A shell's messages begin with its name.
const SHOW_HOSTS: &str = r#"mount --bind "$1" /etc/hosts; shift; exec "$@""#;

/// Counters of a host's device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounts {
    /// Packets that the kernel dropped because the emulator did not read them in time.
    pub unread_packets: u64,
}

/// Reads the counters of a device.
///
/// # Errors
/// If the device is gone.
pub fn device_counts(namespace: &Namespace, device: &str) -> Result<DeviceCounts, Failure> {
    let told = run("ip", &["-n", namespace.as_str(), "-s", "-j", "link", "show", "dev", device], None)?;
    let told: serde_json::Value =
        serde_json::from_str(&told).map_err(|error| Failure::failed("ip -s -j link", error))?;
    let dropped = told[0]["stats64"]["tx"]["dropped"].as_u64();
    Ok(DeviceCounts { unread_packets: dropped.unwrap_or(0) })
}

pub(super) fn path(namespace: &Namespace) -> PathBuf {
    Path::new(NAMESPACES).join(namespace.as_str())
}
