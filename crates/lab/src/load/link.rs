//! Makes the simulator's settings of a link from its keys.

use anabranch_sim::RATE_MAX;
use anabranch_units::{Bytes, Rate};

use super::Checked;
use super::values::Text;
use crate::diagnostic::Fault;
use crate::document::Path;

pub(super) fn mtu(Text(mtu): Text<Bytes>, path: &Path) -> Checked<u32> {
    let bytes = u32::try_from(mtu.count()).unwrap_or(u32::MAX);
    if bytes < MTU_MIN {
        let fault = Fault::new(format!("no link takes packets of {mtu} at most"));
        return Err((path.key("mtu"), fault.remedy(format!("use {MTU_MIN}B or more"))));
    }
    Ok(bytes)
}

/// [rfc-791] sec. 3.2: "Every internet module must be able to forward a datagram of 68 octets without further fragmentation."
const MTU_MIN: u32 = 68;

pub(super) fn positive(rate: Rate, path: &Path) -> Checked<Rate> {
    match rate.bits_per_second() {
        0 => Err((path.clone(), Fault::new("nothing passes a link of 0 bit/s").remedy("use a rate above 0bit/s"))),
        1..=RATE_MAX => Ok(rate),
        _ => Err((path.clone(), Fault::new(format!("no link sends {rate}")).remedy("use a rate up to 1Tbit/s"))),
    }
}
