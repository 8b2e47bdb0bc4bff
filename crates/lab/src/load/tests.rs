use std::num::NonZeroU8;

use anabranch_ns2::config::{Agent, NewRenoOptions};
use anabranch_proto::{Form, PathMtu};
use anabranch_sim::{DelaySpec, DriverSpec, ErrorSpec, HoldSpec, QueueSpec, Reads};
use anabranch_units::settings::Part as _;
use anabranch_units::{Rate, SimSpan, SimTime};

use crate::diagnostic::Diagnostic;
use crate::document::Document;
use crate::scenario::Scenario;
use crate::scenario::transport::Transport;
use crate::testing;

mod changing;
mod laws;
mod links;
mod workloads;

/// The smallest chain. Each test below changes it in one place.
const CHAIN: &str = r#"# Does a chain work?
duration = "100s"

[[link]]
id = "a"
from = "n0"
to = "n1"
rate = "1.5Mbit/s"
delay = "100ms"
queue = { kind = "drop_tail", packets = 10 }

[[flow]]
id = "f0"
from = "n0"
to = "n1"
transport = "ns2/sack"
window = 50
"#;

fn parse(text: &str) -> Result<Scenario, Diagnostic> {
    testing::parse(text, &[])
}

/// Replaces `from` by `to` in the chain and expects exactly this message.
#[track_caller]
fn assert_refused(from: &str, to: &str, message: &str) {
    assert!(CHAIN.contains(from), "the chain has no {from}");
    assert_text_refused(&CHAIN.replacen(from, to, 1), message);
}

#[track_caller]
fn assert_text_refused(text: &str, message: &str) {
    match parse(text) {
        Ok(_) => panic!("expected: {message}"),
        Err(error) => assert_eq!(error.to_string(), message),
    }
}

#[track_caller]
fn assert_set_refused(argument: &str, message: &str) {
    assert_eq!(testing::parse(CHAIN, &[argument]).expect_err(message).to_string(), message);
}

#[test]
fn a_chain_is_two_directions_and_a_flow() {
    let scenario = parse(CHAIN).unwrap();
    assert_eq!(scenario.nodes, ["n0", "n1"]);
    assert_eq!(scenario.seed, 1);
    assert_eq!(scenario.duration, SimSpan::from_secs(100));
    let [there, back] = &scenario.links[..] else { panic!("two directions, not {:?}", scenario.links) };
    assert_eq!((there.id.as_str(), there.from, there.to), ("a", 0, 1));
    assert_eq!(there.spec.queue, QueueSpec::packets(10));
    assert_eq!((back.id.as_str(), back.from, back.to), ("a.reverse", 1, 0));
    assert_eq!((back.spec.rate, back.spec.delay), (there.spec.rate, there.spec.delay));
    assert_eq!(back.spec.queue, QueueSpec::packets(50), "ns-2's default on the way back");
    let Transport::Ns2 { sender, .. } = &scenario.flows[0].transport else { panic!("an agent of ns-2") };
    assert_eq!(sender.packet_size(), 1040);
    assert!(!scenario.is_random());
}

#[test]
fn the_way_back_can_be_different() {
    let reverse = r#"reverse = { rate = "1Mbit/s", queue = { kind = "drop_tail", packets = 7 }, error = { kind = "uniform", rate = 0.01 } }"#;
    let scenario = parse(&CHAIN.replacen("delay =", &format!("{reverse}\ndelay ="), 1)).unwrap();
    let back = &scenario.links[1];
    assert_eq!(back.spec.rate, Rate::from_bits_per_second(1_000_000));
    assert_eq!(back.spec.delay, SimSpan::from_millis(100));
    assert_eq!(back.spec.queue, QueueSpec::packets(7));
    assert_eq!(back.spec.errors, [ErrorSpec::PerPacket(0.01)]);
    assert_eq!(scenario.links[0].spec.errors, [], "errors act in one direction");
    assert!(scenario.is_random());
}

