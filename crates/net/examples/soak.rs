//! Uses every feature at once, for as long as you like: `soak serve` waits and prints a ticket; `soak call TICKET SECONDS` opens
//! and closes connections to it, and on them streams, messages, resets and paths.
//!
//! One connection stays for the whole time. Others live for some seconds each, every second one on its own socket. They end by a
//! close, an abort, or because all handles are dropped. All data is checked byte by byte, in both directions. Each end prints a
//! line of JSON per second, and one at its end (or before its input ends): its number of tasks, the bytes of its heap, and what
//! was done. `cargo xtask soak` reads these lines.
//!
//! ```text
//! stream:  kind  number  length  content      kind 0: the bytes must arrive; 1: this many bytes are requested back; 2: an echo is requested;
//!          8     8       8       length             3: the sender will reset it; 4: the receiver must stop it; 5: it is read late
//! ```

#![expect(clippy::print_stdout, reason = "it is what the example prints")]

mod pattern;

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anabranch::{Admission, Config, Connection, Endpoint, ReadError, RecvStream, SecretKey, Ticket, WriteError};
use bytes::Bytes;
use peak_alloc::PeakAlloc;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::pattern::pattern;

type Failure = Box<dyn Error + Send + Sync>;

/// Counts what is allocated and not freed: the memory of the process itself never shrinks.
#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["serve"] => serve().await,
        ["call", ticket, seconds] => call(&ticket.parse()?, Duration::from_secs_f64(seconds.parse()?)).await,
        _ => Err("serve | call TICKET SECONDS".into()),
    }
}

/// Two engines an endpoint, also on other machines than those of two processors.
fn config() -> Config {
    Config { shards: Some(2), ..Config::default() }
}

/// What has happened. The counters are the same at both ends.
#[derive(Default)]
struct Counts {
    connections: AtomicU64,
    streams: AtomicU64,
    bytes: AtomicU64,
    messages: AtomicU64,
    resets: AtomicU64,
    stops: AtomicU64,
    stalls: AtomicU64,
    paths_added: AtomicU64,
    paths_removed: AtomicU64,
    aborts: AtomicU64,
    /// Errors: wrong or missing bytes, missing answers, failures without a cause.
    wrong: AtomicU64,
}

impl Counts {
    fn json(&self) -> String {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        format!(
            r#"{{"tasks":{},"heap":{},"connections":{},"streams":{},"bytes":{},"messages":{},"resets":{},"stops":{},"stalls":{},"paths_added":{},"paths_removed":{},"aborts":{},"wrong":{}}}"#,
            Handle::current().metrics().num_alive_tasks(),
            HEAP.current_usage(),
            count(&self.connections),
            count(&self.streams),
            count(&self.bytes),
            count(&self.messages),
            count(&self.resets),
            count(&self.stops),
            count(&self.stalls),
            count(&self.paths_added),
            count(&self.paths_removed),
            count(&self.aborts),
            count(&self.wrong),
        )
    }

