//! Laws written in Python, for documents: a class, or another callable that makes controllers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use anabranch_cc::Settings;
use anabranch_lab::own::{self, Given, Maker, Own};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};
use toml_edit::{InlineTable, Value};

use crate::controller::{self, Controller, Faults, Raised};
use crate::error::Error;
use crate::values;

/// A law written in Python.
pub(crate) struct PythonLaw {
    make: Py<PyAny>,
    name: String,
    summary: String,
    digest: String,
    /// Whether it is asked at each ACK or segment.
    is_asked_often: bool,
    raised: Raised,
}

impl PythonLaw {
    fn new(make: &Bound<'_, PyAny>, digest: String, raised: &Raised) -> PyResult<Self> {
        let py = make.py();
        let base = py.get_type::<Controller>();
        let is_asked_often = match make.cast::<PyType>() {
            Ok(class) if class.is_subclass(&base)? => {
                let is_own = |hook| Ok::<_, PyErr>(!class.getattr(hook)?.is(&base.getattr(hook)?));
                is_own("on_ack")? || is_own("on_sent")?
            }
            _ => true,
        };
        let summary = make.getattr(intern!(py, "__doc__")).ok().and_then(|text| text.extract::<String>().ok());
        let summary = summary.and_then(|text| text.trim().lines().next().map(str::to_owned)).unwrap_or_default();
        let (make, name) = (make.clone().unbind(), controller::name(make));
        Ok(Self { make, name, summary, digest, is_asked_often, raised: raised.clone() })
    }
}

impl fmt::Debug for PythonLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonLaw").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Maker for PythonLaw {
    fn name(&self) -> &str {
        &self.name
    }

    fn summary(&self) -> &str {
        &self.summary
    }

    fn digest(&self) -> &str {
        &self.digest
    }

    fn settings(&self, flow: &str, faults: &own::Faults) -> Settings {
        let make = Python::attach(|py| self.make.clone_ref(py));
        controller::law(make, &Faults::of_run(self.raised.clone(), faults.clone(), flow.to_owned()))
    }

    /// One thread at a time runs Python. A law that is asked often needs the interpreter all the time, so its run keeps it; the interpreter lets
    /// others in by itself. Other runs take it for each hook, and so run beside each other.
    fn around(&self, run: &mut dyn FnMut()) {
        match self.is_asked_often {
            true => Python::attach(|_| run()),
            false => run(),
        }
    }
}

/// The Python laws of a call, by their names in documents.
#[derive(Default)]
pub(crate) struct Laws {
    laws: BTreeMap<String, Arc<PythonLaw>>,
    /// The first exception of all of them.
    pub(crate) raised: Raised,
}

impl Laws {
    /// Adds a law for a single run, which nobody looks for by its content.
    pub(crate) fn for_run(&self, make: &Bound<'_, PyAny>) -> PyResult<Arc<dyn Maker>> {
        Ok(Arc::new(PythonLaw::new(make, String::new(), &self.raised)?))
    }

    /// Adds a law, and returns its name in documents.
    pub(crate) fn add(&mut self, make: &Bound<'_, PyAny>) -> PyResult<String> {
        self.made(make).map(|law| law.name.clone())
    }

    /// Adds a law.
    pub(crate) fn made(&mut self, make: &Bound<'_, PyAny>) -> PyResult<Arc<PythonLaw>> {
        let digest = digest(make)?;
        let law = PythonLaw::new(make, digest, &self.raised)?;
        if let Some(known) = self.laws.get(&law.name) {
            if known.digest != law.digest {
                let message =
                    format!("two different laws are called `{0}`; give one of them another `__name__`", law.name);
                return Err(Error::new_err(message));
            }
            return Ok(Arc::clone(known));
        }
        let law = Arc::new(law);
        self.laws.insert(law.name.clone(), Arc::clone(&law));
        Ok(law)
    }

    /// Adds a law that a driver sent, after checking that it is the same. `python` is the version of the driver's interpreter: another version has
    /// other code for the same text, so there is nothing to compare.
    pub(crate) fn receive(&mut self, name: &str, make: &Bound<'_, PyAny>, sent: &str, python: &str) -> PyResult<()> {
        if python == version(make.py())? && digest(make)? != sent {
            return Err(Error::new_err(format!(
                "a worker has another version of the law `{name}`, whose runs may differ; give it the same file, or start it anew"
            )));
        }
        let law = PythonLaw::new(make, sent.to_owned(), &self.raised)?;
        self.laws.insert(name.to_owned(), Arc::new(law));
        Ok(())
    }

    /// The laws, for documents.
    pub(crate) fn given(&self) -> Given {
        let made = |law: &Arc<PythonLaw>| Own::Made(Arc::clone(law) as Arc<dyn Maker>);
        self.laws.iter().map(|(name, law)| (name.clone(), made(law))).collect()
    }

    /// For a driver's workers: the name, the law and its digest.
    pub(crate) fn sent(&self, py: Python<'_>) -> Vec<(String, Py<PyAny>, String)> {
        self.laws.iter().map(|(name, law)| (name.clone(), law.make.clone_ref(py), law.digest.clone())).collect()
    }

    /// The value of `cc` in a document: a name, a table with a name, or a law written in Python.
    pub(crate) fn cc_of(&mut self, law: &Bound<'_, PyAny>) -> PyResult<Value> {
        let entry = |key: &str, value: String| Value::InlineTable(InlineTable::from_iter([(key, Value::from(value))]));
        if law.is_callable() {
            return Ok(entry("plugin", self.add(law)?));
        }
        if let Ok(name) = law.cast::<PyString>() {
            return Ok(entry("name", name.to_cow()?.into_owned()));
        }
        match values::to_toml(law)? {
            table @ Value::InlineTable(_) => Ok(table),
            _ => Err(no_law(law)),
        }
    }
}

/// The error for a value that is no law.
pub(crate) fn no_law(law: &Bound<'_, PyAny>) -> PyErr {
    let what = law.repr().map_or_else(|_| "this".to_owned(), |text| text.to_string());
    PyTypeError::new_err(format!(
        "{what} is no law; give a name, a dict with a name, or a class that extends anabranch.Controller"
    ))
}

/// Whether a key of a document is the law of a flow.
pub(crate) fn is_law(key: &str) -> bool {
    key.rsplit('.').next() == Some("cc")
}

/// See `_digest.py`.
fn digest(make: &Bound<'_, PyAny>) -> PyResult<String> {
    make.py().import("anabranch._digest")?.call_method1("digest", (make,))?.extract()
}

/// The version of the interpreter: `3.11`.
pub(crate) fn version(py: Python<'_>) -> PyResult<String> {
    let info = py.version_info();
    Ok(format!("{}.{}", info.major, info.minor))
}
