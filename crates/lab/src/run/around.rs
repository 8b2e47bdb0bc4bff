//! What the laws of a calling program need around a run.

use std::sync::Arc;

use crate::own::{Maker, OwnLaw};
use crate::scenario::Scenario;

/// Calls `run`, a run of the scenario, within [`Maker::around`] of each law in it.
pub(super) fn around<T>(scenario: &Scenario, run: impl FnOnce() -> T) -> T {
    let mut makers: Vec<&dyn Maker> = Vec::new();
    for flow in &scenario.flows {
        if let Some(OwnLaw::Made(maker)) = &flow.own
            && !makers.iter().any(|&other| std::ptr::addr_eq(other, Arc::as_ptr(maker)))
        {
            makers.push(&**maker);
        }
    }
    let (mut run, mut result) = (Some(run), None);
    nest(&makers, &mut || {
        if let Some(run) = run.take() {
            result = Some(run());
        }
    });
    result.expect("`Maker::around` calls its argument")
}

fn nest(makers: &[&dyn Maker], run: &mut dyn FnMut()) {
    match makers {
        [] => run(),
        [maker, others @ ..] => maker.around(&mut || nest(others, run)),
    }
}
