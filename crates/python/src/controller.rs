//! A congestion law written in Python: the base class, and the adapter between its objects and a path.
//!
//! Only hooks that a class overrides are called; the others cost nothing. The arguments of a hook are created once and filled again for each call
//! ([`call`](crate::call)), so a call creates no object but those of its body. `window` is read once after each hook; between hooks the path reads this
//! copy and does not call Python.
//!
//! A hook that raises ends the run: the first exception is kept in [`Faults`], and no hook is called after it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_cc::registry::INITIAL_WINDOW;
use anabranch_cc::{self as cc, Ect, Gauges, PathView as View, Reduction, Restart, WINDOW_MIN};
use anabranch_lab::own;
use anabranch_units::Rate;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::call::Call;
use crate::error::ControllerError;
use crate::events::{self, Ack, Loss, PathSummary, PathView, Refill as _, Round, Sent};
use crate::facts::Facts;

/// A congestion law: it sets the window of one path. Extend it and override hooks; `window` is in segments.
#[pyclass(frozen, subclass, module = "anabranch")]
pub(crate) struct Controller {
    pacing_rate: Facts<Option<f64>>,
    /// The window before the latest loss, until that loss is undone.
    before_loss: Facts<Option<f64>>,
}

#[pymethods]
impl Controller {
    /// Accepts any arguments, for the constructors of subclasses.
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self { pacing_rate: Facts::new(None), before_loss: Facts::new(None) }
    }

    /// The rate at which segments should leave, in bit/s; `None` leaves it to the ACKs.
    #[getter]
    fn pacing_rate(&self, py: Python<'_>) -> Option<f64> {
        self.pacing_rate.read(py)
    }

    #[setter]
    fn set_pacing_rate(&self, py: Python<'_>, rate: Option<f64>) {
        self.pacing_rate.replace(py, rate);
    }

    /// The congestion window in segments: the limit of the flight; finite and at least 1.
    #[classattr]
    fn window() -> f64 {
        INITIAL_WINDOW
    }

    /// How the flight falls to the window after a loss: `at_once` or `proportional`.
    #[classattr]
    fn reduction() -> &'static str {
        AT_ONCE
    }

    /// The ECN codepoint of its segments, where the path uses ECN: `zero`, `one`, or `None` for a law that does not react to marks.
    #[classattr]
    fn ect() -> &'static str {
        ZERO
    }

    /// A segment was sent.
    fn on_sent(&self, view: &Bound<'_, PyAny>, sent: &Bound<'_, PyAny>) {
        let _ = (view, sent);
    }

    /// An ACK arrived that acknowledged something new.
    fn on_ack(&self, view: &Bound<'_, PyAny>, ack: &Bound<'_, PyAny>) {
        let _ = (view, ack);
    }

    /// A round ended.
    fn on_round(&self, view: &Bound<'_, PyAny>, round: &Bound<'_, PyAny>) {
        let _ = (view, round);
    }

    /// Data was lost. The default is Reno's: half the window, or one segment after a timeout.
    fn on_loss(slf: &Bound<'_, Self>, view: &Bound<'_, PyAny>, loss: &Bound<'_, Loss>) -> PyResult<()> {
        let _ = view;
        let window = window_of(slf)?;
        let after = if loss.get().is_timeout(slf.py()) { WINDOW_MIN } else { window.min(cc::law::reno::halve(window)) };
        slf.setattr(intern!(slf.py(), WINDOW), after)
    }

    /// Fast recovery is over.
    fn on_recovered(&self, view: &Bound<'_, PyAny>) {
        let _ = view;
    }

    /// The latest loss was spurious. By default the window is at least what it was before that loss.
    fn on_undo(slf: &Bound<'_, Self>, view: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = view;
        let (py, kept) = (slf.py(), &slf.get().before_loss);
        let Some(before) = kept.read(py) else { return Ok(()) };
        kept.replace(py, None);
        slf.setattr(intern!(py, WINDOW), window_of(slf)?.max(before))
    }

    /// Sending starts or restarts: `established`, `idle`, `after_timeout` or `path_changed`. By default the window is at most the initial one after
    /// an idle period, and is the initial one on another path.
    fn on_restart(slf: &Bound<'_, Self>, view: &Bound<'_, PyAny>, restart: &str) -> PyResult<()> {
        let _ = view;
        let initial = || slf.get_type().getattr(intern!(slf.py(), WINDOW))?.extract::<f64>();
        let window = match restart {
            "idle" => window_of(slf)?.min(initial()?),
            "path_changed" => initial()?,
            _ => return Ok(()),
        };
        slf.setattr(intern!(slf.py(), WINDOW), window)
    }

    /// Called once a round if the connection has several paths, with all of them.
    fn on_group(&self, view: &Bound<'_, PyAny>, group: &Bound<'_, PyAny>) {
        let _ = (view, group);
    }

    /// Numbers for traces: a dict with at most 16 entries.
    fn gauges<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let gauges = PyDict::new(slf.py());
        gauges.set_item(WINDOW, window_of(slf)?)?;
        Ok(gauges)
    }
}

