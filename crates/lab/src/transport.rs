//! From the keys of a flow to what drives it: the one place that knows which transports there are and what each can be set to.

mod multihome;
mod sctp;
mod settings;

use std::num::NonZeroU8;

use anabranch_cc::law::fast::FastSettings;
use anabranch_cc::law::fast::loss::Policy;
use anabranch_cc::registry;
use anabranch_ns2::STREAM_HEADER;
use anabranch_ns2::config::{
    Agent, CompositeOptions, FastOptions, HoleTest, NewRenoOptions, RttTest, SendRule, SenderConfig, SinkConfig,
    VegasOptions,
};
use anabranch_ns2::multihome as multihome_agent;
use anabranch_ns2::sctp::{Data, EndpointConfig};
use anabranch_proto::{
    AckPolicy, Config, Failover, Form, HEADERS, KeepAlive, LossDetection, PATHS_MAX, Pacing, PathMtu, Repair,
    Scheduling, StreamBuffer,
};
use anabranch_sim::traffic::{Cbr, OnOffParameters};
use anabranch_sim::{Messages, Spacing, Workload};
use anabranch_units::{Bytes, SimSpan, Span};

use self::settings::Settings;
use crate::diagnostic::{Fault, suggestion};
use crate::document::Path;
use crate::scenario::keys::{
    FailoverKeys, FlowKeys, FormKeys, LossDetectionKeys, PacingKeys, RATE_MAX, RepairKeys, SchedulerKeys, SinkKeys,
    StreamBufferKeys, WorkloadKeys,
};
use crate::scenario::values::{Count, Setting, Text};

/// What drives a flow.
#[derive(Clone, Debug)]
pub(crate) enum Transport {
    /// A one-way agent of ns-2, its sink, the streams of MFast's receiver, and what it is to send.
    Ns2 { sender: Box<SenderConfig>, sink: SinkConfig, streams: Option<NonZeroU8>, workload: Workload },
    /// FAST's agent of ns-2 on each of several paths, and what it is to send.
    Multihomed { config: Box<multihome_agent::Config>, workload: Workload },
    /// ns-2's SCTP, both ends alike, the path to begin with, and what it is to send.
    Sctp { config: Box<EndpointConfig>, primary: usize, workload: Workload },
    /// Our own transport, both ends of which are set alike.
    Engine { config: Box<Config>, workload: Workload },
    /// Packets at a constant rate, which nothing acknowledges.
    Cbr(Cbr),
    /// Bursts between silences, which nothing acknowledges.
    OnOff(OnOffParameters),
}

/// Names of transports, for messages.
const NAMES: [&str; 16] = [
    "anabranch",
    "ns2/reno",
    "ns2/newreno",
    "ns2/sack",
    "ns2/fack",
    "ns2/vegas",
    "ns2/fs",
    "ns2/linux",
    "ns2/composite",
    "ns2/fast",
    "ns2/mfast",
    "ns2/fast-mh",
    "ns2/sctp",
    "ns2/sctp-cmt",
    "cbr",
    "on_off",
];

type Checked<T> = Result<T, (Path, Fault)>;

