//! `cbr` and `on_off`: traffic without acknowledgements.

use anabranch_sim::RATE_MAX;
use anabranch_sim::traffic::{Cbr, OnOffParameters};
use anabranch_units::{Bytes, Rate};

use super::PACKET_MAX;
use crate::diagnostic::Fault;
use crate::document::Path;
use crate::load::Checked;
use crate::load::keys::{CbrKeys, OnOffKeys};
use crate::scenario::transport::Transport;

pub(super) fn cbr(keys: &CbrKeys, packet: Bytes, path: &Path) -> Checked<Transport> {
    Ok(Transport::Cbr(Cbr::new(rate(keys.rate.0, path)?, size(packet, path)?)))
}

pub(super) fn on_off(keys: &OnOffKeys, packet: Bytes, path: &Path) -> Checked<Transport> {
    let (rate, size, on, off) = (rate(keys.rate.0, path)?, size(packet, path)?, keys.on.0, keys.off.0);
    if on.is_zero() && off.is_zero() {
        // A burst has at least one packet, so this would send without end.
        let fault = Fault::new("bursts and silences of no length are a constant rate");
        let remedy = "make one of them longer than 0s, or use transport = \"cbr\"";
        return Err((path.key("off"), fault.remedy(remedy)));
    }
    Ok(Transport::OnOff(OnOffParameters { on, off, rate, size }))
}

fn rate(rate: Rate, path: &Path) -> Checked<Rate> {
    match rate.bits_per_second() {
        1..=RATE_MAX => Ok(rate),
        _ => {
            let fault = Fault::new(format!("a source cannot send {rate}"));
            Err((path.key("rate"), fault.remedy("use a rate from 1bit/s to 1Tbit/s")))
        }
    }
}

fn size(packet: Bytes, path: &Path) -> Checked<u32> {
    let size = u32::try_from(packet.count()).ok().filter(|size| (1..=PACKET_MAX).contains(size));
    size.ok_or_else(|| {
        let fault = Fault::new(format!("a packet of {packet} is impossible"));
        (path.key("packet"), fault.remedy(format!("use 1B to {PACKET_MAX}B")))
    })
}