const WINDOW: &str = "window";
const AT_ONCE: &str = "at_once";
const PROPORTIONAL: &str = "proportional";
const ZERO: &str = "zero";
const ONE: &str = "one";

fn window_of(controller: &Bound<'_, Controller>) -> PyResult<f64> {
    controller.getattr(intern!(controller.py(), WINDOW))?.extract()
}

/// The first exception that the hooks of a call's laws raised, in whatever run.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// Raises the exception, if there is one.
    pub(crate) fn raise(&self) -> PyResult<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

/// The first exception that the hooks of a run raised: as an object, and as the text that ends the run.
#[derive(Clone, Default)]
pub(crate) struct Faults {
    raised: Raised,
    run: own::Faults,
    /// Before the text: the flow.
    about: String,
}

impl Faults {
    /// For the controllers of one flow.
    pub(crate) fn of_run(raised: Raised, run: own::Faults, about: String) -> Self {
        Self { raised, run, about }
    }

    /// Whether a hook has raised.
    pub(crate) fn is_any(&self) -> bool {
        self.run.is_any()
    }

    /// Raises the exception, if there is one.
    pub(crate) fn raise(&self) -> PyResult<()> {
        self.raised.raise()
    }

    /// Keeps the exception if it is the first.
    pub(crate) fn add(&self, error: PyErr) {
        if self.is_any() {
            return;
        }
        self.run.add(format!("{}{}", self.about, Python::attach(|py| text_of(py, &error))));
        self.raised.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// An exception in a line: its type, its message, and where it was raised.
fn text_of(py: Python<'_>, error: &PyErr) -> String {
    let message = match error.is_instance_of::<ControllerError>(py) {
        true => error.value(py).to_string(),
        false => error.to_string(),
    };
    let at = || {
        let mut last = error.traceback(py)?.into_any();
        while let Some(next) = last.getattr("tb_next").ok().filter(|next| !next.is_none()) {
            last = next;
        }
        let file: String =
            last.getattr("tb_frame").ok()?.getattr("f_code").ok()?.getattr("co_filename").ok()?.extract().ok()?;
        Some(format!(" ({file}, line {})", last.getattr("tb_lineno").ok()?))
    };
    message + &at().unwrap_or_default()
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faults")
    }
}

/// A law that creates a controller for each path with `make`, a class or another callable.
pub(crate) fn law(make: Py<PyAny>, faults: &Faults) -> cc::Settings {
    let faults = faults.clone();
    cc::own::settings(move || {
        let adapter = Python::attach(|py| Adapter::new(py, make.bind(py), &faults));
        match adapter {
            Ok(adapter) => Box::new(adapter),
            Err(error) => {
                faults.add(error);
                Box::new(Adapter::idle(&faults))
            }
        }
    })
}

/// The name of a law: the name of its class.
pub(crate) fn name(make: &Bound<'_, PyAny>) -> String {
    let name = make.getattr(intern!(make.py(), "__name__")).and_then(|name| name.extract());
    name.unwrap_or_else(|_| "own".to_owned())
}

/// Adapts a Python object to a path.
struct Adapter {
    /// `None` if the object could not be created.
    object: Option<Py<Controller>>,
    hooks: Hooks,
    window: f64,
    pacing_rate: Option<Rate>,
    reduction: Reduction,
    ect: Option<Ect>,
    faults: Faults,
}

/// The hooks that a class overrides, and the hooks with a default action.
#[derive(Default)]
struct Hooks {
    sent: Option<Call<PathView, Sent>>,
    ack: Option<Call<PathView, Ack>>,
    round: Option<Call<PathView, Round>>,
    loss: Option<Call<PathView, Loss>>,
    recovered: Option<Py<PyAny>>,
    undo: Option<Py<PyAny>>,
    restart: Option<Py<PyAny>>,
    group: Option<Py<PyAny>>,
    gauges: Option<Py<PyAny>>,
}

impl Adapter {
    fn new(py: Python<'_>, make: &Bound<'_, PyAny>, faults: &Faults) -> PyResult<Self> {
        let made = make.call0()?;
        let Ok(object) = made.cast_into::<Controller>() else {
            let message = format!("{} makes no controller; let the class extend anabranch.Controller", make.repr()?);
            return Err(PyTypeError::new_err(message));
        };
        let (class, base) = (object.get_type(), py.get_type::<Controller>());
        let is_own = |name: &str| Ok::<_, PyErr>(!class.getattr(name)?.is(&base.getattr(name)?));
        if let Some(wrong) = unknown_hook(&class, &base)? {
            let known: Vec<&str> = HOOKS.iter().copied().filter(|hook| hook.starts_with("on_")).collect();
            let message = format!("{}.{wrong} is no hook; there are {}", class.qualname()?, known.join(", "));
            return Err(ControllerError::new_err(message));
        }
        let method = |name: &str| object.getattr(name).map(Bound::unbind);
        let own = |name: &str| is_own(name)?.then(|| method(name)).transpose();
        let hooks = Hooks {
            sent: own("on_sent")?.map(|it| Call::new(py, it)).transpose()?,
            ack: own("on_ack")?.map(|it| Call::new(py, it)).transpose()?,
            round: own("on_round")?.map(|it| Call::new(py, it)).transpose()?,
            loss: Some(Call::new(py, method("on_loss")?)?),
            recovered: own("on_recovered")?,
            undo: Some(method("on_undo")?),
            restart: Some(method("on_restart")?),
            group: own("on_group")?,
            gauges: own("gauges")?,
        };
        let reduction = object.getattr("reduction")?;
        let reduction = match reduction.extract::<String>().as_deref() {
            Ok(AT_ONCE) => Reduction::AtOnce,
            Ok(PROPORTIONAL) => Reduction::Proportional,
            _ => {
                let class = class.qualname()?;
                let message =
                    format!("{class}.reduction is {}; write \"{AT_ONCE}\" or \"{PROPORTIONAL}\"", reduction.repr()?);
                return Err(ControllerError::new_err(message));
            }
        };
        let ect = object.getattr("ect")?;
        let ect = match ect.extract::<Option<String>>().as_ref().map(Option::as_deref) {
            Ok(None) => None,
            Ok(Some(ZERO)) => Some(Ect::Zero),
            Ok(Some(ONE)) => Some(Ect::One),
            _ => {
                let class = class.qualname()?;
                let message = format!("{class}.ect is {}; write \"{ZERO}\", \"{ONE}\" or None", ect.repr()?);
                return Err(ControllerError::new_err(message));
            }
        };
        let mut adapter = Self {
            object: Some(object.unbind()),
            hooks,
            window: WINDOW_MIN,
            pacing_rate: None,
            reduction,
            ect,
            faults: faults.clone(),
        };
        adapter.read(py, "__init__", None)?;
        Ok(adapter)
    }