impl Transport {
    /// The transport of a flow and the name of its congestion law.
    pub(crate) fn from_keys(keys: &FlowKeys, path: &Path) -> Checked<(Self, Option<String>)> {
        if matches!(keys.transport.as_str(), "cbr" | "on_off") {
            return traffic(keys, path).map(|transport| (transport, None));
        }
        if matches!(keys.transport.as_str(), "ns2/sctp" | "ns2/sctp-cmt") {
            return sctp::from_keys(keys, path).map(|transport| (transport, None));
        }
        if keys.transport == "ns2/fast-mh" {
            return multihome::from_keys(keys, path).map(|(transport, law_name)| (transport, Some(law_name)));
        }
        if keys.transport == "anabranch" {
            return engine(keys, path).map(|(transport, law_name)| (transport, Some(law_name)));
        }
        let mut law = Settings::of_law(keys.cc.as_ref(), path.key("cc"))?;
        let mut options =
            Settings::new(keys.options.clone().unwrap_or_default(), path.key("options"), "an option of this agent");
        let mut streams = None;
        let (agent, law_name) = match keys.transport.as_str() {
            "ns2/reno" => (Agent::Reno, "reno"),
            "ns2/newreno" => {
                let impatient = options.take("impatient", NewRenoOptions::default().impatient)?;
                (Agent::NewReno(NewRenoOptions { impatient }), "newreno")
            }
            "ns2/sack" => (Agent::Sack, "reno"),
            "ns2/fack" => (Agent::Fack, "reno"),
            "ns2/vegas" => (Agent::Vegas(vegas(&mut law)?), "vegas"),
            "ns2/fs" => (Agent::FastStart, "reno"),
            "ns2/linux" => (Agent::Linux, "linux"),
            "ns2/composite" => (Agent::Composite(composite(&mut law)?), "composite"),
            name @ ("ns2/fast" | "ns2/mfast") => {
                if name == "ns2/mfast" {
                    streams = Some(options.take("streams", MFAST_STREAMS)?);
                }
                let (options, law_name) = fast(&mut law)?;
                (Agent::Fast(options), law_name)
            }
            unknown => {
                let fault = Fault::new(format!("there is no transport `{unknown}`"));
                return Err((path.key("transport"), fault.remedy(suggestion(unknown, NAMES))));
            }
        };
        law.finish(law_name)?;
        let present = [
            ("rate", keys.rate.is_some()),
            ("on", keys.on.is_some()),
            ("off", keys.off.is_some()),
            ("paths", keys.paths.is_some()),
            ("rbuf", keys.rbuf.is_some()),
        ];
        refuse_keys(keys, path, &present)?;
        refuse_keys(keys, path, &keys_of_engine(keys))?;
        let mut sender = SenderConfig::new(agent);
        let stream_header = if streams.is_some() { STREAM_HEADER } else { 0 };
        sender.payload = payload(keys, &sender, stream_header, path)?;
        sender.window = packets(keys.window, sender.window, WINDOW_MAX, &path.key("window"))?;
        let initial =
            packets(keys.initial_window, sender.window_initial, INITIAL_WINDOW_MAX, &path.key("initial_window"));
        sender.window_initial = initial?;
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
        let workload = workload(keys.workload.as_ref(), 1, &path.key("workload"))?;
        Ok((Self::Ns2 { sender: Box::new(sender), sink, streams, workload }, Some(law_name.to_owned())))
    }
}

impl Transport {
    /// Bytes of payload in a packet of an agent; of what only fills links, none.
    pub(crate) fn payload(&self) -> u32 {
        match self {
            Self::Ns2 { sender, streams: None, .. } => sender.payload,
            Self::Ns2 { sender, streams: Some(_), .. } => sender.payload - STREAM_HEADER,
            Self::Multihomed { config, .. } => config.agent.payload,
            Self::Sctp { config, .. } => config.chunk - Data::HEADER,
            Self::Engine { config, .. } => config.payload(),
            Self::Cbr(_) | Self::OnOff(_) => 0,
        }
    }

    /// Whether it has a stream of this number.
    pub(crate) fn has_stream(&self, stream: u8) -> bool {
        match self {
            Self::Ns2 { streams: Some(streams), .. } => (1..=streams.get()).contains(&stream),
            Self::Sctp { config, .. } => (1..=config.streams).contains(&stream.into()),
            Self::Engine { config, .. } => (1..=config.streams).contains(&stream.into()),
            _ => false,
        }
    }

    /// Bytes that its application wants to have sent, if they end.
    pub(crate) fn offered(&self) -> Option<u64> {
        let (Self::Ns2 { workload, .. } | Self::Engine { workload, .. }) = self else { return None };
        match workload {
            Workload::Bulk => None,
            Workload::Fixed { bytes } => Some(*bytes),
            Workload::Messages(messages) => Some(messages.count?.saturating_mul(messages.bytes)),
        }
    }

    /// Whether it sends by chance.
    pub(crate) fn is_random(&self) -> bool {
        match self {
            Self::Ns2 { workload, .. } | Self::Multihomed { workload, .. } | Self::Engine { workload, .. } => {
                matches!(workload, Workload::Messages(Messages { spacing: Spacing::Exponential(_), .. }))
            }
            Self::Sctp { .. } | Self::Cbr(_) => false,
            Self::OnOff(_) => true,
        }
    }
}

