//! A module with values for its settings: the law that a flow of a scenario names.

use std::sync::Arc;

use anabranch_cc::own;
use anabranch_cc::registry::Settings;
use anabranch_units::Span;

use crate::controller::Plugin;
use crate::fault::Faults;
use crate::module::Module;
use crate::refusal::SettingFault;
use crate::tables::Setting;

/// A module with values for its settings.
#[derive(Clone, Debug)]
pub struct Law {
    module: Arc<Module>,
    /// One value for each setting of the module.
    values: Vec<f64>,
}

impl Law {
    /// The module with the default values of its settings.
    pub fn new(module: Arc<Module>) -> Self {
        let values = module.settings().iter().map(|setting| setting.default).collect();
        Self { module, values }
    }

    /// The module of the law.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Sets `key` to `value`: a number; `true` or `false` for 1 or 0; for a setting in seconds also a time with its unit, such as `10ms`.
    ///
    /// # Errors
    /// If the module declares no such setting, or the value cannot be parsed or is out of its range.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SettingFault> {
        let settings = self.module.settings();
        let Some(index) = settings.iter().position(|setting| setting.name == key) else {
            let known: Vec<&str> = settings.iter().map(|setting| setting.name.as_str()).collect();
            let remedy = match known.is_empty() {
                true => "it declares none".to_owned(),
                false => format!("it declares {}", known.join(", ")),
            };
            return Err(SettingFault { message: format!("{} has no setting `{key}`", self.module.name()), remedy });
        };
        let setting = &settings[index];
        let number = parse(setting, value).filter(|number| (setting.least..=setting.most).contains(number));
        self.values[index] = number.ok_or_else(|| SettingFault {
            message: format!("`{key}` cannot be `{value}`"),
            remedy: format!("use {} to {} {}", setting.least, setting.most, setting.unit).trim_end().to_owned(),
        })?;
        Ok(())
    }

    /// Settings that build a controller for each path. The first error goes to `faults`, with `flow` before the message. The window of a failed
    /// controller stays as it was.
    pub fn settings(&self, flow: &str, faults: &Faults) -> Settings {
        let (law, compiled) = (self.clone(), self.module.compiled());
        let (flow, faults) = (flow.to_owned(), faults.clone());
        own::settings(move || {
            let module = &law.module;
            let about = format!("{flow}{}", module.name());
            Box::new(Plugin::new(&compiled, module, &law.values, about, faults.clone()))
        })
    }
}

fn parse(setting: &Setting, value: &str) -> Option<f64> {
    let number = match value {
        "true" => 1.0,
        "false" => 0.0,
        text => match text.parse::<f64>() {
            Ok(number) => number,
            Err(_) if setting.unit == SECONDS => text.parse::<Span>().ok()?.as_secs_f64(),
            Err(_) => return None,
        },
    };
    Some(number).filter(|number| number.is_finite())
}

/// The unit of settings that take times.
const SECONDS: &str = "s";
