//! A caller's own law, which is not in the registry, as settings.
//!
//! ```
//! use anabranch_cc::{Controller, own};
//! # use anabranch_cc::{Ack, Loss, PathView};
//! # #[derive(Debug)]
//! # struct Constant;
//! # impl Controller for Constant {
//! #     fn on_ack(&mut self, _: &PathView, _: &Ack) {}
//! #     fn on_loss(&mut self, _: &PathView, _: &Loss) {}
//! #     fn window(&self) -> f64 { 20.0 }
//! # }
//! let law = own::settings(|| Box::new(Constant));
//! assert_eq!(law.row().build(&law).window(), 20.0);
//! ```

use std::fmt;
use std::sync::Arc;

use crate::controller::Controller;
use crate::row::{AnyLaw, LossContract, LossResponse, Row, Settings};
use crate::settings::{AnyTable, Fields, NoSettings, Table};

/// Settings without parameters that build a controller by `make` for each path.
pub fn settings(make: impl Fn() -> Box<dyn Controller> + Send + Sync + 'static) -> Settings {
    Settings::of_table(&ROW, Box::new(Maker(Arc::new(make))))
}

const ROW: Row = Row {
    name: "own",
    summary: "a controller of the caller",
    citation: "",
    // The caller's tests define the contract.
    loss_contract: LossContract {
        shrinks_above: f64::INFINITY,
        timeout_window_max: f64::INFINITY,
        loss: LossResponse::MayHold { citation: "" },
    },
    law: &OwnLaw,
};

/// The constructor is the only setting.
#[derive(Debug)]
struct OwnLaw;

impl AnyLaw for OwnLaw {
    fn defaults(&self) -> Box<dyn AnyTable> {
        Box::new(NoSettings)
    }

    fn make(&self, table: &dyn AnyTable) -> Box<dyn Controller> {
        let maker: &Maker = table.as_any().downcast_ref().expect("settings of a caller's law come from `settings`");
        (maker.0)()
    }
}

#[derive(Clone)]
struct Maker(Arc<dyn Fn() -> Box<dyn Controller> + Send + Sync>);

impl fmt::Debug for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Maker")
    }
}

impl Table for Maker {
    fn visit(&mut self, _fields: &mut Fields<'_>) {}
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::controller::WINDOW_MIN;
    use crate::registry;

    /// One segment a round trip, whatever happens.
    #[derive(Debug)]
    struct Nothing;

    impl Controller for Nothing {
        fn on_ack(&mut self, _path: &crate::PathView, _ack: &crate::Ack) {}

        fn on_loss(&mut self, _path: &crate::PathView, _loss: &crate::Loss) {}

        fn window(&self) -> f64 {
            WINDOW_MIN
        }
    }

    #[test]
    fn each_path_has_a_controller_of_its_own() {
        let made = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&made);
        let law = settings(move || {
            count.fetch_add(1, Ordering::Relaxed);
            Box::new(Nothing)
        });
        let copy = law.clone();
        assert_eq!(law.row().build(&law).window().to_bits(), WINDOW_MIN.to_bits());
        assert_eq!(copy.row().build(&copy).window().to_bits(), WINDOW_MIN.to_bits());
        assert_eq!(made.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn own_law_has_no_settings_and_no_row() {
        let mut law = settings(|| Box::new(Nothing));
        let error = law.set("initial_window", "4").unwrap_err();
        assert!(error.to_string().contains("initial_window"), "{error}");
        assert!(registry::find("own").is_err());
    }
}
