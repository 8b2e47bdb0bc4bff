//! The system calls of a script.

use anabranch_proto::{Address, CloseReason, Read};
use anabranch_tcp::{SocketError, SocketId};
use anabranch_units::{Span, Time};
use bytes::Bytes;

use crate::player::{Done, OURS, PORT, Player, Stop, THEIRS, shown};
use crate::script::{Call, CallResult};
use crate::text::Wrong;

/// What a number of a script stands for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Descriptor {
    what: Socket,
    is_nonblocking: bool,
    /// Its reading side was shut.
    is_deaf: bool,
    /// `SO_LINGER` with a time of zero: `close` resets.
    resets: bool,
    /// What was read to count what waits, and was not asked for yet.
    kept: u32,
    /// Whether the end was read behind it.
    has_ended: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Socket {
    #[default]
    New,
    Listens(u16),
    Connection(SocketId),
}

impl Descriptor {
    pub(crate) fn listening(&self) -> Option<u16> {
        if let Socket::Listens(port) = self.what { Some(port) } else { None }
    }

    pub(crate) fn connection(&self) -> Option<SocketId> {
        if let Socket::Connection(id) = self.what { Some(id) } else { None }
    }
}

/// A call that is not over.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) line: usize,
    number: i64,
    what: Act,
    result: CallResult,
    /// When it must be over.
    ends: Time,
}

/// What may have to wait.
#[derive(Clone, Debug)]
enum Act {
    Accept,
    Connect,
    Read { most: u32, done: u32 },
    Write { rest: Bytes, done: u32 },
}

/// Whether the end of the data counts as a byte that waits, as `TCP_INQ` has it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EndCounts {
    Yes,
    No,
}

/// How far an act has come.
enum Progress {
    Over(CallResult),
    Waits,
}

