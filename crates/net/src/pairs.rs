//! Pairs of streams: one for a request, and one in the other direction for its answer.
//!
//! Each stream begins with the number of its pair, 4 bytes, little-endian. The end that opened the connection numbers its pairs from 0, the other end
//! from 2^31, so an end can tell an answer from a request. `examples/echo.rs` implements the same format by hand.
//!
//! ```
//! use anabranch::pairs::{Pairs, Side};
//! # use anabranch::{Config, Endpoint, SecretKey};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = Endpoint::server("127.0.0.1:0".parse()?, &SecretKey::generate()?, Config::default())?;
//! # let client = Endpoint::client(Config::default())?;
//! # let ticket = server.ticket();
//! # let (there, here) = tokio::join!(client.connect(&ticket), server.accept());
//! # let (there, here) = (there?, here.expect("the server's socket is there"));
//! let (asks, answers) = (Pairs::new(there, Side::Client), Pairs::new(here, Side::Server));
//! let (mut question, mut answer) = asks.open().await?;
//! question.write_all(b"how far?").await?;
//! question.finish()?;
//!
//! let (mut reply, mut asked) = answers.accept().await?;
//! assert_eq!(&asked.read_to_end(100).await?[..], b"how far?");
//! reply.write_all(b"a mile").await?;
//! reply.finish()?;
//!
//! assert_eq!(&answer.arrive().await?.read_to_end(100).await?[..], b"a mile");
//! # Ok(())
//! # }
//! ```
//!
//! # Limits
//!
//! An end may use half of its streams for pairs without an answer; further calls of [`Pairs::open`] wait. The other half is for answers, so two ends
//! that both wait for answers do not block each other.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinSet};

use crate::connection::Connection;
use crate::error::{StreamError, WriteError};
use crate::stream::{RecvStream, SendStream};
use crate::waiting::{Waiting, Woken, only};

/// The pairs of a connection. They use all of its streams: no other code may accept streams of this connection.
#[derive(Debug)]
pub struct Pairs(Arc<Inner>);

/// Which end of the connection this is. The two ends must have different sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end that opened the connection.
    Client,
    /// The end that accepted the connection.
    Server,
}

/// The answer to the first stream of a pair. If it is dropped, the answer is refused.
#[derive(Debug)]
pub struct Answer {
    inner: Arc<Inner>,
    number: u32,
    /// The permit of the pair, until the answer arrives.
    room: Option<OwnedSemaphorePermit>,
}

/// Ends the task when it is dropped, because nobody waits for its work any longer.
#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    sorter: AbortHandle,
}

#[derive(Debug)]
struct Shared {
    connection: Connection,
    side: Side,
    state: Mutex<State>,
    /// Permits for pairs without an answer.
    room: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of our next pair, without the bit of the side.
    next: u32,
    awaited: BTreeMap<u32, Awaited>,
    /// Pairs that the peer opened; each holds a stream for its answer.
    incoming: VecDeque<(SendStream, RecvStream)>,
    accepting: Waiting,
    /// The reason why no more streams arrive.
    over: Option<StreamError>,
}

/// The state of an answer.
#[derive(Debug)]
enum Awaited {
    /// The answer has not arrived; a task may wait for it.
    Pending(Option<Waker>),
    Arrived(RecvStream),
}

impl Pairs {
    /// Takes over the streams of a connection. A task of the current runtime accepts them as long as this or an [`Answer`] lives.
    pub fn new(connection: Connection, side: Side) -> Self {
        let room = usize::from(connection.streams_max() / 2).max(1);
        let (state, room) = (Mutex::default(), Arc::new(Semaphore::new(room)));
        let shared = Arc::new(Shared { connection, side, state, room });
        let sorter = tokio::spawn(sort(Arc::clone(&shared))).abort_handle();
        Self(Arc::new(Inner { shared, sorter }))
    }

    /// Opens a pair. Waits if too many pairs have no answer yet, or if all streams are in use.
    ///
    /// # Errors
    /// If this end has closed, or the connection is lost.
    pub async fn open(&self) -> Result<(SendStream, Answer), StreamError> {
        let shared = &self.0.shared;
        let over = || shared.lock().over.unwrap_or(StreamError::Closed);
        let room = Arc::clone(&shared.room).acquire_owned().await.map_err(|_| over())?;
        let mut stream = shared.connection.open_stream().await?;
        let number = shared.expect_answer()?;
        let answer = Answer { inner: Arc::clone(&self.0), number, room: Some(room) };
        begin(&mut stream, number).await?;
        Ok((stream, answer))
    }

