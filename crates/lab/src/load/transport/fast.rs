//! The settings of `cc` that FAST's agent of ns-2 has.

use anabranch_cc::law::fast::FastSettings;
use anabranch_cc::registry;
use anabranch_ns2::config::FastOptions;

use super::settings::Settings;
use crate::diagnostic::{Fault, suggestion};
use crate::load::Checked;

/// The ending of the key for the kind of a part.
pub(super) const KIND: &str = ".kind";

/// The options of FAST's agent, and the law of the family that gives the defaults.
pub(super) fn options(law: &mut Settings) -> Checked<(FastOptions, &'static str)> {
    let name = law.rest.get("name").map_or("fast", |name| name.0.as_str());
    let row = FAST_LAWS.iter().find(|known| **known == name).and_then(|known| registry::find(known).ok());
    let Some(row) = row else {
        let fault = Fault::new(format!("this transport has no law `{name}`")).remedy(suggestion(name, FAST_LAWS));
        return Err((law.path.key("name"), fault));
    };
    let mut settings = registry::Settings::default_for(row);
    for key in FastOptions::PARAMETERS {
        law.known.push(key);
        for key in [key.to_owned(), format!("{key}{KIND}")] {
            if let Some(value) = law.rest.remove(&key) {
                settings.set(&key, &value.0).map_err(|error| (law.place(&key), Fault::new(error.to_string())))?;
            }
        }
    }
    let settings: &FastSettings = settings.table().expect("each of these laws is FAST");
    Ok((FastOptions::from_settings(settings), row.name))
}

/// The laws that `ns2/fast`, `ns2/mfast` and `ns2/fast-mh` can have: FAST, and laws whose additional parts ns-2's agent has, too.
pub fn fast_laws() -> &'static [&'static str] {
    &FAST_LAWS
}

pub(super) const FAST_LAWS: [&str; 3] = ["fast", "emfast", "rrfast"];
