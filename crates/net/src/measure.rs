//! Measuring a network: one end sends as fast as it may, the other one reads and throws away.
//!
//! The first stream of who measures says what is wanted: `ab-bench`, who sends, how many streams, for how many milliseconds.

use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::error::{Lost, ReadError, StreamError, WriteError};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Who sends.
    pub direction: Direction,
    /// Streams at a time.
    pub streams: u8,
    /// For how long.
    pub time: Duration,
}

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// This end.
    Up,
    /// The other end.
    Down,
}

/// Why nothing was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasureError {
    /// The other end does not measure.
    Protocol,
    /// The connection is lost.
    Lost(Lost),
}

/// Measures with who [serves](serve). What happens meanwhile is to be seen in [`Connection::stats`] and [`Connection::paths`]. Both ends have closed then.
///
/// # Errors
/// If the other end does not measure, or is lost.
pub async fn measure(connection: &Connection, plan: Plan) -> Result<(), MeasureError> {
    let mut stream = connection.open_stream().await?;
    let mut request = MAGIC.to_vec();
    request.extend([u8::from(plan.direction == Direction::Down), plan.streams]);
    request.extend((plan.time.as_millis() as u32).to_le_bytes());
    stream.write_all(&request).await?;
    stream.finish()?;
    match plan.direction {
        Direction::Up => {
            fill(connection, plan).await?;
            connection.close().await?;
        }
        Direction::Down => {
            drain(connection).await?;
            connection.close().await?;
        }
    }
    Ok(connection.closed().await?)
}

/// Does what the other end asks for.
///
/// # Errors
/// If the other end does not measure, or is lost.
pub async fn serve(connection: &Connection) -> Result<(), MeasureError> {
    let request = connection.accept_stream().await?.read_to_end(MAGIC.len() + 6).await?;
    let request = request.strip_prefix(MAGIC).and_then(|rest| rest.first_chunk::<6>()).ok_or(MeasureError::Protocol)?;
    let [direction, streams, a, b, c, d] = *request;
    let time = Duration::from_millis(u32::from_le_bytes([a, b, c, d]).into()).min(TIME_MAX);
    if direction == 1 {
        fill(connection, Plan { direction: Direction::Down, streams, time }).await?;
        connection.close().await?;
        // The other end closes when it has all.
        Ok(connection.closed().await?)
    } else {
        drain(connection).await?;
        Ok(connection.close().await?)
    }
}

/// Writes on all streams until the time is over, and lets go of what the peer has not taken by then.
async fn fill(connection: &Connection, plan: Plan) -> Result<(), MeasureError> {
    let block = Bytes::from(vec![0x5a; BLOCK]);
    let mut streams = JoinSet::new();
    for _ in 0..plan.streams.max(1) {
        let (mut stream, block) = (connection.open_stream().await?, block.clone());
        streams.spawn(async move {
            let write = async {
                loop {
                    stream.write_all_bytes(block.clone()).await?;
                }
            };
            match tokio::time::timeout(plan.time, write).await {
                Ok(Err(error)) => Err::<(), WriteError>(error),
                Ok(Ok(())) => Ok(()),
                Err(_) => stream.finish(),
            }
        });
    }
    while let Some(ended) = streams.join_next().await {
        ended.map_err(|_| MeasureError::Protocol)??;
    }
    Ok(())
}

/// Reads whatever comes, until nothing more can come.
async fn drain(connection: &Connection) -> Result<(), MeasureError> {
    let mut streams = JoinSet::new();
    loop {
        match connection.accept_stream().await {
            Ok(mut stream) => drop(streams.spawn(async move {
                while let Some(piece) = stream.read_chunk(BLOCK).await? {
                    drop(piece);
                }
                Ok::<(), ReadError>(())
            })),
            Err(StreamError::Closed) => break,
            Err(StreamError::Lost(lost)) => return Err(MeasureError::Lost(lost)),
        }
    }
    Ok(())
}

impl From<StreamError> for MeasureError {
    fn from(error: StreamError) -> Self {
        if let StreamError::Lost(lost) = error { Self::Lost(lost) } else { Self::Protocol }
    }
}

impl From<WriteError> for MeasureError {
    fn from(error: WriteError) -> Self {
        if let WriteError::Lost(lost) = error { Self::Lost(lost) } else { Self::Protocol }
    }
}

impl From<ReadError> for MeasureError {
    fn from(error: ReadError) -> Self {
        if let ReadError::Lost(lost) = error { Self::Lost(lost) } else { Self::Protocol }
    }
}

impl From<Lost> for MeasureError {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost)
    }
}

impl std::fmt::Display for MeasureError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Protocol => f.write_str("the other end does not measure: is it `anabranch bench serve`?"),
            Self::Lost(lost) => lost.fmt(f),
        }
    }
}

impl std::error::Error for MeasureError {}

const MAGIC: &[u8] = b"ab-bench";

/// Nobody has us send for longer.
const TIME_MAX: Duration = Duration::from_secs(86_400);

/// What is written at once.
const BLOCK: usize = 256 << 10;
