//! Links of the simulator in real time, between network namespaces of one machine.
//!
//! Programs in the namespaces use the kernel's sockets over TUN devices. This crate reads their packets from the devices and
//! passes them through the simulator's [`World`](anabranch_sim::World), which follows the real clock. It writes each packet to
//! the device at the far end when it is due there. Only hosts have namespaces; routers exist only in the simulator.
//!
//! From the top:
//!
//! * `linux` is the part that uses the system: it creates and removes namespaces (`up`, `down`), moves packets (`drive`), answers
//!   queries (`control`), and measures its own accuracy (`check`).
//! * [`Plan`] lists what must be created for a [`Topology`](anabranch_sim::Topology), as text: names, addresses, devices, routes.
//! * [`Emulation`] is the world with the bytes of packets. Time is an argument.
//! * [`Name`] and [`Namespace`] are names of files that cannot hold a path.
//! * `interfaces` determines the interfaces of hosts. `address` assigns addresses, `packet` reads
//!   the destination of a packet, [`Histogram`] counts lateness, [`Status`] is the answer to a query.

#![forbid(unsafe_code)]

mod address;
mod emulation;
mod histogram;
mod interfaces;
#[cfg(target_os = "linux")]
pub mod linux;
mod name;
mod packet;
mod plan;
mod status;
mod too_big;

pub use address::Interface;
pub use emulation::{Emulation, Stray};
pub use histogram::Histogram;
pub use interfaces::{HOSTS_MAX, Refusal};
pub use name::{InvalidName, Name, Namespace};
pub use plan::{HostPlan, InterfacePlan, Plan, Settings};
pub use status::{Lateness, LinkStatus, Status};
