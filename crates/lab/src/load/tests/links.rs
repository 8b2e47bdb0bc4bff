//! The keys of a link.

use super::*;

#[test]
fn queue_or_error_that_loses_all_or_none_is_refused() {
    assert_refused(
        "packets = 10",
        "packets = 1",
        "chain.toml:10:41: a queue of 1 packet drops everything: ns-2 counts the one in service; use 2 packets or more",
    );
    assert_refused(
        "{ kind = \"drop_tail\", packets = 10 }",
        "{ kind = \"red\", packets = 10, threshold_min = 20 }",
        "chain.toml:10:9: the thresholds of a red queue are in the wrong order; use 0 < threshold_min < threshold_max",
    );
    assert_refused(
        "queue =",
        "error = { kind = \"periodic\", period = 3, burst = 4 }\nqueue =",
        "chain.toml:10:50: 4 losses do not fit a period of 3 packets; make `burst` at most `period`",
    );
}

#[test]
fn a_queue_counts_packets_or_bytes() {
    let with = |keys: &str| CHAIN.replacen("packets = 10", keys, 1);
    let queue = |keys: &str| parse(&with(keys)).unwrap().links[0].spec.queue.clone();
    assert_eq!(queue("packets = 10"), QueueSpec::packets(10));
    assert_eq!(queue("bytes = \"15kB\""), QueueSpec::bytes(15_000));
    for keys in ["packets = 10, bytes = \"15kB\"", "bytes = \"0B\""] {
        assert_text_refused(
            &with(keys),
            "chain.toml:10:9: a drop_tail queue needs one limit, above nothing; write packets = 50 or bytes = \"75kB\"",
        );
    }
}

#[test]
fn a_policer_has_a_rate() {
    let with = |rate: &str| {
        let error = format!("error = {{ kind = \"policer\", rate = \"{rate}\", burst = \"15kB\" }}\nqueue =");
        CHAIN.replacen("queue =", &error, 1)
    };
    assert!(matches!(parse(&with("1Mbit/s")).unwrap().links[0].spec.errors[..], [ErrorSpec::Policer { .. }]));
    assert_text_refused(&with("0bit/s"), "chain.toml:10:36: nothing passes a link of 0 bit/s; use a rate above 0bit/s");
}

#[test]
fn an_outage_cuts_both_ways() {
    let with = |until: &str| {
        let outages = format!("outages = [{{ from = \"2s\", until = \"{until}\" }}]\nqueue =");
        CHAIN.replacen("queue =", &outages, 1)
    };
    let scenario = parse(&with("3s")).unwrap();
    let time = |s| SimTime::ZERO + SimSpan::from_secs(s);
    let outage = [ErrorSpec::Outage { from: time(2), until: time(3) }];
    assert_eq!((&scenario.links[0].spec.errors[..], &scenario.links[1].spec.errors[..]), (&outage[..], &outage[..]));
    assert_text_refused(
        &with("2s"),
        "chain.toml:10:35: an outage ends before it begins; make `until` later than `from`",
    );
}

#[test]
fn a_codel_queue_has_no_place_under_the_clock_of_ns2() {
    let codel = CHAIN.replacen("{ kind = \"drop_tail\", packets = 10 }", "{ kind = \"codel\" }", 1);
    assert!(parse(&codel).is_ok());
    assert_text_refused(
        &codel.replacen("duration", "clock = \"ns2\"\nduration", 1),
        "chain.toml:11:9: a queue that decides at its head keeps exact time and not ns-2's; remove clock = \"ns2\"",
    );
    assert_text_refused(
        &CHAIN.replacen("duration", "clock = \"ns2\"\nduration", 1).replacen(
            "queue =",
            "reverse = { queue = { kind = \"codel\" } }\nqueue =",
            1,
        ),
        "chain.toml:11:21: a queue that decides at its head keeps exact time and not ns-2's; remove clock = \"ns2\"",
    );
}

#[test]
fn no_link_is_faster_than_the_clock_can_tell() {
    assert_text_refused(
        &CHAIN.replacen("1.5Mbit/s", "2Tbit/s", 1),
        "chain.toml:8:8: no link sends 2000Gbit/s; use a rate up to 1Tbit/s",
    );
}

