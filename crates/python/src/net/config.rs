//! The settings of an endpoint: those of `anabranch::Config`, with its names.

use std::time::Duration;

use anabranch::cc::{Settings, registry};
use anabranch::units::Rate;
use anabranch::{Config, Scheduling};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyMapping, PyString};

/// The defaults, changed by a congestion law and by settings. Times are in seconds, sizes in bytes.
pub(crate) fn read(cc: Option<&Bound<'_, PyAny>>, settings: &Bound<'_, PyDict>) -> PyResult<Config> {
    let mut config = Config::default();
    if let Some(cc) = cc {
        config.law = law(cc)?;
    }
    for (name, value) in settings {
        set(&mut config, &name.extract::<String>()?, &value)?;
    }
    Ok(config)
}

fn set(config: &mut Config, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    match name {
        "timeout" => config.connect_timeout = seconds(name, value)?,
        "idle_timeout" => config.idle_timeout = seconds(name, value)?,
        "keep_alive" => config.keep_alive = if value.is_none() { None } else { Some(seconds(name, value)?) },
        "connections_max" => config.connections_max = take(name, value)?,
        "connections_per_key" => config.connections_per_key = take(name, value)?,
        "connections_per_address" => config.connections_per_address = take(name, value)?,
        "streams" => config.streams = take(name, value)?,
        "paths" => config.paths = take(name, value)?,
        "receive_buffer" => config.receive_buffer = take(name, value)?,
        "receive_buffer_max" => config.receive_buffer_max = take(name, value)?,
        "send_buffer" => config.send_buffer = take(name, value)?,
        "send_buffer_max" => config.send_buffer_max = take(name, value)?,
        "send_memory" => config.send_memory = take(name, value)?,
        "datagram_send_buffer" => config.datagram_send_buffer = take(name, value)?,
        "datagram_receive_buffer" => config.datagram_receive_buffer = take(name, value)?,
        "rate_max" => config.rate_max = rate_max(name, value)?,
        "scheduling" => config.scheduling = scheduling(&take::<String>(name, value)?)?,
        "socket_buffer" => config.socket_buffer = take(name, value)?,
        "qlog" => config.qlog = take(name, value)?,
        _ => {
            let known = NAMES.join(", ");
            return Err(PyTypeError::new_err(format!("`{name}` is no setting of an endpoint; there are {known}")));
        }
    }
    Ok(())
}

fn take<'py, T: FromPyObjectOwned<'py>>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<T> {
    let taken: PyResult<T> = value.extract::<T>().map_err(Into::into);
    taken.map_err(|error| {
        let says = format!("`{name}`: {}", error.value(value.py()));
        let is_type = error.is_instance_of::<PyTypeError>(value.py());
        if is_type { PyTypeError::new_err(says) } else { PyValueError::new_err(says) }
    })
}

/// A time, given in seconds.
pub(crate) fn seconds(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let seconds: f64 = take(name, value)?;
    Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero() && *time <= TIME_MAX).ok_or_else(|| {
        let most = TIME_MAX.as_secs();
        PyValueError::new_err(format!("`{name}` is a time in seconds above 0, at most {most}, and not {seconds}"))
    })
}

/// A limit of the rate, as "20Mbit/s", or `None`.
pub(crate) fn rate_max(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<Rate>> {
    if value.is_none() {
        return Ok(None);
    }
    let text: String = take(name, value)?;
    text.parse().map(Some).map_err(|error| PyValueError::new_err(format!("`{name}`: {error}")))
}

/// A law of the registry: its name, or a mapping with its name and settings. A part is a mapping with its kind.
fn scheduling(name: &str) -> PyResult<Scheduling> {
    Scheduling::from_name(name).ok_or_else(|| {
        let names = Scheduling::ALL.map(Scheduling::name).join(", ");
        wrong(format!("there is no scheduling {name:?}; use one of {names}"))
    })
}

fn law(cc: &Bound<'_, PyAny>) -> PyResult<Settings> {
    if let Ok(name) = cc.cast::<PyString>() {
        return Ok(Settings::default_for(registry::find(&name.to_cow()?).map_err(wrong)?));
    }
    let table = cc.cast::<PyMapping>().map_err(|_| {
        PyTypeError::new_err("`cc` is the name of a law, or a dict of its `name` and settings; a class of Python's runs in scenarios only")
    })?;
    let name = table.get_item("name").map_err(|_| PyValueError::new_err("`cc` lacks the `name` of the law"))?;
    let mut settings = Settings::default_for(registry::find(&name.extract::<String>()?).map_err(wrong)?);
    for (key, value) in pairs(table)? {
        match value.cast::<PyMapping>() {
            Ok(part) => {
                let kind = part.get_item("kind").ok();
                kind.map_or(Ok(()), |kind| settings.set(&key, &text(&kind)?).map_err(wrong))?;
                for (of, value) in pairs(part)?.into_iter().filter(|(of, _)| of != "kind") {
                    settings.set(&format!("{key}.{of}"), &text(&value)?).map_err(wrong)?;
                }
            }
            Err(_) if key == "name" => {}
            Err(_) => settings.set(&key, &text(&value)?).map_err(wrong)?,
        }
    }
    Ok(settings)
}

/// An error in a law or its settings.
fn wrong(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn pairs<'py>(table: &Bound<'py, PyMapping>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    table.items()?.iter().map(|pair| pair.extract()).collect()
}

/// A value in the form that the command line takes.
fn text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    match value.cast::<PyBool>() {
        Ok(truth) => Ok(truth.is_true().to_string()),
        Err(_) => Ok(value.str()?.to_cow()?.into_owned()),
    }
}

/// Every setting.
const NAMES: [&str; 19] = [
    "timeout",
    "idle_timeout",
    "keep_alive",
    "connections_max",
    "connections_per_key",
    "connections_per_address",
    "streams",
    "paths",
    "receive_buffer",
    "receive_buffer_max",
    "send_buffer",
    "send_buffer_max",
    "send_memory",
    "datagram_send_buffer",
    "datagram_receive_buffer",
    "rate_max",
    "scheduling",
    "socket_buffer",
    "qlog",
];

/// One year, so that no sum of times overflows the clock.
const TIME_MAX: Duration = Duration::from_secs(365 * 86_400);
