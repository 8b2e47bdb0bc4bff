//! The laboratory's errors as Python exceptions with the same messages.

use anabranch_lab::diagnostic::{Diagnostic, Place};
use anabranch_lab::expression::ExpressionError;
use pyo3::PyErr;
use pyo3::exceptions::PyException;

pyo3::create_exception!(
    anabranch,
    Error,
    PyException,
    "Everything that anabranch raises, but for what Python itself does."
);
pyo3::create_exception!(
    anabranch,
    ScenarioError,
    Error,
    "Something is wrong with a scenario or with what is to be set in it: where, what, and what to do."
);
pyo3::create_exception!(
    anabranch,
    ControllerError,
    Error,
    "A controller did what none may: a window that is no number, a hook that is none."
);

/// The error as the command line prints it: `chain.toml:9:1: unknown key `quque`; did you mean `queue`?`.
pub(crate) fn of_scenario(diagnostic: Diagnostic) -> PyErr {
    match diagnostic.place {
        Place::Run => ControllerError::new_err(diagnostic.to_string()),
        _ => ScenarioError::new_err(diagnostic.to_string()),
    }
}

/// An expression that a run cannot evaluate.
pub(crate) fn of_question(error: ExpressionError) -> PyErr {
    Error::new_err(error.to_string())
}