/// Our own transport.
fn engine(keys: &FlowKeys, path: &Path) -> Checked<(Transport, String)> {
    refuse_keys(
        keys,
        path,
        &[
            ("rate", keys.rate.is_some()),
            ("on", keys.on.is_some()),
            ("off", keys.off.is_some()),
            ("window", keys.window.is_some()),
            ("initial_window", keys.initial_window.is_some()),
            ("sink", keys.sink.is_some()),
            ("options", keys.options.is_some()),
        ],
    )?;
    let mut given = Settings::of_law(keys.cc.as_ref(), path.key("cc"))?;
    let name = given.rest.remove("name").map_or_else(|| "anabranch".to_owned(), |name| name.0);
    let row = registry::find(&name).map_err(|error| (given.path.key("name"), Fault::new(error.to_string())))?;
    let mut law = registry::Settings::default_for(row);
    // What a kind of a part can be set to comes after the kind.
    let is_kind = |(key, _): &(&String, &Setting)| key.ends_with(KIND);
    for (key, value) in given.rest.iter().filter(is_kind).chain(given.rest.iter().filter(|it| !is_kind(it))) {
        law.set(key, &value.0).map_err(|error| (given.place(key), Fault::new(error.to_string())))?;
    }
    let streams = u16::from(keys.streams.unwrap_or(1));
    let size = keys.packet.0;
    let mss = size.count().checked_sub(HEADERS.into()).and_then(|mss| u16::try_from(mss).ok());
    let Some(mss) = mss.filter(|&mss| mss >= Config::MSS_MIN) else {
        let least = HEADERS + u32::from(Config::MSS_MIN);
        let fault = Fault::new(format!("a packet of {size} is impossible"));
        return Err((
            path.key("packet"),
            fault.remedy(format!("use {least}B to {PACKET_MAX}B; headers take {HEADERS}")),
        ));
    };
    let (form, path_mtu) = form(keys, path)?;
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
        // So little that a flow that is told to stop does stop.
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
        // What drives the host says how late its timers are.
        timer: Span::ZERO,
        acks: acks(keys.delayed_acks, &path.key("delayed_acks"))?,
        nagle: keys.nagle.unwrap_or(config.nagle),
        timestamps: keys.timestamps.unwrap_or(config.timestamps),
        // A flow of a scenario may pause for as long as it likes.
        idle_timeout: None,
        keep_alive: keep_alive(keys.keep_alive, &path.key("keep_alive"))?,
        ..config
    };
    debug_assert!(config.check().is_ok(), "what a configuration cannot be was refused above: {config:?}");
    let workload = workload(keys.workload.as_ref(), u32::from(streams.max(1)), &path.key("workload"))?;
    Ok((Transport::Engine { config: Box::new(config), workload }, name))
}

/// In which form it travels, and how long packets may be.
fn form(keys: &FlowKeys, path: &Path) -> Checked<(Form, PathMtu)> {
    if keys.form != Some(FormKeys::Sealed) {
        return Ok((Form::Tcp, PathMtu::USUAL));
    }
    let packet_max = u32::try_from(keys.packet.0.count()).unwrap_or(u32::MAX);
    if packet_max < PathMtu::PACKET_MIN {
        let fault = Fault::new(format!("a sealed packet has more than {}", keys.packet.0));
        return Err((path.key("packet"), fault.remedy(format!("use {}B or more", PathMtu::PACKET_MIN))));
    }
    Ok((Form::Sealed, PathMtu::Searched { packet_max }))
}

/// When our own transport acknowledges.
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
        let fault = Fault::new("nobody can be asked without end");
        return Err((path.clone(), fault.remedy("use a time above 0s")));
    }
    Ok(Some(KeepAlive { idle: idle.rescale(), ..KeepAlive::USUAL }))
}

