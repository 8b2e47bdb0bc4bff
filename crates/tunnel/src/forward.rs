//! Forwards incoming TCP connections to the other end.

use std::future::Future;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::target::Target;
use crate::tunnel::{CARRIED_MAX, OpenError, Tunnel, accept};

/// Forwards each incoming TCP connection to a target at the other end. Calls `failed` for each failure. Never returns.
pub async fn forward(listener: &TcpListener, tunnel: &Tunnel, target: &Target, failed: impl Fn(OpenError)) {
    let carry = |tcp: TcpStream| {
        let (tunnel, target) = (tunnel.clone(), target.clone());
        async move { tunnel.carry(tcp, &target).await }
    };
    each(listener, carry, failed).await;
}

/// Handles incoming TCP connections concurrently.
pub(crate) async fn each<F, E>(listener: &TcpListener, act: impl Fn(TcpStream) -> F, failed: impl Fn(E))
where
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: Send + 'static,
{
    let mut carried = JoinSet::new();
    loop {
        tokio::select! {
            tcp = accept(listener), if carried.len() < CARRIED_MAX => drop(carried.spawn(act(tcp))),
            Some(ended) = carried.join_next() => {
                if let Ok(Err(error)) = ended {
                    failed(error);
                }
            }
        }
    }
}
