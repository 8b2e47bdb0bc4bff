//! Writes the scenarios of the field.

use std::fmt::Write as _;

/// The bits of a packet: 1500 bytes.
const PACKET_BITS: f64 = 12_000.0;

/// The least queue of a bottleneck, in packets: with fewer no window of two segments passes.
const QUEUE_MIN: f64 = 4.0;

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
        self.rtt / 2.0
    }
}

impl Network {
    /// An empty scenario of this length in seconds.
    pub(super) fn new(seed: u64, seconds: f64) -> Self {
        Self { text: format!("seed = {seed}\nduration = \"{seconds:.0}s\"\nresolution = \"5ms\"\n") }
    }

    /// The bottleneck from S to D, a link with a drop-tail queue. `more` has further keys of the link.
    pub(super) fn bottleneck(&mut self, link: Bottleneck, more: &str) {
        let (rate, delay, packets) = (link.rate, link.delay(), link.packets());
        // The way back is as fast and never full, so that acknowledgements arrive as they were sent.
        let reverse = if more.contains("reverse") {
            ""
        } else {
            "reverse = { queue = { kind = \"drop_tail\", packets = 1000000 } }\n"
        };
        let _ = write!(
            self.text,
            "\n[[link]]\nid = \"bn\"\nfrom = \"S\"\nto = \"D\"\nrate = \"{rate}Mbit/s\"\ndelay = \"{delay:.3}ms\"\n\
             queue = {{ kind = \"drop_tail\", packets = {packets} }}\n{reverse}{more}"
        );
    }

    /// The flow `f<index>`; `cc` is the value of its key.
    pub(super) fn flow(&mut self, index: usize, cc: &str, start: f64, more: &str) {
        let _ = write!(
            self.text,
            "\n[[flow]]\nid = \"f{index}\"\nfrom = \"S\"\nto = \"D\"\ntransport = \"anabranch\"\nform = \"sealed\"\npacing = \"always\"\n\
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