/// How many paths a connection has.
fn paths(keys: &FlowKeys, streams: u16, scheduling: Scheduling, path: &Path) -> Checked<u8> {
    let Some(paths) = &keys.paths else {
        let pointless = [
            ("scheduler", keys.scheduler.is_some(), "one path needs no scheduler"),
            ("repair", keys.repair.is_some(), "what is lost on an only path is sent again there"),
            ("failover", keys.failover.is_some(), "nobody takes over from an only path"),
        ];
        return match pointless.into_iter().find(|(_, is_present, _)| *is_present) {
            Some((key, _, fault)) => Err((path.key(key), Fault::new(fault).remedy("add `paths`, or remove it"))),
            None => Ok(1),
        };
    };
    if scheduling == Scheduling::Backup && keys.failover == Some(FailoverKeys::Never) {
        let fault = Fault::new("the paths in reserve wait for a failure that never comes");
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
        let refused = [
            ("loss_rate", it.loss_rate.is_some()),
            ("weight", it.weight.is_some() && scheduling != Scheduling::Weighted),
        ];
        if let Some((key, _)) = refused.iter().find(|(_, is_refused)| *is_refused) {
            let fault = Fault::new(format!("a path of this connection has no `{key}`"));
            let remedy = if *key == "weight" { "remove it, or write scheduler = \"weighted\"" } else { "remove it" };
            return Err((path.index(index).key(key), fault.remedy(remedy)));
        }
    }
    Ok(paths.len() as u8)
}

/// The receive buffer of our own transport and of FAST multihoming, if nobody says: 1.3 Gbit/s at 100 ms.
const RBUF: u64 = 16 << 20;

/// The largest window that TCP can announce ([rfc-7323] sec. 2.3).
pub(crate) const RBUF_MAX: u64 = 1 << 30;

/// [rfc-9293] sec. 3.8.6.3: "an ACK SHOULD NOT be excessively delayed; in particular, the delay MUST be less than 0.5 seconds".
const ACK_DELAY_MAX: SimSpan = SimSpan::from_millis(500);

/// Segments that wait on each stream.
const SEND_BUFFER_SEGMENTS: u64 = 4;

fn workload(keys: Option<&WorkloadKeys>, streams: u32, path: &Path) -> Checked<Workload> {
    let amount = |bytes: Bytes| match bytes.count() {
        0 => Err((path.key("bytes"), Fault::new("there is nothing to send in 0B").remedy("use 1B or more"))),
        bytes => Ok(bytes),
    };
    let (bytes, count, every, every_mean) = match keys {
        None | Some(WorkloadKeys::Bulk) => return Ok(Workload::Bulk),
        Some(WorkloadKeys::Fixed { bytes }) => return Ok(Workload::Fixed { bytes: amount(bytes.0)? }),
        Some(&WorkloadKeys::Messages { bytes, count, every, every_mean }) => (bytes, count, every, every_mean),
    };
    let spacing = match (every.map(|every| every.0), every_mean.map(|mean| mean.0)) {
        (None, None) => Spacing::Together,
        (Some(every), None) => Spacing::Every(every),
        (None, Some(mean)) => Spacing::Exponential(mean),
        (Some(_), Some(_)) => {
            let fault = Fault::new("`every` and `every_mean` say two things");
            return Err((path.key("every_mean"), fault.remedy("keep one")));
        }
    };
    let is_endless_at_once = match spacing {
        Spacing::Together => count.is_none(),
        Spacing::Every(span) | Spacing::Exponential(span) => span.is_zero(),
    };
    if is_endless_at_once {
        let fault = Fault::new("nothing says when these messages end or come");
        return Err((path.clone(), fault.remedy("add count = 100, or every = \"20ms\"")));
    }
    let count = count.map(|count| u64::from(count.0));
    Ok(Workload::Messages(Messages { bytes: amount(bytes.0)?, count, streams, spacing }))
}