#[test]
fn hold_is_read_and_impossible_one_is_refused() {
    let with = |hold: &str| CHAIN.replacen("queue =", &format!("hold = {{ {hold} }}\nqueue ="), 1);
    let scenario = parse(&with("kind = \"grid\", every = \"4ms\"")).unwrap();
    // The reverse direction has its own hold, or none.
    let holds: Vec<_> = scenario.links.iter().map(|link| link.spec.hold).collect();
    assert_eq!(holds, [Some(HoldSpec::Grid(SimSpan::from_millis(4))), None]);
    assert!(!scenario.is_random() && parse(&with("kind = \"uniform\", most = \"4ms\"")).unwrap().is_random());
    let set = "link.a.reverse={ hold = { kind = \"gather\", span = \"1ms\" } }";
    let scenario = testing::parse(CHAIN, &[set]).unwrap();
    assert_eq!(scenario.links[1].spec.hold, Some(HoldSpec::Gather(SimSpan::from_millis(1))));
    let scenario = parse(&with("kind = \"stalls\", every = \"1s\", most = \"50ms\"")).unwrap();
    let stalls = HoldSpec::Stalls { every: SimSpan::from_secs(1), most: SimSpan::from_millis(50) };
    assert!(scenario.links[0].spec.hold == Some(stalls) && scenario.is_random());
    assert_text_refused(
        &with("kind = \"stalls\", every = \"0s\", most = \"50ms\""),
        "chain.toml:10:35: what is held for no time is not held; use a time above 0s, or remove it",
    );
    assert_text_refused(
        &with("kind = \"stalls\", every = \"1s\", most = \"0s\""),
        "chain.toml:10:48: what is held for no time is not held; use a time above 0s, or remove it",
    );
    assert_text_refused(
        &with("kind = \"exponential\", mean = \"0s\""),
        "chain.toml:10:39: what is held for no time is not held; use a time above 0s, or remove it",
    );
    assert_text_refused(
        &with("kind = \"grid\", every = \"4ms\"").replacen("duration", "clock = \"ns2\"\nduration", 1),
        "chain.toml:5:1: what holds packets keeps exact time and not ns-2's; remove `hold` or clock = \"ns2\"",
    );
}

#[test]
fn a_link_takes_packets_up_to_its_mtu() {
    let with = |mtu: &str| CHAIN.replacen("queue =", &format!("mtu = \"{mtu}\"\nqueue ="), 1);
    let mtus = |scenario: Scenario| scenario.links.iter().map(|link| link.spec.mtu).collect::<Vec<_>>();
    assert_eq!(mtus(parse(&with("1400B")).unwrap()), [Some(1400); 2], "both ways");
    let back = testing::parse(CHAIN, &["link.a.reverse={ mtu = \"1280B\" }"]).unwrap();
    assert_eq!(mtus(back), [None, Some(1280)]);
    let set = "link.a.mtu_changes=[{ at = \"2s\", mtu = \"1300B\" }]";
    let changed = testing::parse(CHAIN, &[set]).unwrap();
    let at = SimTime::ZERO + SimSpan::from_secs(2);
    assert!(changed.links.iter().all(|link| link.mtu_changes == [(at, 1300)]), "both ways");
    assert_text_refused(&with("67B"), "chain.toml:10:7: no link takes packets of 67B at most; use 68B or more");
}

/// Words of the field mean what the keys of the reference mean.
#[test]
fn kind_by_another_name_is_the_same_link() {
    let links = |key: &str| {
        let text = format!(
            "duration = \"1s\"\n[[link]]\nid = \"a\"\nfrom = \"x\"\nto = \"y\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n{key}\n\
             [[flow]]\nid = \"f\"\nfrom = \"x\"\nto = \"y\"\ntransport = \"anabranch\"\n"
        );
        let document = Document::parse("net.toml", &text).unwrap();
        format!("{:?}", Scenario::parse(&document).unwrap_or_else(|error| panic!("{key}: {error}")).links)
    };
    for (key, kind, names) in [
        ("error = { kind = \"KIND\", rate = 0.05 }", "uniform", &["bernoulli", "iid"][..]),
        ("error = { kind = \"KIND\", to_bad = 0.01, to_good = 0.3 }", "gilbert_elliott", &["gilbert", "gemodel"]),
        ("error = { kind = \"KIND\", rate = \"1Mbit/s\", burst = \"9kB\" }", "policer", &["token_bucket"]),
        ("queue = { kind = \"KIND\", packets = 9 }", "drop_tail", &["fifo", "pfifo", "tail_drop"]),
        ("queue = { kind = \"KIND\" }", "unlimited", &["infinite"]),
        ("hold = { kind = \"KIND\", mean = \"9ms\" }", "exponential", &["poisson"]),
        ("hold = { kind = \"KIND\", every = \"9ms\" }", "grid", &["slotted"]),
    ] {
        for name in names {
            assert_eq!(links(&key.replace("KIND", name)), links(&key.replace("KIND", kind)), "{name}");
        }
    }
}
