//! The keys of our own transport.

use std::sync::Arc;

use anabranch_cc::registry;
use anabranch_plugin::Law;
use anabranch_proto::{
    AckPolicy, Config, Failover, Form, HEADERS, KeepAlive, LossDetection, PATHS_MAX, Pacing, PathMtu, Repair,
    Scheduling, StreamBuffer,
};
use anabranch_units::{Bytes, SimSpan, Span};

use super::fast::KIND;
use super::settings::Settings;
use super::workload::workload;
use super::{ACK_DELAY_MAX, Drive, PACKET_MAX, Pair, RBUF};
use crate::diagnostic::Fault;
use crate::document::{PLUGIN, Path, Plugins};
use crate::load::Checked;
use crate::load::keys::{
    EngineKeys, FailoverKeys, FormKeys, LossDetectionKeys, PacingKeys, PathKeys, RepairKeys, SchedulerKeys,
    StreamBufferKeys,
};
use crate::load::values::{LawKeys, Setting, Text};
use crate::own::{Faults, Own, OwnLaw};
use crate::scenario::transport::{RBUF_MAX, Transport};

/// The transport of a flow of `anabranch`.
pub(super) fn drive<'a>(keys: &'a EngineKeys, packet: Bytes, plugins: &Plugins, path: &Path) -> Checked<Drive<'a>> {
    let Chosen { name, law, own } = law(keys.cc.as_ref(), plugins, path.key("cc"))?;
    let streams = u16::from(keys.streams.unwrap_or(1));
    let mss = packet.count().checked_sub(HEADERS.into()).and_then(|mss| u16::try_from(mss).ok());
    let Some(mss) = mss.filter(|&mss| mss >= Config::MSS_MIN) else {
        let least = HEADERS + u32::from(Config::MSS_MIN);
        let fault = Fault::new(format!("a packet of {packet} is impossible"));
        return Err((
            path.key("packet"),
            fault.remedy(format!("use {least}B to {PACKET_MAX}B; headers take {HEADERS}")),
        ));
    };
    let (form, path_mtu) = form(keys, packet, path)?;
    let receive_buffer = keys.rbuf.map_or(RBUF, |rbuf| rbuf.0.count());
    if !(u64::from(mss)..=RBUF_MAX).contains(&receive_buffer) {
        let fault = Fault::new(format!("a receive buffer of {} is impossible", Bytes::new(receive_buffer)));
        let remedy = format!("use {} to {}", Bytes::new(mss.into()), Bytes::new(RBUF_MAX));
        return Err((path.key("rbuf"), fault.remedy(remedy)));
    }
    let scheduling = match keys.scheduler {
        None => Scheduling::default(),
        Some(SchedulerKeys::Window) => Scheduling::Window,
        Some(SchedulerKeys::MinRtt) => Scheduling::MinRtt,
        Some(SchedulerKeys::Weighted) => Scheduling::Weighted,
        Some(SchedulerKeys::Backup) => Scheduling::Backup,
        Some(SchedulerKeys::Redundant) => Scheduling::Redundant,
        Some(SchedulerKeys::Latency) => Scheduling::Latency,
    };
    let config = Config {
        form,
        path_mtu,
        streams,
        mss,
        paths_max: paths(keys, streams, scheduling, path)?,
        scheduling,
        receive_buffer,
        stream_buffer: match keys.stream_buffer {
            None | Some(StreamBufferKeys::Whole) => StreamBuffer::Bytes(u64::MAX),
            Some(StreamBufferKeys::Shared) => StreamBuffer::Shared,
        },
        // A small buffer, so that a flow stops soon after its `stop`.
        send_buffer: SEND_BUFFER_SEGMENTS * u64::from(mss),
        ..Config::new(law)
    };
    let config = Config {
        rto_min: keys.rto_min.map_or(config.rto_min, |margin| margin.0.rescale()),
        loss_detection: match keys.loss_detection {
            None | Some(LossDetectionKeys::Rack) => LossDetection::Rack,
            Some(LossDetectionKeys::DupAcks) => LossDetection::DupAcks,
        },
        repair: match keys.repair {
            None | Some(RepairKeys::SamePath) => Repair::SamePath,
            Some(RepairKeys::AnyPath) => Repair::AnyPath,
        },
        failover: match keys.failover {
            None | Some(FailoverKeys::OnSilence) => Failover::OnSilence,
            Some(FailoverKeys::Never) => Failover::Never,
        },
        pacing: match keys.pacing {
            Some(PacingKeys::Always) => Pacing::Always,
            None | Some(PacingKeys::ByLaw) => Pacing::ByLaw,
        },
        // The driver of the host determines how late its timers are.
        timer: Span::ZERO,
        acks: acks(keys.delayed_acks, &path.key("delayed_acks"))?,
        nagle: keys.nagle.unwrap_or(config.nagle),
        timestamps: keys.timestamps.unwrap_or(config.timestamps),
        // A flow of a scenario may pause for any time.
        idle_timeout: None,
        keep_alive: keep_alive(keys.keep_alive, &path.key("keep_alive"))?,
        ..config
    };
    debug_assert!(config.check().is_ok(), "what a configuration cannot be was refused above: {config:?}");
    let workload = workload(keys.workload.as_ref(), u32::from(streams.max(1)), &path.key("workload"))?;
    let pair = |it: &'a PathKeys| Pair {
        first: &it.first,
        last: &it.last,
        loss_rate: 0.0,
        weight: it.weight.map_or(1, |it| it.0),
    };
    let paths = keys.paths.iter().flatten().map(pair).collect();
    let transport = Transport::Engine { config: Box::new(config), workload };
    Ok(Drive { law_name: Some(name), own, paths, ..Drive::new(transport) })
}