/// `cbr` and `on_off`: packets that only fill links.
fn traffic(keys: &FlowKeys, path: &Path) -> Checked<Transport> {
    let name = &keys.transport;
    refuse_keys(
        keys,
        path,
        &[
            ("cc", keys.cc.is_some()),
            ("window", keys.window.is_some()),
            ("initial_window", keys.initial_window.is_some()),
            ("rto_min", keys.rto_min.is_some()),
            ("sink", keys.sink.is_some()),
            ("workload", keys.workload.is_some()),
            ("options", keys.options.is_some()),
            ("paths", keys.paths.is_some()),
            ("rbuf", keys.rbuf.is_some()),
        ],
    )?;
    refuse_keys(keys, path, &keys_of_engine(keys))?;
    let size = u32::try_from(keys.packet.0.count()).ok().filter(|size| (1..=PACKET_MAX).contains(size));
    let Some(size) = size else {
        let fault = Fault::new(format!("a packet of {} is impossible", keys.packet.0));
        return Err((path.key("packet"), fault.remedy(format!("use 1B to {PACKET_MAX}B"))));
    };
    let rate = match keys.rate.map(|rate| rate.0) {
        Some(rate) if (1..=RATE_MAX).contains(&rate.bits_per_second()) => rate,
        Some(rate) => {
            let fault = Fault::new(format!("a source cannot send {rate}"));
            return Err((path.key("rate"), fault.remedy("use a rate from 1bit/s to 1Tbit/s")));
        }
        None => {
            return Err((path.clone(), Fault::new(format!("a {name} needs a rate")).remedy("add rate = \"1Mbit/s\"")));
        }
    };
    match (name.as_str(), keys.on, keys.off) {
        ("cbr", ..) => {
            refuse_keys(keys, path, &[("on", keys.on.is_some()), ("off", keys.off.is_some())])?;
            Ok(Transport::Cbr(Cbr::new(rate, size)))
        }
        (_, Some(on), Some(off)) if on.0.is_zero() && off.0.is_zero() => {
            // A burst has one packet at least, so this would send without end.
            let fault = Fault::new("bursts and silences of no length are a constant rate");
            Err((path.key("off"), fault.remedy("make one of them longer than 0s, or use transport = \"cbr\"")))
        }
        (_, Some(on), Some(off)) => Ok(Transport::OnOff(OnOffParameters { on: on.0, off: off.0, rate, size })),
        _ => {
            let fault = Fault::new("an on_off needs the mean lengths of its bursts and silences");
            Err((path.clone(), fault.remedy("add on = \"2s\" and off = \"2s\"")))
        }
    }
}

/// What no transport but our own has.
fn keys_of_engine(keys: &FlowKeys) -> [(&'static str, bool); 12] {
    [
        ("form", keys.form.is_some()),
        ("streams", keys.streams.is_some()),
        ("scheduler", keys.scheduler.is_some()),
        ("stream_buffer", keys.stream_buffer.is_some()),
        ("loss_detection", keys.loss_detection.is_some()),
        ("repair", keys.repair.is_some()),
        ("failover", keys.failover.is_some()),
        ("pacing", keys.pacing.is_some()),
        ("delayed_acks", keys.delayed_acks.is_some()),
        ("nagle", keys.nagle.is_some()),
        ("timestamps", keys.timestamps.is_some()),
        ("keep_alive", keys.keep_alive.is_some()),
    ]
}

/// A key that would be ignored is a mistake.
fn refuse_keys(keys: &FlowKeys, path: &Path, present: &[(&str, bool)]) -> Checked<()> {
    match present.iter().find(|(_, is_present)| *is_present) {
        None => Ok(()),
        Some((key, _)) => {
            Err((path.key(key), Fault::new(format!("a {} has no `{key}`", keys.transport)).remedy("remove it")))
        }
    }
}

fn packets(count: Option<Count>, default: f64, most: u32, path: &Path) -> Checked<f64> {
    match count {
        None => Ok(default),
        Some(Count(count)) if count <= most => Ok(f64::from(count)),
        Some(Count(count)) => {
            let fault = Fault::new(format!("{count} packets are no window that can be simulated"));
            Err((path.clone(), fault.remedy(format!("use 1 to {most}"))))
        }
    }
}

/// Agents remember something of each packet in flight: this is five seconds of 10 Gbit/s, and some hundred million bytes.
const WINDOW_MAX: u32 = 1 << 22;

/// What leaves at once, before anything is known of the path; RFC 6928 has ten.
const INITIAL_WINDOW_MAX: u32 = 1 << 16;

/// Bytes of TCP's payload, a stream header among them, such that a packet has its size on the wire; what each agent adds is its
/// own knowledge.
fn payload(keys: &FlowKeys, sender: &SenderConfig, stream_header: u32, path: &Path) -> Checked<u32> {
    let header = sender.packet_size() - sender.payload + stream_header;
    let size = u32::try_from(keys.packet.0.count()).ok().filter(|&size| size <= PACKET_MAX);
    size.filter(|&size| size > header).map(|size| size - header + stream_header).ok_or_else(|| {
        let fault = Fault::new(format!("a packet of {} is impossible", keys.packet.0));
        (path.key("packet"), fault.remedy(format!("use {}B to {PACKET_MAX}B; headers take {header}", header + 1)))
    })
}

/// As many streams as mfast-2019 runs with (its Table 1).
pub(crate) const MFAST_STREAMS: NonZeroU8 = NonZeroU8::new(5).expect("five is not zero");

/// The longest IPv4 packet.
const PACKET_MAX: u32 = 65_535;

fn vegas(law: &mut Settings) -> Checked<VegasOptions> {
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
    Ok(options)
}

/// How the key for the kind of a part ends.
const KIND: &str = ".kind";

/// What FAST's agent is set to, and which law of the family its defaults are from.
fn fast(law: &mut Settings) -> Checked<(FastOptions, &'static str)> {
    let name = law.rest.get("name").map_or("fast", |name| name.0.as_str());
    let row = FAST_LAWS.iter().find(|known| **known == name).and_then(|known| registry::find(known).ok());
    let Some(row) = row else {
        let fault = Fault::new(format!("this transport has no law `{name}`")).remedy(suggestion(name, FAST_LAWS));
        return Err((law.path.key("name"), fault));
    };
    let mut settings = registry::Settings::default_for(row);
    for key in FastOptions::PARAMETERS {
        law.known.push(key);
        for key in [key.to_owned(), format!("{key}{KIND}")] {
            if let Some(value) = law.rest.remove(&key) {
                settings.set(&key, &value.0).map_err(|error| (law.place(&key), Fault::new(error.to_string())))?;
            }
        }
    }
    let settings: &FastSettings = settings.table().expect("each of these laws is FAST");
    if let Policy::Trial { .. } = settings.loss {
        let fault = Fault::new("ns-2's agent has no trials of losses".to_owned());
        return Err((law.path.key("loss"), fault.remedy("use `halve` or `composite`, or the transport `anabranch`")));
    }
    Ok((FastOptions::from_settings(settings), row.name))
}

/// The laws that `ns2/fast`, `ns2/mfast` and `ns2/fast-mh` can have: FAST, and what differs from it in parts that ns-2's agent has.
pub fn fast_laws() -> &'static [&'static str] {
    &FAST_LAWS
}

