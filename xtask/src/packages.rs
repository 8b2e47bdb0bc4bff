//! External programs that the checks need, and how to install them.

use std::path::Path;
use std::process::Command;

use crate::run;

/// A package of Debian and of Ubuntu.
struct Package {
    name: &'static str,
    /// The package is installed if one of these programs can be started.
    programs: &'static [&'static str],
    purpose: &'static str,
}

const PACKAGES: &[Package] = &[
    Package { name: "bindfs", programs: &["bindfs"], purpose: "files are received where modes cannot be changed" },
    Package {
        name: "chromium",
        programs: &["chromium", "chromium-browser", "google-chrome"],
        purpose: "the report is tested in a browser",
    },
    Package { name: "clang", programs: &["clang"], purpose: "C is compiled: `anabranch cc new`, laws of the kernel" },
    Package { name: "curl", programs: &["curl"], purpose: "a client of the kernel gets pages through our TCP" },
    Package {
        name: "exfat-fuse",
        programs: &["mount.exfat-fuse"],
        purpose: "files are received on a disk that ignores case",
    },
    Package { name: "exfatprogs", programs: &["mkfs.exfat"], purpose: "such a disk is made" },
    Package { name: "iperf3", programs: &["iperf3"], purpose: "docs/tcp.md measures a link that loses packets" },
    Package { name: "iproute2", programs: &["ip"], purpose: "links are emulated between network namespaces" },
    Package { name: "lld", programs: &["wasm-ld"], purpose: "the project in C is linked" },
    Package { name: "make", programs: &["make"], purpose: "the project in C says how it is built" },
    Package { name: "mptcpize", programs: &["mptcpize"], purpose: "programs get MPTCP sockets" },
    Package { name: "nftables", programs: &["nft"], purpose: "packets to our TCP are lost, and options" },
    Package { name: "nginx", programs: &["nginx"], purpose: "a server of the kernel serves our TCP" },
    Package { name: "nodejs", programs: &["node"], purpose: "the playground's module runs outside of a browser" },
    Package { name: "ns2", programs: &["ns"], purpose: "packets are compared with ns-2" },
    Package { name: "python3", programs: &["python3"], purpose: "docs/wire_decoder.py reads what engines say" },
    Package { name: "tshark", programs: &["tshark"], purpose: "docs/wireshark/anabranch.lua shows what engines say" },
    Package { name: "valgrind", programs: &["valgrind"], purpose: "callgrind counts instructions" },
];

/// Installs missing packages if this is root and there is apt; else the error has the command to type.
pub(crate) fn install() -> Result<(), String> {
    let missing = missing(run::is_installed);
    if missing.is_empty() {
        return Ok(());
    }
    let has_apt = run::is_installed("apt-get");
    if !(has_apt && run::is_root()) {
        return Err(remedy(&missing, has_apt));
    }
    for Package { name, purpose, .. } in &missing {
        run::say(&format!("installing {name}: {purpose}"));
    }
    let quiet = [("DEBIAN_FRONTEND", "noninteractive")];
    // A mirror that does not answer at once may do so the next time, and old lists may still be sufficient.
    let update = run::run("apt-get", &["update", "-qq", "-o", RETRIES], &quiet);
    let names = missing.iter().map(|package| package.name);
    let arguments: Vec<&str> = INSTALL.into_iter().chain(names).collect();
    let installed = run::run("apt-get", &arguments, &quiet);
    match self::missing(run::is_installed) {
        still if still.is_empty() => Ok(()),
        still => Err(failure(&still, update.err().or(installed.err()).as_deref())),
    }
}

/// The target of WASM modules: the playground, and the project in Rust of `anabranch cc new`.
pub(crate) const WASM: &str = "wasm32-unknown-unknown";