    /// A placeholder for a controller that could not be created, until the run ends.
    fn idle(faults: &Faults) -> Self {
        let (hooks, reduction) = (Hooks::default(), Reduction::AtOnce);
        Self {
            object: None,
            hooks,
            window: WINDOW_MIN,
            pacing_rate: None,
            reduction,
            ect: None,
            faults: faults.clone(),
        }
    }

    /// Calls a hook and reads the window and the rate, unless a hook has failed before.
    fn tell(&mut self, name: &'static str, view: &View, call: impl FnOnce(Python<'_>, &mut Self) -> PyResult<()>) {
        if self.faults.is_any() {
            return;
        }
        let told = Python::attach(|py| {
            call(py, self)?;
            self.read(py, name, Some(view))
        });
        if let Err(error) = told {
            self.faults.add(error);
        }
    }

    /// Reads the window and the rate.
    fn read(&mut self, py: Python<'_>, hook: &str, view: Option<&View>) -> PyResult<()> {
        let Some(object) = &self.object else { return Ok(()) };
        let object = object.bind(py);
        let window = window_of(object)?;
        if !(window.is_finite() && window >= WINDOW_MIN) {
            return Err(not_legal(
                object,
                hook,
                view,
                &format!("window is {window}"),
                "a finite number of segments, at least 1",
            ));
        }
        let rate = object.get().pacing_rate.read(py);
        // Below one bit per second no segment would ever leave.
        if rate.is_some_and(|rate| !(rate.is_finite() && rate >= 1.0)) {
            let is = format!("pacing_rate is {}", rate.unwrap_or_default());
            return Err(not_legal(object, hook, view, &is, "a number of bit/s, at least 1, or None"));
        }
        self.window = window;
        self.pacing_rate = rate.map(|rate| Rate::from_bits_per_second(rate as u64));
        Ok(())
    }
}

