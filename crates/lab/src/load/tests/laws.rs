//! The key `cc`.

use anabranch_cc::law::fast::base_rtt;
use anabranch_cc::law::fast::refill::{self, Refill};
use anabranch_ns2::config::{Agent, Average, BaseRtt, LossPolicy};

use super::*;

/// The name of a law selects the member of FAST's family; its parameters set it.
#[test]
fn fast_is_set_as_its_law_is() {
    let flow = |law: &str| {
        let text = CHAIN.replacen("window = 50", law, 1).replace("ns2/sack", "ns2/fast");
        let scenario = parse(&text).unwrap_or_else(|error| panic!("{error}"));
        scenario.flows[0].clone()
    };
    let options = |law: &str| match flow(law).transport {
        Transport::Ns2 { sender, .. } => match sender.agent {
            Agent::Fast(options) => options,
            other => panic!("{other:?} is not FAST"),
        },
        other => panic!("{other:?} is not of ns-2"),
    };
    let plain = options("cc = { name = \"fast\", alpha = 8, beta = 2 }");
    assert_eq!((plain.alpha, plain.beta), (8.0, 2.0));
    assert_eq!((plain.base, plain.refill), (BaseRtt::Min, Refill::PerRtt));
    assert!((options("").alpha - 20.0).abs() < f64::EPSILON);
    assert_eq!(flow("cc = { name = \"emfast\" }").law_name.as_deref(), Some("emfast"));
    assert_eq!(options("cc = { name = \"emfast\" }").refill, Refill::Ccafr(refill::Rule::RECOMMENDED));
    let rule = base_rtt::Rule { wait: 3.0, ..base_rtt::Rule::NOT_NEAR };
    let rerouted = options("cc = { name = \"rrfast\", base_rtt = { wait = 3, average = \"keep\" } }");
    assert_eq!(rerouted.base, BaseRtt::Reroute(rule, Average::Kept));
    assert!(matches!(options("cc = { name = \"fast\", loss = \"composite\" }").loss, LossPolicy::Composite(_)));
}

/// The settings of a part are a table, and an error in them is shown there.
#[test]
fn a_part_of_a_law_is_a_table() {
    let with = |law: &str| CHAIN.replacen("window = 50", law, 1).replace("ns2/sack", "anabranch");
    let value = |scenario: &Scenario, key: &str| match &scenario.flows[0].transport {
        Transport::Engine { config, .. } => config.law.value(key).map(|value| value.to_string()),
        other => panic!("{other:?} is not ours"),
    };
    let text =
        with("cc = { name = \"fast\", refill = { flight = \"window\", kind = \"ccafr\" }, loss = \"composite\" }");
    let scenario = parse(&text).unwrap();
    assert_eq!(value(&scenario, "refill.flight").as_deref(), Some("window"));
    assert_eq!(value(&scenario, "loss").as_deref(), Some("composite"));
    let set = testing::parse(&text, &["flow.*.cc.refill.flight=departure", "flow.*.cc.base_rtt.kind=reroute"]).unwrap();
    assert_eq!(value(&set, "refill.flight").as_deref(), Some("departure"));
    assert_eq!(value(&set, "base_rtt").as_deref(), Some("reroute"));
    for (law, message) in [
        (
            "refill = { flight = \"window\" }",
            "chain.toml:17:43: `refill.flight` of fast is a setting of `ccafr`, and `refill` is `per_rtt`; \
             write refill = { kind = \"ccafr\", ... } or remove it",
        ),
        (
            "refill = { kind = \"ccfr\" }",
            "chain.toml:17:41: `refill` of fast cannot be `ccfr`: it is one of per_rtt, ccafr; did you mean `ccafr`?",
        ),
        (
            "base_rtt = { kind = \"reroute\", weit = 2 }",
            "chain.toml:17:61: fast has no parameter `base_rtt.weit`; did you mean `base_rtt.wait`?",
        ),
        ("alpha = { kind = 5 }", "chain.toml:17:40: fast has no parameter `alpha.kind`; did you mean"),
        ("refill.kind.deep = 5", "found a table, expected a number, a string or a truth value"),
        ("\"refill.rtt\" = 0.5", "the key `\"refill.rtt\"` has a dot within quotes: write refill = { rtt = ... }"),
    ] {
        let error = parse(&with(&format!("cc = {{ name = \"fast\", {law} }}"))).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn setting_unknown_to_agent_is_refused() {
    let with = |law: &str| CHAIN.replacen("window = 50", law, 1).replace("ns2/sack", "ns2/fast");
    assert_text_refused(
        &with("cc = { name = \"anabranch\" }"),
        "chain.toml:17:15: this transport has no law `anabranch`; there are fast, emfast, rrfast",
    );
    for (law, part) in
        [("average_weight = 0.25", "average_weight"), ("loss = { kind = \"composite\", most = 0.5 }", "loss.most")]
    {
        let error = parse(&with(&format!("cc = {{ name = \"fast\", {law} }}"))).unwrap_err().to_string();
        assert!(error.contains(&format!("`{part}` is not a parameter of this law")), "{error}");
    }
    assert_text_refused(
        &with("cc = { name = \"fast\", whole_step = true }"),
        "chain.toml:17:36: `whole_step` is not a parameter of this law; there are alpha, beta, gamma, \
         multiplicative_increase.threshold, base_rtt, base_rtt.reading, base_rtt.wait, base_rtt.average, refill, \
         refill.gapflag, refill.ipd_weight, refill.ipd_tolerance, refill.rtt_tolerance, refill.flight, refill.rtt, loss",
    );
}
