//! Any text is a scenario, an experiment, or a message: never a panic.
//!
//! `cargo +nightly fuzz run scenario fuzz/corpus/scenario experiments/ctcp-2019`
#![no_main]

use anabranch_lab::document::Document;
use anabranch_lab::experiment::Experiment;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // What stands behind a zero byte is an override.
    let (text, argument) = text.split_once('\0').map_or((text, None), |(text, argument)| (text, Some(argument)));
    let Ok(mut document) = Document::parse("fuzz.toml", text) else { return };
    if argument.is_some_and(|argument| document.set(argument).is_err()) {
        return;
    }
    let _ = Experiment::parse(document);
});
