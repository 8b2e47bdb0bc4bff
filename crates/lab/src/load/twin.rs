//! The same experiment on our own transport: what a flow of ns-2 is set to, as the keys of a flow of `anabranch`.
//!
//! A twin has the law and its parameters, the packets, the streams, the paths, the window and the data of its flow. It does not
//! have what belongs to ns-2's agents alone: their clock of 10 ms, their quirks.

use std::collections::BTreeMap;

use anabranch_ns2::SenderConfig;
use anabranch_ns2::config::Agent;
use anabranch_proto::{HEADERS, StreamHeader};
use anabranch_units::Bytes;

use super::keys::{
    AgentKeys, EngineKeys, FailoverKeys, FlowKeys, MultihomedKeys, MultihomedOptionKeys, MultihomedPathKeys,
    PacingKeys, PathKeys, SchedulerKeys, TransportKeys,
};
use super::values::{Count, LawKeys, Setting, Text};
use crate::scenario::transport::RBUF_MAX;

impl FlowKeys {
    /// The same flow on our own transport; `None` if its protocol is none of those that our transport has in it: FAST, MFast
    /// and EMFast, FAST multihoming, Composite TCP, RRFast.
    pub(crate) fn twin(&self) -> Option<Self> {
        let keys = match &self.transport {
            // Plain TCP, as they are.
            TransportKeys::Fast(keys) => self.one_way(keys, 0, fast_law(keys.cc.as_ref(), keys.initial_window)),
            TransportKeys::Composite(keys) => self.one_way(keys, 0, composite_law(keys)?),
            TransportKeys::MFast(keys) => {
                let streams = keys.options.clone().unwrap_or_default().streams();
                self.one_way(keys, streams.get(), fast_law(keys.cc.as_ref(), keys.initial_window))
            }
            TransportKeys::Multihomed(keys) => multihomed(keys),
            _ => return None,
        };
        let keys = EngineKeys { pacing: Some(PacingKeys::ByLaw), ..keys };
        Some(Self { transport: TransportKeys::Engine(keys), ..self.clone() })
    }

    fn one_way<O>(&self, keys: &AgentKeys<O>, streams: u8, law: LawKeys) -> EngineKeys {
        let header = if streams > 0 { StreamHeader::LEN } else { 0 };
        let payload = self.packet.0.count().saturating_sub(u64::from(HEADERS + header));
        // ns-2's receivers have room for the largest window that is allowed.
        let window = keys.window.map_or(SenderConfig::new(Agent::Reno).window as u32, |window| window.0);
        let room = u64::from(window) * (payload + u64::from(header));
        EngineKeys {
            cc: Some(law),
            rto_min: keys.rto_min,
            workload: keys.workload.clone(),
            streams: Some(streams),
            rbuf: Some(Text(Bytes::new(room.min(RBUF_MAX)))),
            ..EngineKeys::default()
        }
    }
}

fn multihomed(keys: &MultihomedKeys) -> EngineKeys {
    let has_paths = keys.paths.as_ref().is_some_and(|paths| paths.len() > 1);
    let path = |it: &MultihomedPathKeys| PathKeys { first: it.first.clone(), last: it.last.clone(), weight: None };
    // Others take over from a silent path if they do so in the flow. When is up to our transport: its own two probe timeouts are
    // not the time that ns-2's agent is told.
    let failover = match keys.options.as_ref().and_then(MultihomedOptionKeys::reinject) {
        Some(_) => FailoverKeys::OnSilence,
        None => FailoverKeys::Never,
    };
    EngineKeys {
        cc: Some(fast_law(keys.cc.as_ref(), keys.initial_window)),
        rto_min: keys.rto_min,
        workload: keys.workload.clone(),
        paths: keys.paths.as_ref().map(|paths| paths.iter().map(path).collect()),
        // Several paths take the framing of streams.
        streams: Some(u8::from(has_paths)),
        scheduler: has_paths.then_some(SchedulerKeys::Window),
        rbuf: keys.rbuf,
        failover: has_paths.then_some(failover),
        ..EngineKeys::default()
    }
}

/// The law with the first window of ns-2's agent, and the round trips and steps of ns-2's module and its baseRTT.
fn fast_law(cc: Option<&LawKeys>, initial_window: Option<Count>) -> LawKeys {
    let mut law = cc.map_or_else(BTreeMap::new, |law| law.0.clone());
    law.entry("name".to_owned()).or_insert_with(|| Setting("fast".to_owned()));
    law.insert("clockwork".to_owned(), Setting("ns2_module".to_owned()));
    with_first_window(law, initial_window)
}

/// The law with the first window of ns-2's agent; `None` for readings of Composite TCP, which our classifier does not have.
fn composite_law(keys: &AgentKeys) -> Option<LawKeys> {
    let mut law = keys.cc.as_ref().map_or_else(BTreeMap::new, |law| law.0.clone());
    if law.keys().any(|key| key != "name") {
        return None;
    }
    law.entry("name".to_owned()).or_insert_with(|| Setting("composite".to_owned()));
    Some(with_first_window(law, keys.initial_window))
}

fn with_first_window(mut law: BTreeMap<String, Setting>, initial_window: Option<Count>) -> LawKeys {
    let first = initial_window.map_or(SenderConfig::new(Agent::Reno).window_initial, |it| f64::from(it.0));
    law.insert("initial_window".to_owned(), Setting(first.to_string()));
    LawKeys(law)
}
