//! Any bytes are a controller, or a message; and whatever a controller does, it ends with a message: never a panic, never a stack that is too deep.
//!
//! `cargo +nightly fuzz run module corpus/module seeds/module`
#![no_main]

use std::sync::Arc;

use anabranch_cc::{Ack, Departure, Limit, PathView, Phase, Supply};
use anabranch_plugin::{Faults, Law, Module};
use anabranch_units::{Bytes, Time};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(module) = Module::new("fuzz.wasm", bytes.to_vec()) else { return };
    let faults = Faults::default();
    let settings = Law::new(Arc::new(module)).settings("", &faults);
    let mut controller = settings.row().build(&settings);
    let departure =
        Departure { time: Time::ZERO, window: 11.0, flight: 9.0, progress: Default::default(), supply: Supply::Short };
    for event in 1..10 {
        let now = Time::from_ticks(event * 10_000_000);
        let view = PathView {
            now,
            flight: 3.5,
            mss: Bytes::new(1448),
            rtt_smoothed: None,
            rtt_min: None,
            progress: Default::default(),
        };
        let ack = Ack {
            newly_acked: 1.0,
            newly_lost: 0.0,
            newly_marked: 0.0,
            rtt: None,
            size: Bytes::new(1000),
            arrival: now,
            departure,
            limit: Limit::Application,
            phase: Phase::Recovery,
        };
        controller.on_ack(&view, &ack);
        assert!(controller.window().is_finite());
    }
});
