//! Flows that arrive and leave, and the completion times of their messages.

use super::*;
use crate::report::{ClassReport, Report};

/// 10 Mbit/s and 10 ms each way.
const LINK: &str = "[[link]]\nid = \"a\"\nfrom = \"n0\"\nto = \"n1\"\nrate = \"10Mbit/s\"\ndelay = \"10ms\"\n";

fn report(duration: &str, flow: &str) -> Report {
    let head = "from = \"n0\"\nto = \"n1\"\ntransport = \"anabranch\"\npacket = \"1500B\"\n";
    let text = format!("duration = \"{duration}\"\n{LINK}[[flow]]\n{head}{flow}");
    testing::run(&text, &[])
}

#[track_caller]
fn class<'a>(report: &'a Report, id: &str) -> &'a ClassReport {
    report.classes.iter().find(|class| class.id == id).unwrap()
}

/// A message of 1 kB on a new connection: a round trip of 20 ms for the handshake, then 10 ms, 0.8 ms of transmission, and some headers. On
/// the empty path it takes 10.8 ms.
#[test]
fn a_flow_takes_its_handshake_and_its_bytes() {
    let flow = "id = \"f#\"\ncount = 3\nclass = { name = \"web\", every = \"1s\" }\nworkload = { kind = \"fixed\", bytes = \"1kB\" }";
    let report = report("10s", flow);
    let web = class(&report, "web");
    assert_eq!((web.messages, web.finished, class(&report, "web.medium").messages), (3, 3, 0));
    let took = web.completion_mean_s.unwrap();
    assert!((0.0308..0.0312).contains(&took), "{took}");
    assert_eq!(web.completion_p99_s.map(|last| last - took < 1e-6), Some(true));
    let slowdown = web.slowdown_p50.unwrap();
    assert!((slowdown - took / 0.0108).abs() < 1e-3, "{slowdown}");
    assert_eq!(report.gauge("class.web.small.finished"), Ok(3.0));
    assert!(report.gauge("class.web.large.slowdown_mean").unwrap_err().contains("no such message"));
    assert!(report.gauge("class.wed.messages").unwrap_err().contains("`web`"));
}

/// An answer of 1 kB takes 10 ms for the request, 10 ms and 0.8 ms for itself, and 0.2 ms for the request's bytes and headers. With a mean
/// think time of 100 ms there are about eight a second.
#[test]
fn requests_are_answered_one_after_the_other() {
    let sizes = "sizes = { kind = \"constant\", bytes = \"1kB\" }";
    let flow = |count: u32, think: &str| {
        let workload = format!("workload = {{ kind = \"requests\", count = {count}, {sizes}{think} }}");
        format!("id = \"f\"\nclass = {{ name = \"rpc\" }}\n{workload}")
    };
    let at_once = report("10s", &flow(100, ""));
    let rpc = class(&at_once, "rpc");
    assert_eq!((rpc.messages, rpc.finished), (100, 100));
    assert!((0.0208..0.0213).contains(&rpc.completion_mean_s.unwrap()), "{rpc:?}");
    assert!((1.0..1.03).contains(&rpc.slowdown_p99.unwrap()), "{rpc:?}");
    let thinking = report("100s", &flow(10_000, ", think_mean = \"100ms\""));
    let rpc = class(&thinking, "rpc");
    // 100 s / 121 ms, and five standard deviations of a sum of that many.
    assert!(rpc.messages.abs_diff(826) < 125, "{rpc:?}");
    assert!(rpc.messages - rpc.finished <= 1, "{rpc:?}");
}

/// One arrival every 20 ms on average: 500 in 10 s, within five times the root of that. Another seed gives other arrivals, the same seed the same.
#[test]
fn arrivals_are_those_of_poisson() {
    let web = |seed: u64| {
        let sizes = "sizes = { kind = \"pareto\", shape = 1.2, least = \"100B\", most = \"1kB\" }";
        let workload = format!("workload = {{ kind = \"drawn\", {sizes} }}");
        let flow = format!("id = \"f#\"\ncount = 900\nclass = {{ name = \"web\", every_mean = \"20ms\" }}\n{workload}");
        let text = format!(
            "seed = {seed}\nduration = \"10s\"\n{LINK}[[flow]]\nfrom = \"n0\"\nto = \"n1\"\ntransport = \"anabranch\"\n{flow}"
        );
        let scenario = parsed(&text, &[]);
        assert!(scenario.is_random());
        run::run(&scenario).unwrap()
    };
    let (one, two, again) = (web(1), web(2), web(1));
    assert!(class(&one, "web").messages.abs_diff(500) < 112, "{:?}", class(&one, "web"));
    assert_eq!((&one.hash, &one.classes), (&again.hash, &again.classes));
    assert_ne!(one.hash, two.hash);
}

#[test]
fn classes_that_cannot_be_are_refused() {
    let refused = |flow: &str| {
        let text = format!("duration = \"1s\"\n{LINK}[[flow]]\nid = \"f\"\nfrom = \"n0\"\nto = \"n1\"\n{flow}");
        parse(&text, &[]).unwrap_err().to_string()
    };
    let fixed = "workload = { kind = \"fixed\", bytes = \"1kB\" }";
    for (flow, message) in [
        (format!("transport = \"ns2/sack\"\nclass = {{ name = \"a\" }}\n{fixed}"), "only flows of `anabranch`"),
        ("transport = \"anabranch\"\nclass = { name = \"a\" }".to_owned(), "never complete"),
        (format!("transport = \"anabranch\"\nstreams = 2\nclass = {{ name = \"a\" }}\n{fixed}"), "streams = 1"),
        (format!("transport = \"anabranch\"\nclass = {{ name = \"a\", every = \"0s\" }}\n{fixed}"), "after no time"),
        (
            "transport = \"ns2/sack\"\nworkload = { kind = \"requests\", count = 1, sizes = { kind = \"constant\", bytes = \"1B\" } }"
                .to_owned(),
            "answer requests",
        ),
        (
            "transport = \"anabranch\"\nworkload = { kind = \"drawn\", sizes = { kind = \"pareto\", shape = 1, least = \"2B\", most = \"1B\" } }"
                .to_owned(),
            "no such sizes",
        ),
    ] {
        let refused = refused(&flow);
        assert!(refused.starts_with("chain.toml:") && refused.contains(message), "{flow}: {refused}");
    }
}
