//! The thread that moves packets: it waits until a device has a packet or an event of the world is due, and handles both.
//!
//! It is punctual because of real-time priority, timers without slack, no allocation per packet, and short batches per device. A
//! packet enters the world at the time when it is read; the clock is read for each packet.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::num::NonZeroU64;
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use anabranch_units::SimTime;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};
use tun_rs::SyncDevice;

use super::Failure;
use super::control::{Question, Request, Requests};
use super::offload::Offload;
use crate::address::Interface;
use crate::emulation::Emulation;
use crate::histogram::Histogram;
use crate::plan::Settings;
use crate::status::{Lateness, Status};
use anabranch_sim::Topology;

/// Moves packets between devices and the world.
pub(super) struct Driver {
    devices: Vec<(Interface, SyncDevice)>,
    requests: Requests,
    mover: Mover,
}

/// The state without the descriptors.
struct Mover {
    network: Topology,
    emulation: Emulation,
    /// The real time of the world's time zero.
    begin: Instant,
    /// The index of each device.
    places: BTreeMap<Interface, usize>,
    /// The offload of each device, if offloading is on.
    offloads: Vec<Offload>,
    /// The lateness per link.
    late: Vec<Histogram>,
    is_real_time: bool,
    /// Whether routers say nothing of packets that are too long.
    is_silent: bool,
}

/// Packets read from one device in a row. They take about 50 microseconds, which delays other packets.
const BATCH: usize = 16;

/// Longer than any IP packet.
const PACKET_MAX: usize = 1 << 16;

impl Driver {
    pub(super) fn new(
        network: Topology,
        devices: Vec<(Interface, SyncDevice)>,
        settings: &Settings,
        requests: Requests,
    ) -> Result<Self, Failure> {
        let emulation = Emulation::new(&network).map_err(|refusal| Failure::Usage(refusal.to_string()))?;
        let is_silent = settings.black_holes;
        let places = devices.iter().enumerate().map(|(place, &(interface, _))| (interface, place)).collect();
        let late = vec![Histogram::default(); network.wires.len()];
        let offloads = if settings.offload { devices.len() } else { 0 };
        let offloads = (0..offloads).map(|_| Offload::new(settings.mtu)).collect();
        let mover =
            Mover { network, emulation, begin: Instant::now(), places, offloads, late, is_real_time: false, is_silent };
        Ok(Self { devices, requests, mover })
    }

    /// Moves packets on this thread until it is stopped.
    ///
    /// # Errors
    /// If a device fails.
    pub(super) fn run(self) -> Result<(), Failure> {
        let Self { devices, requests, mut mover } = self;
        mover.is_real_time = become_real_time(PRIORITY);
        mover.restart();
        let mut buffer = vec![0; PACKET_MAX];
        let descriptors = devices.iter().map(|(_, device)| PollFd::new(device, PollFlags::IN));
        let mut descriptors: Vec<_> = descriptors.chain([PollFd::new(&requests.wake, PollFlags::IN)]).collect();
        loop {
            mover.deliver(&devices);
            match poll(&mut descriptors, mover.patience().as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Failure::failed("poll", error)),
            }
            for (place, (interface, device)) in devices.iter().enumerate() {
                if !descriptors[place].revents().is_empty() {
                    mover
                        .read(*interface, place, device, &mut buffer)
                        .map_err(|error| Failure::failed("TUN device", error))?;
                    mover.deliver(&devices);
                }
            }
            if !descriptors[devices.len()].revents().is_empty() && !mover.answer(&requests) {
                return Ok(());
            }
        }
    }
}

impl Mover {
    /// The current time of the world.
    fn now(&self) -> SimTime {
        since(self.begin)
    }

