//! `anabranch tunnel vpn`, and the virtual network of `anabranch tunnel serve`: IP packets of a TUN device (Linux).

#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
mod device;
#[cfg(target_os = "linux")]
mod ip;
#[cfg(target_os = "linux")]
mod routes;
#[cfg(target_os = "linux")]
mod server;

#[cfg(target_os = "linux")]
pub(super) use self::client::vpn;
#[cfg(target_os = "linux")]
pub(super) use self::server::Server;

/// Reports that this system is not supported.
#[cfg(not(target_os = "linux"))]
pub(super) fn vpn(_args: &crate::args::online::TunnelVpn) -> crate::failure::Outcome {
    Err(crate::failure::Failure::usage("a virtual network needs a TUN device of Linux"))
}

/// The virtual network of a server, which this system does not have.
#[cfg(not(target_os = "linux"))]
pub(super) enum Server {}

#[cfg(not(target_os = "linux"))]
impl Server {
    pub(super) fn open(args: &crate::args::online::TunnelServe) -> Result<Option<Self>, crate::failure::Failure> {
        if args.vpn.is_empty() {
            return Ok(None);
        }
        Err(crate::failure::Failure::usage("--vpn needs a TUN device of Linux"))
    }

    pub(super) fn begin(
        self,
        _json: bool,
    ) -> Result<(anabranch_tunnel::vpn::Hub, std::future::Pending<crate::failure::Outcome>), crate::failure::Failure>
    {
        match self {}
    }
}
