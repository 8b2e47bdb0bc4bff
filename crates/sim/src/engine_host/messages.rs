//! Messages that a sink waits for, one after the other, and its requests for them.
//!
//! A sink knows how long they are, because the simulation has drawn their sizes beforehand. A sink that asks sends a request for
//! each on a stream of its own, when the one before it has arrived and a time to think is over; the source answers whole requests.

use anabranch_proto::{Connection, Read, Sid, Virtual};
use anabranch_units::{SimSpan, SimTime};

use crate::rng::Stream;

/// What a sink waits for.
#[derive(Debug)]
pub(super) struct Expected {
    /// Bytes read when each message is complete.
    ends: Vec<u64>,
    /// When each was, of those that are.
    finished: Vec<SimTime>,
    asking: Option<Asking>,
}

/// How a sink asks for its messages.
#[derive(Clone, Debug)]
pub struct Requests {
    /// Bytes of a request.
    pub bytes: u32,
    /// The mean time from a message to the next request; exponential.
    pub think: SimSpan,
    /// What draws these times.
    pub stream: Stream,
}

#[derive(Debug)]
struct Asking {
    requests: Requests,
    /// When each request was made.
    asked: Vec<SimTime>,
    /// When the next one is due; never while a message is awaited.
    due: SimTime,
    sid: Option<Sid>,
}

impl Expected {
    pub(super) fn new(sizes: &[u64]) -> Self {
        let mut end = 0;
        let ends = sizes.iter().map(|size| {
            end += size;
            end
        });
        Self { ends: ends.collect(), finished: Vec::new(), asking: None }
    }

    pub(super) fn asking(self, requests: Requests) -> Self {
        Self { asking: Some(Asking { requests, asked: Vec::new(), due: SimTime::NEVER, sid: None }), ..self }
    }

    /// When each message was complete.
    pub(super) fn finished(&self) -> &[SimTime] {
        &self.finished
    }

    /// When each was asked for, by a sink that asks.
    pub(super) fn asked(&self) -> Option<&[SimTime]> {
        self.asking.as_ref().map(|asking| &asking.asked[..])
    }

    /// The connection is established: the first request may leave.
    pub(super) fn begin(&mut self, now: SimTime) {
        if let Some(asking) = &mut self.asking {
            asking.due = now;
        }
    }

    /// So many bytes have been read in all.
    pub(super) fn note_read(&mut self, now: SimTime, read: u64) {
        while self.ends.get(self.finished.len()).is_some_and(|&end| end <= read) {
            self.finished.push(now);
            if let Some(asking) = self.asking.as_mut().filter(|_| self.finished.len() < self.ends.len()) {
                let Requests { think, stream, .. } = &mut asking.requests;
                asking.due = now.saturating_add(stream.exponential_span(*think));
            }
        }
    }

    /// When the next request is due.
    pub(super) fn due(&self) -> SimTime {
        self.asking.as_ref().map_or(SimTime::NEVER, |asking| asking.due)
    }

    /// Writes the request that is due. Whether there was one.
    pub(super) fn ask(&mut self, now: SimTime, connection: &mut Connection<Virtual>) -> bool {
        let Some(asking) = self.asking.as_mut().filter(|asking| asking.due <= now) else { return false };
        asking.due = SimTime::NEVER;
        // Plain TCP has one stream, which is open.
        let sid = *asking.sid.get_or_insert_with(|| connection.streams().open().unwrap_or(Sid::new(1)));
        let mut request = Virtual(asking.requests.bytes);
        let written = connection.streams().write(sid, &mut request);
        debug_assert_eq!(written, Ok(asking.requests.bytes), "the request before it has been answered");
        asking.asked.push(now);
        true
    }
}

/// What a source answers requests with.
#[derive(Debug)]
pub(super) struct Answers {
    /// Bytes of a request.
    request: u64,
    /// Bytes of requests that have arrived.
    read: u64,
    /// The sizes of the answers.
    sizes: Vec<u64>,
    /// Of these, how many have been given.
    given: usize,
}

impl Answers {
    pub(super) fn new(request: u32, sizes: Vec<u64>) -> Self {
        Self { request: request.into(), read: 0, sizes, given: 0 }
    }

    /// Reads what has arrived on a stream. Returns the bytes of the answers to the requests that are complete.
    pub(super) fn read(&mut self, sid: Sid, connection: &mut Connection<Virtual>) -> u64 {
        while let Ok(Read::Data(payload)) = connection.streams().read(sid, u32::MAX) {
            self.read += u64::from(payload.0);
        }
        let asked = usize::try_from(self.read / self.request).unwrap_or(usize::MAX).min(self.sizes.len());
        let bytes = self.sizes[self.given..asked].iter().sum();
        self.given = asked;
        bytes
    }
}