    /// Waits for the next pair that the peer opened. Returns the stream for the answer, and the request. Nothing is lost if this is cancelled.
    ///
    /// # Errors
    /// If the peer has closed and all its streams have been read, or the connection is lost.
    pub async fn accept(&self) -> Result<(SendStream, RecvStream), StreamError> {
        poll_fn(|cx| {
            let mut state = self.0.shared.lock();
            match (state.incoming.pop_front(), state.over) {
                (Some(pair), _) => Poll::Ready(Ok(pair)),
                (None, Some(over)) => Poll::Ready(Err(over)),
                (None, None) => {
                    state.accepting.add(cx);
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Answer {
    /// Waits until the answer begins. Nothing is lost if this is cancelled. An answer can be taken once.
    ///
    /// # Errors
    /// If the peer has closed without an answer and all its other streams have been read, or the connection is lost.
    pub async fn arrive(&mut self) -> Result<RecvStream, StreamError> {
        poll_fn(|cx| self.poll_arrive(cx)).await
    }

    /// Polls for the answer.
    ///
    /// # Errors
    /// As [`Answer::arrive`].
    pub fn poll_arrive(&mut self, cx: &Context<'_>) -> Poll<Result<RecvStream, StreamError>> {
        let mut state = self.inner.shared.lock();
        let over = state.over;
        match (state.awaited.remove(&self.number), over) {
            (Some(Awaited::Arrived(stream)), _) => {
                self.room = None;
                Poll::Ready(Ok(stream))
            }
            (Some(Awaited::Pending(mut waiting)), None) => {
                only(&mut waiting, cx);
                state.awaited.insert(self.number, Awaited::Pending(waiting));
                Poll::Pending
            }
            (_, over) => Poll::Ready(Err(over.unwrap_or(StreamError::Closed))),
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // The stream is dropped after the lock is released.
        let awaited = self.inner.shared.lock().awaited.remove(&self.number);
        drop(awaited);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.sorter.abort();
    }
}

impl Side {
    /// The bit of this side in the numbers of its pairs.
    fn bit(self) -> u32 {
        match self {
            Self::Client => 0,
            Self::Server => SERVER,
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the number of a new pair.
    fn expect_answer(&self) -> Result<u32, StreamError> {
        let mut state = self.lock();
        if let Some(over) = state.over {
            return Err(over);
        }
        // At most a few thousand answers are awaited, so a free number is near.
        while state.awaited.contains_key(&(state.next | self.side.bit())) {
            state.next = (state.next + 1) % SERVER;
        }
        let number = state.next | self.side.bit();
        state.next = (state.next + 1) % SERVER;
        state.awaited.insert(number, Awaited::Pending(None));
        Ok(number)
    }

    /// Delivers an answer. If nobody waits for it, it is refused.
    fn answer(&self, number: u32, stream: RecvStream) {
        let (mut woken, mut state) = (Woken::default(), self.lock());
        let refused = match state.awaited.get_mut(&number) {
            Some(awaited @ Awaited::Pending(_)) => {
                if let Awaited::Pending(mut waiting) = std::mem::replace(awaited, Awaited::Arrived(stream)) {
                    woken.one(&mut waiting);
                }
                None
            }
            Some(Awaited::Arrived(_)) | None => Some(stream),
        };
        drop(state);
        drop(refused);
        woken.wake();
    }

    fn come(&self, pair: (SendStream, RecvStream)) {
        let (mut woken, mut state) = (Woken::default(), self.lock());
        state.incoming.push_back(pair);
        woken.all(&mut state.accepting);
        drop(state);
        woken.wake();
    }

    /// Records that no more streams arrive.
    fn end(&self, over: StreamError) {
        let (mut woken, mut state) = (Woken::default(), self.lock());
        state.over = Some(over);
        woken.all(&mut state.accepting);
        for awaited in state.awaited.values_mut() {
            if let Awaited::Pending(waiting) = awaited {
                woken.one(waiting);
            }
        }
        drop(state);
        self.room.close();
        woken.wake();
    }
}

/// Accepts all streams. A stream whose number arrives late does not delay the others.
async fn sort(shared: Arc<Shared>) {
    let mut begun = JoinSet::new();
    let over = loop {
        tokio::select! {
            accepted = shared.connection.accept_stream() => match accepted {
                Ok(stream) => _ = begun.spawn(place(Arc::clone(&shared), stream)),
                Err(over) => break over,
            },
            Some(_) = begun.join_next() => {}
        }
    };
    while begun.join_next().await.is_some() {}
    shared.end(over);
}

/// Finds the pair of a stream by its number. A stream without a number is refused.
async fn place(shared: Arc<Shared>, mut stream: RecvStream) {
    let mut number = [0; 4];
    let Ok(()) = stream.read_exact(&mut number).await else { return };
    let number = u32::from_le_bytes(number);
    if number & SERVER == shared.side.bit() {
        return shared.answer(number, stream);
    }
    let Ok(mut reply) = shared.connection.open_stream().await else { return };
    if begin(&mut reply, number).await.is_ok() {
        shared.come((reply, stream));
    }
}

async fn begin(stream: &mut SendStream, number: u32) -> Result<(), StreamError> {
    stream.write_all(&number.to_le_bytes()).await.map_err(|error| match error {
        WriteError::Lost(lost) => StreamError::Lost(lost),
        WriteError::Stopped(_) | WriteError::Closed => StreamError::Closed,
    })
}

/// The bit in the numbers of the end that accepted the connection.
const SERVER: u32 = 1 << 31;
