//! Runs both ends on this machine, each in a thread with its own runtime; and a single end.

use std::future::Future;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::thread;
use std::time::Duration;

use anabranch::Cipher;
use tokio::sync::{oneshot, watch};

use crate::rivals::ours::Ours;
use crate::rivals::quic::{Law, Quinn};
use crate::rivals::s2n::S2n;
use crate::rivals::tls::Tls;
use crate::rivals::{Rival, WINDOW, WINDOW_OF_BBR};
use crate::transport::{Failed, Transport};
use crate::udp;
use crate::work::{self, Measured, Work};

/// Makes a connection of a rival and does the work on it; `None` if the rival does not support the work.
pub fn measure(rival: Rival, work: Work) -> Result<Option<Measured>, Failed> {
    let measured = match (rival, work) {
        (Rival::Anabranch, _) => pair(&Ours { cipher: None }, work),
        (Rival::AnabranchAegis, _) => pair(&Ours { cipher: Some(Cipher::Aegis128L) }, work),
        (Rival::Quinn, _) => pair(&Quinn { law: Law::Cubic, window: WINDOW }, work),
        (Rival::QuinnBbr, _) => pair(&Quinn { law: Law::Bbr, window: WINDOW }, work),
        (Rival::QuinnAnabranch, _) => pair(&Quinn { law: Law::Anabranch, window: WINDOW }, work),
        (Rival::S2n, _) => pair(&S2n, work),
        (Rival::Tls, _) => pair(&Tls, work),
        (Rival::Udp, Work::Bulk { warm, time, .. }) => udp::bulk(warm, time),
        (Rival::Udp, _) => return Ok(None),
    };
    measured.map(Some).map_err(|error| format!("{}: {error}", rival.name()).into())
}

/// Runs one end. Without a `hello` it listens at this address, and prints its own hello; else it connects.
pub fn run_end(
    rival: Rival,
    work: Work,
    hello: Option<&str>,
    at: &str,
    say: impl Fn(&str) -> std::io::Result<()>,
) -> Result<Option<Measured>, Failed> {
    match rival {
        Rival::Anabranch => one(&Ours { cipher: None }, work, hello, at, say),
        Rival::AnabranchAegis => one(&Ours { cipher: Some(Cipher::Aegis128L) }, work, hello, at, say),
        Rival::Quinn => one(&Quinn { law: Law::Cubic, window: WINDOW }, work, hello, at, say),
        Rival::QuinnBbr => one(&Quinn { law: Law::Bbr, window: WINDOW_OF_BBR }, work, hello, at, say),
        Rival::QuinnAnabranch => one(&Quinn { law: Law::Anabranch, window: WINDOW }, work, hello, at, say),
        Rival::S2n => one(&S2n, work, hello, at, say),
        Rival::Tls => one(&Tls, work, hello, at, say),
        Rival::Udp => Err("datagrams without a transport have no ends".into()),
    }
}

fn one<T: Transport>(
    transport: &T,
    work: Work,
    hello: Option<&str>,
    at: &str,
    say: impl Fn(&str) -> std::io::Result<()>,
) -> Result<Option<Measured>, Failed> {
    let end = async {
        if let Some(hello) = hello {
            return work::call(transport.connect(hello).await?, work).await;
        }
        let at = at.to_socket_addrs()?.find(SocketAddr::is_ipv4).ok_or("no address of this name")?;
        let listening = transport.listen(at).await?;
        say(&listening.hello)?;
        work::answer(listening.link.await?, work).await
    };
    let (over, is_over) = watch::channel(false);
    run(end, &over, is_over)
}

fn pair<T: Transport + Sync>(transport: &T, work: Work) -> Result<Measured, Failed> {
    let (say, hear) = oneshot::channel();
    let (over, is_over) = watch::channel(false);
    let (answered, called) = thread::scope(|scope| {
        let here = scope.spawn(|| {
            let work = async {
                let listening = transport.listen("127.0.0.1:0".parse()?).await?;
                _ = say.send(listening.hello);
                work::answer(listening.link.await?, work).await
            };
            run(work, &over, is_over.clone())
        });
        let there = scope.spawn(|| {
            let work = async {
                let hello = hear.await.map_err(|_| "nobody listens")?;
                work::call(transport.connect(&hello).await?, work).await
            };
            run(work, &over, is_over.clone())
        });
        (here.join(), there.join())
    });
    let of = |ended: thread::Result<_>| ended.unwrap_or_else(|_| Err("an end has panicked".into()));
    let (answered, called) = (of(answered), of(called));
    match (answered, called) {
        // The result of the other end does not matter then.
        (Ok(Some(measured)), _) | (_, Ok(Some(measured))) => Ok(measured),
        (Err(error), _) | (_, Err(error)) => Err(error),
        (Ok(None), Ok(None)) => Err("nobody has measured".into()),
    }
}

/// Runs an end until it or the other end has measured or failed.
fn run(
    work: impl Future<Output = Result<Option<Measured>, Failed>>,
    over: &watch::Sender<bool>,
    mut is_over: watch::Receiver<bool>,
) -> Result<Option<Measured>, Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        tokio::select! {
            ended = tokio::time::timeout(PATIENCE, work) => {
                over.send_replace(true);
                ended.map_err(|_| "it takes too long")?
            }
            _ = is_over.wait_for(|is_over| *is_over) => Ok(None),
        }
    })
}

/// The limit of a round: longer, and something hangs.
const PATIENCE: Duration = Duration::from_secs(180);