#[test]
fn unknown_keys_name_the_nearest_known_one() {
    assert_refused("window =", "widnow =", "chain.toml:17:1: `ns2/sack` has no key `widnow`; did you mean `window`?");
    assert_refused("[[link]]", "[[lnik]]", "chain.toml:4:3: unknown key `lnik`; did you mean `link`?");
    assert_refused("packets = 10", "packet = 10", "chain.toml:10:31: unknown key `packet`; did you mean `packets`?");
    assert_refused(
        "window = 50",
        "colour = 50",
        "chain.toml:17:1: `ns2/sack` has no key `colour`; there are cc, window, initial_window, rto_min, sink, workload, options",
    );
    assert_refused("window =", "strat =", "chain.toml:17:1: `ns2/sack` has no key `strat`; did you mean `start`?");
    assert_refused("drop_tail", "droptail", "chain.toml:10:18: unknown kind `droptail`; did you mean `drop_tail`?");
    assert_refused("ns2/sack", "ns2/sakc", "chain.toml:16:13: unknown transport `ns2/sakc`; did you mean `ns2/sack`?");
}

#[test]
fn missing_keys_are_named() {
    assert_refused(
        "rate = \"1.5Mbit/s\"\n",
        "",
        "chain.toml:4:1: a link has no rate; write a `rate`, such as \"10Mbit/s\"",
    );
    assert_refused("duration = \"100s\"", "", "chain.toml:1:1: the key `duration` is missing; add it");
    let kinds: Vec<_> = QueueSpec::kinds().iter().map(|kind| kind.word).collect();
    let says = format!("chain.toml:10:9: the key `kind` is missing; it is one of {}", kinds.join(", "));
    assert_refused("kind = \"drop_tail\", ", "", &says);
}

#[test]
fn impossible_units_name_those_that_would_do() {
    assert_refused(
        "1.5Mbit/s",
        "1.5Mbps",
        "chain.toml:8:8: `1.5Mbps` is not a rate, such as \"1.5Mbit/s\": `Mbps` is not a unit here, use one of bit/s, \
         kbit/s, Mbit/s, Gbit/s, Tbit/s",
    );
    assert_refused(
        "delay = \"100ms\"",
        "delay = 0.1",
        "chain.toml:9:9: found number `0.1`, expected a length of time, such as \"100ms\"",
    );
    assert_refused(
        "100ms",
        "-100ms",
        "chain.toml:9:9: `-100ms` is not a length of time, such as \"100ms\": it does not start with a number that is zero \
         or more",
    );
    assert_refused("1.5Mbit/s", "0bit/s", "chain.toml:8:8: nothing passes a link of 0 bit/s; use a rate above 0bit/s");
    assert_refused("\"100s\"", "\"0s\"", "chain.toml:2:12: nothing happens in no time; use a duration above 0s");
}

#[test]
fn windows_and_queues_hold_at_least_one_packet() {
    let expected = "expected a whole number of packets from 1 to 1000000000";
    assert_refused("window = 50", "window = 0", &format!("chain.toml:17:10: found integer `0`, {expected}"));
    assert_refused("window = 50", "window = -5", &format!("chain.toml:17:10: found integer `-5`, {expected}"));
    assert_refused("window = 50", "window = 1.5", &format!("chain.toml:17:10: found number `1.5`, {expected}"));
    assert_refused(
        "window = 50",
        "window = 99999999999999999999",
        &format!("chain.toml:17:10: found number `100000000000000000000`, {expected}"),
    );
    assert_refused("packets = 10", "packets = 0", &format!("chain.toml:10:41: found integer `0`, {expected}"));
}

#[test]
fn probabilities_lie_between_0_and_1() {
    for (rate, shown) in [("1.5", "1.5"), ("-0.1", "-0.1"), ("nan", "NaN")] {
        assert_refused(
            "queue =",
            &format!("error = {{ kind = \"uniform\", rate = {rate} }}\nqueue ="),
            &format!("chain.toml:10:36: {shown} is not a probability: use a number from 0 to 1"),
        );
    }
}

