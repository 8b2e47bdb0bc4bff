//! The Python module: what the laboratory can do, in Python's words. It translates and nothing else.
//!
//! From the top:
//!
//! * `evaluation` puts a law before the criteria of RFC 9743, and `reproduction` runs the papers' experiments. `grid` runs every combination of
//!   values, here or in parts elsewhere, and `sweep` is what comes of it. `run` runs one scenario, and `results` is what is known of it then.
//! * `controller` lets a class of Python's drive a path, told what happens by `events`; `check` holds it to what every law must do.
//! * `episodes` are runs that wait for Python to choose a window, for those who learn.
//! * `scenario` is a scenario as text that can be built; `values` makes TOML of Python's values.
//! * `net` is the transport on the network, for asyncio.
//! * `table` is a table that any library reads which knows Arrow's PyCapsule interface.
//! * `error` makes exceptions of what the laboratory says is wrong.
//!
//! What draws, shows progress or talks to a notebook is Python: `python/anabranch/`.

mod check;
mod controller;
mod episodes;
mod error;
mod evaluation;
mod events;
mod grid;
mod net;
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
    use crate::grid::{Grid, run_places};
    #[pymodule_export]
    use crate::net::net;
    #[pymodule_export]
    use crate::reproduction::{Reproduction, reproduce_papers};
    #[pymodule_export]
    use crate::results::Run;
    #[pymodule_export]
    use crate::run::run_scenario;
    #[pymodule_export]
    use crate::scenario::Scenario;
    #[pymodule_export]
    use crate::sweep::Sweep;
    #[pymodule_export]
    use crate::table::Table;

    /// The version of the laboratory.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "it is a name of Python's")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
