//! The playground: the simulator in a browser.
//!
//! * [`answer()`] is what the module does: a request is a list of texts, an answer JSON and numbers. It is pure, and the same on every machine.
//! * `door` has the module's exports and `machine` its imports, for `wasm32-unknown-unknown` alone. They are plain functions: a text goes in, texts come out, and so neither
//!   wasm-bindgen nor its tool, whose version must be the library's, is needed to build it.
//! * `page` is the page. The compiled module is in `object/`, made by `cargo xtask playground`, so the command builds without that target.

mod about;
pub mod answer;
#[cfg(target_arch = "wasm32")]
mod door;
#[cfg(any(test, target_arch = "wasm32"))]
mod json;
mod limits;
#[cfg(target_arch = "wasm32")]
mod machine;
#[cfg(not(target_arch = "wasm32"))]
pub mod page;
mod request;

pub use answer::answer;