    /// Writes due packets to the devices.
    fn deliver(&mut self, devices: &[(Interface, SyncDevice)]) {
        let now = self.now();
        let Self { emulation, begin, places, offloads, late, .. } = self;
        emulation.deliver(now, |to, link, due, packet| {
            let due = Duration::from_nanos(due.ticks() / PICOS_PER_NANO);
            late[link].add(begin.elapsed().saturating_sub(due));
            let place = places[&to];
            match offloads.get_mut(place) {
                Some(offload) => offload.put(&devices[place].1, packet),
                // A device that is down refuses the packet, which is then lost as on a real network.
                None => _ = devices[place].1.send(packet),
            }
        });
        offloads.iter_mut().zip(devices).for_each(|(offload, (_, device))| offload.flush(device));
    }

    /// The time until the next event, rounded up: waking too early would only mean to wake again.
    fn patience(&self) -> Option<Timespec> {
        let next = self.emulation.next_at();
        if next == SimTime::NEVER {
            return None;
        }
        let due = Duration::from_nanos(next.ticks().div_ceil(PICOS_PER_NANO));
        let span = due.saturating_sub(self.begin.elapsed());
        Some(Timespec { tv_sec: span.as_secs() as i64, tv_nsec: span.subsec_nanos().into() })
    }

    /// Reads packets from a device.
    fn read(&mut self, from: Interface, place: usize, device: &SyncDevice, buffer: &mut [u8]) -> io::Result<()> {
        for _ in 0..BATCH {
            let Self { emulation, begin, offloads, .. } = self;
            // A packet without a route is counted by the emulation.
            let enter = |packet: &[u8]| _ = emulation.enter(since(*begin), from, packet);
            let read = match offloads.get_mut(place) {
                Some(offload) => offload.read(device, enter),
                None => device.recv(buffer).map(|len| &buffer[..len]).map(enter),
            };
            match read {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The device is down.
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::BADFD.raw_os_error()) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Answers queries. Returns false if a query was to stop, or if the querying thread is gone.
    fn answer(&mut self, requests: &Requests) -> bool {
        let mut bytes = [0; 64];
        while (&requests.wake).read(&mut bytes).is_ok_and(|len| len > 0) {}
        loop {
            match requests.queue.try_recv() {
                Ok(Request { what, answer }) => {
                    // This fails if the client has not waited for the answer.
                    _ = answer.send(self.status());
                    match what {
                        Question::Status => {}
                        Question::Restart => self.restart(),
                        Question::Stop => return false,
                    }
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    /// Restarts the scenario.
    fn restart(&mut self) {
        self.emulation = Emulation::new(&self.network).expect("it could be made before").silent(self.is_silent);
        self.late.fill(Histogram::default());
        self.begin = Instant::now();
    }

    fn status(&mut self) -> Status {
        let mut links = self.emulation.links();
        for (link, late) in links.iter_mut().zip(&self.late) {
            link.late = Lateness::of(late);
        }
        Status {
            clock_seconds: self.begin.elapsed().as_secs_f64(),
            cpu_seconds: cpu().as_secs_f64(),
            is_real_time: self.is_real_time,
            stray_packets: self.emulation.strays(),
            overflowed_packets: self.emulation.overflowed(),
            links,
        }
    }
}

/// The current time of a world that began at `begin`.
fn since(begin: Instant) -> SimTime {
    let nanos = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    SimTime::from_ticks(nanos.saturating_mul(PICOS_PER_NANO))
}

/// The processor time of this thread.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Requests real-time priority. Returns whether it was granted. The timers have no slack in either case.
pub(super) fn become_real_time(priority: u8) -> bool {
    // The default slack delays timers by 50 microseconds.
    _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let priority = priority.try_into().map(ThreadPriority::Crossplatform);
    priority.is_ok_and(|priority| set_thread_priority_and_policy(thread_native_id(), priority, policy).is_ok())
}

/// In the middle of the range: kernel threads that must run first, such as those that migrate threads, have a higher priority.
pub(super) const PRIORITY: u8 = 50;

const PICOS_PER_NANO: u64 = 1000;