#[test]
fn a_flow_needs_a_route_there_and_back() {
    assert_refused(
        "to = \"n1\"\ntransport",
        "to = \"n2\"\ntransport",
        "chain.toml:15:6: no link touches a node `n2`; did you mean `n0`?",
    );
    assert_refused(
        "delay =",
        "duplex = false\ndelay =",
        "chain.toml:13:1: flow `f0` has no route: no links lead from node `n1` to node `n0`; add the link that is missing, \
         or make a simplex one duplex",
    );
    let island =
        CHAIN.to_owned() + "\n[[link]]\nid = \"b\"\nfrom = \"n2\"\nto = \"n3\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n";
    assert_text_refused(
        &island.replacen("to = \"n1\"\ntransport", "to = \"n3\"\ntransport", 1),
        "chain.toml:12:1: flow `f0` has no route: no links lead from node `n0` to node `n3`; add the link that is missing, \
         or make a simplex one duplex",
    );
}

#[test]
fn a_cbr_has_a_rate_and_nothing_that_would_be_ignored() {
    let cbr = CHAIN.replacen("transport = \"ns2/sack\"\nwindow = 50", "transport = \"cbr\"\nrate = \"1Mbit/s\"", 1);
    assert!(matches!(parse(&cbr).unwrap().flows[0].transport, Transport::Cbr(_)));
    assert_text_refused(&format!("{cbr}window = 3\n"), "chain.toml:18:1: `cbr` has no key `window`; there are rate");
    assert_text_refused(
        &cbr.replace("rate = \"1Mbit/s\"\n", ""),
        "chain.toml:16:13: the key `rate` is missing; add it",
    );
    assert_text_refused(&cbr.replace("\"cbr\"", "\"on_off\""), "chain.toml:16:13: the key `on` is missing; add it");
    assert_text_refused(
        &cbr.replace("\"cbr\"", "\"on_off\"\non = \"0s\"\noff = \"0s\""),
        "chain.toml:18:7: bursts and silences of no length are a constant rate; make one of them longer than 0s, or use transport = \
         \"cbr\"",
    );
    assert_refused(
        "window = 50",
        "rate = \"1Mbit/s\"",
        "chain.toml:17:1: `ns2/sack` has no key `rate`; there are cc, window, initial_window, rto_min, sink, workload, options",
    );
}

/// Each transport refuses the keys of the others: no key is silently ignored.
#[test]
fn keys_of_engine_are_refused_by_agents() {
    let cbr = "transport = \"cbr\"\nrate = \"1Mbit/s\"";
    for transport in ["transport = \"ns2/sack\"", "transport = \"ns2/sctp\"", "transport = \"ns2/fast-mh\"", cbr] {
        let name = transport.split('"').nth(1).unwrap();
        for line in [
            "streams = 2",
            "scheduler = \"window\"",
            "stream_buffer = \"shared\"",
            "loss_detection = \"rack\"",
            "repair = \"any_path\"",
            "failover = \"never\"",
            "delayed_acks = \"40ms\"",
            "nagle = false",
            "timestamps = true",
            "keep_alive = \"60s\"",
        ] {
            let key = line.split(' ').next().unwrap();
            let text = CHAIN.replacen("transport = \"ns2/sack\"\nwindow = 50", &format!("{transport}\n{line}"), 1);
            let error = parse(&text).expect_err(line).to_string();
            assert!(error.contains(&format!(": `{name}` has no key `{key}`; ")), "{error}");
        }
    }
}

#[test]
fn names_are_given_once() {
    let link = "[[link]]\nid = \"a\"\nfrom = \"n1\"\nto = \"n2\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n";
    assert_text_refused(
        &(CHAIN.to_owned() + link),
        "chain.toml:19:6: a second link is called `a`; give each link its own name",
    );
    let flow = "[[flow]]\nid = \"f0\"\nfrom = \"n0\"\nto = \"n1\"\ntransport = \"ns2/reno\"\n";
    assert_text_refused(
        &(CHAIN.to_owned() + flow),
        "chain.toml:19:6: a second flow is called `f0`; give each flow its own name",
    );
    assert_refused(
        "id = \"a\"",
        "id = \"../a\"",
        "chain.toml:5:6: `../a` is not a name: use 1 to 64 letters, digits, `-` and `_`",
    );
}

