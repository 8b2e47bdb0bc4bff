//! A congestion controller as a WASM module: the interface, version 1. MIT OR Apache-2.0.
//!
//! A law is a type with `fn new(cc: &mut Cc) -> Self` and some of the hooks, each `fn on_...(&mut self, cc: &mut Cc)`. [`controller!`] lists them.
//! The facts of an event are in the table, [`Cc`], before its hook is called. `cc.window` and `cc.pacing_rate` are read after it. Each path has its
//! own instance of the module, with its own memory.
//!
//! Times are in seconds, windows and flights in segments. An unknown value is NaN, for which every comparison is false. There is no clock, no
//! randomness and no output: std can be used, but `Instant::now` panics. A hook may take about a million instructions, and a module 4 MiB of memory.
#![allow(dead_code)]

use std::ffi::CStr;
use std::ffi::c_char;

/// The version of the interface.
pub const VERSION: u32 = 1;

/// How the flight falls to the window after a loss.
pub mod reduction {
    pub const AT_ONCE: u32 = 0;
    pub const PROPORTIONAL: u32 = 1;
}

/// The ECN codepoint of the sent segments where the path uses ECN. A law that does not react to marks has `NONE`.
pub mod ect {
    pub const ZERO: u32 = 0;
    pub const ONE: u32 = 1;
    pub const NONE: u32 = 2;
}

/// Whether there was data whenever the window and the pacer allowed a departure. If not, the delivery rate says nothing about the path.
pub mod supply {
    pub const ENOUGH: u32 = 0;
    pub const SHORT: u32 = 1;
}

/// What limits the sender. If it is not the window, an ACK is no evidence for a larger window.
pub mod limit {
    pub const WINDOW: u32 = 0;
    pub const APPLICATION: u32 = 1;
}

/// Whether the sender is in fast recovery.
pub mod phase {
    pub const OPEN: u32 = 0;
    pub const RECOVERY: u32 = 1;
}

/// How a loss was detected.
pub mod signal {
    pub const DUP_ACKS: u32 = 0;
    pub const TIMEOUT: u32 = 1;
    pub const ECN: u32 = 2;
}

/// The likely cause of a loss.
pub mod cause {
    pub const CONGESTION: u32 = 0;
    pub const RANDOM: u32 = 1;
    pub const UNKNOWN: u32 = 2;
}

/// Whether the data is sent for the first time.
pub mod transmission {
    pub const FIRST: u32 = 0;
    pub const AGAIN: u32 = 1;
}

/// Why sending starts or starts again.
pub mod restart {
    pub const ESTABLISHED: u32 = 0;
    pub const IDLE: u32 = 1;
    pub const AFTER_TIMEOUT: u32 = 2;
    pub const PATH_CHANGED: u32 = 3;
}

/// A setting: a key of `cc` in a scenario. The value is the default until the controller is created.
#[repr(C)]
pub struct Setting {
    name: *const c_char,
    unit: *const c_char,
    help: *const c_char,
    reserved: u32,
    pub value: f64,
    pub least: f64,
    pub most: f64,
}

impl Setting {
    /// A setting of the unit `s` takes times such as `10ms`.
    pub const fn new(
        name: &'static CStr,
        unit: &'static CStr,
        help: &'static CStr,
        value: f64,
        least: f64,
        most: f64,
    ) -> Self {
        Self { name: name.as_ptr(), unit: unit.as_ptr(), help: help.as_ptr(), reserved: 0, value, least, most }
    }
}

/// A number for traces. It may be infinite, but never NaN. The window is always shown.
#[repr(C)]
pub struct Gauge {
    name: *const c_char,
    reserved: u32,
    pub value: f64,
}

impl Gauge {
    pub const fn new(name: &'static CStr, value: f64) -> Self {
        Self { name: name.as_ptr(), reserved: 0, value }
    }
}

