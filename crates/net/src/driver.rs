//! The task that moves bytes between the sockets of an endpoint and the engine.
//!
//! In a turn, the driver reads arrivals, each batch with its own arrival time; handles the engine's timeouts; sends everything;
//! and then delivers events, which wake waiting tasks. Only the engine runs under the lock; system calls are made without it. Each
//! shard has a driver; what one has read for another is in the `inbox` of that one.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anabranch_proto::FourTuple;
use anabranch_proto::endpoint::Batch;
use anabranch_units::Time;
use tokio::time::{Instant, Sleep};

use crate::carriers;
use crate::frame;
use crate::inbox::Inbox;
use crate::intake::Intake;
use crate::knocks::Knocks;
use crate::routes::{self, Route, Routes};
use crate::socket::{Received, Socket};
use crate::sockets::Sockets;
use crate::state::Shared;
use crate::waiting::only;

/// The driver. It runs while the endpoint has a handle or a connection.
pub(crate) struct Driver {
    shared: Arc<Shared>,
    intake: Arc<Intake>,
    /// For sending.
    sockets: Sockets,
    routes: Routes,
    knocks: Knocks,
    received: Vec<Received>,
    /// The batch to send next, when the kernel has no room for it.
    batch: Option<Batch>,
    bytes: Vec<u8>,
    /// The same in frames, if it goes through a relay, and how much of it has gone.
    frames: Vec<u8>,
    framed: usize,
    timer: Pin<Box<Sleep>>,
    /// The time to which the timer is set.
    timer_at: Time,
}

/// What a part of a turn has left to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Nothing,
    More,
}

impl Driver {
    pub(crate) fn new(shared: Arc<Shared>, intake: Arc<Intake>, socket: Socket) -> Self {
        let timer = Box::pin(tokio::time::sleep_until(Instant::from_std(shared.clock.instant(Time::ZERO))));
        let bytes = Vec::with_capacity(1 << 16);
        let sockets = Sockets::new(socket, Arc::clone(&shared.lobby.carriers));
        Self {
            shared,
            intake,
            sockets,
            routes: Routes::default(),
            knocks: Knocks::default(),
            received: vec![],
            batch: None,
            bytes,
            frames: vec![],
            framed: 0,
            timer,
            timer_at: Time::ZERO,
        }
    }

    /// Passes arrivals to the engine. Also returns the number of bytes that were read, for any shard.
    fn receive(&mut self, cx: &mut Context<'_>) -> io::Result<(Rest, usize)> {
        let Self { shared, intake, received, .. } = self;
        // What another driver has read came before what this one reads.
        let bytes = if intake.inboxes[shared.place].poll_take(cx, received).is_ready() {
            received.iter().map(|batch| batch.datagrams.len()).sum()
        } else {
            match intake.poll_receive(cx, &shared.clock, &shared.lobby, shared.place, received) {
                Poll::Pending => return Ok((Rest::Nothing, 0)),
                Poll::Ready(read) => read?,
            }
        };
        if !received.is_empty() {
            let mut state = shared.lock();
            let now = state.at(shared.clock.now());
            for Received { arrival, datagrams, .. } in received.drain(..) {
                state.engine.handle_datagrams(now, &arrival, datagrams);
            }
        }
        Ok((Rest::More, bytes))
    }

    fn send(&mut self, cx: &mut Context<'_>) -> Rest {
        for _ in 0..BATCHES_A_TURN {
            let batch = match self.batch {
                Some(batch) => batch,
                None => {
                    self.bytes.clear();
                    let mut state = self.shared.lock();
                    let now = state.at(self.shared.clock.now());
                    let Some(batch) = state.engine.poll_transmit(now, self.sockets.batch_max(), &mut self.bytes) else {
                        return Rest::Nothing;
                    };
                    *self.batch.insert(batch)
                }
            };
            if frame::number(batch.tuple.remote).is_some() {
                if self.send_frames(cx, &batch).is_pending() {
                    return Rest::Nothing;
                }
                self.batch = None;
                continue;
            }
            match self.sockets.poll_send(cx, &batch, &self.bytes) {
                Poll::Pending => return Rest::Nothing,
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => self.routes.on_error(self.shared.clock.now(), batch.tuple, &error),
            }
            self.batch = None;
        }
        Rest::More
    }

