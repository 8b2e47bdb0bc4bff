//! One file a law.
//!
//! The list below is the registry. A law is one file here with a `ROW` in it, and one word in the list
//! (`docs/adding-a-congestion-controller.md`).

use crate::registry::{Row, laws};

laws! {
    anabranch,
    composite,
    cubic,
    emfast,
    fast,
    linux,
    reno,
    rrfast,
    vegas,
    westwood,
}