/// The state of the path, after the event.
#[repr(C)]
pub struct Path {
    pub now: f64,
    /// Segments sent and neither acknowledged nor known to be lost.
    pub flight: f64,
    /// Bytes of a segment, the unit of the window.
    pub mss: f64,
    /// The SRTT of RFC 6298.
    pub rtt_smoothed: f64,
    /// The least RTT sample since the path was established or changed.
    pub rtt_min: f64,
    pub delivered: f64,
    pub lost: f64,
    /// The arrival time of the latest ACK of new data, or the start of the present flight, whichever is later.
    pub delivered_at: f64,
    /// The latest send time of all delivered segments, or the start of the present flight, whichever is later.
    pub departed: f64,
}

/// The state of the path when a segment was sent.
#[repr(C)]
pub struct Departure {
    pub time: f64,
    pub window: f64,
    pub flight: f64,
    pub delivered: f64,
    pub lost: f64,
    pub delivered_at: f64,
    pub departed: f64,
    /// A code of `supply`.
    pub supply: u32,
    reserved: u32,
}

/// An ACK that acknowledged something new.
#[repr(C)]
pub struct Ack {
    /// Segments acknowledged for the first time; above zero.
    pub newly_acked: f64,
    /// Segments detected as lost since the last ACK.
    pub newly_lost: f64,
    /// Segments marked by routers since the last ACK.
    pub newly_marked: f64,
    /// The raw RTT sample of the newest segment; NaN where Karn's rule forbids one.
    pub rtt: f64,
    /// Payload bytes of that segment.
    pub size: f64,
    /// The arrival time; earlier than `now` if ACKs are handled in batches.
    pub arrival: f64,
    /// The state when the newest acknowledged segment was sent.
    pub departure: Departure,
    /// A code of `limit`.
    pub limit: u32,
    /// A code of `phase`.
    pub phase: u32,
}

/// A round, about one RTT. Its hook is called after that of the ACK that ended it.
#[repr(C)]
pub struct Round {
    /// The number of rounds before it.
    pub count: f64,
    /// The duration.
    pub elapsed: f64,
    /// Segments acknowledged in it.
    pub acked: f64,
    pub rtt_min: f64,
    pub rtt_mean: f64,
}

/// A loss or an ECN mark: once for each loss episode.
#[repr(C)]
pub struct Loss {
    /// A code of `signal`.
    pub signal: u32,
    /// A code of `cause`.
    pub cause: u32,
    /// Segments known to be lost so far; 0 for a mark.
    pub lost: f64,
    /// The state when the first lost or marked segment was sent.
    pub departure: Departure,
}

/// A segment was sent.
#[repr(C)]
pub struct Sent {
    /// The size as a fraction of a full segment.
    pub segments: f64,
    /// A code of `transmission`.
    pub transmission: u32,
    reserved: u32,
}

/// A path of the connection, this one included.
#[repr(C)]
pub struct Summary {
    pub path: u32,
    pub own: u32,
    pub window: f64,
    pub flight: f64,
    pub rtt_smoothed: f64,
    pub rtt_min: f64,
    pub delivered: f64,
    pub lost: f64,
}

/// The table.
#[repr(C)]
pub struct Cc {
    version: u32,
    /// A code of `reduction`; constant after `new`.
    pub reduction: u32,
    /// A code of `ect`; constant after `new`.
    pub ect: u32,
    settings_count: u32,
    settings: *mut Setting,
    gauges_count: u32,
    gauges: *mut Gauge,
    group_count: u32,
    /// Set by the law: the window in segments, finite, at least 1.
    pub window: f64,
    /// Set by the law: the pacing rate in bit/s, at least 1; 0 for ACK clocking.
    pub pacing_rate: f64,
    pub path: Path,
    pub ack: Ack,
    pub round: Round,
    pub loss: Loss,
    pub sent: Sent,
    /// A code of `restart`.
    pub restart: u32,
    reserved: u32,
    group: [Summary; 8],
}

const _: () = assert!(size_of::<Cc>() == 832 || size_of::<usize>() != 4, "the table has no gaps");

