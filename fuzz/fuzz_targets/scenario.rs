//! Any text is a scenario, an experiment, or a message: never a panic.
//!
//! `cargo +nightly fuzz run scenario fuzz/corpus/scenario experiments/ctcp-2019`
#![no_main]

use anabranch_lab::document::Document;
use anabranch_lab::experiment::Experiment;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // What stands behind a zero byte is an override, and behind a second one what the file extends.
    let mut parts = text.splitn(3, '\0');
    let (text, argument, base) = (parts.next().unwrap_or_default(), parts.next(), parts.next().unwrap_or_default());
    let Ok(mut document) = Document::parse_with("fuzz.toml", text, &mut |_| Ok(base.to_owned())) else { return };
    if argument.is_some_and(|argument| !argument.is_empty() && document.set(argument).is_err()) {
        return;
    }
    let _ = Experiment::parse(document);
});