/// Installs the standard library of a target if it is missing.
pub(crate) fn install_target(target: &str, purpose: &str) -> Result<(), String> {
    let is_there = || {
        let mut rustc = Command::new("rustc");
        let asked = rustc.args(["--print", "target-libdir", "--target", target]).current_dir(run::root()).output();
        let folder = asked.map(|told| String::from_utf8_lossy(&told.stdout).trim().to_owned());
        folder.is_ok_and(|folder| !folder.is_empty() && Path::new(&folder).is_dir())
    };
    if is_there() {
        return Ok(());
    }
    let added = run::run("rustup", &["target", "add", target], &[]);
    match is_there() {
        true => Ok(()),
        false => Err(format!(
            "the Rust library of {target} is missing: {purpose}{}; type\n  rustup target add {target}",
            added.err().map_or(String::new(), |problem| format!(" ({problem})"))
        )),
    }
}

const RETRIES: &str = "Acquire::Retries=3";
const INSTALL: [&str; 6] = ["install", "-y", "-qq", "--no-install-recommends", "-o", RETRIES];

fn missing(is_installed: impl Fn(&str) -> bool) -> Vec<&'static Package> {
    PACKAGES.iter().filter(|package| !package.programs.iter().any(|program| is_installed(program))).collect()
}

fn names(packages: &[&Package]) -> String {
    packages.iter().map(|package| package.name).collect::<Vec<_>>().join(" ")
}

/// The command to type if this program may not install anything.
fn remedy(missing: &[&Package], has_apt: bool) -> String {
    let what: Vec<String> = missing.iter().map(|Package { name, purpose, .. }| format!("{name} ({purpose})")).collect();
    let what = what.join(", ");
    match has_apt {
        true => format!("missing: {what}; type\n  sudo apt-get install --no-install-recommends {}", names(missing)),
        false => format!(
            "missing: {what}; install them as your system does. On Debian and Ubuntu that is\n  sudo apt-get install \
             --no-install-recommends {}",
            names(missing)
        ),
    }
}

/// The message after a failure of apt. `problem` is the first command that failed.
fn failure(missing: &[&Package], problem: Option<&str>) -> String {
    format!(
        "apt-get did not install {}{}; nothing is wrong with the project: a package mirror may be out of reach. Try again, or \
         install by hand",
        names(missing),
        problem.map_or(String::new(), |problem| format!(" ({problem})"))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_of_a_packages_programs_will_do() {
        assert!(missing(|_| true).is_empty());
        let missing = missing(|program| {
            let there = [
                "bindfs",
                "clang",
                "curl",
                "google-chrome",
                "ip",
                "iperf3",
                "make",
                "mkfs.exfat",
                "mount.exfat-fuse",
                "mptcpize",
                "nft",
                "nginx",
                "node",
                "ns",
                "python3",
                "tshark",
                "wasm-ld",
            ];
            there.contains(&program)
        });
        assert_eq!(names(&missing), "valgrind");
    }

    #[test]
    fn a_missing_package_is_one_line_to_type() {
        let there = [
            "bindfs",
            "clang",
            "curl",
            "ip",
            "iperf3",
            "make",
            "mkfs.exfat",
            "mount.exfat-fuse",
            "mptcpize",
            "nft",
            "nginx",
            "node",
            "python3",
            "tshark",
            "valgrind",
            "wasm-ld",
        ];
        let missing = missing(|program| there.contains(&program));
        let told = remedy(&missing, true);
        assert_eq!(told.lines().last(), Some("  sudo apt-get install --no-install-recommends chromium ns2"));
        assert!(told.contains("ns2 (packets are compared with ns-2)"), "{told}");
        assert_eq!(remedy(&missing, false).lines().last(), told.lines().last());
    }

    #[test]
    fn a_mirror_that_fails_is_named_and_not_the_project() {
        let told = failure(&missing(|_| false), Some("`apt-get update` failed: exit status: 100"));
        assert!(
            told.contains(
                "bindfs chromium clang curl exfat-fuse exfatprogs iperf3 iproute2 lld make mptcpize nftables nginx nodejs ns2 python3 tshark \
                 valgrind (`apt-get update` failed: exit status: 100)"
            ),
            "{told}"
        );
        assert!(told.contains("mirror"), "{told}");
    }
}
