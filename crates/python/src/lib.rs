//! The Python module: a binding of the laboratory. It translates between Rust and Python and has no logic of its own.
//!
//! From the top:
//!
//! * `evaluation` evaluates a law against the criteria of RFC 9743, `field` on random networks, and `reproduction` runs the papers' experiments. `grid` runs every combination of
//!   values, in this process or in parts by workers; `sweep` has its results. `run` runs one scenario, and `results` has its results.
//! * `own` gives Python laws to documents; `controller` lets a Python class control a path; `call` calls its frequent hooks; `events` are the arguments of
//!   its hooks, which `facts` lets Rust fill again; `check` tests it against the rules for every law.
//! * `episodes` are runs that wait for Python to choose a window, for reinforcement learning.
//! * `scenario` reads, builds and edits a scenario as text; `values` converts between Python values and TOML.
//! * `net` is the transport on the network, for asyncio.
//! * `table` is a table for every library that supports Arrow's PyCapsule interface.
//! * `error` converts the laboratory's errors to exceptions.
//!
//! Plots, progress bars and notebook support are written in Python: `crates/python/anabranch/`.

mod call;
mod check;
mod controller;
mod episodes;
mod error;
mod evaluation;
mod events;
mod facts;
mod field;
mod grid;
mod net;
mod own;
mod reproduction;
mod results;
mod run;
mod scenario;
mod sweep;
mod table;
mod values;

/// The part of the package `anabranch` that is written in Rust.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::check::check;
    #[pymodule_export]
    use crate::controller::Controller;
    #[pymodule_export]
    use crate::episodes::Episodes;
    #[pymodule_export]
    use crate::error::{ControllerError, Error, ScenarioError};
    #[pymodule_export]
    use crate::evaluation::{Evaluation, evaluate_law};
    #[pymodule_export]
    use crate::events::{Ack, Departure, Loss, PathSummary, PathView, Progress, Round, Sent};
    #[pymodule_export]
    use crate::field::{Field, field_of_law};
    #[pymodule_export]
    use crate::grid::{Grid, run_places};
    #[pymodule_export]
    use crate::net::net;
    #[pymodule_export]
    use crate::reproduction::{Reproduction, reproduce_papers};
    #[pymodule_export]
    use crate::results::{Run, restore_run};
    #[pymodule_export]
    use crate::run::run_scenario;
    #[pymodule_export]
    use crate::scenario::{Scenario, restore_scenario};
    #[pymodule_export]
    use crate::sweep::Sweep;
    #[pymodule_export]
    use crate::table::{Table, restore_table};

    /// The version of the laboratory.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "it is a name of Python's")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
