//! The TCP agents of ns-2.35 that the papers compared with, number for number.

mod packet;

pub use packet::{Kind, Packet, SackBlocks};