#[test]
fn toml_syntax_error_has_its_place() {
    const REMEDY: &str = "a scenario has lines `key = value` under [[link]] and [[flow]]";
    let not_toml = |text: &str, message: &str| assert_text_refused(text, &format!("{message}; {REMEDY}"));
    not_toml("duration = = 5", "chain.toml:1:12: not TOML: extra `=`, expected nothing");
    not_toml("seed = 1\nseed = 2\n", "chain.toml:2:1: not TOML: duplicate key");
    not_toml("seed = 1\n\u{7f}ELF", "chain.toml:2:5: not TOML: key with no value, expected `=`");
    assert_text_refused("duration = \"1s\"", "chain.toml:1:1: there is no flow; add a [[flow]]");
}

#[test]
fn routes_leave_their_node_and_arrive() {
    let route = |text: &str| format!("{CHAIN}\n[[route]]\nat = \"30s\"\n{text}\n");
    let scenario = parse(&route("node = \"n1\"\nto = \"n0\"\nvia = \"a\"")).unwrap();
    assert_eq!(scenario.links[scenario.routes[0].via].id, "a.reverse", "the direction that leaves the node");
    assert_text_refused(
        &route("node = \"n1\"\nto = \"n0\"\nvia = \"b\""),
        "chain.toml:23:7: there is no link `b`; there are a",
    );
    assert_text_refused(
        &(route("node = \"n2\"\nto = \"n0\"\nvia = \"a\"")
            + "[[link]]\nid = \"b\"\nfrom = \"n1\"\nto = \"n2\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n"),
        "chain.toml:23:7: link `a` does not leave node `n2`; what leaves it: b",
    );
}

#[test]
fn laws_and_options_belong_to_their_agents() {
    let with = |lines: &str| CHAIN.replacen("window = 50", lines, 1);
    assert!(parse(&with("cc = { name = \"reno\" }")).is_ok());
    assert_text_refused(
        &with("cc = { name = \"vegas\" }"),
        "chain.toml:17:15: this transport has the law `reno`, not `vegas`; write name = \"reno\" or choose another transport",
    );
    let vegas = with("cc = { name = \"vegas\", alpa = 2 }").replace("ns2/sack", "ns2/vegas");
    assert_text_refused(&vegas, "chain.toml:17:31: `alpa` is not a parameter of this law; did you mean `alpha`?");
    let fractional = vegas.replace("alpa = 2", "alpha = 1.5");
    assert_text_refused(&fractional, "chain.toml:17:32: `alpha` cannot be `1.5`; it is a whole number");
    let composite = with("cc = { name = \"composite\", rtt = \"corse\" }").replace("ns2/sack", "ns2/composite");
    assert_text_refused(&composite, "chain.toml:17:34: `rtt` cannot be `corse`; did you mean `coarse`?");
    let fast = with("cc = { name = \"fast\", alpha = 20, gamma = 3 }").replace("ns2/sack", "ns2/fast");
    assert_text_refused(&fast, "chain.toml:17:43: `gamma` of fast cannot be `3`: it is a number from 0.001 to 1");
    assert!(
        parse(&fast.replace("gamma = 3", "gamma = 0.5, multiplicative_increase = { threshold = \"1ms\" }")).is_ok()
    );
    assert_text_refused(
        &with("options = { impatient = false }"),
        "chain.toml:17:13: unknown key `impatient`; there are burst_max, precise_halving",
    );
    assert_text_refused(
        &with("options = { burst_mx = 3 }"),
        "chain.toml:17:13: unknown key `burst_mx`; did you mean `burst_max`?",
    );
    assert_text_refused(
        &with("options = { precise_halving = 1 }"),
        "chain.toml:17:31: found integer `1`, expected true or false",
    );
    let set =
        |agent: &str, options: &str| match &parse(&with(options).replace("sack", agent)).unwrap().flows[0].transport {
            Transport::Ns2 { sender, .. } => (sender.agent, sender.burst_max, sender.precise_halving),
            _ => panic!("an agent of ns-2"),
        };
    let newreno = |impatient| Agent::NewReno(NewRenoOptions { impatient });
    assert_eq!(set("newreno", ""), (newreno(true), 0, true), "as ns-2.35 sets them");
    let old = "options = { impatient = false, burst_max = 3, precise_halving = false }";
    assert_eq!(set("newreno", old), (newreno(false), 3, false));
    assert_text_refused(
        &with("packet = \"40B\""),
        "chain.toml:17:10: a packet of 40B is impossible; use 41B to 65535B; headers take 40",
    );
}

