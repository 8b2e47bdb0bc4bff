//! The result of `anabranch bench --beside tcp`: the kernel's TCP alone, and at the same time as this transport.

use std::time::Duration;

use anabranch::measure::{TcpPlan, TcpReport, measure_tcp};
use anabranch::{Endpoint, Ticket};
use serde::Serialize;

use super::{Ended, Print};
use crate::args::online::{Bench, Rival};
use crate::failure::Failure;
use crate::online::observe::rate;

/// The same time and as many connections as of this transport; on one path each.
#[derive(Serialize)]
pub(super) struct Beside {
    /// The congestion law of the kernel that sends, if it tells it.
    tcp_cc: Option<String>,
    /// The kernel's TCP alone: what was received.
    tcp_bits_per_second: f64,
    /// Both at once.
    together_tcp_bits_per_second: f64,
    together_bits_per_second: f64,
}

/// The measurements of the kernel's TCP.
pub(super) struct Rivalry<'a> {
    args: &'a Bench,
    endpoint: &'a Endpoint,
    ticket: &'a Ticket,
    plan: TcpPlan,
}

impl<'a> Rivalry<'a> {
    pub(super) fn new(args: &'a Bench, rival: &Rival, endpoint: &'a Endpoint, ticket: &'a Ticket) -> Self {
        let (time, law) = (Duration::from_secs(args.time.into()), rival.law.clone());
        let plan = TcpPlan { is_reverse: args.reverse, connections: args.connections, time, law };
        Self { args, endpoint, ticket, plan }
    }

    /// Measures TCP alone: first of all, so that nobody waits to learn that it does not get through. `None` if the user stopped it.
    pub(super) async fn alone(&self) -> Result<Option<TcpReport>, Failure> {
        let failed = |error: &dyn std::error::Error| Failure::failed(error.to_string());
        let connection = self.endpoint.connect(self.ticket).await.map_err(|error| failed(&error))?;
        tokio::select! {
            report = measure_tcp(&connection, &self.plan) => Ok(Some(report.map_err(|error| failed(&error))?)),
            _ = tokio::signal::ctrl_c() => {
                connection.abort();
                Ok(None)
            }
        }
    }

    /// Measures both at once.
    pub(super) async fn together(&self, alone: TcpReport) -> Result<Option<Beside>, Failure> {
        // Without a line each second: these would be of one of two.
        let ours = super::once(self.args, self.endpoint, self.ticket, Print::Json);
        let (ours, both) = tokio::join!(ours, self.alone());
        let ((ours, Ended::InTime), Some(both)) = (ours?, both?) else { return Ok(None) };
        Ok(Some(Beside {
            tcp_bits_per_second: self.rate(&alone),
            together_tcp_bits_per_second: self.rate(&both),
            together_bits_per_second: ours.bits_per_second,
            tcp_cc: alone.law,
        }))
    }

    fn rate(&self, report: &TcpReport) -> f64 {
        8.0 * report.bytes as f64 / self.plan.time.as_secs_f64()
    }
}

impl Beside {
    /// Names and values for people.
    pub(super) fn rows(&self) -> [(String, String); 3] {
        let law = self.tcp_cc.as_deref().unwrap_or("kernel");
        [
            (format!("TCP ({law}) alone"), rate(self.tcp_bits_per_second)),
            (format!("TCP ({law}) beside it"), rate(self.together_tcp_bits_per_second)),
            ("this beside TCP".to_owned(), rate(self.together_bits_per_second)),
        ]
    }
}