impl Player {
    pub(crate) fn call(&mut self, line: usize, call: &Call, ends: Option<Time>) -> Result<Done, Stop> {
        let unplayable = |what: &str| Err(Stop::Unplayable(what.to_owned()));
        let argument = |at: usize| call.arguments.get(at).map_or("", String::as_str);
        let number: i64 = argument(0).parse().unwrap_or(-1);
        let amount = |at: usize| argument(at).parse::<u32>().unwrap_or(0);
        let flags = argument(3);
        match call.name.as_str() {
            "socket" if argument(1).starts_with("SOCK_STREAM") => {
                self.begin_flow();
                let CallResult::Number(number) = call.result else { return unplayable("a socket that fails") };
                if self.descriptors.contains_key(&number) {
                    return unplayable("the number of the socket is in use");
                }
                let is_nonblocking = argument(1).contains("SOCK_NONBLOCK");
                self.descriptors.insert(number, Descriptor { is_nonblocking, ..Descriptor::default() });
                Ok(Done::Played)
            }
            "bind" => Ok(Done::Played),
            "listen" => {
                let result = self.host.listen(PORT);
                let is_new = matches!(self.what(number), Some(Socket::New));
                if is_new && result.is_ok() {
                    self.become_what(number, Socket::Listens(PORT));
                }
                self.judge(call, &if result.is_ok() { CallResult::Number(0) } else { error("EADDRINUSE") })
            }
            "fcntl" => {
                if argument(1) == "F_SETFL"
                    && let Some(descriptor) = self.descriptors.get_mut(&number)
                {
                    descriptor.is_nonblocking = argument(2).contains("O_NONBLOCK");
                }
                Ok(Done::Played)
            }
            "setsockopt" => self.set_option(number, argument(2), argument(3)),
            "getsockopt" if argument(2) == "SO_ERROR" => {
                let closed = self.connection(number).and_then(|id| self.host.closed(id));
                let is_as_said = closed.map_or("[0]".to_owned(), |reason| format!("[{}]", name_of(reason)));
                if argument(3) == is_as_said {
                    return Ok(Done::Played);
                }
                Err(Stop::Fails(format!("SO_ERROR is {is_as_said}, not {}", argument(3))))
            }
            "getsockopt" => Ok(Done::Skipped),
            "connect" => {
                if matches!(self.what(number), Some(Socket::New)) {
                    self.begin_flow();
                    let local = Address { address: OURS.to_ipv6_mapped().to_bits(), port: 0 };
                    let remote = Address { address: THEIRS.to_ipv6_mapped().to_bits(), port: PORT };
                    let id = self.host.connect(self.now, local, remote);
                    let id = id.map_err(|error| Stop::Fails(format!("connect: {error:?}")))?;
                    self.become_what(number, Socket::Connection(id));
                    // The SYN leaves in any case.
                    self.flush()?;
                }
                self.act(line, call, number, Act::Connect, ends)
            }
            "accept" | "accept4" => self.act(line, call, number, Act::Accept, ends),
            "read" => self.act(line, call, number, Act::Read { most: amount(2), done: 0 }, ends),
            "recv" if matches!(flags, "" | "0") => {
                self.act(line, call, number, Act::Read { most: amount(2), done: 0 }, ends)
            }
            "recvmsg" if matches!(argument(2), "" | "0" | "MSG_DONTWAIT") => {
                let done = self.act(line, call, number, Act::Read { most: buffers(argument(1)), done: 0 }, ends)?;
                match value_of(argument(1), "cmsg_data=") {
                    Some(waits) if argument(1).contains("TCP_CM_INQ") => {
                        self.judge_waiting(number, waits, EndCounts::Yes)
                    }
                    _ => Ok(done),
                }
            }
            "ioctl" if argument(1) == "SIOCINQ" => {
                let waits = value_of(argument(2), "[").unwrap_or(0);
                self.judge_waiting(number, waits, EndCounts::No)
            }
            "write" => self.act(line, call, number, Act::Write { rest: zeros(amount(2)), done: 0 }, ends),
            // Where a record ends, the kernel ends a segment, too; ours may do so anywhere.
            "send" if matches!(flags, "" | "0" | "MSG_NOSIGNAL" | "MSG_DONTWAIT" | "MSG_EOR") => {
                self.act(line, call, number, Act::Write { rest: zeros(amount(2)), done: 0 }, ends)
            }
            // Who copies is the kernel's business; what it tells of it comes by calls that are not played.
            "sendmsg" if matches!(argument(2), "" | "0" | "MSG_NOSIGNAL" | "MSG_DONTWAIT" | "MSG_ZEROCOPY") => {
                self.act(line, call, number, Act::Write { rest: zeros(buffers(argument(1))), done: 0 }, ends)
            }
            "open" => {
                let CallResult::Number(file) = call.result else { return unplayable("a file that does not open") };
                self.descriptors.insert(file, Descriptor::default());
                Ok(Done::Played)
            }
            "sendfile" => self.act(line, call, number, Act::Write { rest: zeros(amount(3)), done: 0 }, ends),
            "pipe" => Ok(Done::Played),
            "splice" => self.act(line, call, number, Act::Read { most: amount(4), done: 0 }, ends),
            "shutdown" => {
                let how = argument(1);
                let Some(id) = self.connection(number) else { return unplayable("a shutdown without a connection") };
                if let Some(descriptor) = self.descriptors.get_mut(&number) {
                    descriptor.is_deaf |= how != "SHUT_WR";
                }
                if how != "SHUT_RD" {
                    self.host.close(id);
                }
                self.flush()?;
                self.judge(call, &CallResult::Number(0))
            }
            "close" => {
                let Some(descriptor) = self.descriptors.remove(&number) else {
                    return self.judge(call, &error("EBADF"));
                };
                match descriptor.what {
                    Socket::New => {}
                    Socket::Listens(port) => self.host.unlisten(port),
                    Socket::Connection(id) if descriptor.resets => {
                        self.host.abort(id);
                        self.host.release(id);
                    }
                    Socket::Connection(id) => self.host.release(id),
                }
                self.flush()?;
                self.judge(call, &CallResult::Number(0))
            }
            name => unplayable(&format!("the call `{name}` with these arguments is the kernel's own")),
        }
    }

    /// Compares what waits to be read with what the script says.
    fn judge_waiting(&mut self, number: i64, expected: u32, end: EndCounts) -> Result<Done, Stop> {
        let Some(id) = self.connection(number) else {
            return Err(Stop::Unplayable("what waits of no connection".to_owned()));
        };
        let (mut more, mut has_ended) = (0, false);
        loop {
            match self.host.read(id, u32::MAX) {
                Ok(Read::Data(data)) => more += data.len() as u32,
                Ok(Read::End) => has_ended = true,
                _ => break,
            }
            if has_ended {
                break;
            }
        }
        self.flush()?;
        let Some(descriptor) = self.descriptors.get_mut(&number) else { return Ok(Done::Played) };
        descriptor.kept += more;
        descriptor.has_ended |= has_ended;
        let waits = descriptor.kept + u32::from(end == EndCounts::Yes && descriptor.has_ended);
        if waits == expected {
            return Ok(Done::Played);
        }
        Err(Stop::Fails(format!("{waits} bytes wait, not {expected}")))
    }