/// Of 1000 bytes on the wire MFast has 40 of headers and 4 of the stream header.
#[test]
fn mfast_has_1_to_255_streams() {
    let with = |line: &str| CHAIN.replacen("window = 50", line, 1).replace("ns2/sack", "ns2/mfast");
    let streams = |line: &str| match parse(&with(line)).unwrap_or_else(|error| panic!("{error}")).flows[0].transport {
        Transport::Ns2 { streams, .. } => streams.map(NonZeroU8::get),
        _ => panic!("an agent of ns-2"),
    };
    assert_eq!([streams(""), streams("options = { streams = 1 }")], [Some(5), Some(1)]);
    assert_eq!(streams("options = { streams = 255 }\ncc = { name = \"emfast\" }"), Some(255));
    for (kind, number) in [("integer", "0"), ("integer", "256"), ("number", "2.5")] {
        assert_text_refused(
            &with(&format!("options = {{ streams = {number} }}")),
            &format!("chain.toml:17:23: found {kind} `{number}`, expected a whole number from 1 to 255"),
        );
    }
    let fast = with("options = { streams = 5 }").replace("mfast", "fast");
    assert_text_refused(&fast, "chain.toml:17:13: unknown key `streams`; there are burst_max, precise_halving");
    let transport = &parse(&with("packet = \"1000B\"")).unwrap().flows[0].transport;
    let Transport::Ns2 { sender, .. } = transport else { panic!("an agent of ns-2") };
    assert_eq!((sender.packet_size(), transport.payload()), (1000, 956));
    assert_text_refused(
        &with("packet = \"44B\""),
        "chain.toml:17:10: a packet of 44B is impossible; use 45B to 65535B; headers take 44",
    );
}

#[test]
fn overrides_change_any_key() {
    let scenario = testing::parse(
        CHAIN,
        &[
            "seed=7",
            "duration=5s",
            "link.a.rate=2Mbit/s",
            "link.a.queue.packets=20",
            "link.0.error={ kind = \"list\", packets = [3, 1, 3] }",
            "flow.f0.transport=ns2/vegas",
            "flow.f0.cc.name=vegas",
            "flow.f0.cc.alpha=2",
        ],
    )
    .unwrap();
    assert_eq!((scenario.seed, scenario.duration), (7, SimSpan::from_secs(5)));
    let link = &scenario.links[0];
    assert_eq!(link.spec.rate, Rate::from_bits_per_second(2_000_000));
    assert_eq!(link.spec.queue, QueueSpec::packets(20));
    assert_eq!(link.spec.errors, [ErrorSpec::List(vec![3, 1, 3])]);
    assert_eq!(scenario.flows[0].law_name.as_deref(), Some("vegas"));
}

#[test]
fn wrong_overrides_are_shown_as_written() {
    assert_set_refused(
        "flow.f0.widnow=5",
        "chain.toml: --set flow.f0.widnow=5: `ns2/sack` has no key `widnow`; did you mean `window`?",
    );
    assert_set_refused(
        "flow.f1.window=5",
        "chain.toml: --set flow.f1.window=5: nothing is called `f1` in `flow.f1.window`; did you mean `f0`?",
    );
    assert_set_refused(
        "link.a.rate=fast",
        "chain.toml: --set link.a.rate=fast: `fast` is not a rate, such as \"1.5Mbit/s\": it does not start with a number \
         that is zero or more",
    );
    assert_set_refused("seed", "chain.toml: --set seed: there is no `=`; write key=value, such as flow.f0.window=50");
    assert_set_refused(
        "flow.f0.window.x=1",
        "chain.toml: --set flow.f0.window.x=1: `x` in `flow.f0.window.x` cannot be set; what stands before it is a value, \
         not a table",
    );
    assert_set_refused(
        "flow..window=1",
        "chain.toml: --set flow..window=1: `flow..window` has an empty part; write names between dots: flow.f0.window",
    );
}

