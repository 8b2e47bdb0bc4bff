//! Makes the simulator's settings of a queue from its keys.

use anabranch_sim::{
    CoDelParameters, DualPi2Parameters, FqCoDelParameters, PieParameters, QueueSpec, RedParameters, StepParameters,
    Threshold, Unit,
};
use anabranch_units::SimSpan;

use super::Checked;
use super::keys::QueueKeys;
use super::values::Count;
use crate::diagnostic::Fault;
use crate::document::Path;

pub(super) fn queue(keys: &QueueKeys, path: &Path) -> Checked<QueueSpec> {
    match keys {
        QueueKeys::DropTail { packets: Some(Count(1)), .. } => {
            let fault = Fault::new("a queue of 1 packet drops everything: ns-2 counts the one in service");
            Err((path.key("packets"), fault.remedy("use 2 packets or more")))
        }
        QueueKeys::DropTail { packets: Some(packets), bytes: None } => Ok(QueueSpec::Packets(packets.0)),
        QueueKeys::DropTail { packets: None, bytes: Some(bytes) } if bytes.0.count() > 0 => {
            Ok(QueueSpec::Bytes(bytes.0.count()))
        }
        QueueKeys::DropTail { .. } => {
            let fault = Fault::new("a drop_tail queue needs one limit, above nothing");
            Err((path.clone(), fault.remedy("write packets = 50 or bytes = \"75kB\"")))
        }
        QueueKeys::Unlimited => Ok(QueueSpec::Unlimited),
        QueueKeys::Red { packets, threshold_min, threshold_max, probability_max, ecn } => {
            let default = RedParameters::default();
            let parameters = RedParameters {
                limit: packets.0,
                threshold_min: threshold_min.unwrap_or(default.threshold_min),
                threshold_max: threshold_max.unwrap_or(default.threshold_max),
                probability_max: probability_max.map_or(default.probability_max, |p| p.0),
                unit: Unit::Packets,
                ecn: *ecn,
                ..default
            };
            if !(0.0 < parameters.threshold_min && parameters.threshold_min < parameters.threshold_max) {
                let fault = Fault::new("the thresholds of a red queue are in the wrong order");
                return Err((path.clone(), fault.remedy("use 0 < threshold_min < threshold_max")));
            }
            Ok(QueueSpec::Red(parameters))
        }
        QueueKeys::CoDel { packets, target, interval, ecn } => {
            let default = CoDelParameters::default();
            let parameters = CoDelParameters {
                target: target.map_or(default.target, |target| target.0),
                interval: interval.map_or(default.interval, |interval| interval.0),
                packets_max: packets.map_or(default.packets_max, |packets| packets.0),
                ecn: *ecn,
                ..default
            };
            looks_again("codel", "interval", parameters.interval, path)?;
            Ok(QueueSpec::CoDel(parameters))
        }
        QueueKeys::Step { packets, mark_packets, mark_bytes, mark_delay } => {
            if packets.0 == 1 {
                let fault = Fault::new("a queue of 1 packet drops everything: ns-2 counts the one in service");
                return Err((path.key("packets"), fault.remedy("use 2 packets or more")));
            }
            let threshold = match (mark_packets, mark_bytes, mark_delay) {
                (Some(packets), None, None) => Threshold::Packets(packets.0),
                (None, Some(bytes), None) => Threshold::Bytes(bytes.0.count()),
                (None, None, Some(span)) => Threshold::Time(span.0),
                _ => {
                    let fault = Fault::new("a step queue needs one threshold");
                    let remedy = "write mark_packets = 20, mark_bytes = \"30kB\" or mark_delay = \"1ms\"";
                    return Err((path.clone(), fault.remedy(remedy)));
                }
            };
            Ok(QueueSpec::Step(StepParameters { packets_max: packets.0, threshold }))
        }
        QueueKeys::FqCoDel { packets, target, interval, quantum, queues, ecn } => {
            let default = FqCoDelParameters::default();
            let codel = CoDelParameters {
                target: target.map_or(default.codel.target, |target| target.0),
                interval: interval.map_or(default.codel.interval, |interval| interval.0),
                packets_max: packets.map_or(default.codel.packets_max, |packets| packets.0),
                ecn: ecn.unwrap_or(default.codel.ecn),
                ..default.codel
            };
            looks_again("fq_codel", "interval", codel.interval, path)?;
            let quantum = quantum.map_or(u64::from(default.quantum), |quantum| quantum.0.count());
            let quantum = u32::try_from(quantum).ok().filter(|quantum| *quantum > 0).ok_or_else(|| {
                let fault = Fault::new("a turn of so many bytes is none");
                (path.key("quantum"), fault.remedy("use about one packet, such as \"1514B\""))
            })?;
            let queues = queues.map_or(default.queues, |queues| queues.0);
            if queues > FqCoDelParameters::QUEUES_MAX {
                let fault = Fault::new(format!("no link has {queues} queues"));
                let remedy = format!("use at most {}", FqCoDelParameters::QUEUES_MAX);
                return Err((path.key("queues"), fault.remedy(remedy)));
            }
            Ok(QueueSpec::FqCoDel(FqCoDelParameters { codel, queues, quantum, ..default }))
        }
        QueueKeys::Pie { packets, target, update, ecn } => {
            let default = PieParameters::default();
            let parameters = PieParameters {
                target: target.map_or(default.target, |target| target.0),
                update: update.map_or(default.update, |update| update.0),
                packets_max: packets.map_or(default.packets_max, |packets| packets.0),
                ecn: *ecn,
                ..default
            };
            looks_again("pie", "update", parameters.update, path)?;
            Ok(QueueSpec::Pie(parameters))
        }
        QueueKeys::DualPi2 { packets, target, update, coupling, mark_delay, ecn } => {
            let default = DualPi2Parameters::default();
            let ramp_max = mark_delay.map_or(default.ramp_max, |delay| delay.0);
            let parameters = DualPi2Parameters {
                target: target.map_or(default.target, |target| target.0),
                update: update.map_or(default.update, |update| update.0),
                packets_max: packets.map_or(default.packets_max, |packets| packets.0),
                coupling: coupling.unwrap_or(default.coupling),
                ramp_min: ramp_max * 2 / 3,
                ramp_max,
                ecn: ecn.unwrap_or(default.ecn),
                ..default
            };
            looks_again("dualpi2", "update", parameters.update, path)?;
            if !(parameters.coupling.is_finite() && parameters.coupling > 0.0) {
                let fault = Fault::new("a coupling factor is a number above 0");
                return Err((path.key("coupling"), fault.remedy("use 2")));
            }
            Ok(QueueSpec::DualPi2(parameters))
        }
    }
}

/// Checks the time between two actions of a periodic law.
fn looks_again(kind: &str, key: &str, span: SimSpan, path: &Path) -> Checked<()> {
    // More than a million actions in a second would slow the simulation down.
    if span < SimSpan::from_micros(1) {
        let fault = Fault::new(format!("a {kind} queue cannot look again after no time"));
        return Err((path.key(key), fault.remedy(format!("use {key} = \"1us\" or more"))));
    }
    Ok(())
}
