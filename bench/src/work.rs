//! The work of both ends during a measurement. One end measures and ends the work; the other one goes on until then.

use std::fmt;
use std::future::{Future, pending};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use rustix::time::{ClockId, clock_gettime};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::transport::{BLOCK, Failed, Link, ReceiveSide as _, SendSide as _};

/// The kinds of work.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// As many bytes as possible on `streams` streams. The receiver measures, after `warm` and for `time`.
    Bulk { streams: u32, warm: Duration, time: Duration },
    /// `megabits` Mbit/s on one stream, block by block. Measured like `Bulk`.
    Steady { megabits: u32, warm: Duration, time: Duration },
    /// Messages and answers, one after the other. The calling end measures; a tenth of all messages comes first as warm-up and does not count.
    Ping { count: u32, bytes: usize },
    /// Messages in one direction, each on its own stream, one every `every`. The receiver measures.
    Messages { count: u32, bytes: usize, every: Duration },
}

/// A measurement.
#[derive(Clone, Debug, PartialEq)]
pub enum Measured {
    /// Gbit/s, and seconds of this process's processor time for a gigabyte.
    Bulk { gigabits: f64, cpu: f64 },
    /// The sorted times of the messages in seconds, and processor seconds of this process for each message.
    Times { times: Vec<f64>, cpu: f64 },
}

/// For the other process: `bulk 1 0 20`, `steady 100 0 20`, `ping 100 64`, `messages 100 1000 0.02`; times in seconds.
impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bulk { streams, warm, time } => {
                write!(f, "bulk {streams} {} {}", warm.as_secs_f64(), time.as_secs_f64())
            }
            Self::Steady { megabits, warm, time } => {
                write!(f, "steady {megabits} {} {}", warm.as_secs_f64(), time.as_secs_f64())
            }
            Self::Ping { count, bytes } => write!(f, "ping {count} {bytes}"),
            Self::Messages { count, bytes, every } => write!(f, "messages {count} {bytes} {}", every.as_secs_f64()),
        }
    }
}

impl FromStr for Work {
    type Err = Failed;

    fn from_str(text: &str) -> Result<Self, Failed> {
        let seconds = |text: &str| Ok::<_, Failed>(Duration::try_from_secs_f64(text.parse()?)?);
        match text.split(' ').collect::<Vec<_>>()[..] {
            ["bulk", streams, warm, time] => {
                Ok(Self::Bulk { streams: streams.parse()?, warm: seconds(warm)?, time: seconds(time)? })
            }
            ["steady", megabits, warm, time] => {
                Ok(Self::Steady { megabits: megabits.parse()?, warm: seconds(warm)?, time: seconds(time)? })
            }
            ["ping", count, bytes] => Ok(Self::Ping { count: count.parse()?, bytes: bytes.parse()? }),
            ["messages", count, bytes, every] => {
                Ok(Self::Messages { count: count.parse()?, bytes: bytes.parse()?, every: seconds(every)? })
            }
            _ => Err(format!("no work: {text}").into()),
        }
    }
}

/// For the other process: `bulk` or `times`, and the numbers.
impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bulk { gigabits, cpu } => write!(f, "bulk {gigabits} {cpu}"),
            Self::Times { times, cpu } => {
                write!(f, "times {cpu}")?;
                times.iter().try_for_each(|time| write!(f, " {time}"))
            }
        }
    }
}

impl FromStr for Measured {
    type Err = Failed;

    fn from_str(text: &str) -> Result<Self, Failed> {
        let (kind, numbers) = text.split_once(' ').unwrap_or((text, ""));
        let numbers = numbers.split(' ').map(str::parse).collect::<Result<Vec<f64>, _>>()?;
        match (kind, &numbers[..]) {
            ("bulk", &[gigabits, cpu]) => Ok(Self::Bulk { gigabits, cpu }),
            ("times", [cpu, times @ ..]) if !times.is_empty() => Ok(Self::Times { times: times.to_vec(), cpu: *cpu }),
            _ => Err(format!("nothing measured: {text}").into()),
        }
    }
}