/// The law of a flow.
struct Chosen {
    /// What reports call it.
    name: String,
    law: registry::Settings,
    /// If the registry does not have it.
    own: Option<OwnLaw>,
}

/// The law that `cc` names.
fn law(keys: Option<&LawKeys>, plugins: &Plugins, path: Path) -> Checked<Chosen> {
    if keys.is_some_and(|keys| keys.0.contains_key(PLUGIN)) {
        return of_plugin(Settings::new(keys, path), plugins);
    }
    if keys.is_some_and(|keys| !keys.0.contains_key("name")) {
        let fault = Fault::new("no law is named").remedy("add `name` and a law, or `plugin` and the file of your own");
        return Err((path, fault));
    }
    let mut given = Settings::of_law(keys, path)?;
    let name = given.rest.remove("name").map_or_else(|| "anabranch".to_owned(), |name| name.0);
    let row = registry::find(&name).map_err(|error| (given.path.key("name"), Fault::new(error.to_string())))?;
    let mut law = registry::Settings::default_for(row);
    // What a kind of a part can be set to comes after the kind.
    let is_kind = |(key, _): &(&String, &Setting)| key.ends_with(KIND);
    for (key, value) in given.rest.iter().filter(is_kind).chain(given.rest.iter().filter(|it| !is_kind(it))) {
        law.set(key, &value.0).map_err(|error| (given.place(key), Fault::new(error.to_string())))?;
    }
    Ok(Chosen { name, law, own: None })
}

/// A law of the user's own. The settings of a module are what it declares.
fn of_plugin(mut given: Settings, plugins: &Plugins) -> Checked<Chosen> {
    let file = given.rest.remove(PLUGIN).expect("there is one").0;
    if given.rest.contains_key("name") {
        let fault = Fault::new("a flow has one law, and here are `name` and `plugin`");
        return Err((given.path.key("name"), fault.remedy("remove one of them")));
    }
    let (name, own) = match plugins.law(&file) {
        Some(Own::Module(module)) => {
            let mut law = Law::new(Arc::clone(module));
            for (key, value) in &given.rest {
                let wrong = law.set(key, &value.0);
                wrong.map_err(|fault| (given.place(key), Fault::new(fault.message).remedy(fault.remedy)))?;
            }
            // Without the folder.
            (file.rsplit(['/', '\\']).next().unwrap_or(&file).to_owned(), OwnLaw::Module(law))
        }
        Some(Own::Made(maker)) => {
            if let Some(key) = given.rest.keys().next() {
                let fault = Fault::new(format!("`{}` has no settings here, and `{key}` is one", maker.name()));
                return Err((given.place(key), fault.remedy("set it where the law is made")));
            }
            (maker.name().to_owned(), OwnLaw::Made(Arc::clone(maker)))
        }
        None => {
            let fault = Fault::new(format!("`{file}` is not the name of a controller"));
            return Err((given.path.key(PLUGIN), fault.remedy("write it as a string: plugin = \"mine.wasm\"")));
        }
    };
    // Each run has its own, with its own faults.
    let nobody = Faults::default();
    Ok(Chosen { name, law: own.settings("", &nobody), own: Some(own) })
}