const FAST_LAWS: [&str; 3] = ["fast", "emfast", "rrfast"];

fn composite(law: &mut Settings) -> Checked<CompositeOptions> {
    let default = CompositeOptions::default();
    Ok(CompositeOptions {
        holes: law.choose("holes", default.holes, &HOLES)?,
        rtt: law.choose("rtt", default.rtt, &RTTS)?,
        send: law.choose("send", default.send, &SENDS)?,
    })
}

const HOLES: [(&str, HoleTest); 3] = [
    ("at_third_duplicate", HoleTest::AtThirdDuplicate),
    ("whole_window", HoleTest::WholeWindow),
    ("ignored", HoleTest::Ignored),
];
const RTTS: [(&str, RttTest); 3] =
    [("coarse", RttTest::Coarse), ("fine", RttTest::Fine), ("ignored", RttTest::Ignored)];
const SENDS: [(&str, SendRule); 3] = [
    ("one_per_duplicate", SendRule::OnePerDuplicate),
    ("replace_delivered", SendRule::ReplaceDelivered),
    ("nothing", SendRule::Nothing),
];

/// What `cc` can set, transport by transport, as a table for the reference.
pub(crate) fn laws_markdown() -> String {
    let words = |words: &[&str]| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    let VegasOptions { alpha, beta, gamma } = VegasOptions::default();
    format!(
        "| transport | `name` | parameters |\n| --- | --- | --- |\n\
         | `anabranch` | any: `anabranch cc list` | what `anabranch cc show NAME` lists |\n\
         | `ns2/reno`, `ns2/newreno`, `ns2/sack`, `ns2/fack`, `ns2/fs` | `reno`; `newreno` of the second | |\n\
         | `ns2/vegas` | `vegas` | `alpha` ({alpha}), `beta` ({beta}), `gamma` ({gamma}): whole packets |\n\
         | `ns2/linux` | `linux` | |\n\
         | `ns2/composite` | `composite` | `holes` ({}), `rtt` ({}), `send` ({}): the first is the default |\n\
         | `ns2/fast`, `ns2/mfast`, `ns2/fast-mh` | {} | {}; what they mean and may be: `anabranch cc show fast` |\n",
        alternatives(&HOLES),
        alternatives(&RTTS),
        alternatives(&SENDS),
        words(&FAST_LAWS),
        words(&FastOptions::PARAMETERS),
    )
}

fn alternatives<T>(options: &[(&str, T)]) -> String {
    options.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
}
