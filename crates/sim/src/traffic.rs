//! Traffic without a transport: packets that only fill links, and a counting sink.

mod cbr;
mod on_off;
mod sink;

pub use cbr::Cbr;
pub use on_off::{OnOff, OnOffParameters};
pub use sink::Sink;
