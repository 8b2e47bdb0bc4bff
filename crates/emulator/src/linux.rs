//! The Linux part: namespaces, TUN devices, a clock, and the thread that moves packets.

mod check;
mod control;
mod down;
mod drive;
mod folder;
mod namespace;
mod offload;
mod sandbox;
mod state;
mod up;

use std::fmt;
use std::io;

pub use check::{Check, CheckRow, check};
pub use control::{restart, status};
pub use down::{Removed, down};
pub use namespace::{DeviceCounts, device_counts, exec, within};
pub use sandbox::sandbox;
pub use state::{State, names};
pub use up::{Claim, detached, serve};

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The request is invalid.
    Usage(String),
    /// The system refused.
    Failed(String),
}

impl Failure {
    /// The error that the system refused `what`.
    fn failed(what: impl fmt::Display, error: impl fmt::Display) -> Self {
        Self::Failed(format!("{what}: {error}"))
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(message) | Self::Failed(message)) = self;
        f.write_str(message)
    }
}

/// Whether this machine can emulate links.
///
/// # Errors
/// What is missing, and how to get it.
pub fn can_emulate() -> Result<(), Failure> {
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::Usage(
            "links are emulated between network namespaces, which only root makes: type sudo in front, or work in \
             the shell of `anabranch link sandbox`, which needs no root"
                .to_owned(),
        ));
    }
    match std::fs::File::options().read(true).write(true).open("/dev/net/tun") {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Failure::Failed(
                "/dev/net/tun is not there: load the kernel's module with modprobe tun".to_owned(),
            ));
        }
        Err(error) => {
            return Err(Failure::Failed(format!(
                "/dev/net/tun cannot be opened: {error}; a container needs --device /dev/net/tun and --cap-add NET_ADMIN,SYS_ADMIN"
            )));
        }
    }
    namespace::run("ip", &["-Version"], None).map(|_| ())
}
