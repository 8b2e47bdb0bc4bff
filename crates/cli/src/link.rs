//! `anabranch link`.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub(crate) use self::linux::link;

/// Reports that this system is not supported.
#[cfg(not(target_os = "linux"))]
pub(crate) fn link(_command: &crate::args::link::Link) -> crate::failure::Outcome {
    Err(crate::failure::Failure::usage("links are emulated on Linux only"))
}
