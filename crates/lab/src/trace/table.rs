//! A table of a run, written row by row while the run goes on. So a table of any length is whole, and takes no memory.

use std::io::{self, Write};

use anabranch_sim::{Entry, GaugeRow, LinkRow, is_same_bin};
use anabranch_units::SimSpan;

/// Where a table is written.
pub type Output = Box<dyn Write + Send>;

/// Opens the output of the table with this file name.
pub type OpenTable<'a> = dyn FnMut(&str) -> io::Result<Output> + 'a;

/// A row of a table.
pub(crate) trait Row: Entry {
    /// The names of the columns.
    const HEAD: &'static str;

    fn write(&self, out: &mut dyn Write) -> io::Result<()>;
}

/// The variables of a flow; the cells of those that an agent does not have are empty.
impl Row for GaugeRow {
    const HEAD: &'static str = "time_s,window,ssthresh,rtt_s,base_rtt_s,avg_rtt_s,in_flight";

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { time, gauges } = self;
        let base = gauges.rtt_base.map_or(String::new(), |base| base.as_secs_f64().to_string());
        writeln!(
            out,
            "{:.9},{},{},{},{base},{},{}",
            time.as_secs_f64(),
            gauges.window,
            gauges.ssthresh,
            gauges.rtt.as_secs_f64(),
            gauges.rtt_smoothed.as_secs_f64(),
            gauges.in_flight
        )
    }
}

/// The variables of a link. The packet in service is in the queue; the other two count up.
impl Row for LinkRow {
    const HEAD: &'static str = "time_s,queue_packets,dropped_packets,forwarded_packets";

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { time, queue, dropped, forwarded } = self;
        writeln!(out, "{:.9},{queue},{dropped},{forwarded}", time.as_secs_f64())
    }
}

/// A table that is being written.
pub(crate) struct Table<R> {
    out: Output,
    /// Of the rows within this time, the last is written; of zero, every row.
    resolution: SimSpan,
    /// The last row, which a later one within the same time replaces.
    pending: Option<R>,
    /// The first failure. Then nothing more is written.
    written: io::Result<()>,
}

impl<R: Row> Table<R> {
    pub(crate) fn new(mut out: Output, resolution: SimSpan) -> Self {
        let written = writeln!(out, "{}", R::HEAD);
        Self { out, resolution, pending: None, written }
    }

    /// Adds a row. Times never decrease.
    pub(crate) fn push(&mut self, row: R) {
        match self.pending.replace(row) {
            Some(before) if !is_same_bin(before.time(), row.time(), self.resolution) => self.write(&before),
            _ => {}
        }
    }

    /// Writes the last row.
    ///
    /// # Errors
    /// If the output could not be written, now or before.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if let Some(last) = self.pending.take() {
            self.write(&last);
        }
        std::mem::replace(&mut self.written, Ok(()))?;
        self.out.flush()
    }

    fn write(&mut self, row: &R) {
        if self.written.is_ok() {
            self.written = row.write(&mut self.out);
        }
    }
}
