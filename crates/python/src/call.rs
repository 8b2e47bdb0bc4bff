//! A method of a controller that is called often: with the same arguments, filled again each time.
//!
//! If a call has kept an argument, the next call gets new ones, so a kept value never changes.

use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::PyTuple;

use crate::events::Refill;

/// A method that takes two events.
pub(crate) struct Call<A: PyClass<Frozen = True>, B: PyClass<Frozen = True>> {
    callable: Py<PyAny>,
    /// The first argument of a method's function: its object. Python puts it before the arguments of a bound method at each call.
    object: Option<Py<PyAny>>,
    arguments: Option<Arguments<A, B>>,
}

struct Arguments<A, B> {
    all: Py<PyTuple>,
    first: Py<A>,
    second: Py<B>,
}

impl<A, B> Call<A, B>
where
    A: PyClass<Frozen = True> + Refill + Sync + Into<PyClassInitializer<A>>,
    B: PyClass<Frozen = True> + Refill + Sync + Into<PyClassInitializer<B>>,
{
    pub(crate) fn new(py: Python<'_>, method: Py<PyAny>) -> PyResult<Self> {
        let bound = method.bind(py);
        let is_method = bound.get_type().is(&py.import("types")?.getattr("MethodType")?);
        let (callable, object) = match is_method {
            true => (bound.getattr("__func__")?.unbind(), Some(bound.getattr("__self__")?.unbind())),
            false => (method, None),
        };
        Ok(Self { callable, object, arguments: None })
    }

    pub(crate) fn call(&mut self, py: Python<'_>, first: &A::Event, second: &B::Event) -> PyResult<()> {
        let Self { callable, object, arguments } = self;
        let arguments = match arguments {
            Some(found) => {
                found.first.get().facts().replace(py, *first);
                found.second.get().facts().replace(py, *second);
                found
            }
            None => arguments.insert(Arguments::new(py, object.as_ref(), *first, *second)?),
        };
        callable.bind(py).call1(arguments.all.bind(py))?;
        if arguments.are_kept(py) {
            self.arguments = None;
        }
        Ok(())
    }
}

impl<A, B> Arguments<A, B>
where
    A: PyClass + Refill + Into<PyClassInitializer<A>>,
    B: PyClass + Refill + Into<PyClassInitializer<B>>,
{
    fn new(py: Python<'_>, object: Option<&Py<PyAny>>, first: A::Event, second: B::Event) -> PyResult<Self> {
        let (first, second) = (Py::new(py, A::new(first))?, Py::new(py, B::new(second))?);
        let events = [first.bind(py).as_any(), second.bind(py).as_any()];
        let all = PyTuple::new(py, object.map(|object| object.bind(py)).into_iter().chain(events).collect::<Vec<_>>())?;
        Ok(Self { all: all.unbind(), first, second })
    }

    /// Whether a call has kept an argument. The tuple has one reference, `all`; an argument has two, the tuple's and ours.
    fn are_kept(&self, py: Python<'_>) -> bool {
        references(py, &self.first) > 2 || references(py, &self.second) > 2 || references(py, &self.all) > 1
    }
}

/// The reference count of an object.
#[expect(
    unsafe_code,
    reason = "there is no safe question for it, and it only reads the count of an object that we hold"
)]
fn references<T>(_py: Python<'_>, object: &Py<T>) -> isize {
    // SAFETY: `object` is a reference, so what it refers to is alive; the thread is attached to the interpreter.
    unsafe { pyo3::ffi::Py_REFCNT(object.as_ptr()) }
}