    /// Reports an error on standard error, and counts it.
    #[expect(clippy::print_stderr, reason = "whoever looks for the mistake wants to know")]
    fn wrong(&self, what: &str) {
        self.wrong.fetch_add(1, Ordering::Relaxed);
        eprintln!("wrong: {what}");
    }
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

/// Prints the counts each second.
async fn tell(counts: Arc<Counts>) {
    loop {
        println!("{}", counts.json());
        sleep(Duration::from_secs(1)).await;
    }
}

// ---- The answering end.

async fn serve() -> Result<(), Failure> {
    let address = "0.0.0.0:0".parse()?;
    let endpoint = Endpoint::server(address, &SecretKey::generate()?, config().admit(Admission::Ticket))?;
    println!("{}", endpoint.ticket());
    let counts = Arc::new(Counts::default());
    tokio::spawn(tell(Arc::clone(&counts)));
    while let Some(connection) = endpoint.accept().await {
        add(&counts.connections, 1);
        let counts = Arc::clone(&counts);
        tokio::spawn(async move {
            let mut answers = JoinSet::new();
            while let Ok(stream) = connection.accept_stream().await {
                while answers.try_join_next().is_some() {}
                answers.spawn(answer(connection.clone(), stream, Arc::clone(&counts)));
            }
            while answers.join_next().await.is_some() {}
            _ = connection.close().await;
        });
    }
    Ok(())
}

/// Does what the stream requests.
async fn answer(connection: Connection, mut stream: RecvStream, counts: Arc<Counts>) {
    let Some((kind, number, len)) = head(&mut stream).await else { return };
    add(&counts.streams, 1);
    match kind {
        STALL => {
            add(&counts.stalls, 1);
            // Unread, it must not stop the others.
            sleep(STALLED).await;
            check(stream, number, len, false, &counts).await;
        }
        UPLOAD | RESET => check(stream, number, len, kind == RESET, &counts).await,
        DOWNLOAD => _ = write(&connection, UPLOAD, number, len).await,
        ECHO => {
            add(&counts.messages, 1);
            if let Ok(content) = stream.read_to_end(len as usize).await {
                if content != pattern(number, 0, len as usize) {
                    counts.wrong("a message is another one");
                }
                _ = send(&connection, [UPLOAD, number, len], content).await;
            }
        }
        STOP => {
            add(&counts.stops, 1);
            // Reads a part of it.
            _ = stream.read_chunk(1 << 14).await;
            stream.stop(STOPPED);
        }
        _ => counts.wrong("nobody has sent such a stream"),
    }
}

/// Kind, number and length.
async fn head(stream: &mut RecvStream) -> Option<(u64, u64, u64)> {
    let mut head = [0; 24];
    stream.read_exact(&mut head).await.ok()?;
    let [kind, number, len] = [0, 8, 16].map(|at| head[at..at + 8].first_chunk().map(|word| u64::from_le_bytes(*word)));
    Some((kind?, number?, len?))
}

/// Reads a stream to its end, and checks the content.
async fn check(mut stream: RecvStream, number: u64, len: u64, is_reset: bool, counts: &Counts) {
    let mut at = 0;
    let end = loop {
        match stream.read_chunk(1 << 16).await {
            Ok(Some(piece)) => {
                if piece != pattern(number, at, piece.len()) {
                    counts.wrong("bytes are others");
                }
                at += piece.len() as u64;
                add(&counts.bytes, piece.len() as u64);
            }
            end => break end,
        }
    };
    match end {
        // If its connection was aborted, the stream is incomplete.
        Err(ReadError::Lost(_)) => {}
        Ok(None) if at == len && !is_reset => {}
        Err(ReadError::Reset(GIVEN_UP)) if at <= len && is_reset => add(&counts.resets, 1),
        other => counts.wrong(&format!("{at} of {len} bytes came, then {other:?}")),
    }
}

/// Sends a stream of `len` bytes and waits until all have arrived.
async fn write(connection: &Connection, kind: u64, number: u64, len: u64) -> Result<(), Failure> {
    let mut stream = connection.open_stream().await?;
    for word in [kind, number, len] {
        stream.write_all(&word.to_le_bytes()).await?;
    }
    let mut at = 0;
    while at < len {
        let piece = pattern(number, at, (len - at).min(PIECE) as usize);
        at += piece.len() as u64;
        stream.write_all_bytes(piece).await?;
    }
    stream.finish()?;
    stream.stopped().await?;
    Ok(())
}

/// Sends a stream with this content.
async fn send(connection: &Connection, head: [u64; 3], content: Bytes) -> Result<(), Failure> {
    let mut stream = connection.open_stream().await?;
    for word in head {
        stream.write_all(&word.to_le_bytes()).await?;
    }
    stream.write_all_bytes(content).await?;
    Ok(stream.finish()?)
}

// ---- The calling end.

/// The replies that a connection waits for, by number.
type Wanted = Arc<Mutex<BTreeMap<u64, oneshot::Sender<()>>>>;

async fn call(ticket: &Ticket, time: Duration) -> Result<(), Failure> {
    let (counts, until) = (Arc::new(Counts::default()), Instant::now() + time);
    let telling = tokio::spawn(tell(Arc::clone(&counts)));
    let endpoint = Endpoint::client(config())?;
    let mut sessions = JoinSet::new();
    let random = |seed: u64| Random(seed ^ u64::from(std::process::id()) << 32);
    sessions.spawn(stay(endpoint.clone(), ticket.clone(), until, random(0), Arc::clone(&counts)));
    for seed in 1..=SESSIONS {
        sessions.spawn(come_and_go(endpoint.clone(), ticket.clone(), until, random(seed), Arc::clone(&counts)));
    }
    while let Some(ended) = sessions.join_next().await {
        ended??;
    }
    if timeout(PATIENCE, endpoint.wait_idle()).await.is_err() {
        counts.wrong("connections that are over stay");
    }
    telling.abort();
    drop(endpoint);
    // The endpoint's own task ends after its last handle.
    sleep(Duration::from_secs(1)).await;
    println!("{}", counts.json());
    Ok(())
}

/// One connection for the whole time, whose paths are added and removed.
async fn stay(
    endpoint: Endpoint,
    ticket: Ticket,
    until: Instant,
    mut random: Random,
    counts: Arc<Counts>,
) -> Result<(), Failure> {
    let connection = endpoint.connect(&ticket).await?;
    add(&counts.connections, 1);
    let is_aborted = Arc::new(AtomicBool::new(false));
    let working = tokio::spawn(work(connection.clone(), until, random.fork(), is_aborted, Arc::clone(&counts)));
    while Instant::now() < until {
        change_paths(&connection, &ticket, &mut random, &counts).await;
        sleep(Duration::from_millis(random.below(4000))).await;
    }
    working.await?;
    end_well(&connection, &counts).await;
    Ok(())
}

/// Adds all missing paths, or removes one.
async fn change_paths(connection: &Connection, ticket: &Ticket, random: &mut Random, counts: &Counts) {
    let paths = connection.paths();
    if paths.len() < 2 {
        // No path is added while the link is cut, because nothing answers.
        add(&counts.paths_added, connection.add_paths(ticket).await as u64);
    } else if let Some(path) = paths.get(random.below(paths.len() as u64) as usize)
        && connection.remove_path(path.id).is_ok()
    {
        add(&counts.paths_removed, 1);
    }
}

/// Connections of some seconds each, one after the other.
async fn come_and_go(
    endpoint: Endpoint,
    ticket: Ticket,
    until: Instant,
    mut random: Random,
    counts: Arc<Counts>,
) -> Result<(), Failure> {
    while Instant::now() < until {
        let own = if random.below(2) == 0 { Some(Endpoint::client(config())?) } else { None };
        let connection = match own.as_ref().unwrap_or(&endpoint).connect(&ticket).await {
            Ok(connection) => connection,
            // The first of the two links is never cut.
            Err(error) => {
                counts.wrong(&format!("no connection: {error}"));
                continue;
            }
        };
        add(&counts.connections, 1);
        if random.below(2) == 0 {
            change_paths(&connection, &ticket, &mut random, &counts).await;
        }
        let session = until.min(Instant::now() + Duration::from_millis(500 + random.below(8000)));
        let is_aborted = Arc::new(AtomicBool::new(false));
        let work = work(connection.clone(), session, random.fork(), Arc::clone(&is_aborted), Arc::clone(&counts));
        let working = tokio::spawn(work);
        match random.below(4) {
            0 => {
                sleep(Duration::from_millis(random.below(3000))).await;
                // The connection is aborted first: a stream dropped while the connection lives is reset, and the peer would count
                // that as an error.
                is_aborted.store(true, Ordering::SeqCst);
                connection.abort();
                working.abort();
                _ = working.await;
                add(&counts.aborts, 1);
            }
            1 => {
                working.await?;
                // The last handle is dropped, which closes the connection.
                drop(connection);
            }
            _ => {
                working.await?;
                end_well(&connection, &counts).await;
            }
        }
    }
    Ok(())
}

async fn end_well(connection: &Connection, counts: &Counts) {
    match timeout(PATIENCE, async { connection.close().await.and(connection.closed().await) }).await {
        Ok(Ok(())) => {}
        Ok(Err(lost)) => counts.wrong(&format!("a connection does not end well: {lost}")),
        Err(_) => counts.wrong("a connection does not end"),
    }
}

/// Does several things concurrently on a connection, until its time is over.
async fn work(
    connection: Connection,
    until: Instant,
    mut random: Random,
    is_aborted: Arc<AtomicBool>,
    counts: Arc<Counts>,
) {
    let wanted = Wanted::default();
    let mut receiving = JoinSet::new();
    receiving.spawn(receive(connection.clone(), Arc::clone(&wanted), Arc::clone(&counts)));
    let mut tasks = JoinSet::new();
    while Instant::now() < until {
        if tasks.len() < TASKS {
            let (wanted, is_aborted, counts) = (Arc::clone(&wanted), Arc::clone(&is_aborted), Arc::clone(&counts));
            tasks.spawn(one(connection.clone(), wanted, random.fork(), is_aborted, counts));
        }
        let pause = Duration::from_millis(random.below(60));
        _ = timeout(pause, tasks.join_next()).await;
    }
    while tasks.join_next().await.is_some() {}
}

/// Receives the replies.
async fn receive(connection: Connection, wanted: Wanted, counts: Arc<Counts>) {
    let mut streams = JoinSet::new();
    while let Ok(mut stream) = connection.accept_stream().await {
        let (wanted, counts) = (Arc::clone(&wanted), Arc::clone(&counts));
        while streams.try_join_next().is_some() {}
        streams.spawn(async move {
            let Some((_, number, len)) = head(&mut stream).await else { return };
            add(&counts.streams, 1);
            check(stream, number, len, false, &counts).await;
            let waiting = wanted.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
            match waiting {
                Some(waiting) => _ = waiting.send(()),
                None => counts.wrong("nobody wanted that"),
            }
        });
    }
}

/// Does one thing, according to the kinds of streams.
async fn one(
    connection: Connection,
    wanted: Wanted,
    mut random: Random,
    is_aborted: Arc<AtomicBool>,
    counts: Arc<Counts>,
) {
    let kind = if random.below(64) == 0 { STALL } else { random.below(5) };
    // Most streams are short. One in sixteen has up to 4 MB, as long as there are not too many of these.
    let large = (random.below(16) == 0).then(|| LARGE.try_acquire().ok()).flatten();
    let most = if large.is_some() { 4 << 20 } else { 40_000 };
    let (number, len) = (random.next(), random.below(most));
    let done = timeout(PATIENCE, async {
        match kind {
            DOWNLOAD | ECHO => {
                let (came, coming) = oneshot::channel();
                wanted.lock().unwrap_or_else(PoisonError::into_inner).insert(number, came);
                if kind == DOWNLOAD {
                    send(&connection, [kind, number, len], Bytes::new()).await?;
                } else {
                    add(&counts.messages, 1);
                    send(&connection, [kind, number, len], pattern(number, 0, len as usize)).await?;
                }
                coming.await?;
            }
            RESET => {
                let mut stream = connection.open_stream().await?;
                for word in [kind, number, len] {
                    stream.write_all(&word.to_le_bytes()).await?;
                }
                stream.write_all_bytes(pattern(number, 0, (len / 2) as usize)).await?;
                stream.reset(GIVEN_UP);
                add(&counts.resets, 1);
            }
            STOP => match write(&connection, kind, number, len).await {
                Err(error) if is_stop(&error) => add(&counts.stops, 1),
                // All data had arrived before the request to stop.
                done => done?,
            },
            STALL => {
                add(&counts.stalls, 1);
                write(&connection, kind, number, len).await?;
            }
            _ => write(&connection, kind, number, len).await?,
        }
        Ok::<(), Failure>(())
    });
    match done.await {
        Ok(Ok(())) => {}
        // On an aborted connection the stream does not end.
        Ok(Err(_)) if is_aborted.load(Ordering::SeqCst) => {}
        Ok(Err(error)) => counts.wrong(&format!("a stream of kind {kind}: {error}")),
        Err(_) => counts.wrong(&format!("a stream of kind {kind} and {len} bytes takes longer than {PATIENCE:?}")),
    }
    add(&counts.streams, 1);
}

fn is_stop(error: &Failure) -> bool {
    matches!(error.downcast_ref(), Some(WriteError::Stopped(STOPPED)))
}

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most.max(1)
    }

    fn fork(&mut self) -> Self {
        Self(self.next())
    }
}

/// Kinds of streams.
const UPLOAD: u64 = 0;
const DOWNLOAD: u64 = 1;
const ECHO: u64 = 2;
const RESET: u64 = 3;
const STOP: u64 = 4;
const STALL: u64 = 5;
/// Error codes of streams that do not reach their end.
const GIVEN_UP: u16 = 7;
const STOPPED: u16 = 9;
/// How long a reader stands still.
const STALLED: Duration = Duration::from_secs(5);
/// Bytes per write.
const PIECE: u64 = 1 << 16;
/// Number of short-lived connections at a time.
const SESSIONS: u64 = 4;
/// Number of things done at a time on a connection.
const TASKS: usize = 16;
/// Number of long streams at a time, over all connections.
static LARGE: Semaphore = Semaphore::const_new(64);
/// Anything that takes longer counts as hanging.
const PATIENCE: Duration = Duration::from_secs(90);
