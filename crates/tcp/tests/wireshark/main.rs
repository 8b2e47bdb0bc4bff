//! How `docs/wireshark/anabranch.lua` shows packets in `tshark`: the vectors of `docs/wire.md` as that page describes them, what two hosts of ours send, and
//! what nobody should send. Without `tshark` the tests say so and pass.
#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage shall stop there")]
#![expect(clippy::print_stdout, reason = "whoever runs the tests shall know what was not tested")]

mod hostile;
mod hosts;
mod tool;
mod vectors;
