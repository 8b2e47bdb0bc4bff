//! The adapter between a module and the path whose window it computes.
//!
//! The facts of an event are written into the table before its hook is called; the window and the rate are read after it. A hook that the module does
//! not export is not called. Without a hook, a loss, a restart and an undo have the least effect that every law must have.

use anabranch_cc::law::reno;
use anabranch_cc::{
    Ack, Controller, Ect, Gauges, Loss, PathSummary, PathView, Reduction, Restart, Round, Sent, Signal, WINDOW_MIN,
};
use anabranch_units::Rate;

use crate::engine::{Compiled, Instance};
use crate::fault::Faults;
use crate::hook::{HOOKS, HookIndex};
use crate::layout::{self, Table, at, read_f64, read_u32};
use crate::module::Module;
use crate::tables::{Gauge, WINDOW};

/// A controller that is an instance of a module.
#[derive(Debug)]
pub(crate) struct Plugin {
    /// `None` if it could not be created.
    instance: Option<Instance>,
    gauges: Vec<Gauge>,
    /// The window and the rate after the last hook.
    window: f64,
    pacing_rate: Option<Rate>,
    window_initial: f64,
    /// The window before the latest loss, until that loss is undone.
    before_loss: Option<f64>,
    reduction: Reduction,
    ect: Option<Ect>,
    /// The first words of each message.
    about: String,
    faults: Faults,
}

impl Plugin {
    pub(crate) fn new(compiled: &Compiled, module: &Module, values: &[f64], about: String, faults: Faults) -> Self {
        let mut plugin = Self {
            instance: None,
            gauges: module.gauges().to_vec(),
            window: WINDOW_MIN,
            pacing_rate: None,
            window_initial: WINDOW_MIN,
            before_loss: None,
            reduction: Reduction::AtOnce,
            ect: None,
            about,
            faults,
        };
        if let Err(message) = plugin.begin(compiled, module, values) {
            plugin.faults.add(format!("{}: {message}", plugin.about));
        }
        plugin
    }

    fn begin(&mut self, compiled: &Compiled, module: &Module, values: &[f64]) -> Result<(), String> {
        let mut instance = Instance::new(compiled)?;
        for (setting, value) in module.settings().iter().zip(values) {
            instance.write_at(setting.place, &value.to_le_bytes());
        }
        instance.call(HookIndex::Init)?;
        let table = instance.table();
        self.reduction = match read_u32(table, at::REDUCTION) {
            Some(1) => Reduction::Proportional,
            _ => Reduction::AtOnce,
        };
        self.ect = match read_u32(table, at::ECT) {
            Some(0) => Some(Ect::Zero),
            Some(1) => Some(Ect::One),
            _ => None,
        };
        (self.window, self.pacing_rate) = answers(table).map_err(|fault| format!("{fault} at its beginning"))?;
        self.window_initial = self.window;
        self.instance = Some(instance);
        Ok(())
    }

    /// Whether to call the hook: the module exports it, and nothing has failed before.
    fn hears(&self, hook: HookIndex) -> bool {
        self.instance.as_ref().is_some_and(|instance| instance.has(hook)) && !self.faults.is_any()
    }

    /// Writes the facts of an event, calls its hook, and reads the window and the rate. Nothing happens if the hook is not to be called.
    fn tell(&mut self, hook: HookIndex, path: &PathView, facts: impl FnOnce(&mut Table)) {
        if !self.hears(hook) {
            return;
        }
        let Some(instance) = &mut self.instance else { return };
        let table = instance.table_mut();
        layout::write_path(table, path);
        facts(table);
        let told = instance
            .call(hook)
            .and_then(|()| answers(instance.table()).map_err(|fault| format!("`{}` {fault}", HOOKS[hook as usize])));
        match told {
            Ok(answers) => (self.window, self.pacing_rate) = answers,
            Err(message) => {
                self.faults.add(format!("{} at {} s: {message}", self.about, path.now.as_secs_f64()));
            }
        }
    }

