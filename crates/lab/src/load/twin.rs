//! Makes the twin of a flow: the same experiment with our own transport in place of an agent of ns-2.
//!
//! A twin has the law and its parameters, the packets, the streams, the paths, the window and the data of its flow. It does not
//! have the peculiarities of ns-2's agents: their clock of 10 ms, their `options`.

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
    /// The same flow on our own transport. `None` if our transport does not implement its protocol; it implements FAST, MFast, EMFast, FAST
    /// multihoming, Composite TCP and RRFast.
    pub(crate) fn twin(&self) -> Option<Self> {
        let keys = match &self.transport {
            // These agents are plain TCP, so the twin is plain TCP, too.
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
        // ns-2's receivers have room for the largest allowed window.
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
    // Other paths take over from a silent path if they do so in the flow. The time differs: our transport waits for two probe timeouts,
    // not for the time of `reinject`.
    let failover = match keys.options.as_ref().and_then(MultihomedOptionKeys::reinject) {
        Some(_) => FailoverKeys::OnSilence,
        None => FailoverKeys::Never,
    };
    EngineKeys {
        cc: Some(fast_law(keys.cc.as_ref(), keys.initial_window)),
        rto_min: keys.rto_min,
        workload: keys.workload.clone(),
        paths: keys.paths.as_ref().map(|paths| paths.iter().map(path).collect()),
        // Several paths need the framing of streams.
        streams: Some(u8::from(has_paths)),
        scheduler: has_paths.then_some(SchedulerKeys::Window),
        rbuf: keys.rbuf,
        failover: has_paths.then_some(failover),
        ..EngineKeys::default()
    }
}

/// The law with the initial window of ns-2's agent and the clockwork of ns-2's module.
fn fast_law(cc: Option<&LawKeys>, initial_window: Option<Count>) -> LawKeys {
    let mut law = cc.map_or_else(BTreeMap::new, |law| law.0.clone());
    law.entry("name".to_owned()).or_insert_with(|| Setting("fast".to_owned()));
    law.insert("clockwork".to_owned(), Setting("ns2_module".to_owned()));
    with_first_window(law, initial_window)
}

/// The law with the initial window of ns-2's agent; `None` for readings of Composite TCP that our classifier does not have.
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
