//! What the kernel, as a router and a filter, says of our segments by ICMP.

use anabranch_tcp::{Host, IpFields, NoticeKind, TcpStream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Duration, timeout};

use super::{PORT, TWO_OF_OURS, far_host, host, inside, nft, remote, serve_echo};

/// The word comes back.
async fn echo(stream: &mut TcpStream) {
    stream.write_all(b"word").await.unwrap();
    let mut back = [0; 4];
    timeout(Duration::from_secs(30), stream.read_exact(&mut back)).await.unwrap().unwrap();
    assert_eq!(&back, b"word");
}

/// A word that the network refuses: it says so.
async fn refused(stream: &mut TcpStream) -> NoticeKind {
    stream.write_all(b"word").await.unwrap();
    for _ in 0..3000 {
        if let Some(kind) = stream.soft_error() {
            return kind;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nothing was said");
}

/// Too few hops, and a filter, by IPv4 and IPv6: the application learns it, and the connection goes on when the reason is gone.
#[test]
fn soft_errors_of_the_kernel_are_told() {
    let Some(runtime) = inside("notices::soft_errors_of_the_kernel_are_told") else { return };
    let _guard = runtime.enter();
    let (near, far) = (host(|config| config.streams = 0), far_host());
    _ = serve_echo(&far, PORT);
    for ends in TWO_OF_OURS {
        runtime.block_on(tell(&near, ends));
    }
}

async fn tell(near: &Host, [ours, far]: [&str; 2]) {
    let mut stream = near.connect(ours.parse().unwrap(), remote(far, PORT)).await.unwrap();
    echo(&mut stream).await;
    assert_eq!(stream.soft_error(), None, "{far}");
    stream.set_ip_fields(IpFields::new(1, 0).unwrap()).unwrap();
    assert_eq!(refused(&mut stream).await, NoticeKind::TimeExceeded, "{far}");
    stream.set_ip_fields(IpFields::default()).unwrap();
    stream.read_exact(&mut [0; 4]).await.unwrap();
    assert_eq!(stream.soft_error(), None, "{far}");
    if !nft(
        "table inet box {\nchain forward {\ntype filter hook forward priority 0\nreject with icmpx type admin-prohibited\n}\n}\n",
    ) {
        return;
    }
    assert_eq!(refused(&mut stream).await, NoticeKind::Unreachable, "{far}");
    assert!(nft("delete table inet box\n"));
    stream.read_exact(&mut [0; 4]).await.unwrap();
    assert_eq!(stream.soft_error(), None, "{far}");
    echo(&mut stream).await;
}
