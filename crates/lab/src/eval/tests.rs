use super::*;

fn request(law: &str, against: &[&str]) -> Request {
    let find = |name: &str| registry::find(name).expect("a law of the registry");
    Request {
        law: find(law),
        against: against.iter().map(|name| find(name)).collect(),
        quick: true,
        jobs: NonZeroUsize::MIN,
        seeds: None,
    }
}

#[test]
fn every_claim_belongs_to_a_criterion_and_every_criterion_has_claims_or_a_reason() {
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
