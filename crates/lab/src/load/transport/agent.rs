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
use crate::load::keys::{AgentKeys, SinkKeys};
use crate::scenario::transport::Transport;

/// What was asked of an agent, of which its own function takes what it knows.
pub(super) struct Asked {
    law: Settings,
    options: Settings,
    /// Those of MFast's receiver.
    streams: Option<NonZeroU8>,
}

/// Takes an agent's own settings, and says which agent it is and which law it has.
type Take = fn(&mut Asked) -> Checked<(Agent, &'static str)>;

/// What drives a flow of the agent that `take` knows.
pub(super) fn drive<'a>(keys: &AgentKeys, packet: Bytes, path: &Path, take: Take) -> Checked<Drive<'a>> {
    let options = keys.options.clone().unwrap_or_default();
    let mut asked = Asked {
        law: Settings::of_law(keys.cc.as_ref(), path.key("cc"))?,
        options: Settings::new(options, path.key("options"), "an option of this agent"),
        streams: None,
    };
    let (agent, law_name) = take(&mut asked)?;
    let Asked { law, mut options, streams } = asked;
    law.finish(law_name)?;
    let mut sender = SenderConfig::new(agent);
    let stream_header = if streams.is_some() { STREAM_HEADER } else { 0 };
    sender.payload = payload(packet, &sender, stream_header, path)?;
    sender.window = packets(keys.window, sender.window, WINDOW_MAX, &path.key("window"))?;
    let initial = &path.key("initial_window");
    sender.window_initial = packets(keys.initial_window, sender.window_initial, INITIAL_WINDOW_MAX, initial)?;
    sender.rto_min = keys.rto_min.map_or(sender.rto_min, |text| text.0);
    sender.burst_max = options.take("burst_max", sender.burst_max)?;
    sender.precise_halving = options.take("precise_halving", sender.precise_halving)?;
    options.finish("")?;
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

pub(super) fn newreno(asked: &mut Asked) -> Checked<(Agent, &'static str)> {
    let impatient = asked.options.take("impatient", NewRenoOptions::default().impatient)?;
    Ok((Agent::NewReno(NewRenoOptions { impatient }), "newreno"))
}

pub(super) fn fast(asked: &mut Asked) -> Checked<(Agent, &'static str)> {
    let (options, law_name) = super::fast::options(&mut asked.law)?;
    Ok((Agent::Fast(options), law_name))
}

pub(super) fn mfast(asked: &mut Asked) -> Checked<(Agent, &'static str)> {
    asked.streams = Some(asked.options.take("streams", MFAST_STREAMS)?);
    fast(asked)
}

pub(super) fn vegas(asked: &mut Asked) -> Checked<(Agent, &'static str)> {
    let law = &mut asked.law;
    let VegasOptions { alpha, beta, gamma } = VegasOptions::default();
    let options = VegasOptions {
        alpha: law.take("alpha", alpha)?,
        beta: law.take("beta", beta)?,
        gamma: law.take("gamma", gamma)?,
    };
    if !(0 <= options.alpha && options.alpha <= options.beta && options.gamma >= 0) {
        let fault = Fault::new(format!("Vegas cannot hold between {} and {} packets", options.alpha, options.beta));
        return Err((law.path.clone(), fault.remedy("use 0 <= alpha <= beta and gamma >= 0")));
    }
    Ok((Agent::Vegas(options), "vegas"))
}

pub(super) fn composite(asked: &mut Asked) -> Checked<(Agent, &'static str)> {
    let law = &mut asked.law;
    let default = CompositeOptions::default();
    let options = CompositeOptions {
        holes: law.choose("holes", default.holes, &HOLES)?,
        rtt: law.choose("rtt", default.rtt, &RTTS)?,
        send: law.choose("send", default.send, &SENDS)?,
    };
    Ok((Agent::Composite(options), "composite"))
}

/// Bytes of TCP's payload, a stream header among them, such that a packet has its size on the wire; what each agent adds is its
/// own knowledge.
pub(super) fn payload(packet: Bytes, sender: &SenderConfig, stream_header: u32, path: &Path) -> Checked<u32> {
    let header = sender.packet_size() - sender.payload + stream_header;
    let size = u32::try_from(packet.count()).ok().filter(|&size| size <= PACKET_MAX);
    size.filter(|&size| size > header).map(|size| size - header + stream_header).ok_or_else(|| {
        let fault = Fault::new(format!("a packet of {} is impossible", packet));
        (path.key("packet"), fault.remedy(format!("use {}B to {PACKET_MAX}B; headers take {header}", header + 1)))
    })
}

/// As many streams as mfast-2019 runs with (its Table 1).
pub(in crate::load) const MFAST_STREAMS: NonZeroU8 = NonZeroU8::new(5).expect("five is not zero");

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
