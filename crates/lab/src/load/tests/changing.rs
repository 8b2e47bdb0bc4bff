//! Modern queues, and varying links.

use anabranch_sim::{
    CoDelParameters, DeliveryTrace, DualPi2Parameters, ErrorSpec, FqCoDelParameters, PieParameters, QueueSpec,
    RateSpec, ReorderSpec, StepParameters, Steps,
};

use super::*;

const MS: fn(u64) -> SimSpan = SimSpan::from_millis;

/// The chain with other keys in place of the rate of its link.
fn with(keys: &str) -> Result<Scenario, String> {
    parse(&CHAIN.replacen("rate = \"1.5Mbit/s\"", keys, 1)).map_err(|error| error.to_string())
}

fn queue(keys: &str) -> Result<QueueSpec, String> {
    let text = CHAIN.replacen("{ kind = \"drop_tail\", packets = 10 }", keys, 1);
    parse(&text).map(|scenario| scenario.links[0].spec.queue.clone()).map_err(|error| error.to_string())
}

#[test]
fn queues_are_read_with_their_rfc_s_defaults() {
    assert_eq!(queue("{ kind = \"fq_codel\" }"), Ok(QueueSpec::from(FqCoDelParameters::default())));
    assert_eq!(queue("{ kind = \"pie\" }"), Ok(QueueSpec::from(PieParameters::default())));
    assert_eq!(queue("{ kind = \"dualpi2\" }"), Ok(QueueSpec::from(DualPi2Parameters::default())));
    let codel = CoDelParameters { packets_max: 99, target: MS(1), ecn: false, ..FqCoDelParameters::default().codel };
    let expected = FqCoDelParameters { codel, queues: 8, quantum: 300, ..FqCoDelParameters::default() };
    let text = "{ kind = \"fq_codel\", packets = 99, target = \"1ms\", ecn = false, queues = 8, quantum = \"300B\" }";
    assert_eq!(queue(text), Ok(QueueSpec::from(expected)));
    let step = StepParameters { packets_max: 100, ..StepParameters::default() };
    let packets = StepParameters { mark_packets: Some(20), ..step };
    assert_eq!(queue("{ kind = \"step\", packets = 100, mark_packets = 20 }"), Ok(packets.into()));
    let delay = StepParameters { mark_delay: Some(MS(1)), ..step };
    assert_eq!(queue("{ kind = \"step\", packets = 100, mark_delay = \"1ms\" }"), Ok(delay.into()));
}

#[test]
fn queues_that_cannot_be_are_refused() {
    for (keys, message) in [
        ("{ kind = \"step\", packets = 100 }", "one threshold"),
        ("{ kind = \"step\", packets = 100, mark_packets = 2, mark_bytes = \"1kB\" }", "one threshold"),
        ("{ kind = \"step\", packets = 1, mark_packets = 2 }", "2 packets or more"),
        ("{ kind = \"fq_codel\", quantum = \"0B\" }", "about one packet"),
        ("{ kind = \"fq_codel\", queues = 100000 }", "at most 65536"),
        ("{ kind = \"pie\", update = \"0s\" }", "update = \"1us\""),
        ("{ kind = \"dualpi2\", coupling = 0.0 }", "above 0"),
    ] {
        let refused = queue(keys).unwrap_err();
        assert!(refused.starts_with("chain.toml:10:") && refused.contains(message), "{keys}: {refused}");
    }
}

#[test]
fn rates_and_delays_change_in_steps() {
    let text = "rate = \"10Mbit/s\"
        rate_changes = [{ at = \"5ms\", rate = \"0bit/s\" }, { at = \"7ms\", rate = \"2Mbit/s\" }]
        rate_period = \"20ms\"
        delay_changes = [{ at = \"15s\", delay = \"40ms\" }]
        delay_period = \"30s\"
        outages = [{ from = \"15s\", every = \"15s\", for = \"100ms\" }]
        reorder = { share = 0.1, extra = { kind = \"uniform\", most = \"3ms\" } }
        duplicate = 0.01";
    let scenario = with(text).unwrap();
    let [there, back] = &scenario.links[..] else { panic!("a duplex link is two") };
    let rate = |megabits: u64| Rate::from_bits_per_second(1_000_000 * megabits);
    let rates = Steps { steps: vec![(MS(5), rate(0)), (MS(7), rate(2))], period: Some(MS(20)) };
    assert_eq!((there.spec.rate, there.spec.rates.clone()), (rate(10), Some(RateSpec::Steps(rates))));
    assert_eq!((back.spec.rate, back.spec.rates.clone()), (rate(10), None));
    let delays = Some(Steps { steps: vec![(MS(15_000), MS(40))], period: Some(MS(30_000)) });
    assert_eq!((&there.spec.scatter.delays, &back.spec.scatter.delays), (&delays, &delays), "both ways");
    let reorder = ReorderSpec { share: 0.1, extra: DelaySpec::Uniform(MS(3)) };
    assert_eq!((there.spec.scatter.reorder, back.spec.scatter.reorder), (Some(reorder), None));
    assert!((there.spec.scatter.duplicates - 0.01).abs() < 1e-12 && scenario.is_random());
    let first = SimTime::ZERO + MS(15_000);
    assert_eq!(there.spec.errors, [ErrorSpec::Outages { first, length: MS(100), every: MS(15_000) }]);
}

#[test]
fn a_trace_is_a_list() {
    let trace = |scenario: &Scenario| match &scenario.links[0].spec.rates {
        Some(RateSpec::Trace(DeliveryTrace { opportunities })) => opportunities.to_vec(),
        other => panic!("{other:?} is no trace"),
    };
    let scenario = with("trace = [3, 3, 8]").unwrap();
    assert_eq!(trace(&scenario), [3, 3, 8].map(MS));
    // 3 · 1504 B in 8 ms.
    assert_eq!(scenario.links[1].spec.rate, Rate::from_bits_per_second(3 * 1504 * 1000));
    assert!(with("trace = \"cell.up\"").unwrap_err().contains("no other file is read here"));
}

#[test]
fn links_that_cannot_change_so_are_refused() {
    for (keys, message) in [
        ("", "a link has no rate"),
        ("rate = \"1Mbit/s\"\ntrace = [1]", "no other rate"),
        ("trace = [1]\nrate_period = \"1s\"", "remove `rate_changes`"),
        ("trace = [2, 1]", "opportunity 2"),
        ("trace = [0]", "above 0"),
        ("rate = \"1Mbit/s\"\nrate_period = \"1s\"", "add `rate_changes`"),
        ("rate = \"1Mbit/s\"\nrate_changes = [{ at = \"0s\", rate = \"2Mbit/s\" }]", "changes of the rate"),
        ("rate = \"1Mbit/s\"\nrate_changes = [{ at = \"1s\", rate = \"0bit/s\" }]", "for ever"),
        ("rate = \"1Mbit/s\"\ndelay_period = \"1s\"", "add `delay_changes`"),
        ("rate = \"1Mbit/s\"\nhold = { kind = \"grid\", every = \"1ms\" }\nduplicate = 0.1", "link of its own"),
        ("rate = \"1Mbit/s\"\noutages = [{ from = \"1s\", every = \"1s\", for = \"1s\" }]", "less than `every`"),
    ] {
        let refused = with(keys).unwrap_err();
        assert!(refused.starts_with("chain.toml:") && refused.contains(message), "{keys}: {refused}");
    }
}