/// The limit of the simulator is 262,144 hosts, two for each flow.
#[test]
fn a_world_that_is_too_large_is_refused_before_it_is_built() {
    let mut scenario = parse(CHAIN).unwrap();
    let flow = scenario.flows[0].clone();
    scenario.flows = vec![flow; 131_072];
    assert_eq!(scenario.size().check(), Ok(()));
    scenario.flows.push(scenario.flows[0].clone());
    assert_eq!(scenario.size().check().unwrap_err().to_string(), "too many hosts: at most 262144");
}

/// Three links and three flows, each by one element with a count.
const REPEATED: &str = r#"
duration = "10s"

[[link]]
id = "l#"
count = 3
from = "s#"
to = "r"
rate = "1Mbit/s"
delay = "1ms"

[[flow]]
id = "f#"
count = 3
from = "s#"
to = "r"
transport = "ns2/sack"
start = ["0s", "1s", "2.5s"]

[[route]]
count = 3
at = "5s"
node = "s#"
to = "r"
via = "l#"
"#;

#[test]
fn a_count_writes_elements_out() {
    let scenario = parse(REPEATED).unwrap();
    assert_eq!(scenario.nodes, ["s0", "r", "s1", "s2"]);
    let flows: Vec<_> = scenario.flows.iter().map(|flow| (flow.id.as_str(), flow.from, flow.start)).collect();
    let at = |millis| SimTime::ZERO + SimSpan::from_millis(millis);
    assert_eq!(flows, [("f0", 0, at(0)), ("f1", 2, at(1000)), ("f2", 3, at(2500))]);
    assert_eq!(scenario.routes.len(), 3);
    assert!(!scenario.is_random());
}

#[test]
fn overrides_set_one_of_them_or_all() {
    let window = |scenario: &Scenario, flow: usize| match &scenario.flows[flow].transport {
        Transport::Ns2 { sender, .. } => sender.window,
        _ => panic!("an agent of ns-2"),
    };
    let scenario = testing::parse(REPEATED, &["flow.*.window=6", "flow.f*.window=7", "flow.f1.window=9"]).unwrap();
    let windows: Vec<String> = (0..3).map(|flow| window(&scenario, flow).to_string()).collect();
    assert_eq!(windows, ["7", "9", "7"]);
    assert_set_refused(
        "flow.f0.count=2",
        "chain.toml: --set flow.f0.count=2: a `count` cannot be set from outside the file",
    );
}

#[test]
fn a_count_must_be_one_and_fit_its_list() {
    let with = |from: &str, to: &str| REPEATED.replacen(from, to, 1);
    assert_text_refused(
        &with("count = 3", "count = 0"),
        "chain.toml:6:9: `count` says how many there are of this; use a whole number from 1 to 1000",
    );
    assert_text_refused(
        &with("\"0s\", ", ""),
        "chain.toml:18:9: 2 values of `start` for 3 elements; write one for each, or one for all",
    );
}

/// A list would give keys by the order in which they are declared, which no page says.
#[test]
fn a_table_is_no_list() {
    let text = CHAIN.replacen("delay = \"100ms\"", "delay = \"100ms\"\noutages = [[\"8s\", \"14s\"]]", 1);
    assert_text_refused(&text, "chain.toml:10:12: found a list, expected a table");
}

/// A jitter of starts makes the scenario random; each flow has its own draw.
#[test]
fn a_jitter_of_starts_is_random() {
    assert!(testing::parse(CHAIN, &["flow.f0.start_jitter=500ms"]).unwrap().is_random());
    assert!(testing::parse(CHAIN, &["flow.f0.start_jitter=2s", "flow.f0.stop=1s"]).is_err());
}

