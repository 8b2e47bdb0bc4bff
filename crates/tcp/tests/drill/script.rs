//! A script in the syntax of packetdrill: steps with times.
//!
//! ```text
//!  0          socket(..., SOCK_STREAM, IPPROTO_TCP) = 3     a system call, at an absolute time
//! +0          < S 0:0(0) win 32792 <mss 1000>               a segment arrives, after the step before
//! +.01~+.02   > S. 0:0(0) ack 1 <mss 1460>                  a segment must leave, between two times
//! +0 ...0.2   accept(3, ..., ...) = 4                       a call that waits until a time
//! +0          %{ assert tcpi_snd_cwnd == 10 }%              about the kernel's own counters: skipped
//! +0          `sysctl -q net.ipv4.tcp_sack=0`               for the kernel: skipped, but for timestamps
//! ```

use anabranch_units::Span;

use crate::packet::Packet;
use crate::text::{Reader, Wrong};

#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// How much a time may differ.
    pub(crate) tolerance: Span,
    /// Whether the kernel's clock of timestamps is said, and values are judged.
    pub(crate) judges_stamps: bool,
    /// The settings of the system that the script asks for, as text.
    pub(crate) commands: String,
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) line: usize,
    pub(crate) when: When,
    pub(crate) what: What,
}

/// The time of a step; each number is in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Any,
    /// Between these times, which are often equal, and count from the begin or from the step before.
    Between {
        from: u64,
        until: u64,
        is_relative: bool,
    },
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Arrives(Packet),
    Leaves(Packet),
    Call(Call),
    /// An assertion about the kernel's counters.
    Assertion,
    /// A command for the kernel.
    Command,
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) arguments: Vec<String>,
    /// When a call that waits is over, counted as its begin.
    pub(crate) ends: Option<u64>,
    pub(crate) result: CallResult,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallResult {
    Any,
    Number(i64),
    Error(String),
}

impl Script {
    pub(crate) fn read(text: &str) -> Result<Self, Wrong> {
        let mut script = Self { tolerance: TOLERANCE, judges_stamps: false, commands: String::new(), steps: vec![] };
        let mut reader = Reader::new(text);
        loop {
            reader.blanks()?;
            if reader.is_over() {
                return Ok(script);
            }
            if reader.take("--") {
                let option = reader.rest_of_line();
                script.option(&reader, &option)?;
            } else if reader.take("`") {
                script.commands += &reader.until('`')?;
            } else {
                let step = script.step(&mut reader)?;
                script.steps.push(step);
            }
        }
    }

    fn option(&mut self, reader: &Reader<'_>, option: &str) -> Result<(), Wrong> {
        match option.split_once('=') {
            Some(("tolerance_usecs", value)) => {
                let micros = value.parse().map_err(|_| reader.wrong("the tolerance is no number"))?;
                self.tolerance = Span::from_micros(micros);
            }
            Some(("tcp_ts_tick_usecs", value)) => self.judges_stamps = value != "0",
            _ => {}
        }
        Ok(())
    }

    fn step(&mut self, reader: &mut Reader<'_>) -> Result<Step, Wrong> {
        let line = reader.line();
        let (when, ends) = read_time(reader)?;
        reader.spaces();
        let what = if reader.take("<") {
            What::Arrives(Packet::read(reader)?)
        } else if reader.take(">") {
            What::Leaves(Packet::read(reader)?)
        } else if reader.take("%{") {
            reader.until_text("}%")?;
            What::Assertion
        } else if reader.take("`") {
            self.commands += &reader.until('`')?;
            What::Command
        } else {
            What::Call(Call { ends, ..read_call(reader)? })
        };
        Ok(Step { line, when, what })
    }
}

/// A time, and the end of a call that waits.
fn read_time(reader: &mut Reader<'_>) -> Result<(When, Option<u64>), Wrong> {
    if reader.take("*") {
        return Ok((When::Any, None));
    }
    let is_relative = reader.take("+");
    reader.spaces();
    let from = reader.seconds()?.ok_or_else(|| reader.wrong("a step begins with its time"))?;
    reader.spaces();
    if reader.take("~") {
        reader.spaces();
        reader.take("+");
        let until = reader.seconds()?.ok_or_else(|| reader.wrong("the range has no end"))?;
        return Ok((When::Between { from, until, is_relative }, None));
    }
    let ends = if reader.take("...") {
        reader.spaces();
        Some(reader.seconds()?.ok_or_else(|| reader.wrong("the range has no end"))?)
    } else {
        None
    };
    Ok((When::Between { from, until: from, is_relative }, ends))
}

fn read_call(reader: &mut Reader<'_>) -> Result<Call, Wrong> {
    let name = reader.word();
    reader.spaces();
    reader.expect("(")?;
    let arguments = reader.arguments()?;
    reader.blanks()?;
    reader.expect("=")?;
    let result = reader.rest_of_line();
    let words: Vec<&str> = result.split_whitespace().collect();
    let result = match words[..] {
        ["..."] => CallResult::Any,
        ["-1", error, ..] => CallResult::Error(error.to_owned()),
        [number, ..] => {
            let number = match number.strip_prefix("0x") {
                Some(digits) => i64::from_str_radix(digits, 16),
                None => number.parse(),
            };
            CallResult::Number(number.map_err(|_| reader.wrong("the result is no number"))?)
        }
        [] => return Err(reader.wrong("the call has no result")),
    };
    Ok(Call { name, arguments, ends: None, result })
}

/// What packetdrill's own documentation gives.
const TOLERANCE: Span = Span::from_millis(4);
