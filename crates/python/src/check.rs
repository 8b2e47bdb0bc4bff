//! Checks a Python controller against the rules for every law.

use anabranch_cc::conformance;
use anabranch_cc::registry::{LossContract, LossResponse};
use pyo3::prelude::*;

use crate::controller::{self, Faults};
use crate::error::ControllerError;

/// Plays random but legal event sequences to controllers that `make` creates, each sequence twice. Raises `ControllerError` with a short sequence
/// that shows a violation. `loss` says which losses by duplicate ACKs shrink the window: `shrinks` all of them, `shrinks_unless_random` all but
/// random ones, `may_hold` some, `holds` none. A window of at most `shrinks_above` segments need not shrink. After a timeout the window is at most
/// `timeout_window_max`.
#[pyfunction]
#[pyo3(signature = (make, *, loss = "shrinks", shrinks_above = 2.0, timeout_window_max = 1.0, cases = 200))]
pub(crate) fn check(
    py: Python<'_>,
    make: Py<PyAny>,
    loss: &str,
    shrinks_above: f64,
    timeout_window_max: f64,
    cases: u32,
) -> PyResult<()> {
    let citation = "";
    let loss = match loss {
        "shrinks" => LossResponse::Shrinks,
        "shrinks_unless_random" => LossResponse::ShrinksUnlessRandom { citation },
        "may_hold" => LossResponse::MayHold { citation },
        "holds" => LossResponse::Holds { citation },
        other => {
            let message =
                format!("loss is `{other}`; write \"shrinks\", \"shrinks_unless_random\", \"may_hold\" or \"holds\"");
            return Err(ControllerError::new_err(message));
        }
    };
    let faults = Faults::default();
    let name = controller::name(make.bind(py));
    let law = controller::law(make, &faults);
    let contract = LossContract { shrinks_above, timeout_window_max, loss };
    let make = || {
        // Ctrl-C is checked between two sequences; each takes a moment.
        if let Err(error) = py.check_signals() {
            faults.add(error);
        }
        law.row().build(&law)
    };
    let outcome = conformance::check(&make, &contract, cases);
    faults.raise()?;
    outcome.map_err(|violation| ControllerError::new_err(format!("{name}: {violation}")))
}