impl Measured {
    /// A quantile of the times: the least time that the share `part` does not exceed.
    pub fn quantile(&self, part: f64) -> f64 {
        let Self::Times { times, .. } = self else { return f64::NAN };
        let place = (times.len() as f64 * part).ceil() as usize;
        times[place.clamp(1, times.len()) - 1]
    }
}

impl Work {
    /// Whether the end that calls measures.
    pub const fn is_measured_by_caller(self) -> bool {
        matches!(self, Self::Ping { .. })
    }
}

/// The end that calls.
pub async fn call<L: Link>(link: L, work: Work) -> Result<Option<Measured>, Failed> {
    match work {
        Work::Bulk { streams, .. } => fill(link, streams).await.map(|()| None),
        Work::Steady { megabits, .. } => trickle(link, megabits).await.map(|()| None),
        Work::Ping { count, bytes } => ping(link, count, bytes).await.map(Some),
        Work::Messages { count, bytes, every } => tell(link, count, bytes, every).await.map(|()| None),
    }
}

/// The end that was called.
pub async fn answer<L: Link>(link: L, work: Work) -> Result<Option<Measured>, Failed> {
    match work {
        Work::Bulk { streams, warm, time } => drain(link, streams, warm, time).await.map(Some),
        Work::Steady { warm, time, .. } => drain(link, 1, warm, time).await.map(Some),
        Work::Ping { bytes, .. } => echo(link, bytes).await.map(|()| None),
        Work::Messages { count, bytes, .. } => hear(link, count, bytes).await.map(Some),
    }
}

async fn fill<L: Link>(link: L, streams: u32) -> Result<(), Failed> {
    let block = Bytes::from(vec![0x5a; BLOCK]);
    let mut writing = JoinSet::<Result<(), Failed>>::new();
    for _ in 0..streams {
        let (mut stream, block) = (link.open().await?, block.clone());
        writing.spawn(async move {
            loop {
                stream.write(block.clone()).await?;
            }
        });
    }
    match writing.join_next().await {
        Some(ended) => ended?,
        None => pending().await,
    }
}

/// Writes at a rate, like a program that produces its data at this rate; late blocks are not skipped.
async fn trickle<L: Link>(link: L, megabits: u32) -> Result<(), Failed> {
    let mut stream = link.open().await?;
    let block = Bytes::from(vec![0x5a; BLOCK]);
    let every = Duration::from_secs_f64(BLOCK as f64 * 8e-6 / f64::from(megabits));
    let mut due = Instant::now();
    loop {
        sleep_until(due).await;
        stream.write(block.clone()).await?;
        due += every;
    }
}

