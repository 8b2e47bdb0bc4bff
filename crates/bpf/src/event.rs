//! An event as the C laws take it in tests (`struct ab_event` of `c/event.h`).

/// One event of a law. Windows and segments are numbers with 24 bits after the point in C.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// The kind of the event, such as an ACK or a timeout.
    pub kind: Kind,
    /// The time in nanoseconds.
    pub now: u64,
    /// Segments newly acknowledged. Of [`Kind::Share`] the share.
    pub acked: f64,
    /// Segments newly known to be lost.
    pub lost: f64,
    /// Segments in flight when the newest of the acknowledged ones left.
    pub old: f64,
    /// Segments delivered since then.
    pub delivered: f64,
    /// The RTT sample in nanoseconds, if there is one.
    pub rtt: Option<u64>,
    /// Whether the newest segment is less than half a full one.
    pub is_short: bool,
    /// Whether the application limits the sender.
    pub is_limited: bool,
    /// Whether the sender is in fast recovery.
    pub in_recovery: bool,
    /// Whether a loss looks random.
    pub is_random: bool,
}

/// The kind of an event (`enum ab_kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// An ACK of something new.
    Ack,
    /// A loss by duplicate ACKs.
    DupAcks,
    /// A retransmission timeout.
    Timeout,
    /// A mark of a router.
    Ecn,
    /// The end of fast recovery.
    Recovered,
    /// The latest loss was spurious.
    Undo,
    /// A restart after idle time.
    Idle,
    /// The end of the recovery from a timeout.
    AfterTimeout,
    /// The path is another one: the law begins anew.
    PathChanged,
    /// The share of alpha of one of several paths is another one. Only the default law hears of it.
    Share,
}

impl Event {
    /// The size in bytes in C.
    pub const BYTES: usize = 56;

    /// An event of a kind that says nothing but its time.
    pub const fn new(kind: Kind, now: u64) -> Self {
        Self {
            kind,
            now,
            acked: 0.0,
            lost: 0.0,
            old: 0.0,
            delivered: 0.0,
            rtt: None,
            is_short: false,
            is_limited: false,
            in_recovery: false,
            is_random: false,
        }
    }

    /// The bytes of `struct ab_event`.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let flags = [self.is_short, self.is_limited, self.in_recovery, self.is_random];
        let flags = flags.into_iter().enumerate().map(|(bit, is_set)| u32::from(is_set) << bit).sum::<u32>();
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&(self.kind as u32).to_ne_bytes());
        bytes[4..8].copy_from_slice(&flags.to_ne_bytes());
        let [acked, lost, old, delivered] = [self.acked, self.lost, self.old, self.delivered].map(point);
        let words = [self.now, acked, lost, old, delivered, self.rtt.unwrap_or(0)];
        for (to, word) in bytes[8..].chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

/// A window of C in segments.
pub fn segments(window: u64) -> f64 {
    window as f64 / (1_u64 << 24) as f64
}

fn point(segments: f64) -> u64 {
    (segments * (1_u64 << 24) as f64).round() as u64
}
