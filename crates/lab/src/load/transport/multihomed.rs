//! The keys of FAST multihoming.

use anabranch_ns2::config::{Agent, SenderConfig};
use anabranch_ns2::multihome::{Config, PATHS_MAX};
use anabranch_units::Bytes;

use super::agent::payload;
use super::settings::Settings;
use super::workload::offered;
use super::{Drive, INITIAL_WINDOW_MAX, Pair, RBUF, WINDOW_MAX, fast, packets};
use crate::diagnostic::Fault;
use crate::document::Path;
use crate::load::Checked;
use crate::load::keys::{AgentOptions, MultihomedKeys, MultihomedOptionKeys, MultihomedPathKeys};
use crate::scenario::transport::Transport;

/// The transport of a flow of FAST multihoming.
pub(super) fn drive<'a>(keys: &'a MultihomedKeys, packet: Bytes, path: &Path) -> Checked<Drive<'a>> {
    let mut law = Settings::of_law(keys.cc.as_ref(), path.key("cc"))?;
    let (options, law_name) = fast::options(&mut law)?;
    law.finish(law_name)?;
    let mut agent = SenderConfig::new(Agent::Fast(options));
    agent.payload = payload(packet, &agent, 0, path)?;
    let initial = packets(keys.initial_window, agent.window_initial, INITIAL_WINDOW_MAX, &path.key("initial_window"));
    agent.window_initial = initial?;
    agent.rto_min = keys.rto_min.map_or(agent.rto_min, |text| text.0);
    let absent = MultihomedOptionKeys::default();
    let options = keys.options.as_ref().unwrap_or(&absent);
    options.apply(&mut agent);
    let paths = keys.paths.as_ref().map_or(1, Vec::len);
    if !(1..=PATHS_MAX).contains(&paths) {
        let fault = Fault::new(format!("a connection cannot have {paths} paths"));
        return Err((path.key("paths"), fault.remedy(format!("name 1 to {PATHS_MAX}"))));
    }
    let payload = u64::from(agent.payload);
    let rbuf = keys.rbuf.map_or(RBUF, |rbuf| rbuf.0.count());
    let (least, most) = (payload * paths as u64, payload * u64::from(WINDOW_MAX));
    if !(least..=most).contains(&rbuf) {
        let fault = Fault::new(format!("a receive buffer of {} is impossible", Bytes::new(rbuf)));
        let remedy = format!("use {} to {}: a packet for each path", Bytes::new(least), Bytes::new(most));
        return Err((path.key("rbuf"), fault.remedy(remedy)));
    }
    agent.window = (rbuf / payload) as f64;
    let workload = offered(keys.workload.as_ref(), 1, &path.key("workload"))?;
    let config = Config { agent, paths, reinject: options.reinject() };
    let pair = |it: &'a MultihomedPathKeys| Pair { first: &it.first, last: &it.last, loss_rate: 0.0, weight: 1 };
    let paths = keys.paths.iter().flatten().map(pair).collect();
    let transport = Transport::Multihomed { config: Box::new(config), workload };
    Ok(Drive { law_name: Some(law_name.to_owned()), paths, ..Drive::new(transport) })
}
