//! A path with a long delay.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch::cc::{Settings, registry};
use anabranch::{Admission, Config, Ticket};
use anabranch_transfer::{Existing, Progress, Receiver, send};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;

use crate::support::{Folder, bind, noise, parcel, tree};

/// Forwards datagrams to `server` and back, each after `one_way`. It serves one client.
async fn slow_path(server: SocketAddr, one_way: Duration) -> SocketAddr {
    let front = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let back = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    for socket in [&front, &back] {
        // The buffer must hold a whole window, so that no datagram is lost here.
        socket2::SockRef::from(&**socket).set_recv_buffer_size(4 << 20).unwrap();
    }
    let address = front.local_addr().unwrap();
    let (caller, mut callers) = mpsc::unbounded_channel();
    tokio::spawn(pass(Arc::clone(&front), Arc::clone(&back), one_way, Some(server), Some(caller)));
    tokio::spawn(async move {
        let caller = callers.recv().await;
        pass(back, front, one_way, caller, None).await;
    });
    address
}

async fn pass(
    from: Arc<UdpSocket>,
    to: Arc<UdpSocket>,
    delay: Duration,
    target: Option<SocketAddr>,
    caller: Option<mpsc::UnboundedSender<SocketAddr>>,
) {
    let (put, mut take) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    tokio::spawn(async move {
        while let Some((due, bytes)) = take.recv().await {
            tokio::time::sleep_until(due.into()).await;
            if let Some(target) = target {
                to.send_to(&bytes, target).await.unwrap();
            }
        }
    });
    let mut bytes = vec![0; 2000];
    loop {
        let (len, address) = from.recv_from(&mut bytes).await.unwrap();
        if let Some(caller) = &caller {
            _ = caller.send(address);
        }
        put.send((Instant::now() + delay, bytes[..len].to_vec())).unwrap();
    }
}

/// 10,000 files of 1 kB over an RTT of 100 ms: a round trip per file would take 1000 s, one per sixteen files a minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_small_files_cost_few_round_trips() {
    let (from, to) = (Folder::new(), Folder::new());
    for number in 0..10_000u64 {
        from.file(&format!("f/{}/{number}", number % 100), &noise(number, 1000));
    }
    // A law that responds only to losses, of which there are none. The delays come from timers of a millisecond, and their noise
    // would hold back a delay-based law.
    let law = Settings::default_for(registry::find("cubic").unwrap());
    let config = Config { law, ..Config::default() };
    let server = bind(config.clone().admit(Admission::Ticket));
    let client = bind(config);
    let address = slow_path(server.local_address(), Duration::from_millis(50)).await;
    let ticket = Ticket::new(server.public_key(), vec![address]).unwrap();
    let begin = Instant::now();
    let (sender, receiver) = tokio::join!(client.connect(&ticket), server.accept());
    let (sender, receiver) = (sender.unwrap(), receiver.unwrap());
    let target = Receiver::new(&to.0, Existing::Keep);
    let (sent, received) = tokio::join!(
        send(&sender, parcel(&[from.0.join("f")]), Arc::new(Progress::default())),
        target.receive(&receiver, Arc::new(Progress::default()))
    );
    println!("{:?}", begin.elapsed());
    assert_eq!((sent.unwrap().files, received.unwrap().files), (10_000, 10_000));
    // An idle machine takes less than 10 s. A busy machine still shows that there is no round trip per file.
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    assert!(tree(&from.0) == tree(&to.0));
}
