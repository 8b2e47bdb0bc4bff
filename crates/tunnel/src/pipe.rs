//! Joins a TCP connection and a pair of streams.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::time::Duration;

use anabranch::{RecvStream, SendStream};
use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

/// Moves bytes until both directions have ended. The end of a direction is forwarded as an end and a failure as a reset, so that
/// incomplete data never counts as complete.
pub(crate) async fn join(tcp: TcpStream, out: SendStream, back: RecvStream) {
    let Ok(()) = join_later(tcp, out, async { Ok::<_, Infallible>(back) }).await;
}

/// As [`join`], while the other end's stream has not arrived yet; data of this side does not wait for it. If no stream arrives,
/// returns the reason and resets the TCP connection.
pub(crate) async fn join_later<E>(
    mut tcp: TcpStream,
    mut out: SendStream,
    back: impl Future<Output = Result<RecvStream, E>>,
) -> Result<(), E> {
    // Interactive input must not wait for more data (Nagle's algorithm).
    _ = tcp.set_nodelay(true);
    let ended = {
        // The halves are borrowed: owned halves would close the connection in order when dropped, whatever has happened.
        let (reading, writing) = tcp.split();
        let up = async { up(reading, &mut out).await.map_err(|Broken| Cut { why: None }) };
        let down = down(back, writing);
        tokio::try_join!(up, down)
    };
    let Err(Cut { why }) = ended else { return Ok(()) };
    out.reset(BROKEN);
    // If the connection is already closed, it has ended anyway.
    _ = reset_on_close(&tcp);
    why.map_or(Ok(()), Err)
}

/// A direction has failed.
struct Broken;

/// A direction has failed, perhaps because no stream came.
struct Cut<E> {
    why: Option<E>,
}

/// Moves data from TCP to the stream.
async fn up(mut tcp: ReadHalf<'_>, out: &mut SendStream) -> Result<(), Broken> {
    let mut room = BytesMut::new();
    loop {
        room.reserve(PIECE);
        match tcp.read_buf(&mut room).await {
            Ok(0) => break,
            Ok(_) => {}
            Err(_) => return Err(Broken),
        }
        out.write_all_bytes(room.split().freeze()).await.map_err(|_| Broken)?;
    }
    // If the stream is gone, the other direction fails, too.
    _ = out.finish();
    Ok(())
}

/// Moves data from the stream to TCP.
async fn down<E>(back: impl Future<Output = Result<RecvStream, E>>, mut tcp: WriteHalf<'_>) -> Result<(), Cut<E>> {
    let mut back = back.await.map_err(|why| Cut { why: Some(why) })?;
    let broken = || Cut { why: None };
    while let Some(piece) = back.read_chunk(PIECE).await.map_err(|_| broken())? {
        tcp.write_all(&piece).await.map_err(|_| broken())?;
    }
    // If the peer has closed, it cannot be informed.
    _ = tcp.shutdown().await;
    Ok(())
}

/// From now on, closing the socket resets the connection.
pub(crate) fn reset_on_close(tcp: &TcpStream) -> io::Result<()> {
    socket2::SockRef::from(tcp).set_linger(Some(Duration::ZERO))
}

/// Bytes moved at once.
const PIECE: usize = 64 << 10;

/// The error code of a stream whose TCP connection failed.
const BROKEN: u16 = 1;
