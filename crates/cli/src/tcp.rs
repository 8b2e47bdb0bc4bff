//! `anabranch tcp`: our own TCP on a TUN device.

#[cfg(target_os = "linux")]
mod idle;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub(crate) use self::linux::tcp;

/// Reports that this system is not supported.
#[cfg(not(target_os = "linux"))]
pub(crate) fn tcp(_command: &crate::args::tcp::Tcp) -> crate::failure::Outcome {
    Err(crate::failure::Failure::usage("our TCP needs a TUN device of Linux"))
}
