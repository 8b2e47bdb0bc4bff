//! The keys of ns-2's one-way TCPs.

use std::num::NonZeroU8;

use anabranch_ns2::STREAM_HEADER;
use anabranch_ns2::config::{
    Agent, CompositeOptions, HoleTest, NewRenoOptions, RttTest, SendRule, SenderConfig, SinkConfig, VegasOptions,
};
use anabranch_units::Bytes;

use super::settings::Settings;
use super::workload::offered;
use super::{Drive, INITIAL_WINDOW_MAX, PACKET_MAX, WINDOW_MAX, packets};
use crate::diagnostic::Fault;
use crate::document::Path;
use crate::load::Checked;
use crate::load::keys::{AgentKeys, AgentOptions, MFastOptionKeys, NewRenoOptionKeys, SinkKeys};
use crate::scenario::transport::Transport;

/// An agent as its law and its options make it.
pub(super) struct Chosen {
    agent: Agent,
    law_name: &'static str,
    /// The number of streams of MFast's receiver.
    streams: Option<NonZeroU8>,
}

/// Takes the settings of an agent's law, and chooses the agent.
type Choose<O> = fn(&mut Settings, &O) -> Checked<Chosen>;

/// The transport of a flow with the agent that `choose` returns.
pub(super) fn drive<'a, O: AgentOptions>(
    keys: &AgentKeys<O>,
    packet: Bytes,
    path: &Path,
    choose: Choose<O>,
) -> Checked<Drive<'a>> {
    let absent = O::default();
    let options = keys.options.as_ref().unwrap_or(&absent);
    let mut law = Settings::of_law(keys.cc.as_ref(), path.key("cc"))?;
    let Chosen { agent, law_name, streams } = choose(&mut law, options)?;
    law.finish(law_name)?;
    let mut sender = SenderConfig::new(agent);
    let stream_header = if streams.is_some() { STREAM_HEADER } else { 0 };
    sender.payload = payload(packet, &sender, stream_header, path)?;
    sender.window = packets(keys.window, sender.window, WINDOW_MAX, &path.key("window"))?;
    let initial = &path.key("initial_window");
    sender.window_initial = packets(keys.initial_window, sender.window_initial, INITIAL_WINDOW_MAX, initial)?;
    sender.rto_min = keys.rto_min.map_or(sender.rto_min, |text| text.0);
    options.apply(&mut sender);
    let sink = match keys.sink {
        None => SinkConfig::for_agent(&agent),
        Some(SinkKeys::Plain) => SinkConfig { sack: false, delay: None },
        Some(SinkKeys::Delayed) => SinkConfig { sack: false, delay: Some(SinkConfig::DELAY) },
        Some(SinkKeys::Sack1) => SinkConfig { sack: true, delay: None },
        Some(SinkKeys::Sack1Delayed) => SinkConfig { sack: true, delay: Some(SinkConfig::DELAY) },
    };
    // An agent of ns-2 has one stream.
    let workload = offered(keys.workload.as_ref(), 1, &path.key("workload"))?;
    let transport = Transport::Ns2 { sender: Box::new(sender), sink, streams, workload };
    let law_name = Some(law_name.to_owned());
    Ok(Drive { law_name, is_window_default: keys.window.is_none(), ..Drive::new(transport) })
}

/// An agent whose law has no more settings.
pub(super) fn law(agent: Agent, law_name: &'static str) -> Checked<Chosen> {
    Ok(Chosen { agent, law_name, streams: None })
}

pub(super) fn newreno(_: &mut Settings, options: &NewRenoOptionKeys) -> Checked<Chosen> {
    let impatient = options.impatient.unwrap_or(NewRenoOptions::default().impatient);
    law(Agent::NewReno(NewRenoOptions { impatient }), "newreno")
}

pub(super) fn fast(settings: &mut Settings) -> Checked<Chosen> {
    let (options, law_name) = super::fast::options(settings)?;
    law(Agent::Fast(options), law_name)
}

pub(super) fn mfast(settings: &mut Settings, options: &MFastOptionKeys) -> Checked<Chosen> {
    Ok(Chosen { streams: Some(options.streams()), ..fast(settings)? })
}

pub(super) fn vegas(settings: &mut Settings) -> Checked<Chosen> {
    let VegasOptions { alpha, beta, gamma } = VegasOptions::default();
    let options = VegasOptions {
        alpha: settings.take("alpha", alpha)?,
        beta: settings.take("beta", beta)?,
        gamma: settings.take("gamma", gamma)?,
    };
    if !(0 <= options.alpha && options.alpha <= options.beta && options.gamma >= 0) {
        let fault = Fault::new(format!("Vegas cannot hold between {} and {} packets", options.alpha, options.beta));
        return Err((settings.path.clone(), fault.remedy("use 0 <= alpha <= beta and gamma >= 0")));
    }
    law(Agent::Vegas(options), "vegas")
}

pub(super) fn composite(settings: &mut Settings) -> Checked<Chosen> {
    let default = CompositeOptions::default();
    let options = CompositeOptions {
        holes: settings.choose("holes", default.holes, &HOLES)?,
        rtt: settings.choose("rtt", default.rtt, &RTTS)?,
        send: settings.choose("send", default.send, &SENDS)?,
    };
    law(Agent::Composite(options), "composite")
}

/// The bytes of TCP's payload, a stream header included, such that a packet has the size `packet` on the wire. The headers depend on the
/// agent.
pub(super) fn payload(packet: Bytes, sender: &SenderConfig, stream_header: u32, path: &Path) -> Checked<u32> {
    let header = sender.packet_size() - sender.payload + stream_header;
    let size = u32::try_from(packet.count()).ok().filter(|&size| size <= PACKET_MAX);
    size.filter(|&size| size > header).map(|size| size - header + stream_header).ok_or_else(|| {
        let fault = Fault::new(format!("a packet of {} is impossible", packet));
        (path.key("packet"), fault.remedy(format!("use {}B to {PACKET_MAX}B; headers take {header}", header + 1)))
    })
}

pub(super) const HOLES: [(&str, HoleTest); 3] = [
    ("at_third_duplicate", HoleTest::AtThirdDuplicate),
    ("whole_window", HoleTest::WholeWindow),
    ("ignored", HoleTest::Ignored),
];
pub(super) const RTTS: [(&str, RttTest); 3] =
    [("coarse", RttTest::Coarse), ("fine", RttTest::Fine), ("ignored", RttTest::Ignored)];
pub(super) const SENDS: [(&str, SendRule); 3] = [
    ("one_per_duplicate", SendRule::OnePerDuplicate),
    ("replace_delivered", SendRule::ReplaceDelivered),
    ("nothing", SendRule::Nothing),
];