    fn what(&self, number: i64) -> Option<Socket> {
        self.descriptors.get(&number).map(|descriptor| descriptor.what)
    }

    fn become_what(&mut self, number: i64, what: Socket) {
        if let Some(descriptor) = self.descriptors.get_mut(&number) {
            descriptor.what = what;
        }
    }

    fn set_option(&mut self, number: i64, name: &str, value: &str) -> Result<Done, Stop> {
        match name {
            // These count from the begin: `Player::new`.
            "TCP_NODELAY" | "SO_SNDBUF" | "TCP_MAXSEG" | "TCP_USER_TIMEOUT" | "TCP_KEEPIDLE" | "TCP_KEEPINTVL"
            | "TCP_KEEPCNT" | "SO_KEEPALIVE" => Ok(Done::Played),
            "SO_LINGER" => {
                let is_zero = value.contains("onoff=1") && value.contains("linger=0");
                if let Some(descriptor) = self.descriptors.get_mut(&number) {
                    descriptor.resets = is_zero;
                }
                Ok(Done::Played)
            }
            // These have no meaning without a kernel.
            "SO_REUSEADDR" | "SO_REUSEPORT" | "SO_MARK" | "IP_FREEBIND" | "IP_MTU_DISCOVER" | "IP_TOS"
            | "TCP_QUICKACK" | "TCP_INQ" | "SO_ZEROCOPY" => Ok(Done::Skipped),
            _ => Err(Stop::Unplayable(format!("the setting {name} is the kernel's own"))),
        }
    }

    /// Begins an act that may have to wait until `ends`.
    fn act(&mut self, line: usize, call: &Call, number: i64, what: Act, ends: Option<Time>) -> Result<Done, Stop> {
        let is_nonblocking = self.descriptors.get(&number).is_some_and(|descriptor| descriptor.is_nonblocking);
        let result = call.result.clone();
        let mut waiting = Waiting { line, number, what, result, ends: ends.unwrap_or(self.now) };
        let progress = self.proceed(&mut waiting);
        self.flush()?;
        match (progress, ends) {
            (Progress::Over(result), None) => self.judge(call, &result),
            (Progress::Over(result), Some(ends)) if ends <= self.now => self.judge(call, &result),
            (Progress::Over(_), Some(ends)) => {
                Err(Stop::Fails(format!("the call is over at {}, not at {}", shown(self.now), shown(ends))))
            }
            (Progress::Waits, _) if is_nonblocking => {
                let result = match waiting.what {
                    Act::Connect => error("EINPROGRESS"),
                    Act::Write { done, .. } if done > 0 => CallResult::Number(done.into()),
                    _ => error("EAGAIN"),
                };
                self.judge(call, &result)
            }
            (Progress::Waits, Some(_)) => {
                self.waiting.push(waiting);
                Ok(Done::Played)
            }
            (Progress::Waits, None) => Err(Stop::Fails("the call would wait".to_owned())),
        }
    }

    /// Ends calls that need not wait any more. Returns whether one is over.
    pub(crate) fn try_waiting(&mut self, tolerance: Span) -> Result<bool, Stop> {
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut over = None;
        for (at, call) in waiting.iter_mut().enumerate() {
            if let Progress::Over(result) = self.proceed(call) {
                over = Some((at, result));
                break;
            }
        }
        let Some((at, result)) = over else {
            self.waiting = waiting;
            return Ok(false);
        };
        let call = waiting.remove(at);
        self.waiting = waiting;
        let fails = |what: String| Err(Stop::FailsAt(Wrong { line: call.line, what }));
        let early = self.now.saturating_add(tolerance) < call.ends;
        if early || self.now > call.ends.saturating_add(tolerance) {
            return fails(format!("the call is over at {}, not at {}", shown(self.now), shown(call.ends)));
        }
        if !is_as_said(&call.result, &result) {
            return fails(format!("the result is {result}, not {}", call.result));
        }
        Ok(true)
    }

