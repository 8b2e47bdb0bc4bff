//! What an event and a hop cost.
fn main() {}