impl Cc {
    /// Used by [`controller!`].
    pub const fn new(settings: *mut Setting, settings_count: usize, gauges: *mut Gauge, gauges_count: usize) -> Self {
        // SAFETY: zero is a value of every field.
        let empty: Self = unsafe { std::mem::zeroed() };
        Self {
            version: VERSION,
            settings_count: settings_count as u32,
            settings,
            gauges_count: gauges_count as u32,
            gauges,
            window: 10.0,
            ..empty
        }
    }

    /// The value of a setting, by its index in the list.
    pub fn setting(&self, index: usize) -> f64 {
        assert!(index < self.settings_count as usize, "there are so many settings");
        // SAFETY: the index is below the length of the list, and nobody changes a setting while a hook runs.
        unsafe { (*self.settings.add(index)).value }
    }

    /// Sets a gauge, by its index in the list.
    pub fn show(&mut self, index: usize, value: f64) {
        assert!(index < self.gauges_count as usize, "there are so many gauges");
        // SAFETY: the index is below the length of the list, and there is one thread.
        unsafe { (*self.gauges.add(index)).value = value }
    }

    /// All paths of the connection, in `on_group`.
    pub fn group(&self) -> &[Summary] {
        &self.group[..(self.group_count as usize).min(self.group.len())]
    }
}

/// Makes a module of a law from its type, its settings and gauges in the order of their indices, and its hooks. All hooks are optional, but one of
/// `on_ack`, `on_round` and `on_group` must be there.
///
/// * `on_sent`: a segment left (`cc.sent`); window and rate must not change
/// * `on_ack`: something new was acknowledged (`cc.ack`)
/// * `on_round`: a round ended (`cc.round`)
/// * `on_loss`: data was lost or marked (`cc.loss`). Default: half the window, or 1 after a timeout
/// * `on_recovered`: everything outstanding at the loss has been acknowledged
/// * `on_undo`: the latest loss was spurious. Also without the hook, the window is at least what it was before that loss
/// * `on_restart`: sending starts or restarts (`cc.restart`). Default: at most the first window after an idle period, and the first window on a new
///   path
/// * `on_group`: once a round with several paths (`cc.group()`)
#[macro_export]
macro_rules! controller {
    ($law:ty, settings: [$($setting:expr),* $(,)?], gauges: [$($gauge:expr),* $(,)?], hooks: [$($hook:ident),* $(,)?] $(,)?) => {
        const SETTINGS_COUNT: usize = <[&str]>::len(&[$(stringify!($setting)),*]);
        const GAUGES_COUNT: usize = <[&str]>::len(&[$(stringify!($gauge)),*]);
        static mut SETTINGS: [$crate::anabranch_cc::Setting; SETTINGS_COUNT] = [$($setting),*];
        static mut GAUGES: [$crate::anabranch_cc::Gauge; GAUGES_COUNT] = [$($gauge),*];
        static mut TABLE: $crate::anabranch_cc::Cc = $crate::anabranch_cc::Cc::new(
            (&raw mut SETTINGS).cast(),
            SETTINGS_COUNT,
            (&raw mut GAUGES).cast(),
            GAUGES_COUNT,
        );
        static mut LAW: Option<$law> = None;

        #[unsafe(no_mangle)]
        extern "C" fn anabranch() -> *mut $crate::anabranch_cc::Cc {
            &raw mut TABLE
        }

        #[unsafe(no_mangle)]
        extern "C" fn init() {
            // SAFETY: a module has one thread, and a hook calls no other.
            unsafe { LAW = Some(<$law>::new(&mut *(&raw mut TABLE))) }
        }

        $(
            #[unsafe(no_mangle)]
            extern "C" fn $hook() {
                // SAFETY: as above; `init` came before.
                unsafe {
                    if let Some(law) = &mut *(&raw mut LAW) {
                        law.$hook(&mut *(&raw mut TABLE));
                    }
                }
            }
        )*
    };
}
