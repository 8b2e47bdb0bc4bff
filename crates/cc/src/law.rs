//! One file a law.
//!
//! The list below is the registry. A law is one file here with a `ROW` in it, declared and listed below
//! (`docs/adding-a-congestion-controller.md`).

pub mod anabranch;
pub mod bbr;
pub mod bbr1;
pub mod composite;
pub mod copa;
mod coupled;
pub mod cubic;
pub mod dctcp;
pub mod emfast;
pub mod fast;
#[cfg(test)]
pub mod gentle;
pub mod ledbat;
pub mod lia;
pub mod linux;
pub mod mpfast;
pub mod olia;
pub mod prague;
pub mod reno;
pub mod rrfast;
pub mod vegas;
pub mod westwood;
pub mod wvegas;

use crate::row::Row;

/// Every law, in alphabetical order.
pub(crate) const ROWS: &[Row] = &[
    anabranch::ROW,
    bbr::ROW,
    bbr1::ROW,
    composite::ROW,
    copa::ROW,
    cubic::ROW,
    dctcp::ROW,
    emfast::ROW,
    fast::ROW,
    #[cfg(test)]
    gentle::ROW,
    ledbat::ROW,
    lia::ROW,
    linux::ROW,
    mpfast::ROW,
    olia::ROW,
    prague::ROW,
    reno::ROW,
    rrfast::ROW,
    vegas::ROW,
    westwood::ROW,
    wvegas::ROW,
];

#[cfg(test)]
mod tests;
