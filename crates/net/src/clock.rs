//! The clock of an endpoint: the time since it was created.

use std::time::{Duration, Instant, SystemTime};

use anabranch_proto::seal::Timestamp;
use anabranch_units::{Span, Time};

/// A clock that starts at its creation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

/// One reading of both clocks, for the arrival times of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    now: Time,
    since_1970: Duration,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now() }
    }

    pub(crate) fn now(&self) -> Time {
        Time::ZERO + span(self.start.elapsed())
    }

    /// The system clock at the creation of this one.
    pub(crate) fn epoch(&self) -> SystemTime {
        SystemTime::now().checked_sub(self.start.elapsed()).unwrap_or(SystemTime::UNIX_EPOCH)
    }

    pub(crate) fn instant(&self, time: Time) -> Instant {
        self.start + Duration::from_nanos(time.ticks())
    }

    pub(crate) fn read(&self) -> Reading {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Reading { now: self.now(), since_1970 }
    }
}

impl Reading {
    /// The arrival time of a datagram with this kernel timestamp. If the system clock was set in between, the error is at most
    /// [`AGE_MAX`].
    pub(crate) fn arrival(&self, mark: Option<Duration>) -> Time {
        let age = mark.and_then(|mark| self.since_1970.checked_sub(mark)).unwrap_or_default();
        let age = if age > AGE_MAX { Duration::ZERO } else { age };
        Time::from_ticks(self.now.ticks().saturating_sub(span(age).ticks()))
    }
}

/// The timestamp of a handshake. It is always later than `last`, even if the system clock was set back.
pub(crate) fn timestamp(last: &mut Span) -> Timestamp {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    *last = span(since_1970).max(last.saturating_add(Span::from_ticks(1)));
    Timestamp::since_1970(*last)
}

/// A duration as the engine's span.
pub(crate) fn span(duration: Duration) -> Span {
    Span::from_ticks(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// A datagram waits longer in a socket's buffer only if the process was stopped. Then the time of reading is used.
const AGE_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrival_is_as_old_as_its_mark() {
        let reading = Reading { now: Time::from_ticks(5_000_000_000), since_1970: Duration::from_secs(1_000) };
        let at = |ms| reading.arrival(Some(Duration::from_millis(ms))).ticks();
        assert_eq!(at(999_750), 4_750_000_000);
        assert_eq!(at(1_000_001), 5_000_000_000, "a mark in the future");
        assert_eq!(at(900_000), 5_000_000_000, "a clock that was set");
        assert_eq!(reading.arrival(None).ticks(), 5_000_000_000);
    }

    #[test]
    fn no_two_handshakes_have_one_time() {
        let mut last = span(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap()) + Span::from_secs(3600);
        let (first, second) = (timestamp(&mut last), timestamp(&mut last));
        assert!(first < second, "though the clock went back by an hour");
    }
}
