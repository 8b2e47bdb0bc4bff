//! Both ends of connections between ours and the kernel's TCP: each writes its part, closes its side, and reads the other's to the end.

use std::io::Result;
use std::net::SocketAddr;
use std::time::Duration;

use anabranch_tcp::Host;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::content;

/// What all ends of a test write, and how long one may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The number of a connection goes first; then both ends write at once. Fails unless the server's part comes whole, and its end.
pub(crate) async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, number: u32, len: usize) -> Result<()> {
    stream.write_u32(number).await?;
    exchange(stream, number, [false, true], len).await
}

/// The other end of it.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, len: usize) -> Result<()> {
    let number = stream.read_u32().await?;
    exchange(stream, number, [true, false], len).await
}

async fn exchange(stream: impl AsyncRead + AsyncWrite, number: u32, sides: [bool; 2], len: usize) -> Result<()> {
    let (mut from, mut to) = tokio::io::split(stream);
    let [ours, theirs] = sides.map(|is_server| part(number, is_server, len));
    let write = async {
        to.write_all(&ours).await?;
        to.shutdown().await
    };
    let mut got = vec![];
    let both = timeout(PATIENCE, async { tokio::join!(write, from.read_to_end(&mut got)) });
    let (written, read) = both.await?;
    written?;
    read?;
    assert!(got == theirs, "connection {number}: {} bytes of {len}, or others", got.len());
    Ok(())
}

/// What one side of a connection writes.
fn part(number: u32, is_server: bool, len: usize) -> Vec<u8> {
    let begin = 2 * number as usize + usize::from(is_server);
    content(begin + len).split_off(begin)
}

/// A server of the kernel's TCP for so many connections.
pub(crate) fn kernel_serves(at: SocketAddr, connections: usize, len: usize) -> JoinHandle<()> {
    let socket = if at.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(at).unwrap();
    let listener = socket.listen(1024).unwrap();
    tokio::spawn(async move {
        let mut tasks = JoinSet::new();
        for _ in 0..connections {
            tasks.spawn(answer(listener.accept().await.unwrap().0, len));
        }
        all(tasks).await;
    })
}

/// A server of ours.
pub(crate) fn host_serves(host: &Host, port: u16, connections: usize, len: usize) -> JoinHandle<()> {
    let mut listener = host.listen(port).unwrap();
    tokio::spawn(async move {
        let mut tasks = JoinSet::new();
        for _ in 0..connections {
            tasks.spawn(answer(listener.accept().await.unwrap(), len));
        }
        all(tasks).await;
    })
}

/// Waits for all ends, of which none may fail.
pub(crate) async fn all(mut tasks: JoinSet<Result<()>>) {
    while let Some(done) = tasks.join_next().await {
        done.unwrap().unwrap();
    }
}
