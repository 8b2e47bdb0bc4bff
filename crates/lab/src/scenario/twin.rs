//! The same experiment on our own transport: what a flow of ns-2 is set to, as the keys of a flow of `anabranch`.
//!
//! A twin has the law and its parameters, the packets, the streams, the paths, the window and the data of its flow. It does not
//! have what belongs to ns-2's agents alone: their clock of 10 ms, their quirks.

use std::collections::BTreeMap;
use std::str::FromStr;

use anabranch_ns2::SenderConfig;
use anabranch_ns2::config::Agent;
use anabranch_proto::{HEADERS, StreamHeader};
use anabranch_units::{Bytes, SimSpan};

use super::keys::{FailoverKeys, FlowKeys, PacingKeys, SchedulerKeys};
use super::values::{Count, LawKeys, Setting, Text};
use crate::transport::{MFAST_STREAMS, RBUF_MAX};

impl FlowKeys {
    /// The same flow on our own transport; `None` if its protocol is none of those that our transport has in it: FAST, MFast
    /// and EMFast, FAST multihoming, Composite TCP, RRFast.
    pub(crate) fn twin(&self) -> Option<Self> {
        let has_paths = self.paths.as_ref().is_some_and(|paths| paths.len() > 1);
        let streams = match self.transport.as_str() {
            // Plain TCP, as they are.
            "ns2/fast" | "ns2/composite" => 0,
            "ns2/mfast" => self.option("streams").unwrap_or(MFAST_STREAMS.get()),
            // Several paths take the framing of streams.
            "ns2/fast-mh" => u8::from(has_paths),
            _ => return None,
        };
        let header = if streams > 0 { StreamHeader::LEN } else { 0 };
        let payload = self.packet.0.count().saturating_sub(u64::from(HEADERS + header));
        // ns-2's receivers have room for the largest window that is allowed.
        let room =
            |window: Count| Text(Bytes::new((u64::from(window.0) * (payload + u64::from(header))).min(RBUF_MAX)));
        let window = Count(SenderConfig::new(Agent::Reno).window as u32);
        let rbuf = match self.transport.as_str() {
            "ns2/fast-mh" => self.rbuf,
            _ => Some(room(self.window.unwrap_or(window))),
        };
        Some(Self {
            transport: "anabranch".to_owned(),
            cc: Some(self.twin_law()?),
            streams: Some(streams),
            scheduler: has_paths.then_some(SchedulerKeys::Window),
            failover: has_paths.then(|| self.twin_failover()),
            rbuf,
            pacing: Some(PacingKeys::ByLaw),
            window: None,
            initial_window: None,
            sink: None,
            options: None,
            ..self.clone()
        })
    }

    /// Others take over from a silent path if they do so in the flow. When is up to our transport: its own two probe timeouts are not
    /// the time that ns-2's agent is told.
    fn twin_failover(&self) -> FailoverKeys {
        match self.option::<SimSpan>("reinject") {
            Some(after) if !after.is_zero() => FailoverKeys::OnSilence,
            Some(_) | None => FailoverKeys::Never,
        }
    }

    /// The law with the first window of ns-2's agent, and of FAST the round trips and steps of ns-2's module and its baseRTT. `None` for readings of Composite
    /// TCP, which our classifier does not have.
    fn twin_law(&self) -> Option<LawKeys> {
        let is_composite = self.transport == "ns2/composite";
        let mut law = self.cc.as_ref().map_or_else(BTreeMap::new, |law| law.0.clone());
        let set = |law: &mut BTreeMap<_, _>, key: &str, value: &str| {
            law.insert(key.to_owned(), Setting(value.to_owned()));
        };
        if is_composite && law.keys().any(|key| key != "name") {
            return None;
        }
        if !law.contains_key("name") {
            set(&mut law, "name", if is_composite { "composite" } else { "fast" });
        }
        if !is_composite {
            set(&mut law, "clockwork", "ns2_module");
        }
        let first = self.initial_window.map_or(SenderConfig::new(Agent::Reno).window_initial, |it| f64::from(it.0));
        set(&mut law, "initial_window", &first.to_string());
        Some(LawKeys(law))
    }

    fn option<T: FromStr>(&self, key: &str) -> Option<T> {
        self.options.as_ref()?.get(key)?.0.parse().ok()
    }
}