    /// Sets the window where the module has no hook for it.
    fn set_window(&mut self, window: f64) {
        self.window = window;
        if let Some(instance) = &mut self.instance {
            layout::write_window(instance.table_mut(), window);
        }
    }
}

/// The window and the rate in the table.
fn answers(table: &Table) -> Result<(f64, Option<Rate>), String> {
    let number = |offset| read_f64(table, offset).unwrap_or(f64::NAN);
    let (window, rate) = (number(at::WINDOW), number(at::WINDOW + 8));
    if !(window.is_finite() && window >= WINDOW_MIN) {
        return Err(format!(
            "left a window of {window}, which is to be a finite number of segments, at least {WINDOW_MIN},"
        ));
    }
    // Below one bit per second no segment would ever leave.
    match rate {
        0.0 => Ok((window, None)),
        _ if rate.is_finite() && rate >= 1.0 => Ok((window, Some(Rate::from_bits_per_second(rate as u64)))),
        _ => Err(format!("left a pacing rate of {rate}, which is to be bit/s, at least 1, or 0 for none,")),
    }
}

impl Controller for Plugin {
    fn hears_first(&self) -> bool {
        self.hears(HookIndex::Sent)
    }

    fn on_sent(&mut self, path: &PathView, sent: &Sent) {
        self.tell(HookIndex::Sent, path, |table| layout::write_sent(table, sent));
    }

    fn on_ack(&mut self, path: &PathView, ack: &Ack) {
        self.tell(HookIndex::Ack, path, |table| layout::write_ack(table, ack));
    }

    fn on_round(&mut self, path: &PathView, round: &Round) {
        self.tell(HookIndex::Round, path, |table| layout::write_round(table, round));
    }

    fn on_loss(&mut self, path: &PathView, loss: &Loss) {
        self.before_loss = Some(self.window);
        if self.hears(HookIndex::Loss) {
            self.tell(HookIndex::Loss, path, |table| layout::write_loss(table, loss));
        } else {
            self.set_window(match loss.signal {
                Signal::Timeout => WINDOW_MIN,
                Signal::DupAcks | Signal::Ecn => self.window.min(reno::halve(self.window)),
            });
        }
    }

    fn on_recovered(&mut self, path: &PathView) {
        self.tell(HookIndex::Recovered, path, |_| {});
    }

    fn on_undo(&mut self, path: &PathView) {
        let before = self.before_loss.take();
        if self.hears(HookIndex::Undo) {
            self.tell(HookIndex::Undo, path, |_| {});
        } else if let Some(before) = before {
            self.set_window(self.window.max(before));
        }
    }

    fn on_restart(&mut self, path: &PathView, restart: Restart) {
        if self.hears(HookIndex::Restart) {
            self.tell(HookIndex::Restart, path, |table| layout::write_restart(table, restart));
            return;
        }
        match restart {
            Restart::Established | Restart::AfterTimeout => {}
            // [rfc-5681] sec. 4.1: "TCP SHOULD set cwnd to no more than RW = min(IW, cwnd)".
            Restart::Idle => self.set_window(self.window.min(self.window_initial)),
            Restart::PathChanged => self.set_window(self.window_initial),
        }
    }

    fn on_group(&mut self, path: &PathView, group: &[PathSummary]) {
        self.tell(HookIndex::Group, path, |table| layout::write_group(table, group));
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
        gauges.show(WINDOW, self.window);
        let Some(instance) = self.instance.as_ref().filter(|_| !self.faults.is_any()) else { return };
        for gauge in &self.gauges {
            match instance.number(gauge.place).filter(|value| !value.is_nan()) {
                Some(value) => gauges.show(gauge.name, value),
                None => self.faults.add(format!("{}: the gauge `{}` is NaN", self.about, gauge.name)),
            }
        }
    }
}