/// The form of segments, and the search for the path MTU.
fn form(keys: &EngineKeys, packet: Bytes, path: &Path) -> Checked<(Form, PathMtu)> {
    if keys.form != Some(FormKeys::Sealed) {
        return Ok((Form::Tcp, PathMtu::USUAL));
    }
    let packet_max = u32::try_from(packet.count()).unwrap_or(u32::MAX);
    if packet_max < PathMtu::PACKET_MIN {
        let fault = Fault::new(format!("a sealed packet has more than {}", packet));
        return Err((path.key("packet"), fault.remedy(format!("use {}B or more", PathMtu::PACKET_MIN))));
    }
    Ok((Form::Sealed, PathMtu::Searched { packet_max }))
}

/// The policy of acknowledgements.
fn acks(delay: Option<Text<SimSpan>>, path: &Path) -> Checked<AckPolicy> {
    let Some(Text(delay)) = delay else { return Ok(AckPolicy::EACH) };
    if delay.is_zero() || delay >= ACK_DELAY_MAX {
        let fault = Fault::new(format!("an acknowledgement cannot wait for {delay}"));
        return Err((path.clone(), fault.remedy(format!("use a time above 0s and below {ACK_DELAY_MAX}"))));
    }
    Ok(AckPolicy { every: 2, delay: delay.rescale() })
}

fn keep_alive(idle: Option<Text<SimSpan>>, path: &Path) -> Checked<Option<KeepAlive>> {
    let Some(Text(idle)) = idle else { return Ok(None) };
    if idle.is_zero() {
        let fault = Fault::new("a keep-alive probe cannot be sent all the time");
        return Err((path.clone(), fault.remedy("use a time above 0s")));
    }
    Ok(Some(KeepAlive { idle: idle.rescale(), ..KeepAlive::USUAL }))
}

/// The number of paths of a connection.
fn paths(keys: &EngineKeys, streams: u16, scheduling: Scheduling, path: &Path) -> Checked<u8> {
    let Some(paths) = &keys.paths else {
        let pointless = [
            ("scheduler", keys.scheduler.is_some(), "one path needs no scheduler"),
            ("repair", keys.repair.is_some(), "a connection with one path retransmits there"),
            ("failover", keys.failover.is_some(), "a connection with one path has no other path to take over"),
        ];
        return match pointless.into_iter().find(|(_, is_present, _)| *is_present) {
            Some((key, _, fault)) => Err((path.key(key), Fault::new(fault).remedy("add `paths`, or remove it"))),
            None => Ok(1),
        };
    };
    if scheduling == Scheduling::Backup && keys.failover == Some(FailoverKeys::Never) {
        let fault = Fault::new("backup paths are used only after a failure, and failover is off");
        return Err((path.key("failover"), fault.remedy("remove it, or choose another scheduler")));
    }
    let path = path.key("paths");
    if !(1..=PATHS_MAX).contains(&paths.len()) {
        let fault = Fault::new(format!("a connection cannot have {} paths", paths.len()));
        return Err((path, fault.remedy(format!("name 1 to {PATHS_MAX}"))));
    }
    if paths.len() > 1 && streams == 0 {
        let fault = Fault::new("plain TCP has one path");
        return Err((path, fault.remedy("name one path, or use streams = 1 or more")));
    }
    for (index, it) in paths.iter().enumerate() {
        if it.weight.is_some() && scheduling != Scheduling::Weighted {
            let fault = Fault::new("a path of this connection has no `weight`");
            let remedy = "remove it, or write scheduler = \"weighted\"";
            return Err((path.index(index).key("weight"), fault.remedy(remedy)));
        }
    }
    Ok(paths.len() as u8)
}

const SEND_BUFFER_SEGMENTS: u64 = 4;
