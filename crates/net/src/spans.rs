//! `tracing` events of an endpoint. Each connection has a span; events concern the connection, its paths and its streams. The
//! target is `anabranch`.
//!
//! | level | events |
//! | --- | --- |
//! | `info` | a call begins, a connection is established or over |
//! | `warn` | a path fails, a connection ends by an error |
//! | `debug` | a path is validated, restored or gone; the peer has closed |
//! | `trace` | a stream ends |

use anabranch_proto::{CloseReason, Event, FourTuple};
use tracing::{Span, debug, info, info_span, trace, warn};

use crate::address::plain;
use crate::key::PublicKey;
use crate::qlog::Vantage;

pub(crate) fn connection(vantage: Vantage, peer: PublicKey) -> Span {
    let side = match vantage {
        Vantage::Client => "client",
        Vantage::Server => "server",
    };
    info_span!(target: TARGET, "connection", side, %peer)
}

/// Reports that this end opens a connection.
pub(crate) fn calls(span: &Span, FourTuple { local, remote }: FourTuple) {
    info!(target: TARGET, parent: span, local = %plain(local), remote = %plain(remote), "calls");
}

/// Emits an event. If it concerns a path that exists, it includes the addresses of that path.
pub(crate) fn tell(span: &Span, event: Event, tuple: Option<FourTuple>) {
    let local = tuple.map(|tuple| tracing::field::display(plain(tuple.local)));
    let remote = tuple.map(|tuple| tracing::field::display(plain(tuple.remote)));
    match event {
        Event::Established { streams } => {
            info!(target: TARGET, parent: span, local, remote, streams, "established");
        }
        Event::PathValidated(path) => {
            debug!(target: TARGET, parent: span, path = path.number(), local, remote, "path validated");
        }
        Event::PathFailed(path) => {
            warn!(target: TARGET, parent: span, path = path.number(), local, remote, "path silent")
        }
        Event::PathRestored(path) => {
            debug!(target: TARGET, parent: span, path = path.number(), local, remote, "path answers again");
        }
        Event::PathGone(path) => debug!(target: TARGET, parent: span, path = path.number(), "path gone"),
        Event::Stalled => warn!(target: TARGET, parent: span, "full packets do not arrive"),
        Event::PeerClosed => debug!(target: TARGET, parent: span, "peer has closed"),
        Event::Finished(sid) => trace!(target: TARGET, parent: span, stream = sid.number(), "stream delivered"),
        Event::Stopped { sid, code } => {
            trace!(target: TARGET, parent: span, stream = sid.number(), code, "stream stopped by the peer");
        }
        Event::Closed(CloseReason::Finished | CloseReason::Aborted) => {
            info!(target: TARGET, parent: span, "over");
        }
        Event::Closed(reason) => warn!(target: TARGET, parent: span, ?reason, "over"),
        Event::Readable(_) | Event::Writable(_) | Event::DatagramsReadable => {}
    }
}

const TARGET: &str = "anabranch";
