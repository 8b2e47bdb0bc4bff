//! Events that are delivered late: two ends without sockets and drivers, so that a test separates what happens from the delivery
//! of its events.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use anabranch_proto::endpoint::Arrival;
use anabranch_proto::{Address, FourTuple};
use bytes::{Bytes, BytesMut};

use super::*;
use crate::clock::timestamp;
use crate::config::Admission;
use crate::connection::Connection;
use crate::error::StreamError;
use crate::handle::Handle;
use crate::key::SecretKey;
use crate::stream::{RecvStream, SendStream};

/// One end of the connection.
struct End {
    shared: Arc<Shared>,
    address: Address,
}

/// Two ends, and a connection with one stream at a time in each direction.
struct Room {
    ends: [End; 2],
    /// The caller's handle of the connection, and the accepter's.
    calls: [Connection; 2],
}

impl End {
    fn new(number: u8, admission: Option<Admission>) -> Self {
        let key = SecretKey::generate().unwrap();
        let config = Config { streams: 1, admission, ..Config::default() };
        let clock = Clock::new();
        let engine = Engine::new(clock.now(), key.engine(), config.endpoint(), [number + 100; 32]);
        let local = SocketAddr::from(([127, 0, 0, number], 7));
        let lobby = Arc::new(SharedLobby::new(local, u64::MAX));
        let shared = Shared::new(clock, config, key.public(), lobby, 0, engine);
        Self { shared, address: crate::address::of(local) }
    }

    /// Opens a connection to the other end.
    fn call(&self, other: &Self) -> ConnectionId {
        let mut state = self.shared.lock();
        let stamp = timestamp(&mut state.lobby.lock().stamp);
        let (now, config) = (state.at(self.shared.clock.now()), self.shared.config.connection());
        let tuple = FourTuple { local: self.address, remote: other.address };
        let id = state.engine.connect(now, stamp, other.shared.public.0, tuple, config).unwrap();
        state.insert(id, Call::new(Vantage::Client, other.shared.public));
        id
    }

    /// Delivers events, as a driver does after the engine has run.
    fn tell(&self) {
        self.shared.lock().take_events(self.shared.clock.now());
    }

    /// Delivers everything that this end has to send. Returns whether there was anything.
    fn send(&self, now: Time, other: &Self) -> bool {
        let (mut out, mut has_sent) = (vec![], false);
        while let Some(batch) = self.shared.lock().engine.poll_transmit(now, 10, &mut out) {
            let arrival = Arrival { at: now, tuple: batch.tuple.reversed(), size: batch.size, ecn: batch.ecn };
            other.shared.lock().engine.handle_datagrams(now, &arrival, BytesMut::from(&out[..]));
            has_sent = true;
            out.clear();
        }
        has_sent
    }
}

impl Room {
    fn new() -> Self {
        let ends = [End::new(1, None), End::new(2, Some(Admission::Ticket))];
        let id = ends[0].call(&ends[1]);
        exchange(&ends);
        ends.iter().for_each(End::tell);
        let (_, accepted) = ends[1].shared.lobby.lock().incoming.pop_front().expect("it was called");
        let calls = [(0, id), (1, accepted)];
        let calls = calls.map(|(end, id)| Connection::new(Handle::adopt(Arc::clone(&ends[end].shared), id)));
        Self { ends, calls }
    }

    /// Delivers everything that is sent within a second, but no events.
    fn exchange(&self) {
        exchange(&self.ends);
    }

    #[track_caller]
    fn open(&self) -> SendStream {
        let opened = now(self.calls[0].open_stream());
        let Poll::Ready(Ok(stream)) = opened else { panic!("{opened:?}") };
        stream
    }

    fn accept(&self) -> Poll<Result<RecvStream, StreamError>> {
        now(self.calls[1].accept_stream())
    }
}

fn exchange(ends: &[End; 2]) {
    let until = ends.iter().map(|end| end.shared.lock().at(Time::ZERO)).max().unwrap() + Span::from_secs(1);
    loop {
        let timers = ends.each_ref().map(|end| end.shared.lock().engine.poll_timeout());
        let now = ends.iter().map(|end| end.shared.lock().at(Time::ZERO)).max().unwrap();
        let now = now.max(timers.into_iter().min().unwrap()).min(until);
        ends.iter().for_each(|end| _ = end.shared.lock().handle_timeouts(now));
        while ends[0].send(now, &ends[1]) | ends[1].send(now, &ends[0]) {}
        if now == until {
            break;
        }
    }
}

