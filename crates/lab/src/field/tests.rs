use std::num::NonZeroUsize;

use super::*;
use crate::experiment::Experiment;

fn request(families: &[Family], draws: u32, jobs: usize) -> Request {
    let contender = |name: &str| Contender::parse(name).unwrap();
    Request {
        law: contender("reno"),
        against: vec![contender("cubic")],
        families: families.to_vec(),
        draws,
        seed: 7,
        jobs: NonZeroUsize::new(jobs).unwrap(),
    }
}

#[test]
fn draw_more_draws_changes_no_other() {
    for family in Family::ALL {
        let [few, many] = [2, 5].map(|draws| request(&[family], draws, 1));
        let (few, many) = (parts(&few), parts(&many));
        for index in 0..2 {
            assert_eq!(few[0].cases[index].facts(), many[0].cases[index].facts(), "{}", family.name());
        }
    }
}

#[test]
fn draw_beside_law_first_and_second_in_turn() {
    let request = request(&[Family::Beside], 6, 1);
    let parts = parts(&request);
    let begins = |case: &Case, name: &str| case.facts().iter().find(|fact| fact.name == name).unwrap().value;
    for (index, case) in parts[0].cases.iter().enumerate() {
        let is_first = begins(case, "law_begins_s") < begins(case, "rival_begins_s");
        assert_eq!(is_first, index % 2 == 0, "{:?}", case.facts());
    }
}

#[test]
fn scenario_of_every_family_is_valid_with_settings_of_a_law() {
    let law = Contender::parse("fast,alpha=5,refill=ccafr,refill.ipd_weight=0.5").unwrap();
    let rival = Contender::parse("cubic,slow_start=hystart").unwrap();
    for family in Family::ALL {
        for index in 0..8 {
            let text = draw(family, 3, index).scenario(family, &law, Some(&rival));
            let document = Document::parse("drawn.toml", &text).unwrap();
            assert!(Scenario::parse(&document).is_ok(), "{} {index}:\n{text}", family.name());
        }
    }
}

/// The scenario's own measures, from complete series, have the figures that the field has from counters.
#[test]
fn counters_have_figures_of_series() {
    let (law, rival) = (Contender::parse("reno").unwrap(), Contender::parse("cubic").unwrap());
    for family in
        [Family::Alone, Family::Kind, Family::Beside, Family::Short, Family::Route, Family::Policer, Family::Silence]
    {
        let case = draw(family, 7, 1);
        let text = case.scenario(family, &law, Some(&rival)).replace("resolution = \"5ms\"\n", "");
        let document = Document::parse("drawn.toml", &text).unwrap();
        let scenario = Scenario::parse(&document).unwrap();
        let counted = run::run_watched(&scenario, |simulation| measure::run(simulation, case.measures())).unwrap();
        let experiment = Experiment::parse(document).unwrap();
        let recorded = run::run_measured(&scenario, &experiment).unwrap();
        for (kind, counted) in family.figures().iter().zip(case.figures(&counted)) {
            let recorded = recorded.value(&experiment, kind.name).unwrap();
            // A series of queues of a few packets has its resolution: 2 us in the mean.
            let near = (counted - recorded).abs() <= 1e-3 * recorded.abs() + 0.002;
            assert!(near, "{} {}: counted {counted}, recorded {recorded}", family.name(), kind.name);
        }
    }
}

/// A rival beside another is one run, in which each is the law once.
#[test]
fn run_of_two_rivals_shared() {
    let request = Request {
        law: Contender::parse("cubic").unwrap(),
        against: vec![Contender::parse("reno").unwrap()],
        ..request(&[Family::Beside], 2, 2)
    };
    let both = Request { against: vec![request.law.clone(), request.against[0].clone()], ..request };
    let field = run(&both, |_, _| ()).unwrap();
    // Beside CUBIC and beside Reno, with the law under test and both, on two draws: 12 without what is shared. Cubic beside cubic is one run in either
    // role, as Reno beside Reno; cubic beside Reno is Reno beside CUBIC with the other role.
    assert_eq!(field.runs, 4);
    let share = |part: usize, law: usize, draw: usize| field.families[part].laws[law].figures[0][draw];
    let [of_cubic, of_reno] = [share(1, 1, 0), share(0, 2, 1)];
    assert!((of_cubic + of_reno - 1.0).abs() < 1e-12, "{of_cubic} and {of_reno}");
}

/// Reno alone fills a link without losses whose buffer is one product or more, and its queue is never longer than the buffer.
#[test]
fn reno_alone_fills_large_buffers() {
    let field = run(&Request { against: Vec::new(), ..request(&[Family::Alone], 6, 2) }, |_, _| ()).unwrap();
    let family = &field.families[0];
    assert_eq!(field.laws, ["reno"]);
    let mut judged = 0;
    for (index, facts) in family.draws.iter().enumerate() {
        let fact = |name: &str| facts.iter().find(|fact| fact.name == name).unwrap().value;
        let [used, queue] = [0, 1].map(|figure| family.laws[0].figures[figure][index]);
        // The headers are 7 % of a packet.
        assert!((0.0..0.94).contains(&used), "{facts:?}: {used}");
        let most = (fact("buffer_bdp") * fact("rtt_ms")).max(4.0 * 12.0 / fact("rate_mbit_per_s"));
        assert!(queue <= 1.01 * most, "{facts:?}: {queue} of {most} ms");
        if fact("loss") == 0.0 && fact("buffer_bdp") >= 1.0 {
            judged += 1;
            assert!(used > 0.85, "{facts:?}: {used}");
        }
    }
    assert!(judged > 0, "the seed draws a large buffer");
}

/// The same requests give the same runs on one and on two threads; the worst draws are in the order of the figure.
#[test]
fn outcome_same_on_any_number_of_threads() {
    let [one, two] = [1, 2].map(|jobs| run(&request(&[Family::Policer, Family::Short], 3, jobs), |_, _| ()).unwrap());
    assert_eq!(one.hash, two.hash);
    // Two laws, and the second family once for the one rival.
    assert_eq!((one.runs, one.families.len()), (12, 2));
    assert_eq!(one.families[1].name, "short cubic");
    for law in 0..2 {
        let worst = |family: usize| &one.families[family].laws[law].worst;
        let [used, slowdown] = [0, 1].map(|family| worst(family).iter().map(|worst| worst.value).collect::<Vec<_>>());
        assert!(used.is_sorted(), "{used:?}");
        assert!(slowdown.iter().rev().is_sorted(), "{slowdown:?}");
        assert!(worst(1)[0].scenario.contains("\"cubic\""));
    }
    assert_eq!(
        one.command,
        "anabranch eval --cc reno --against cubic --field --draws 3 --seed 7 --family policer,short"
    );
}

/// A watcher who stops it at once gets nothing, and at most the runs that were begun.
#[test]
fn run_stopped_has_no_outcome() {
    struct Stop(usize);
    impl Watch for &mut Stop {
        fn runs(&mut self, done: usize, _: usize) {
            self.0 = done;
        }
        fn goes_on(&self) -> bool {
            false
        }
    }
    let mut stop = Stop(0);
    let field = run_until(&request(&[Family::Policer], 3, 1), &mut stop).unwrap();
    assert!(field.is_none());
}
