//! Links of the simulator in real time, between network namespaces of one machine.
//!
//! Programs in the namespaces use the kernel's own sockets and see TUN devices. What they send is read from there, waits, is lost and
//! travels in the simulator's [`World`](anabranch_sim::World), in whose place of the time this crate puts a clock, and is written to the device
//! at the far end when it is due there. Only hosts have namespaces: routers are in the simulator.
//!
//! From the top:
//!
//! * `linux` does what needs the system: it makes namespaces (`up`, `down`), moves packets (`drive`), answers questions about that (`control`), and
//!   measures how well it does (`check`).
//! * [`Plan`] says what is to be done on the system for a [`Network`]: names, addresses, devices, routes, as text.
//! * [`Emulation`] is the world with bytes beside its packets. Time is an argument.
//! * [`Network`] describes what is emulated, and finds the interfaces of hosts; `address` says which of them has which address, and `packet` reads
//!   where a packet goes; [`Histogram`] counts how late things are; [`Status`] is what can be asked.

#![forbid(unsafe_code)]

mod address;
mod emulation;
mod histogram;
#[cfg(target_os = "linux")]
pub mod linux;
mod network;
mod packet;
mod plan;
mod status;

pub use address::Interface;
pub use emulation::{Emulation, Stray};
pub use histogram::Histogram;
pub use network::{HOSTS_MAX, Network, Refusal, RouteChange, Wire};
pub use plan::{HostPlan, InterfacePlan, Plan, Settings};
pub use status::{Lateness, LinkStatus, Status};
