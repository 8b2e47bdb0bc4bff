use super::*;

fn request(law: &str, against: &[&str]) -> Request {
    let against: Vec<String> = against.iter().map(|name| (*name).to_owned()).collect();
    let request = Request::new(law, Some(&against), NonZeroUsize::MIN).expect("laws of the registry");
    Request { quick: true, ..request }
}

#[test]
fn rivals_are_those_that_are_named_each_once_or_the_common_ones() {
    let names = |request: Request| request.against.iter().map(Contender::label).collect::<Vec<_>>();
    assert_eq!(names(request("reno", &["vegas", "cubic", " vegas"])), ["vegas", "cubic"]);
    let common = |law| Request::new(law, None, NonZeroUsize::MIN).map(names).expect("laws of the registry");
    assert_eq!(common("vegas"), ["cubic", "bbr", "reno"]);
    assert_eq!(common("cubic"), ["bbr", "reno"]);
    // A law with settings is not equal to the rival without them.
    assert_eq!(common("cubic,slow_start=hystart"), ["cubic", "bbr", "reno"]);
}

#[test]
fn criteria_and_claims_belong_together() {
    let criteria = criteria::criteria().expect("the table is well-formed");
    let mut whole = request("reno", &["cubic"]);
    whole.quick = false;
    for request in [whole, request("reno", &["cubic"])] {
        let experiments = suite::experiments(&request).expect("the suite is well-formed");
        let items: Vec<&str> =
            experiments.iter().flat_map(|one| &one.claims).map(|claim| claim.item.as_str()).collect();
        for item in &items {
            assert!(criteria.iter().any(|criterion| criterion.section == *item), "{item}");
        }
        for criterion in &criteria {
            let is_judged = items.contains(&criterion.section.as_str());
            assert_ne!(is_judged, criterion.not_judged.is_some(), "{}", criterion.section);
            assert_eq!(criterion.met.is_some(), is_judged, "{}", criterion.section);
        }
    }
}

#[test]
fn listed_sections_have_judged_criteria() {
    let criteria = criteria::criteria().expect("the table is well-formed");
    for Coverage { asks, criteria: sections, .. } in coverage::coverage().expect("the table is well-formed") {
        for section in &sections {
            let criterion = criteria.iter().find(|criterion| criterion.section == *section);
            assert!(criterion.is_some_and(|criterion| criterion.not_judged.is_none()), "{asks}: {section}");
        }
    }
}

