//! One file a law.
//!
//! The list below is the registry. A law is one file here with a `ROW` in it, and one word in the list
//! (`docs/adding-a-congestion-controller.md`).

use crate::row::Row;

/// Declares the modules of the laws and gathers their rows: one word a law.
macro_rules! laws {
    ($($name:ident),+ $(,)?) => {
        $(pub mod $name;)+

        pub(crate) const ROWS: &[Row] = &[$($name::ROW),+];
    };
}

laws! {
    anabranch,
    bbr,
    bbr1,
    composite,
    copa,
    cubic,
    dctcp,
    emfast,
    fast,
    ledbat,
    lia,
    linux,
    mpfast,
    olia,
    prague,
    reno,
    rrfast,
    vegas,
    westwood,
    wvegas,
    yielding,
}
