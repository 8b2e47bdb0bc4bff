//! `anabranch bench --set-up`: how long connections take to be set up.

use std::io::Write as _;
use std::time::Duration;

use anabranch::Endpoint;
use anabranch::Ticket;
use anabranch::measure::{self, SetUpReport};
use serde::Serialize;

use super::times::Times;
use crate::args::online::Bench;
use crate::failure::{Failure, Outcome};
use crate::online::print_line;
use crate::terminal::{Align, DIM, PLAIN, Table};

/// The document.
#[derive(Serialize)]
pub(super) struct SetUps {
    /// At the same time.
    connections: u8,
    seconds: f64,
    count: u64,
    failed: u64,
    /// Until the connection is established.
    connected: Times,
    /// Until the first answer of the other end's program.
    answered: Times,
}

/// Measures.
pub(super) async fn measured(args: &Bench, endpoint: &Endpoint, ticket: &Ticket) -> Result<SetUps, Failure> {
    let time = Duration::from_secs(args.time.into());
    let report = measure::measure_set_ups(endpoint, ticket, args.connections, time).await;
    let SetUpReport { connected, answered, failed } = report.map_err(|error| Failure::failed(error.to_string()))?;
    Ok(SetUps {
        connections: args.connections,
        seconds: time.as_secs_f64(),
        count: connected.count,
        failed,
        connected: Times::new(&connected),
        answered: Times::new(&answered),
    })
}

impl SetUps {
    /// Prints the result, as a document or for people.
    pub(super) fn print(&self, as_document: bool) -> Outcome {
        if as_document {
            return print_line(self);
        }
        let mut table = Table::new(&[("", Align::Left), ("", Align::Right)]);
        let counts = [("connections", self.count.to_string()), ("failed", self.failed.to_string())];
        let counts = counts.map(|(name, value)| (name.to_owned(), value)).into_iter();
        for (name, value) in counts.chain(self.connected.rows("connected")).chain(self.answered.rows("first answer")) {
            table.row(vec![(name, DIM), (value, PLAIN)]);
        }
        Ok(write!(anstream::stdout(), "{}", table.render(""))?)
    }
}
