//! A TCP connection and a pair of streams, joined.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::time::Duration;

use anabranch::{RecvStream, SendStream};
use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

/// Moves bytes until both directions have ended. A half that ends is ended at the other side, too; what breaks off is broken off there: who
/// got half of something does not take it for whole.
pub(crate) async fn join(tcp: TcpStream, out: SendStream, back: RecvStream) {
    let Ok(()) = join_later(tcp, out, async { Ok::<_, Infallible>(back) }).await;
}

/// The same where the other end's stream is still to come; what this side sends does not wait for it. If none comes, that is why, and the TCP connection
/// was reset.
pub(crate) async fn join_later<E>(
    mut tcp: TcpStream,
    mut out: SendStream,
    back: impl Future<Output = Result<RecvStream, E>>,
) -> Result<(), E> {
    // What a person types is not to wait for more.
    _ = tcp.set_nodelay(true);
    let ended = {
        // Halves that are borrowed: those that are owned end the connection in order when they are dropped, whatever has happened.
        let (reading, writing) = tcp.split();
        let up = async { up(reading, &mut out).await.map_err(|Broken| Cut { why: None }) };
        let down = down(back, writing);
        tokio::try_join!(up, down)
    };
    let Err(Cut { why }) = ended else { return Ok(()) };
    out.reset(BROKEN);
    // What is closed already has ended anyway.
    _ = reset_on_close(&tcp);
    why.map_or(Ok(()), Err)
}

/// A direction could not go on.
struct Broken;

/// The same, and why no stream came.
struct Cut<E> {
    why: Option<E>,
}

/// What the TCP side sends.
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
    // If the stream is gone already, its other direction says so.
    _ = out.finish();
    Ok(())
}

/// What is sent to the TCP side.
async fn down<E>(back: impl Future<Output = Result<RecvStream, E>>, mut tcp: WriteHalf<'_>) -> Result<(), Cut<E>> {
    let mut back = back.await.map_err(|why| Cut { why: Some(why) })?;
    let broken = || Cut { why: None };
    while let Some(piece) = back.read_chunk(PIECE).await.map_err(|_| broken())? {
        tcp.write_all(&piece).await.map_err(|_| broken())?;
    }
    // Who has closed already hears nothing.
    _ = tcp.shutdown().await;
    Ok(())
}

/// From now on, to close the socket resets the connection.
pub(crate) fn reset_on_close(tcp: &TcpStream) -> io::Result<()> {
    socket2::SockRef::from(tcp).set_linger(Some(Duration::ZERO))
}

/// What is moved at once.
const PIECE: usize = 64 << 10;

/// The code of a stream whose TCP connection broke off.
const BROKEN: u16 = 1;