/// One of a program's own: `$LAW` of the suite is a law that no registry and no file has.
#[derive(Debug)]
struct Constant(&'static str, f64);

impl crate::own::Maker for Constant {
    fn name(&self) -> &str {
        self.0
    }

    fn summary(&self) -> &str {
        "A constant window."
    }

    fn digest(&self) -> &str {
        self.0
    }

    fn settings(&self, _flow: &str, _faults: &crate::own::Faults) -> anabranch_cc::Settings {
        let window = self.1;
        anabranch_cc::own::settings(move || Box::new(Window(window)))
    }
}

#[derive(Debug)]
struct Window(f64);

impl anabranch_cc::Controller for Window {
    fn on_ack(&mut self, _path: &anabranch_cc::PathView, _ack: &anabranch_cc::Ack) {}

    fn on_loss(&mut self, _path: &anabranch_cc::PathView, _loss: &anabranch_cc::Loss) {}

    fn window(&self) -> f64 {
        self.0
    }
}

/// Without a queue the goodput is in proportion to a constant window.
#[test]
fn a_law_of_the_calling_program_is_evaluated_beside_others() {
    let made = |name, window| Contender::made(Arc::new(Constant(name, window)));
    let used = |window| {
        let rivals = Some(vec![made("other \"law\"", 1.0)]);
        let request = Request { quick: true, ..Request::of(made("mine", window), rivals, NonZeroUsize::MIN) };
        let call = "anabranch.evaluate(mine, against=[other \"law\"], quick=True)";
        assert_eq!(
            (request.command().as_str(), modules([&request.law].into_iter().chain(&request.against)).len()),
            (call, 0)
        );
        let mut experiments = suite::experiments(&request).expect("the suite is well-formed");
        assert!(experiments.iter().any(|one| one.name() == "beside-other--law-"));
        experiments.retain(|one| one.name() == "alone");
        experiments[0].claims.retain(|claim| claim.item == "6.1" && claim.row == "use");
        assert!(experiments[0].document().text().contains("cc = { plugin = \"mine\" }"));
        let options = reproduce::Options { jobs: NonZeroUsize::MIN, seeds: Some(1) };
        let outcome = reproduce::reproduce(&experiments, options, |_, _| {}).expect("the suite is well-formed");
        let claims = &outcome.papers[0].experiments[0].claims;
        claims.iter().filter_map(|claim| Some(claim.measured.ours.as_ref()?.value)).next_back().expect("a claim")
    };
    let [half, whole] = [40.0, 80.0].map(used);
    assert!((2.0 * half / whole - 1.0).abs() < 0.02 && whole < 0.9, "{half} {whole}");
    let twice = Request::of(made("mine", 1.0), Some(vec![made("mine", 1.0)]), NonZeroUsize::MIN);
    assert!(suite::experiments(&twice).is_ok(), "a law may be its own rival");
}

/// The verdict of a criterion if only one column of one file is run, with one seed.
fn ruling(law: &str, file: &str, section: &str, column: &str) -> JudgedCriterion {
    let mut experiments = suite::experiments(&request(law, &["cubic"])).expect("the suite is well-formed");
    experiments.retain(|experiment| experiment.name() == file);
    for experiment in &mut experiments {
        experiment.claims.retain(|claim| claim.item == section && claim.column == column);
        experiment.figures.clear();
    }
    let options = reproduce::Options { jobs: NonZeroUsize::MIN, seeds: Some(1) };
    let outcome = reproduce::reproduce(&experiments, options, |_, _| {}).expect("the suite is well-formed");
    let criteria = criteria::criteria().expect("the table is well-formed");
    let judged = judge::judge(criteria, &outcome).into_iter().find(|criterion| criterion.section == section);
    judged.expect("the section is in the table")
}

/// [Wei06] 4: in equilibrium the rate of a flow is alpha over the queueing delay. 20 packets in the 333 ms that CUBIC keeps full are 0.7 of 18.6 Mbit/s, and half of them are a fair share.
#[test]
fn a_law_that_starves_beside_a_full_buffer_is_told_so() {
    let fast = ruling("fast", "beside-cubic", "5.2", "8");
    assert_eq!((fast.ruling, fast.met, fast.claims), (Ruling::Missed, 0, 1), "{}", fast.sentence);
    assert!(fast.sentence.starts_with("1 of 1 bounds missed: The lesser of the two"), "{}", fast.sentence);
    assert!(
        fast.sentence.contains("(buffer 8): 0.0") && fast.sentence.ends_with("at least 0.10 is asked."),
        "{}",
        fast.sentence
    );
    let cubic = ruling("cubic", "beside-cubic", "5.2", "8");
    assert_eq!(cubic.ruling, Ruling::Met, "{}", cubic.sentence);
}

/// With a buffer of 8 bandwidth-delay products, a delay-based law has almost no queueing delay, and CUBIC fills the buffer.
#[test]
fn cubic_misses_bufferbloat_and_a_law_of_delay_does_not() {
    let rulings = ["cubic", "vegas"].map(|law| ruling(law, "alone", "5.1.2", "8").ruling);
    assert_eq!(rulings, [Ruling::Missed, Ruling::Met]);
}

#[test]
fn criterion_without_run_is_not_judged() {
    let nothing = ruling("reno", "alone", "5.1.2", "no such column");
    assert_eq!((nothing.ruling, nothing.claims), (Ruling::NotJudged, 0));
}

/// The settings of a law appear only with its name: the rival that replaces it in the comparison does not get them, and the law does not get the rival's.
#[test]
fn settings_follow_their_law() {
    let request = request("fast,alpha=7", &["cubic,slow_start=hystart"]);
    let experiments = suite::experiments(&request).expect("the suite is well-formed");
    let beside = experiments.iter().find(|one| one.name() == "beside-cubic-slow_start-hystart").expect("one a rival");
    let text = beside.source();
    let count = |part: &str| text.matches(part).count();
    assert_eq!(count("cc = { name = \"fast\", alpha = 7 }"), 1, "{text}");
    assert_eq!(count("cc = { name = \"cubic\", slow_start = \"hystart\" }"), 1, "{text}");
    assert_eq!(count("\"flow.f.cc\" = { name = \"cubic\", slow_start = \"hystart\" }"), 1, "{text}");
    assert!(text.contains("Goodput of cubic,slow_start=hystart beside it"), "{text}");
}

#[test]
fn the_command_runs_the_same_again() {
    let asked = request("reno", &["cubic", "vegas"]);
    assert_eq!(asked.command(), "anabranch eval --cc reno --against cubic,vegas --quick");
    assert_eq!(
        Request { quick: false, seeds: Some(9), ..asked }.command(),
        "anabranch eval --cc reno --against cubic,vegas --seeds 9"
    );
}
