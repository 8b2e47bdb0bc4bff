//! The limit of the rate at which a connection sends data, over all its paths.
//!
//! A pacer of its own delays the departures that the pacers of the paths admit. So a path's law sees a sender with too little data: its window does not grow
//! for ACKs of a flight that the limit kept small, and its samples of the delivery rate do not count as what the path carries.

use anabranch_units::{Bytes, Rate, Time};

use super::{Connection, mtu};
use crate::config::{Config, ConfigError, Form};
use crate::payload::Payload;
use crate::recovery::pacer::Pacer;
use crate::segment::HEADERS;

impl<P: Payload> Connection<P> {
    /// The limit of the rate at which this end sends data: that of the application, or [`Config::rate_max`].
    pub fn rate_max(&self) -> Option<Rate> {
        self.rate_limit.rate
    }

    /// Replaces the limit. A segment that has left keeps the time that it has of the former one.
    ///
    /// # Errors
    /// If the rate is below [`Config::RATE_MIN`]. The former limit then stays.
    pub fn set_rate_max(&mut self, rate: Option<Rate>) -> Result<(), ConfigError> {
        if rate.is_some_and(|rate| rate < Config::RATE_MIN) {
            return Err(ConfigError::RateTooSmall);
        }
        self.rate_limit.rate = rate;
        self.resting_until = None;
        Ok(())
    }
}

/// The limit, if there is one.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateLimit {
    rate: Option<Rate>,
    pacer: Pacer,
    /// Bytes of a packet around the content of its segment.
    overhead: u32,
}

impl RateLimit {
    pub(super) fn new(config: &Config) -> Self {
        let overhead = match config.form {
            Form::Tcp => HEADERS,
            Form::Sealed => mtu::datagram(0) + mtu::IPV4,
        };
        Self { rate: config.rate_max, pacer: Pacer::new(config.timer), overhead }
    }

    /// When data may leave: at `now` or later.
    pub(super) fn release(&self, now: Time) -> Time {
        if self.rate.is_none() { now } else { self.pacer.release(now, self.rate) }
    }

    /// A segment with `content` bytes of sequence space leaves.
    pub(super) fn on_sent(&mut self, now: Time, content: u64) {
        if self.rate.is_some() {
            self.pacer.on_sent(now, Bytes::new(content.saturating_add(self.overhead.into())), self.rate);
        }
    }
}