/// What would be random after the end of the run is not: another seed gives the same run.
#[test]
fn a_flow_after_the_end_is_not_random() {
    let set = |start: &str| {
        testing::parse(CHAIN, &["flow.f0.start_jitter=500ms", &format!("flow.f0.start={start}")]).unwrap()
    };
    let end = set("0s").duration.as_secs_f64();
    assert!(set(&format!("{end}s")).is_random() && !set(&format!("{}s", end + 1.0)).is_random());
}

#[test]
fn windows_have_a_limit() {
    assert_refused(
        "window = 50",
        "window = 5000000",
        "chain.toml:17:10: 5000000 packets are no window that can be simulated; use 1 to 4194304",
    );
    assert_refused(
        "window = 50",
        "initial_window = 100000",
        "chain.toml:17:18: 100000 packets are no window that can be simulated; use 1 to 65536",
    );
}

/// A tree of 30,000 links, with flows from leaf to leaf. Names must be looked up by an index, and there must be routes only to the ends of
/// flows: a table of all nodes to all nodes would have 900 million entries.
#[test]
fn a_network_of_thirty_thousand_links_is_built_soon() {
    let link = |to: usize| {
        let from = (to - 1) / 2;
        format!("[[link]]\nid = \"l{to}\"\nfrom = \"n{from}\"\nto = \"n{to}\"\nrate = \"10Mbit/s\"\ndelay = \"1ms\"\n")
    };
    let links: String = (1..=30_000).map(link).collect();
    let flow = "[[flow]]\nid = \"f\"\nfrom = \"n30000\"\nto = \"n15001\"\ntransport = \"ns2/sack\"\n";
    let document = Document::parse("tree.toml", &format!("duration = \"1s\"\n{links}{flow}")).unwrap();
    let begin = std::time::Instant::now();
    let scenario = Scenario::parse(&document).unwrap();
    assert!(begin.elapsed().as_secs_f64() < 5.0, "{:?}", begin.elapsed());
    assert!(crate::run::run(&scenario).unwrap().flows[0].delivered_packets > 0);
}

#[test]
fn a_host_stands_where_our_transport_does() {
    let ours = CHAIN.replacen("ns2/sack\"\nwindow = 50", "anabranch\"", 1);
    let host = "\n[[host]]\nnode = \"n0\"\ntimer = \"4ms\"\nreads = \"batch\"\ndelay = { kind = \"uniform\", most = \"1ms\" }\n";
    let scenario = parse(&format!("{ours}{host}")).unwrap();
    let expected = DriverSpec {
        timer: SimSpan::from_millis(4),
        reads: Reads::Batch,
        delay: Some(DelaySpec::Uniform(SimSpan::from_millis(1))),
        ..DriverSpec::default()
    };
    assert_eq!(scenario.drivers.into_iter().collect::<Vec<_>>(), [(0, expected)]);
    assert_text_refused(
        &format!("{CHAIN}{host}"),
        "chain.toml:20:8: no flow of `anabranch` begins or ends at node `n0`; remove the host, or name another node",
    );
    assert_text_refused(
        &format!("{ours}{host}{host}"),
        "chain.toml:25:8: a second host stands at node `n0`; keep one of them",
    );
}

#[test]
fn a_sealed_flow_has_packets_that_its_paths_find_out() {
    let ours = CHAIN.replacen("ns2/sack\"\nwindow = 50", "anabranch\"\nform = \"sealed\"", 1);
    assert_text_refused(&ours, "chain.toml:12:1: a sealed packet has more than 1040B; use 1280B or more");
    let scenario = parse(&ours.replacen("form =", "packet = \"1500B\"\nform =", 1)).unwrap();
    let Transport::Engine { config, .. } = &scenario.flows[0].transport else { panic!("our own") };
    assert_eq!((config.form, config.path_mtu), (Form::Sealed, PathMtu::Searched { packet_max: 1500 }));
    assert_text_refused(
        &CHAIN.replacen("window = 50", "form = \"sealed\"", 1),
        "chain.toml:17:1: `ns2/sack` has no key `form`; did you mean `from`?",
    );
}
