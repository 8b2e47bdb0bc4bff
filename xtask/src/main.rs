//! `cargo xtask`: everything that checks, measures or generates.
fn main() {}