/// Polls a future once.
fn now<T>(what: impl Future<Output = T>) -> Poll<T> {
    pin!(what).poll(&mut Context::from_waker(Waker::noop()))
}

#[track_caller]
fn write(stream: &mut SendStream, text: &'static str) {
    let written = now(stream.write_all_bytes(Bytes::from_static(text.as_bytes())));
    assert!(matches!(written, Poll::Ready(Ok(()))), "{written:?}");
}

/// The end of a stream is read before its event is delivered: the event does not count as the beginning of another stream.
#[test]
fn a_stream_that_was_read_to_its_end_is_not_accepted_again() {
    let room = Room::new();
    for text in ["one", "two", "three"] {
        let mut sent = room.open();
        write(&mut sent, text);
        room.exchange();
        room.ends[1].tell();
        let accepted = room.accept();
        let Poll::Ready(Ok(mut stream)) = accepted else { panic!("{accepted:?}") };
        assert_eq!(now(stream.read_chunk(100)), Poll::Ready(Ok(Some(Bytes::from_static(text.as_bytes())))));
        assert!(now(stream.read_chunk(100)).is_pending());
        sent.finish().unwrap();
        room.exchange();
        assert_eq!(now(stream.read_chunk(100)), Poll::Ready(Ok(None)));
        drop(stream);
        room.ends[1].tell();
        assert!(room.accept().is_pending(), "there is no other");
        room.exchange();
        room.ends[0].tell();
    }
}

/// The same for a stream that was stopped before its end arrived.
#[test]
fn a_stream_that_was_stopped_is_not_accepted_again() {
    let room = Room::new();
    let mut sent = room.open();
    write(&mut sent, "one");
    room.exchange();
    room.ends[1].tell();
    let accepted = room.accept();
    let Poll::Ready(Ok(mut stream)) = accepted else { panic!("{accepted:?}") };
    _ = now(stream.read_chunk(100));
    _ = now(stream.read_chunk(100));
    write(&mut sent, "more");
    sent.finish().unwrap();
    room.exchange();
    stream.stop(7);
    room.ends[1].tell();
    assert!(room.accept().is_pending(), "there is no other");
}

/// A SID is free before the outcome of its stream was delivered: the next stream of that SID does not count as delivered.
#[test]
fn stream_opened_before_last_is_told_is_another() {
    let room = Room::new();
    let mut first = room.open();
    write(&mut first, "one");
    first.finish().unwrap();
    room.exchange();
    room.ends[1].tell();
    let accepted = room.accept();
    let Poll::Ready(Ok(mut stream)) = accepted else { panic!("{accepted:?}") };
    assert!(now(stream.read_to_end(100)).is_ready());
    drop(stream);
    room.exchange();
    let mut second = room.open();
    room.ends[0].tell();
    write(&mut second, "two");
    assert!(now(second.stopped()).is_pending(), "nothing of it has arrived");
    assert!(matches!(now(first.stopped()), Poll::Ready(Ok(None))), "all of it has arrived");
}

/// A connection that is established when nobody can accept it any more is reset: no handle of it remains, so nothing else would end it.
#[test]
fn connection_after_the_last_handle_is_reset() {
    let ends = [End::new(1, None), End::new(2, Some(Admission::Ticket))];
    let id = ends[0].call(&ends[1]);
    ends[1].shared.lobby.lock().handles = 0;
    for _ in 0..3 {
        exchange(&ends);
        ends.iter().for_each(End::tell);
    }
    let lobby = ends[1].shared.lobby.lock();
    assert!(lobby.incoming.is_empty());
    drop(lobby);
    let (mut here, there) = (ends[0].shared.lock(), ends[1].shared.lock());
    assert!(here.call(id).closed.is_some() && there.calls.is_empty());
    assert!(there.engine.is_empty() && there.is_done());
}
