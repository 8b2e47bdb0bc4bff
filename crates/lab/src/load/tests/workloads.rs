//! Workloads: tables within tables, keys that exclude each other, and limits.

use anabranch_sim::{Dialogue, Messages, Sizes, Spacing, Workload};
use anabranch_units::SimSpan;

use super::{CHAIN, assert_text_refused, parse};

/// The workload of a flow of `anabranch` that has this one in its file.
#[track_caller]
fn workload(text: &str) -> Workload {
    let chain = CHAIN.replace("ns2/sack", "anabranch").replace("window = 50\n", "");
    parse(&format!("{chain}workload = {text}\n")).unwrap().flows[0].transport.workload()
}

/// Expects this message about the workload, which begins at the twelfth column of the eighteenth line.
#[track_caller]
fn assert_refused(text: &str, message: &str) {
    assert_text_refused(&format!("{CHAIN}workload = {text}\n"), &format!("chain.toml:18:{message}"));
}

#[test]
fn workload_without_its_optional_keys_has_defaults() {
    let sizes = Sizes::Pareto { shape: 1.2, least: 1000, most: 1_000_000 };
    let dialogue = Dialogue { sizes, count: 5, request: 200, think: SimSpan::ZERO };
    let sizes = "{ kind = \"pareto\", shape = 1.2, least = \"1kB\", most = \"1MB\" }";
    assert_eq!(
        workload(&format!("{{ kind = \"requests\", count = 5, sizes = {sizes} }}")),
        Workload::Dialogue(dialogue)
    );
    let spacing = Spacing { every: None, every_mean: Some(SimSpan::from_millis(20)) };
    let messages = Messages { bytes: 100, count: None, streams: 1, spacing };
    let text = "{ kind = \"messages\", bytes = \"100B\", every_mean = \"20ms\" }";
    assert_eq!(workload(text), Workload::Messages(messages));
}

#[test]
fn impossible_workload_is_refused_at_its_key() {
    assert_refused("{ kind = \"fixed\", bytes = \"0B\" }", "38: there is nothing to send in 0B; use 1B or more");
    assert_refused("{ kind = \"fixed\" }", "12: the key `bytes` is missing; add it");
    let both = "{ kind = \"messages\", bytes = \"1B\", every = \"1s\", every_mean = \"1s\" }";
    assert_refused(both, "74: `every` and `every_mean` say two things; keep one");
    let endless = "nothing says when these messages end or come; add count = 100, or every = \"20ms\"";
    assert_refused("{ kind = \"messages\", bytes = \"1B\" }", &format!("12: {endless}"));
    assert_refused("{ kind = \"messages\", bytes = \"1B\", every = \"0s\" }", &format!("12: {endless}"));
    assert_refused(
        "{ kind = \"drawn\", sizes = { kind = \"one\" } }",
        "47: unknown kind `one`; there are constant, pareto",
    );
    assert_refused("{ kind = \"drawn\", sizes = { kind = \"constant\" } }", "38: the key `bytes` is missing; add it");
}

#[test]
fn limit_of_drawn_messages_is_itself_allowed() {
    let drawn = |count: u32| {
        format!("{{ kind = \"drawn\", sizes = {{ kind = \"constant\", bytes = \"1B\" }}, count = {count} }}")
    };
    workload(&drawn(100_000));
    assert_refused(&drawn(100_001), "83: a flow with more than 100000 drawn messages; use several flows");
}

#[test]
fn longest_request_is_itself_allowed() {
    let request = |request: &str| {
        let sizes = "{ kind = \"constant\", bytes = \"1B\" }";
        format!("{{ kind = \"requests\", count = 1, request = \"{request}\", sizes = {sizes} }}")
    };
    workload(&request("10kB"));
    let says = "a request is from 1 to 10000 bytes long; use request = \"200B\"";
    assert_refused(&request("10001B"), &format!("54: {says}"));
    assert_refused(&request("0B"), &format!("54: {says}"));
}
