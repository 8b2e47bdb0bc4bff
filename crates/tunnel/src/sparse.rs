//! Which flows are sparse: those that send little, such as a call, a game or questions to a name server. Their packets are urgent.

use std::time::{Duration, Instant};

/// What a flow has sent recently: bytes of a bucket that leaks at the rate of a sparse flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recent {
    level: f64,
    at: Instant,
}

impl Recent {
    /// A flow that has sent nothing.
    pub(crate) fn new(now: Instant) -> Self {
        Self { level: 0.0, at: now }
    }

    /// A packet of `len` bytes comes. Returns whether the flow is sparse.
    pub(crate) fn is_sparse(&mut self, now: Instant, len: usize) -> bool {
        let leaked = RATE * now.saturating_duration_since(self.at).as_secs_f64();
        self.level = ((self.level - leaked).max(0.0) + len as f64).min(LEVEL_MAX);
        self.at = now;
        self.level <= BURST
    }
}

/// Bytes a second of a sparse flow, 4 Mbit/s: a call with a picture of 1080 lines takes as much.
const RATE: f64 = 500_000.0;

/// A large video frame. What the connection has room for as urgent is as much.
const BURST: f64 = 32_000.0;

/// A bulk flow is sparse again this long after its end: a pause between two answers of a page does not make it so.
const LEVEL_MAX: f64 = BURST + RATE * PAUSE.as_millis() as f64 / 1000.0;
const PAUSE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends packets at a rate for a time. Returns how many were of a sparse flow, and of how many.
    fn run(recent: &mut Recent, begin: Instant, bits: f64, seconds: f64) -> (usize, usize) {
        let count = (bits / 8.0 / 1000.0 * seconds) as u32;
        let sparse = (0..count).filter(|&number| {
            recent.is_sparse(begin + Duration::from_secs_f64(seconds * f64::from(number) / f64::from(count)), 1000)
        });
        (sparse.count(), count as usize)
    }

    #[test]
    fn call_is_sparse_and_download_is_not() {
        let begin = Instant::now();
        assert_eq!(run(&mut Recent::new(begin), begin, 4e6, 10.0), (5000, 5000));
        // At 8 Mbit/s the level rises by 4 Mbit/s, to 32 kB after 64 ms and as many packets.
        let (sparse, _) = run(&mut Recent::new(begin), begin, 8e6, 10.0);
        assert!(sparse.abs_diff(64) <= 2, "{sparse}");
    }

    /// The level of a long download leaks in half a second to that of a burst.
    #[test]
    fn download_is_sparse_half_a_second_after_its_end() {
        let begin = Instant::now();
        for (pause, is_sparse) in [(490, false), (510, true)] {
            let mut recent = Recent::new(begin);
            run(&mut recent, begin, 100e6, 1.0);
            assert_eq!(recent.is_sparse(begin + Duration::from_millis(1000 + pause), 0), is_sparse, "{pause} ms");
        }
    }
}
