//! Opens the WebSockets in which datagrams travel over TCP: in TLS, so that firewalls, proxies and web servers on the way take them for
//! what they let through.
//!
//! TLS protects nothing here: what is inside is encrypted, and proves who each end is, by the handshake of this protocol. So any certificate
//! is good for a member, also that of somebody in between, who sees and can do what a router can.

mod anyone;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use self::anyone::Anyone;

/// A WebSocket that is open.
pub(crate) type WebSocket = WebSocketStream<TlsStream<TcpStream>>;

/// Calls a relay. No certificate is checked.
pub(crate) async fn call(address: SocketAddr) -> io::Result<WebSocket> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let provider = Arc::new(ring::default_provider());
    let any = Arc::new(Anyone(Arc::clone(&provider)));
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config =
        config.map_err(io::Error::other)?.dangerous().with_custom_certificate_verifier(any).with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    let tls = TlsConnector::from(Arc::new(config));
    let stream = tls.connect(ServerName::IpAddress(address.ip().into()), stream).await?;
    let request = format!("wss://{address}{PATH}");
    let opened = tokio_tungstenite::client_async_with_config(request, TlsStream::from(stream), Some(config_of()));
    let (socket, _) = opened.await.map_err(io::Error::other)?;
    Ok(socket)
}

/// Takes a call at a relay. Also returns the address that a proxy in front of it says that the call comes from.
#[expect(clippy::result_large_err, reason = "the library's type")]
pub(crate) async fn answer(stream: TcpStream, tls: &TlsAcceptor) -> io::Result<(WebSocket, Option<IpAddr>)> {
    stream.set_nodelay(true)?;
    let stream = tls.accept(stream).await?;
    let mut from = None;
    let look = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
        from = forwarded_for(request);
        Ok(response)
    };
    let opened = tokio_tungstenite::accept_hdr_async_with_config(TlsStream::from(stream), look, Some(config_of()));
    let socket = opened.await.map_err(io::Error::other)?;
    Ok((socket, from))
}

/// The last address of `X-Forwarded-For` is the one that the last proxy has seen. Those before it, anybody may have written.
fn forwarded_for(request: &Request) -> Option<IpAddr> {
    let last = request.headers().get_all("x-forwarded-for").into_iter().next_back()?;
    last.to_str().ok()?.rsplit(',').next()?.trim().parse().ok()
}

/// What TLS says to be inside, as a browser does.
pub(crate) const ALPN: &[u8] = b"http/1.1";

/// The longest datagram: more than any of ours.
pub(crate) const DATAGRAM_MAX: usize = 9_216;

fn config_of() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
        .max_write_buffer_size(BUFFER + 2 * DATAGRAM_MAX)
        .max_message_size(Some(DATAGRAM_MAX))
        .max_frame_size(Some(DATAGRAM_MAX))
}

/// The path of the request. A relay takes any; a web server in front of it needs one to tell.
const PATH: &str = "/anabranch";

/// Bytes that the library reads and writes at once: a record of TLS.
const BUFFER: usize = 1 << 14;