    /// Sends a batch through a relay. What the system does not take is lost.
    fn send_frames(&mut self, cx: &mut Context<'_>, batch: &Batch) -> Poll<()> {
        let Self { shared, sockets, bytes, frames, framed, .. } = self;
        while *framed < bytes.len()
            && let Some((wrapped, until)) = shared.lobby.relayed.wrap(batch, bytes, *framed, frames)
        {
            _ = std::task::ready!(sockets.poll_send(cx, &wrapped, frames));
            *framed = until;
        }
        *framed = 0;
        Poll::Ready(())
    }

    /// Looks up the routes of refused datagrams, and those of silent paths after a timeout, and asks for the ports of their peers.
    /// Returns whether the engine was told.
    fn look(&mut self, has_timed_out: bool) -> Rest {
        let Self { shared, sockets, routes, knocks, .. } = self;
        let now = shared.clock.now();
        let mut rest = Rest::Nothing;
        while let Some(tuple) = routes.due(now) {
            let route = sockets.bound(tuple.local).map_or(Route::Missing, |bound| routes::look_up(bound, tuple));
            let mut state = shared.lock();
            let at = state.at(now);
            routes.on_route(at, tuple, route, &mut state.engine);
            rest = Rest::More;
        }
        while has_timed_out && let Some(tuple) = { shared.lock().engine.poll_silent() } {
            if let Some(bound) = sockets.bound(tuple.local) {
                let route = routes::chosen(bound, tuple);
                let mut state = shared.lock();
                let at = state.at(now);
                routes::on_silence(at, tuple, route, &mut state.engine);
            }
            if knock(shared, knocks, now, tuple) {
                shared.lock().engine.on_asked(tuple);
            }
            rest = Rest::More;
        }
        while let Some(tuple) = knocks.poll_refused(now) {
            let mut state = shared.lock();
            let at = state.at(now);
            if let Some(again) = state.engine.on_refused(at, tuple) {
                knocks.ask_again(now.saturating_add(again), tuple);
            }
            rest = Rest::More;
        }
        while let Some(tuple) = knocks.poll_again(now) {
            if knock(shared, knocks, now, tuple) {
                shared.lock().engine.on_asked(tuple);
            }
            rest = Rest::More;
        }
        rest
    }

    /// Delivers events. Returns the latest time of the next turn, and whether there were any events; `None` if nothing is left to
    /// do.
    fn tell(&mut self, cx: &Context<'_>) -> Option<(Time, Rest)> {
        let now = self.shared.clock.now();
        let mut state = self.shared.lock();
        // An input that came during this turn could not wake the driver.
        let rest = if state.take_events(now) || state.is_roused() { Rest::More } else { Rest::Nothing };
        self.intake.inboxes[self.shared.place].set_load(state.engine.len());
        let neighbours: Vec<_> = std::iter::from_fn(|| state.engine.poll_neighbour()).collect();
        neighbours.into_iter().for_each(|shard| self.intake.inboxes[shard].wake());
        if state.is_done() {
            return None;
        }
        let deadline =
            state.engine.poll_timeout().min(state.deadline()).min(self.routes.deadline()).min(self.knocks.deadline());
        only(&mut state.driver, cx);
        let mut woken = std::mem::take(&mut state.woken);
        drop(state);
        woken.wake();
        Some((deadline, rest))
    }