    fn proceed(&mut self, call: &mut Waiting) -> Progress {
        let number = call.number;
        if let Act::Accept = call.what {
            let Some(Socket::Listens(port)) = self.what(number) else { return Progress::Over(error("EINVAL")) };
            let Some(id) = self.host.accept(port) else { return Progress::Waits };
            let number = self.next_descriptor();
            self.descriptors.insert(number, Descriptor { what: Socket::Connection(id), ..Descriptor::default() });
            return Progress::Over(CallResult::Number(number));
        }
        let Some(id) = self.connection(number) else { return Progress::Over(error("ENOTCONN")) };
        match &mut call.what {
            Act::Accept => Progress::Waits,
            Act::Connect => match self.host.closed(id) {
                Some(reason) => Progress::Over(error(name_of(reason))),
                None if self.host.is_opening(id) => Progress::Waits,
                None => Progress::Over(CallResult::Number(0)),
            },
            Act::Read { most, done } => {
                let Some(descriptor) = self.descriptors.get_mut(&number) else {
                    return Progress::Over(error("EBADF"));
                };
                let kept = descriptor.kept.min(*most - *done);
                descriptor.kept -= kept;
                *done += kept;
                let is_deaf = descriptor.is_deaf || descriptor.kept == 0 && descriptor.has_ended;
                while *done < *most {
                    match self.host.read(id, *most - *done) {
                        Ok(Read::Data(data)) => *done += data.len() as u32,
                        Ok(Read::End) => return Progress::Over(CallResult::Number((*done).into())),
                        Err(SocketError::Closed(reason)) if *done == 0 => {
                            return Progress::Over(error(name_of(reason)));
                        }
                        _ => break,
                    }
                }
                if *done > 0 || is_deaf { Progress::Over(CallResult::Number((*done).into())) } else { Progress::Waits }
            }
            Act::Write { rest, done } => match self.host.write(id, rest) {
                Ok(taken) => {
                    *done += taken;
                    if rest.is_empty() { Progress::Over(CallResult::Number((*done).into())) } else { Progress::Waits }
                }
                Err(SocketError::Closed(CloseReason::Finished | CloseReason::Aborted) | SocketError::NotOpen) => {
                    // Before the handshake is over, a call waits.
                    if self.host.is_opening(id) { Progress::Waits } else { Progress::Over(error("EPIPE")) }
                }
                Err(SocketError::Closed(reason)) => Progress::Over(error(name_of(reason))),
                Err(_) => Progress::Over(error("EPIPE")),
            },
        }
    }

    fn judge(&self, call: &Call, result: &CallResult) -> Result<Done, Stop> {
        if is_as_said(&call.result, result) {
            return Ok(Done::Played);
        }
        Err(Stop::Fails(format!("the result of {} is {result}, not {}", call.name, call.result)))
    }
}

fn is_as_said(expected: &CallResult, result: &CallResult) -> bool {
    *expected == CallResult::Any || expected == result
}

fn error(name: &str) -> CallResult {
    CallResult::Error(name.to_owned())
}

/// The bytes of all buffers of a message: `msg_iov(2)=[{..., 40}, {..., 20}]`.
fn buffers(message: &str) -> u32 {
    let list = message.split_once("msg_iov").and_then(|(_, rest)| rest.split_once('[')?.1.split_once(']'));
    let sizes = list.map_or("", |(list, _)| list).split('}').filter_map(|part| part.rsplit(',').next());
    sizes.filter_map(|size| size.trim().parse::<u32>().ok()).fold(0, u32::saturating_add)
}

/// The number behind `name`.
fn value_of(text: &str, name: &str) -> Option<u32> {
    let rest = text.split_once(name)?.1;
    rest[..rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
}

fn zeros(len: u32) -> Bytes {
    vec![0; len as usize].into()
}

/// The error of systems for this end of a connection.
fn name_of(reason: CloseReason) -> &'static str {
    match reason {
        CloseReason::Refused | CloseReason::PortClosed => "ECONNREFUSED",
        CloseReason::TimedOut | CloseReason::Stalled => "ETIMEDOUT",
        CloseReason::Finished | CloseReason::Aborted => "EPIPE",
        CloseReason::Reset | CloseReason::GaveWay | CloseReason::FalseAcknowledgement | CloseReason::Mangled => {
            "ECONNRESET"
        }
    }
}

impl std::fmt::Display for CallResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Any => f.write_str("anything"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Error(name) => write!(f, "-1 {name}"),
        }
    }
}
