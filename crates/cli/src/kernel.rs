//! `anabranch kernel`: congestion laws in the kernel.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub(crate) use self::linux::{finding, kernel, watch};

/// Reports that this system is not supported.
#[cfg(not(target_os = "linux"))]
pub(crate) fn kernel(_command: &crate::args::kernel::Kernel) -> crate::failure::Outcome {
    Err(crate::failure::Failure::usage("laws are loaded into the kernel of Linux only"))
}

/// Reports that this system is not supported.
#[cfg(not(target_os = "linux"))]
pub(crate) fn watch(_once: bool) -> crate::failure::Outcome {
    Err(crate::failure::Failure::usage("laws are loaded into the kernel of Linux only"))
}

/// What the kernel lacks, for `anabranch doctor`.
#[cfg(not(target_os = "linux"))]
pub(crate) fn finding() -> Result<Option<String>, String> {
    Err("it is not Linux".to_owned())
}
