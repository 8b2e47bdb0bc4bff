//! What the page asks for.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A request.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    /// The laws and queues that there are.
    About,
    /// A law that is a module of its own.
    Law {
        /// The name of its file.
        name: String,
    },
    /// The axes of a file.
    Open {
        /// The file.
        file: File,
    },
    /// A run.
    Run {
        /// The file.
        file: File,
        /// The labels of the variant, axis by axis; the first value of each axis if empty.
        #[serde(default)]
        variant: Vec<String>,
        /// Another seed than the file's.
        seed: Option<u64>,
        /// The part of the run whose packets are wanted, in seconds.
        packets: Option<(f64, f64)>,
        /// The part of the run that is drawn in more detail, in seconds.
        view: Option<(f64, f64)>,
    },
}

/// A scenario or an experiment.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// What messages call it.
    pub(crate) name: String,
    /// Its text.
    pub(crate) text: String,
    /// The files that it may extend, by their names.
    #[serde(default)]
    pub(crate) bases: BTreeMap<String, String>,
    /// `key=value`, as after `--set`.
    #[serde(default)]
    pub(crate) set: Vec<String>,
    /// The laws that it may name and the registry has not, by the names of their modules.
    #[serde(default)]
    pub(crate) laws: Vec<String>,
}
