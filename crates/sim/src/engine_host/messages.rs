//! Messages that a sink expects one after the other, and the requests that it may send for them.
//!
//! The simulation has drawn the sizes of the messages beforehand, so a sink knows them. A sink with requests sends one per
//! message on a stream of its own: it does so when the previous message has arrived and a think time is over. The source answers
//! complete requests.

use anabranch_proto::{Connection, Read, Sid, Virtual};
use anabranch_units::{SimSpan, SimTime};

use crate::rng::Stream;

/// The messages that a sink expects.
#[derive(Debug)]
pub(super) struct Expected {
    /// Total bytes read when each message is complete.
    ends: Vec<u64>,
    /// When each message was complete.
    finished: Vec<SimTime>,
    asking: Option<Asking>,
}

/// How a sink requests its messages.
#[derive(Clone, Debug)]
pub struct Requests {
    /// Bytes of a request.
    pub bytes: u32,
    /// The mean think time from a message to the next request; exponentially distributed.
    pub think: SimSpan,
    /// The random stream of the think times.
    pub stream: Stream,
}

#[derive(Debug)]
struct Asking {
    requests: Requests,
    /// When each request was made.
    asked: Vec<SimTime>,
    /// When the next request is due; never while a message is expected.
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

    /// When each message was requested, by a sink that sends requests.
    pub(super) fn asked(&self) -> Option<&[SimTime]> {
        self.asking.as_ref().map(|asking| &asking.asked[..])
    }

    /// The connection is established: the first request may be sent.
    pub(super) fn begin(&mut self, now: SimTime) {
        if let Some(asking) = &mut self.asking {
            asking.due = now;
        }
    }

    /// Records that `read` bytes have been read in total.
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

    /// Writes the request that is due. Returns whether there was one.
    pub(super) fn ask(&mut self, now: SimTime, connection: &mut Connection<Virtual>) -> bool {
        let Some(asking) = self.asking.as_mut().filter(|asking| asking.due <= now) else { return false };
        asking.due = SimTime::NEVER;
        // Plain TCP has one stream, which is already open.
        let sid = *asking.sid.get_or_insert_with(|| connection.streams().open().unwrap_or(Sid::new(1)));
        let mut request = Virtual(asking.requests.bytes);
        let written = connection.streams().write(sid, &mut request);
        debug_assert_eq!(written, Ok(asking.requests.bytes), "the request before it has been answered");
        asking.asked.push(now);
        true
    }
}

/// The answers of a source to requests.
#[derive(Debug)]
pub(super) struct Answers {
    /// Bytes of a request.
    request: u64,
    /// Bytes of requests read so far.
    read: u64,
    /// The sizes of the answers.
    sizes: Vec<u64>,
    /// The number of answers given.
    given: usize,
}

impl Answers {
    pub(super) fn new(request: u32, sizes: Vec<u64>) -> Self {
        Self { request: request.into(), read: 0, sizes, given: 0 }
    }

    /// Reads the data that has arrived on a stream. Returns the total size of the answers to the requests that are now complete.
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
