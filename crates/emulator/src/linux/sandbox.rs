//! Links without root: a program in namespaces of its own, in which its user may make what otherwise only root makes.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use super::Failure;

/// Replaces this process by a program that needs no root to emulate links. Its user is root among new user, network, mount and process
/// namespaces, with an empty `/run`. Nothing of the machine belongs to that root, and whatever was created is gone when the program ends.
/// Returns only on failure.
pub fn sandbox(command: &[String]) -> Failure {
    let tried = Command::new("unshare").args(ROOT).arg("true").stderr(Stdio::piped()).output();
    match tried {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let told = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Failure::Failed(format!("{told}: {REMEDY}"));
        }
        Err(error) => return Failure::failed("the program `unshare` of util-linux", error),
    }
    let error = Command::new("unshare").args(ROOT).args(ALL).args(["sh", "-c", PREPARE, "sh"]).args(command).exec();
    Failure::failed("unshare", error)
}

/// A user namespace in which this user is root.
const ROOT: [&str; 2] = ["--user", "--map-root-user"];

/// Processes that are left end with the program, as the first process of their namespace.
const ALL: [&str; 6] = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"];

const PREPARE: &str = r#"mount -t tmpfs -o mode=755 tmpfs /run && ip link set lo up && exec "$@""#;

const REMEDY: &str = "this system does not let users make namespaces; its administrator allows it by `sysctl kernel.unprivileged_userns_clone=1` \
    (Debian) or `sysctl kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu), or type sudo in front of anabranch link up";