/// All hooks that a class may override.
const HOOKS: [&str; 9] =
    ["on_sent", "on_ack", "on_round", "on_loss", "on_recovered", "on_undo", "on_restart", "on_group", "gauges"];

/// A method of a class or of its bases with a name like a hook that is no hook: it would never be called.
fn unknown_hook(
    class: &Bound<'_, pyo3::types::PyType>,
    base: &Bound<'_, pyo3::types::PyType>,
) -> PyResult<Option<String>> {
    for ancestor in class.mro().iter() {
        if ancestor.is(base) {
            break;
        }
        for name in ancestor.getattr("__dict__")?.try_iter()? {
            let name = name?.cast_into::<PyString>()?.to_cow()?.into_owned();
            if name.starts_with("on_") && !HOOKS.contains(&name.as_str()) {
                return Ok(Some(name));
            }
        }
    }
    Ok(None)
}

fn not_legal(object: &Bound<'_, Controller>, hook: &str, view: Option<&View>, is: &str, wanted: &str) -> PyErr {
    let class = object.get_type().qualname().map_or_else(|_| "controller".to_owned(), |name| name.to_string());
    let at = view.map_or(String::new(), |view| format!(" at {} s", view.now.as_secs_f64()));
    ControllerError::new_err(format!("{class}.{is} after {hook}{at}; it is to be {wanted}"))
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapter").field("window", &self.window).finish_non_exhaustive()
    }
}

impl cc::Controller for Adapter {
    fn hears_first(&self) -> bool {
        self.hooks.sent.is_some()
    }

    fn on_sent(&mut self, path: &View, sent: &cc::Sent) {
        if self.hooks.sent.is_some() {
            self.tell("on_sent", path, |py, it| match &mut it.hooks.sent {
                Some(call) => call.call(py, path, sent),
                None => Ok(()),
            });
        }
    }