    /// Whether the deadline has passed.
    fn wait(&mut self, cx: &mut Context<'_>, deadline: Time) -> Rest {
        if deadline == Time::NEVER {
            return Rest::Nothing;
        }
        if deadline != self.timer_at {
            self.timer_at = deadline;
            self.timer.as_mut().reset(Instant::from_std(self.shared.clock.instant(deadline)));
        }
        if self.timer.as_mut().poll(cx).is_ready() { Rest::More } else { Rest::Nothing }
    }
}

/// Asks about the remote port of this four-tuple: that of the relay if there is one on the way.
fn knock(shared: &Shared, knocks: &mut Knocks, now: Time, tuple: FourTuple) -> bool {
    let is_relayed = frame::number(tuple.remote).is_some();
    let Some(asked) = (if is_relayed { shared.lobby.relayed.via(tuple.remote) } else { Some(tuple) }) else {
        return false;
    };
    match carriers::number(asked.local) {
        None => knocks.knock(now, tuple, asked),
        // TCP has ended, and the relay did not answer since.
        Some(_) => shared.lobby.relayed.is_lost(tuple.remote) && knocks.refuse(now, tuple),
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let driver = self.get_mut();
        let mut read = 0;
        for _ in 0..TURNS_A_POLL {
            let more = driver.shared.lock().begin_turn();
            more.into_iter().for_each(|socket| driver.sockets.push(socket));
            let Ok((received, bytes)) = driver.receive(cx) else {
                driver.shared.with(|state| state.end());
                return Poll::Ready(());
            };
            let has_timed_out = driver.shared.lock().handle_timeouts(driver.shared.clock.now());
            let sent = driver.send(cx);
            let looked = driver.look(has_timed_out);
            let Some((deadline, told)) = driver.tell(cx) else { return Poll::Ready(()) };
            let waited = driver.wait(cx, deadline);
            if [received, sent, looked, told, waited] == [Rest::Nothing; 5] {
                return Poll::Pending;
            }
            read += bytes;
            if read >= READ_A_POLL {
                break;
            }
        }
        // Lets other tasks run.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Driver {
    /// The runtime is shutting down, nothing is left to do, or the engine has panicked.
    fn drop(&mut self) {
        self.shared.with(|state| state.end());
        // This driver may have been the one that is woken by arrivals.
        self.intake.inboxes[self.shared.place].close();
        self.intake.inboxes.iter().for_each(Inbox::wake);
    }
}

/// Batches sent before the next read: about a millisecond of sending at 10 Gbit/s.
const BATCHES_A_TURN: usize = 16;

/// Turns before other tasks of the runtime run.
const TURNS_A_POLL: usize = 16;

/// Bytes read before other tasks run: 360 full datagrams. Unread data of more than 1,024 pieces is copied together.
const READ_A_POLL: usize = 1 << 19;

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::task::Waker;

    use anabranch_proto::endpoint::Endpoint as Engine;

    use super::*;
    use crate::clock::Clock;
    use crate::config::Config;
    use crate::key::SecretKey;
    use crate::lobby::SharedLobby;

    /// The driver of the only shard.
    fn driver(clock: Clock, config: Config, key: &SecretKey, engine: Engine, socket: Socket) -> (Arc<Shared>, Driver) {
        let lobby = Arc::new(SharedLobby::new(socket.local(), socket.holds()));
        let sender = socket.share().unwrap();
        let sockets = Sockets::new(socket, Arc::clone(&lobby.carriers));
        let intake = Arc::new(Intake::new(sockets, 1, config.socket_buffer, key));
        let shared = Shared::new(clock, config, key.public(), lobby, 0, engine);
        (Arc::clone(&shared), Driver::new(shared, intake, sender))
    }

    /// A driver that fails, as by a panic of its engine, takes those of the other shards with it. So the application learns of it at once,
    /// whatever it waits for.
    #[tokio::test]
    async fn driver_that_fails_ends_the_endpoint() {
        let (key, config, clock) = (SecretKey::generate().unwrap(), Arc::new(Config::default()), Clock::new());
        let socket = Socket::new(UdpSocket::bind("127.0.0.1:0").unwrap(), config.socket_buffer).unwrap();
        let lobby = Arc::new(SharedLobby::new(socket.local(), socket.holds()));
        let senders = [(); 3].map(|()| socket.share().unwrap());
        let sockets = Sockets::new(socket, Arc::clone(&lobby.carriers));
        let intake = Arc::new(Intake::new(sockets, 3, config.socket_buffer, &key));
        let engines = Engine::divided(clock.now(), &key.engine(), config.endpoint(), &[[1; 32], [2; 32], [3; 32]]);
        let mut tasks = vec![];
        for (place, (engine, sender)) in engines.into_iter().zip(senders).enumerate() {
            let shared = Shared::new(clock, Arc::clone(&config), key.public(), Arc::clone(&lobby), place, engine);
            tasks.push(tokio::spawn(Driver::new(shared, Arc::clone(&intake), sender)));
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        assert!(tasks.iter().all(|task| !task.is_finished()) && !lobby.lock().is_gone);
        tasks.remove(1).abort();
        for task in tasks {
            tokio::time::timeout(std::time::Duration::from_secs(5), task).await.unwrap().unwrap();
        }
        assert!(lobby.lock().is_gone);
    }

    /// An application writes when the driver has sent everything. An earlier write has taken the driver's waker, so nothing wakes
    /// it. The driver must take another turn, or the data would wait for the next datagram or timer.
    #[tokio::test]
    async fn write_within_a_turn_causes_another_turn() {
        let (key, config, clock) = (SecretKey::generate().unwrap(), Config::default(), Clock::new());
        let socket = Socket::new(UdpSocket::bind("127.0.0.1:0").unwrap(), config.socket_buffer).unwrap();
        let engine = Engine::new(clock.now(), key.engine(), config.endpoint(), [7; 32]);
        let (shared, mut driver) = driver(clock, config, &key, engine, socket);
        let mut cx = Context::from_waker(Waker::noop());
        shared.lock().begin_turn();
        assert_eq!(driver.send(&mut cx), Rest::Nothing);
        assert!(shared.lock().driver.is_none());
        shared.with(|state| state.rouse());
        assert_eq!(driver.tell(&cx).map(|(_, rest)| rest), Some(Rest::More));
        shared.lock().begin_turn();
        assert_eq!(driver.send(&mut cx), Rest::Nothing);
        assert_eq!(driver.tell(&cx).map(|(_, rest)| rest), Some(Rest::Nothing));
    }

    /// A flood of datagrams does not starve the application: a poll ends after half a mebibyte and one more read, and schedules
    /// itself again for the rest. (If the kernel's buffer is smaller, there is no flood.)
    #[tokio::test]
    async fn a_flood_does_not_take_all_turns() {
        const SIZE: usize = 8_000;
        let (key, config, clock) = (SecretKey::generate().unwrap(), Config::default(), Clock::new());
        let socket = Socket::new(UdpSocket::bind("127.0.0.1:0").unwrap(), config.socket_buffer).unwrap();
        let engine = Engine::new(clock.now(), key.engine(), config.endpoint(), [7; 32]);
        let (local, (shared, mut driver)) = (socket.local(), driver(clock, config, &key, engine, socket));
        let flood = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..400 {
            flood.send_to(&[0; SIZE], local).unwrap();
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        let mut cx = Context::from_waker(Waker::noop());
        let mut before = 0;
        loop {
            assert_eq!(Pin::new(&mut driver).poll(&mut cx), Poll::Pending);
            let came = shared.lock().engine.tally().unknown;
            if came == before {
                break;
            }
            let at_once = (came - before) as usize * SIZE;
            assert!(at_once < 700_000, "{at_once} bytes");
            before = came;
        }
        assert!(before >= 10, "{before} datagrams came");
    }
}