async fn drain<L: Link>(link: L, streams: u32, warm: Duration, time: Duration) -> Result<Measured, Failed> {
    let read = Arc::new(AtomicU64::new(0));
    let mut reading = JoinSet::<Result<(), Failed>>::new();
    for _ in 0..streams {
        let (mut stream, read) = (link.accept().await?, Arc::clone(&read));
        reading.spawn(async move {
            while let Some(piece) = stream.read().await? {
                read.fetch_add(piece.len() as u64, Ordering::Relaxed);
            }
            Err("the stream ended".into())
        });
    }
    let timed = async {
        sleep(warm).await;
        let (begin, cpu, before) = (Instant::now(), cpu_seconds(), read.load(Ordering::Relaxed));
        sleep(time).await;
        let bytes = (read.load(Ordering::Relaxed) - before) as f64;
        let (seconds, cpu) = (begin.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        Measured::Bulk { gigabits: bytes * 8e-9 / seconds, cpu: cpu / (bytes * 1e-9) }
    };
    unless_it_fails(&mut reading, timed).await
}

async fn ping<L: Link>(link: L, count: u32, bytes: usize) -> Result<Measured, Failed> {
    let (mut request, mut reply) = link.call().await?;
    let message = Bytes::from(vec![0x5a; bytes]);
    let mut times = Vec::with_capacity(count as usize);
    let mut cpu = cpu_seconds();
    for round in 0..count + count / 10 {
        if round == count / 10 {
            times.clear();
            cpu = cpu_seconds();
        }
        let begin = Instant::now();
        request.write(message.clone()).await?;
        reply.read_all(bytes).await?;
        times.push(begin.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(Measured::Times { times, cpu: (cpu_seconds() - cpu) / f64::from(count) })
}

async fn echo<L: Link>(link: L, bytes: usize) -> Result<(), Failed> {
    let (mut reply, mut request) = link.answer().await?;
    let message = Bytes::from(vec![0x5a; bytes]);
    loop {
        request.read_all(bytes).await?;
        reply.write(message.clone()).await?;
    }
}

/// Writes messages; each begins with the time of its writing.
async fn tell<L: Link>(link: L, count: u32, bytes: usize, every: Duration) -> Result<(), Failed> {
    let begin = Instant::now();
    let mut writing = JoinSet::<Result<(), Failed>>::new();
    for number in 0..count {
        sleep_until(begin + every * number).await;
        let link = link.clone();
        let mut message = BytesMut::with_capacity(bytes);
        message.put_f64_le(seconds(ClockId::Monotonic));
        message.resize(bytes, 0x5a);
        writing.spawn(async move {
            let mut stream = link.open().await?;
            stream.write(message.freeze()).await?;
            stream.finish().await
        });
    }
    while let Some(written) = writing.join_next().await {
        written??;
    }
    pending().await
}

/// Reads messages and their times. Both ends share the clock of the machine.
async fn hear<L: Link>(link: L, count: u32, bytes: usize) -> Result<Measured, Failed> {
    let cpu = cpu_seconds();
    let mut reading = JoinSet::<Result<f64, Failed>>::new();
    for _ in 0..count {
        let mut stream = link.accept().await?;
        reading.spawn(async move {
            let mut message = BytesMut::new();
            while let Some(piece) = stream.read().await? {
                message.extend_from_slice(&piece);
            }
            let taken = seconds(ClockId::Monotonic);
            if message.len() != bytes {
                return Err(format!("{} bytes came of {bytes}", message.len()).into());
            }
            let stamp = message.first_chunk().ok_or("a message without its time")?;
            Ok(taken - f64::from_le_bytes(*stamp))
        });
    }
    let mut times = vec![];
    while let Some(time) = reading.join_next().await {
        times.push(time??);
    }
    times.sort_by(f64::total_cmp);
    Ok(Measured::Times { times, cpu: (cpu_seconds() - cpu) / f64::from(count) })
}

/// Does the work until one of the tasks ends.
async fn unless_it_fails<T>(
    tasks: &mut JoinSet<Result<(), Failed>>,
    work: impl Future<Output = T>,
) -> Result<T, Failed> {
    tokio::select! {
        done = work => Ok(done),
        Some(ended) = tasks.join_next() => Err(ended.map_or_else(Into::into, |ended| ended.err().unwrap_or_else(|| "it ended".into()))),
    }
}

/// The processor time of all threads of this process in seconds, the kernel's work for it included.
pub fn cpu_seconds() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines between processes keep their values.
    #[test]
    fn lines_say_what_was_meant() {
        let work = Work::Messages { count: 3, bytes: 1000, every: Duration::from_millis(20) };
        assert_eq!(work.to_string(), "messages 3 1000 0.02");
        assert_eq!(work.to_string().parse::<Work>().unwrap().to_string(), work.to_string());
        let work = Work::Steady { megabits: 100, warm: Duration::ZERO, time: Duration::from_secs(2) };
        assert_eq!(work.to_string(), "steady 100 0 2");
        assert_eq!(work.to_string().parse::<Work>().unwrap().to_string(), work.to_string());
        let measured = Measured::Times { times: vec![0.25, 1.5], cpu: 2.0 };
        assert_eq!(measured.to_string().parse::<Measured>().unwrap(), measured);
        for wrong in ["", "times", "times 1", "bulk 1", "bulk 1 2 3", "bulk x 1"] {
            assert!(wrong.parse::<Measured>().is_err(), "{wrong}");
        }
    }

    /// Quantiles of a hundred sorted numbers are the 50th and the 99th, of three the second and the last.
    #[test]
    fn quantiles_are_of_the_numbers() {
        let of = |count: u32| Measured::Times { times: (1..=count).map(f64::from).collect(), cpu: 0.0 };
        assert_eq!([0.5, 0.99].map(|part| of(100).quantile(part)), [50.0, 99.0]);
        assert_eq!([0.5, 0.99].map(|part| of(3).quantile(part)), [2.0, 3.0]);
    }
}
