use super::*;

fn request(aim: Aim, steps: u32, jobs: usize) -> Request {
    Request {
        law: Contender::parse("reno").unwrap(),
        against: vec![Contender::parse("cubic").unwrap()],
        aim,
        families: vec![Family::Alone, Family::Policer],
        seed: 3,
        steps,
        jobs: NonZeroUsize::new(jobs).unwrap(),
    }
}

/// Reno fills any queue: four round trips is the largest buffer, but a queue of four packets is longer on a slow and short link.
#[test]
fn search_finds_long_queue_of_reno() {
    let mut steps = Vec::new();
    let found = run(&Request { families: vec![Family::Alone], ..request(Aim::Delay, 44, 2) }, |step, found| {
        steps.push((step, found.value));
        ControlFlow::Continue(())
    });
    let found = found.unwrap().unwrap();
    assert_eq!(steps.iter().map(|(step, _)| *step).collect::<Vec<_>>(), [8, 16, 24, 32, 40, 44]);
    let rtt = found.facts.iter().find(|fact| fact.name == "rtt_ms").unwrap().value;
    assert!(found.value > 2.5 * rtt, "{} ms of {rtt} ms", found.value);
    let file = found.file("anabranch eval --attack");
    assert!(file.starts_with(&format!("# queue {:.4} ms: ", found.value)), "{file}");
    assert!(file.contains("of 44 of\n# anabranch eval --attack\nseed = "), "{file}");
}

/// The number of threads changes nothing, and a longer search begins with the shorter one.
#[test]
fn search_same_on_any_number_of_threads() {
    let search = |steps, jobs| {
        let mut values = Vec::new();
        run(&request(Aim::Use, steps, jobs), |_, found| {
            values.push(found.value);
            ControlFlow::Continue(())
        })
        .unwrap();
        values
    };
    let [short, long] = [search(24, 1), search(40, 2)];
    assert_eq!(short, long[..3]);
    assert!(long.is_sorted_by(|earlier, later| earlier >= later), "{long:?}");
}

#[test]
fn search_stopped_has_worst_so_far() {
    let found = run(&request(Aim::Use, 1000, 2), |_, _| ControlFlow::Break(())).unwrap().unwrap();
    assert_eq!(found.steps, 8);
}

#[test]
fn search_without_figure_finds_nothing() {
    let found = run(&request(Aim::Share, 8, 1), |_, _| ControlFlow::Continue(())).unwrap();
    assert!(found.is_none());
}