    fn on_ack(&mut self, path: &View, ack: &cc::Ack) {
        if self.hooks.ack.is_some() {
            self.tell("on_ack", path, |py, it| match &mut it.hooks.ack {
                Some(call) => call.call(py, path, ack),
                None => Ok(()),
            });
        }
    }

    fn on_round(&mut self, path: &View, round: &cc::Round) {
        if self.hooks.round.is_some() {
            self.tell("on_round", path, |py, it| match &mut it.hooks.round {
                Some(call) => call.call(py, path, round),
                None => Ok(()),
            });
        }
    }

    fn on_loss(&mut self, path: &View, loss: &cc::Loss) {
        self.tell("on_loss", path, |py, it| {
            if let Some(object) = &it.object {
                object.get().before_loss.replace(py, Some(it.window));
            }
            match &mut it.hooks.loss {
                Some(call) => call.call(py, path, loss),
                None => Ok(()),
            }
        });
    }

    fn on_recovered(&mut self, path: &View) {
        if self.hooks.recovered.is_some() {
            self.tell("on_recovered", path, |py, it| called(py, it.hooks.recovered.as_ref(), (PathView::new(*path),)));
        }
    }

    fn on_undo(&mut self, path: &View) {
        self.tell("on_undo", path, |py, it| called(py, it.hooks.undo.as_ref(), (PathView::new(*path),)));
    }

    fn on_restart(&mut self, path: &View, restart: Restart) {
        self.tell("on_restart", path, |py, it| {
            called(py, it.hooks.restart.as_ref(), (PathView::new(*path), events::restart(py, restart)))
        });
    }

    fn on_group(&mut self, path: &View, group: &[cc::PathSummary]) {
        if self.hooks.group.is_some() {
            self.tell("on_group", path, |py, it| {
                let group: Vec<PathSummary> = group.iter().map(Into::into).collect();
                called(py, it.hooks.group.as_ref(), (PathView::new(*path), group))
            });
        }
    }

    fn window(&self) -> f64 {
        self.window
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_rate
    }

    fn reduction(&self) -> Reduction {
        self.reduction
    }

    fn ect(&self) -> Option<Ect> {
        self.ect
    }

    fn gauges(&self, gauges: &mut Gauges) {
        let Some(hook) = self.hooks.gauges.as_ref().filter(|_| !self.faults.is_any()) else {
            return gauges.show(WINDOW, self.window);
        };
        let shown = Python::attach(|py| -> PyResult<()> {
            let shown: BTreeMap<String, f64> = hook.bind(py).call0()?.extract()?;
            if shown.len() > cc::GAUGES_MAX {
                let message = format!("gauges shows {} numbers; at most {} are seen", shown.len(), cc::GAUGES_MAX);
                return Err(ControllerError::new_err(message));
            }
            for (name, value) in shown {
                gauges.show(known(name)?, value);
            }
            Ok(())
        });
        if let Err(error) = shown {
            self.faults.add(error);
        }
    }
}

fn called<'py>(
    py: Python<'py>,
    method: Option<&Py<PyAny>>,
    arguments: impl pyo3::call::PyCallArgs<'py>,
) -> PyResult<()> {
    method.map_or(Ok(()), |method| method.bind(py).call1(arguments).map(|_| ()))
}

/// The names of all gauges that were ever shown: the interface of controllers takes `'static` names.
static NAMES: Mutex<BTreeMap<String, &'static str>> = Mutex::new(BTreeMap::new());

/// The limit of names. More names mean that a law puts values into them.
const NAMES_MAX: usize = 1000;

fn known(name: String) -> PyResult<&'static str> {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&name) = names.get(&name) {
        return Ok(name);
    }
    if names.len() == NAMES_MAX {
        return Err(ControllerError::new_err(format!(
            "`{name}` is one gauge more than {NAMES_MAX}; give them fixed names"
        )));
    }
    let kept: &'static str = Box::leak(name.clone().into_boxed_str());
    names.insert(name, kept);
    Ok(kept)
}
