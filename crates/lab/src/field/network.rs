//! Writes the scenarios of the field.

use std::fmt::Write as _;

/// The bits of a packet: 1500 bytes.
const PACKET_BITS: f64 = 12_000.0;

/// The least queue of a bottleneck, in packets: with fewer no window of two segments passes.
const QUEUE_MIN: f64 = 4.0;

/// The delay of an access link in ms, one way: a path crosses two.
const ACCESS_MS: f64 = 0.5;

/// A scenario that grows part by part.
pub(super) struct Network {
    text: String,
}

/// A bottleneck: rate in Mbit/s, round trip in ms of the whole path, buffer in bandwidth-delay products.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bottleneck {
    pub(super) rate: f64,
    pub(super) rtt: f64,
    pub(super) buffer: f64,
}

impl Bottleneck {
    /// The buffer in packets.
    pub(super) fn packets(self) -> f64 {
        libm::round(self.buffer * self.rate * self.rtt * 1e3 / PACKET_BITS).max(QUEUE_MIN)
    }

    /// The propagation delay of the link itself in ms, one way.
    pub(super) fn delay(self) -> f64 {
        self.rtt / 2.0 - 2.0 * ACCESS_MS
    }
}

impl Network {
    /// An empty scenario of this length in seconds.
    pub(super) fn new(seed: u64, seconds: f64) -> Self {
        Self { text: format!("seed = {seed}\nduration = \"{seconds:.0}s\"\nresolution = \"5ms\"\n") }
    }

    /// The bottleneck from R1 to R2. `more` has further keys of the link.
    pub(super) fn bottleneck(&mut self, link: Bottleneck, more: &str) {
        let (rate, delay, packets) = (link.rate, link.delay(), link.packets());
        self.link("bn", ("R1", "R2"), &format!("{rate}Mbit/s"), delay, packets, more);
    }

    /// A link with a drop-tail queue.
    pub(super) fn link(
        &mut self,
        id: &str,
        (from, to): (&str, &str),
        rate: &str,
        delay: f64,
        packets: f64,
        more: &str,
    ) {
        // The way back is as fast and never full, so that acknowledgements arrive as they were sent.
        let reverse = if more.contains("reverse") {
            ""
        } else {
            "reverse = { queue = { kind = \"drop_tail\", packets = 1000000 } }\n"
        };
        let text = format!(
            "\n[[link]]\nid = \"{id}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate}\"\ndelay = \"{delay:.3}ms\"\n\
             queue = {{ kind = \"drop_tail\", packets = {packets} }}\n{reverse}{more}"
        );
        self.text += &text;
    }

    /// The access links of `count` pairs of hosts: S0 and D0, and so on.
    pub(super) fn access(&mut self, count: usize, to: &str) {
        for index in 0..count {
            let (source, sink) = (format!("S{index}"), format!("D{index}"));
            self.link(&format!("in{index}"), (&source, "R1"), "10Gbit/s", ACCESS_MS, 1e6, "");
            self.link(&format!("out{index}"), (to, &sink), "10Gbit/s", ACCESS_MS, 1e6, "");
        }
    }

    /// The flow `f<index>` from S to D of that number; `cc` is the value of its key.
    pub(super) fn flow(&mut self, index: usize, cc: &str, start: f64, more: &str) {
        let _ = write!(
            self.text,
            "\n[[flow]]\nid = \"f{index}\"\nfrom = \"S{index}\"\nto = \"D{index}\"\ntransport = \"anabranch\"\nform = \"sealed\"\npacing = \"always\"\n\
             packet = \"1500B\"\nrbuf = \"256MiB\"\nstart = \"{start}s\"\ncc = {cc}\n{more}"
        );
    }

    /// Any further text.
    pub(super) fn add(&mut self, text: &str) {
        self.text += text;
    }

    pub(super) fn text(self) -> String {
        self.text
    }
}
