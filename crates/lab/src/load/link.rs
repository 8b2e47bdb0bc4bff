//! Makes the simulator's settings of a link from its keys.

use anabranch_sim::{DelaySpec, ErrorSpec, GilbertElliott, HoldSpec};
use anabranch_units::{Bytes, Rate, SimTime};

use super::Checked;
use super::keys::{DelayKeys, ErrorKeys, HoldKeys};
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

pub(super) fn hold(keys: Option<HoldKeys>, path: &Path) -> Checked<Option<HoldSpec>> {
    let Some(keys) = keys else { return Ok(None) };
    let path = path.key("hold");
    hold_spec(keys, &path).map(Some)
}

pub(super) fn hold_spec(keys: HoldKeys, path: &Path) -> Checked<HoldSpec> {
    let (key, span, spec) = match keys {
        HoldKeys::Grid { every } => ("every", every.0, HoldSpec::Grid(every.0)),
        HoldKeys::Gather { span } => ("span", span.0, HoldSpec::Gather(span.0)),
        HoldKeys::Exponential { mean } => ("mean", mean.0, HoldSpec::Exponential(mean.0)),
        HoldKeys::Uniform { most } => ("most", most.0, HoldSpec::Uniform(most.0)),
        HoldKeys::Stalls { every, most } => {
            // Without a time in between, no packet would ever be released.
            let (key, span) = if every.0.is_zero() { ("every", every.0) } else { ("most", most.0) };
            (key, span, HoldSpec::Stalls { every: every.0, most: most.0 })
        }
    };
    if span.is_zero() {
        let fault = Fault::new("what is held for no time is not held");
        return Err((path.key(key), fault.remedy("use a time above 0s, or remove it")));
    }
    Ok(spec)
}

impl DelayKeys {
    pub(super) fn spec(self) -> DelaySpec {
        match self {
            Self::Constant { span } => DelaySpec::Constant(span.0),
            Self::Exponential { mean } => DelaySpec::Exponential(mean.0),
            Self::Uniform { most } => DelaySpec::Uniform(most.0),
        }
    }
}

pub(super) fn positive(rate: Rate, path: &Path) -> Checked<Rate> {
    match rate.bits_per_second() {
        0 => Err((path.clone(), Fault::new("nothing passes a link of 0 bit/s").remedy("use a rate above 0bit/s"))),
        1..=RATE_MAX => Ok(rate),
        _ => Err((path.clone(), Fault::new(format!("no link sends {rate}")).remedy("use a rate up to 1Tbit/s"))),
    }
}

pub(super) fn error(keys: &ErrorKeys, path: &Path) -> Checked<Option<ErrorSpec>> {
    let spec = match keys {
        ErrorKeys::None => return Ok(None),
        ErrorKeys::List { packets } => {
            let mut packets = packets.clone();
            packets.sort_unstable();
            packets.dedup();
            ErrorSpec::List(packets)
        }
        ErrorKeys::At { times } => {
            ErrorSpec::At(times.iter().map(|time| SimTime::ZERO.saturating_add(time.0)).collect())
        }
        ErrorKeys::Uniform { rate } => ErrorSpec::PerPacket(rate.0),
        ErrorKeys::PerByte { rate } => ErrorSpec::PerByte(rate.0),
        ErrorKeys::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
            ErrorSpec::GilbertElliott(GilbertElliott {
                to_bad: to_bad.0,
                to_good: to_good.0,
                loss_good: loss_good.map_or(0.0, |p| p.0),
                loss_bad: loss_bad.map_or(1.0, |p| p.0),
            })
        }
        ErrorKeys::Periodic { period, offset, burst } => {
            let (period, burst) = (u64::from(period.0), u64::from(burst.map_or(1, |burst| burst.0)));
            if burst > period {
                let fault = Fault::new(format!("{burst} losses do not fit a period of {period} packets"));
                return Err((path.key("burst"), fault.remedy("make `burst` at most `period`")));
            }
            ErrorSpec::Periodic { period, offset: *offset, burst }
        }
        ErrorKeys::Policer { rate, burst } => {
            ErrorSpec::Policer { rate: positive(rate.0, &path.key("rate"))?, burst: burst.0 }
        }
    };
    Ok(Some(spec))
}

/// The limit of a rate: at 1 Tbit/s a byte takes 8 ticks of the simulator's clock.
pub(super) const RATE_MAX: u64 = 1_000_000_000_000;
