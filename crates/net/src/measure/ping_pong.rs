//! Measures round trips: a request on a stream, an answer of the same size on another one, and then the next request.
//!
//! The measuring end numbers its streams: 4 bytes in front of the requests. The serving end answers each on a stream of its own, which begins with the same
//! number, and gives back what arrives.

use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::samples::{Quantiles, Samples};
use super::{BLOCK, LATE_MAX, MeasureError, Plan, Request, Traffic};
use crate::connection::Connection;
use crate::error::StreamError;
use crate::stream::{RecvStream, SendStream};

/// Measures round trips with an end that [serves](super::serve): on each stream of the plan one request of `size` bytes at a time, at least 1 and at most
/// [`SIZE_MAX`]. The plan's direction and rate do not matter. The times are from the write of a request until its whole answer is read.
///
/// # Errors
/// If the other end does not serve, is older, or is lost.
pub async fn measure_round_trips(connection: &Connection, plan: Plan, size: u32) -> Result<Quantiles, MeasureError> {
    let (size, request) = (size.clamp(1, SIZE_MAX), Request { plan, traffic: Traffic::RoundTrips });
    let (tell, mut times) = mpsc::channel(WAITING);
    super::begin(connection, request).await?;
    let work = async {
        let until = tokio::time::Instant::now() + plan.time;
        let (mut waiting, mut asking) = (vec![], JoinSet::new());
        for number in 0..u32::from(plan.streams.max(1)) {
            let (give, answers) = oneshot::channel();
            waiting.push(Some(give));
            let (stream, tell) = (connection.open_stream().await?, tell.clone());
            let asked = ask(stream, answers, number, size as usize, tell);
            // What is late is not waited for. A stream that is dropped is reset.
            asking.spawn(async move { tokio::time::timeout_at(until, asked).await.unwrap_or(Ok(())) });
        }
        let route = async {
            for _ in 0..waiting.len() {
                let mut stream = connection.accept_stream().await?;
                let number = numbered(&mut stream).await?;
                let give = waiting.get_mut(number as usize).and_then(Option::take).ok_or(MeasureError::Protocol)?;
                // It fails if the time is over.
                _ = give.send(stream);
            }
            Err::<(), MeasureError>(connection.accept_stream().await.err().map_or(MeasureError::Protocol, Into::into))
        };
        let all = async {
            while let Some(asked) = asking.join_next().await {
                asked.map_err(|_| MeasureError::Protocol)??;
            }
            Ok(())
        };
        tokio::select! {
            asked = all => asked,
            // The other end has ended before.
            Err(early) = route => Err(early),
        }
    };
    let mut samples = Samples::new();
    let measured = {
        tokio::pin!(work);
        loop {
            tokio::select! {
                measured = &mut work => break measured,
                Some(time) = times.recv() => samples.add(time),
            }
        }
    };
    while let Ok(time) = times.try_recv() {
        samples.add(time);
    }
    super::end(connection, measured.is_ok()).await;
    measured.map(|()| samples.quantiles())
}

/// Asks again and again, and tells how long each answer took.
async fn ask(
    mut requests: SendStream,
    answers: oneshot::Receiver<RecvStream>,
    number: u32,
    size: usize,
    tell: mpsc::Sender<i64>,
) -> Result<(), MeasureError> {
    let (request, mut answer) = (Bytes::from(vec![0x5a; size]), vec![0; size]);
    let mut begin = Instant::now();
    requests.write_all(&number.to_le_bytes()).await?;
    requests.write_all_bytes(request.clone()).await?;
    let mut answers = answers.await.map_err(|_| MeasureError::Protocol)?;
    loop {
        answers.read_exact(&mut answer).await?;
        let time = i64::try_from(begin.elapsed().as_nanos()).unwrap_or(i64::MAX);
        // It fails if the measurement is over.
        if tell.send(time).await.is_err() {
            return Ok(());
        }
        begin = Instant::now();
        requests.write_all_bytes(request.clone()).await?;
    }
}

/// Gives back what arrives on the streams of the other end.
pub(super) async fn serve(connection: &Connection, plan: Plan) -> Result<(), MeasureError> {
    let mut answering = JoinSet::new();
    let work = async {
        let mut streams = 0;
        loop {
            match connection.accept_stream().await {
                Ok(stream) if streams < u32::from(plan.streams.max(1)) => {
                    streams += 1;
                    answering.spawn(answer(connection.clone(), stream));
                }
                Ok(_) => return Err(MeasureError::Protocol),
                Err(StreamError::Closed) => return Ok(()),
                Err(StreamError::Lost(lost)) => return Err(MeasureError::Lost(lost)),
            }
        }
    };
    let served = tokio::time::timeout(plan.time.saturating_add(END_WITHIN), work).await;
    answering.shutdown().await;
    _ = tokio::time::timeout(LATE_MAX, connection.close()).await;
    served.unwrap_or(Err(MeasureError::NoReport))
}

async fn answer(connection: Connection, mut requests: RecvStream) -> Result<(), MeasureError> {
    let number = numbered(&mut requests).await?;
    let mut answers = connection.open_stream().await?;
    answers.write_all(&number.to_le_bytes()).await?;
    while let Some(piece) = requests.read_chunk(BLOCK).await? {
        answers.write_all_bytes(piece).await?;
    }
    Ok(answers.finish()?)
}

async fn numbered(stream: &mut RecvStream) -> Result<u32, MeasureError> {
    let mut number = [0; 4];
    stream.read_exact(&mut number).await?;
    Ok(u32::from_le_bytes(number))
}

/// The largest request in bytes.
pub const SIZE_MAX: u32 = 1 << 20;

/// Times that wait to be counted.
const WAITING: usize = 1024;

/// How long the serving end waits for the close after the time of the plan.
const END_WITHIN: Duration = Duration::from_secs(10);
