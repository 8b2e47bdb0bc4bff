//! A run that asks its caller for the window of one flow at each step, for programs that learn a law.
//!
//! The run has a thread of its own. At the first ACK after each interval the flow's law sends an observation to the caller, and waits for a
//! window. So several runs can go on in parallel, each on its own core.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use anabranch_cc::registry::INITIAL_WINDOW;
use anabranch_cc::{Ack, Controller, Gauges, Loss, PathView, Restart, WINDOW_MIN, own};
use anabranch_units::{Span, Time};

use crate::report::Report;
use crate::run::{self, Records};
use crate::scenario::Scenario;

/// The state of a flow, with its measurements since the last observation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The time in seconds.
    pub now: f64,
    /// The time since the last observation or the start of the flow, in seconds.
    pub elapsed: f64,
    /// The present window, in segments.
    pub window: f64,
    /// Segments in flight.
    pub flight: f64,
    /// Segments acknowledged since then.
    pub acked: f64,
    /// Segments detected as lost since then.
    pub lost: f64,
    /// The mean of the RTT samples since then in seconds; the previous mean if there was no sample.
    pub rtt_mean: f64,
    /// The least RTT sample of the whole run, in seconds.
    pub rtt_min: f64,
}

/// A run that waits for its caller.
#[derive(Debug)]
pub struct Stepped {
    observations: Receiver<Observation>,
    /// `None` once the run is told to end.
    windows: Option<Sender<f64>>,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<Option<Report>>>,
}

impl Stepped {
    /// Starts a run whose caller sets the window of `flow`, a flow of our own transport.
    ///
    /// # Errors
    /// If there is no such flow, it has another transport, or the system cannot start a thread.
    pub fn start(mut scenario: Scenario, flow: &str, interval: Span) -> Result<Self, String> {
        let (observed, observations) = mpsc::channel();
        let (windows, wanted) = mpsc::channel();
        let stopped = Arc::new(AtomicBool::new(false));
        let line = Arc::new(Mutex::new(Some((observed, wanted))));
        let law = own::settings(move || Box::new(Agent::new(Arc::clone(&line), interval)));
        scenario.set_law(flow, "agent", law)?;
        let is_stopped = Arc::clone(&stopped);
        let run = move || {
            let on_step = |_, _| match is_stopped.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            run::run_recording(&scenario, Records::default(), on_step).ok().map(|(report, _)| report)
        };
        let thread = thread::Builder::new().name("stepped".to_owned()).spawn(run);
        let thread = thread.map_err(|error| format!("there is no thread for the run: {error}"))?;
        Ok(Self { observations, windows: Some(windows), stopped, thread: Some(thread) })
    }

    /// Waits for the next observation; `None` if the run is over.
    pub fn observe(&self) -> Option<Observation> {
        self.observations.recv().ok()
    }

    /// Sets the window from now on, in segments, and lets the run go on to its next observation.
    ///
    /// # Errors
    /// If `window` is not a finite number of at least 1.
    pub fn act(&self, window: f64) -> Result<(), String> {
        if !(window.is_finite() && window >= WINDOW_MIN) {
            return Err(format!(
                "a window of {window} is none; use a finite number of segments, at least {WINDOW_MIN}"
            ));
        }
        // A run that is over needs no window.
        let _ = self.windows.as_ref().map(|windows| windows.send(window));
        Ok(())
    }

    /// The report of a finished run; `None` if it was stopped before.
    pub fn report(mut self) -> Option<Report> {
        self.end(false)
    }

    fn end(&mut self, stop: bool) -> Option<Report> {
        self.stopped.store(stop, Ordering::Relaxed);
        self.windows = None;
        self.thread.take().and_then(|thread| thread.join().ok()).flatten()
    }
}

impl Drop for Stepped {
    fn drop(&mut self) {
        self.end(true);
    }
}

/// The channels to the caller and from it.
type Line = (Sender<Observation>, Receiver<f64>);

/// The law that asks its caller.
struct Agent {
    /// `None` once a controller has taken it. The first controller that is established is that of the source's first path, as the peer answers later.
    line: Arc<Mutex<Option<Line>>>,
    /// `None` for the controllers that do not ask.
    ends: Option<Line>,
    interval: Span,
    window: f64,
    asked: Option<Time>,
    acked: f64,
    lost: f64,
    rtt_sum: f64,
    rtts: f64,
    rtt_mean: f64,
    rtt_min: f64,
}

impl Agent {
    fn new(line: Arc<Mutex<Option<Line>>>, interval: Span) -> Self {
        let (acked, lost, rtt_sum, rtts, rtt_mean) = (0.0, 0.0, 0.0, 0.0, 0.0);
        let (window, rtt_min) = (INITIAL_WINDOW, f64::INFINITY);
        let ends = None;
        Self { line, ends, interval, window, asked: None, acked, lost, rtt_sum, rtts, rtt_mean, rtt_min }
    }

    fn ask(&mut self, path: &PathView, elapsed: Span) {
        if self.rtts > 0.0 {
            self.rtt_mean = self.rtt_sum / self.rtts;
        }
        let observation = Observation {
            now: path.now.as_secs_f64(),
            elapsed: elapsed.as_secs_f64(),
            window: self.window,
            flight: path.flight,
            acked: self.acked,
            lost: self.lost,
            rtt_mean: self.rtt_mean,
            rtt_min: self.rtt_min,
        };
        (self.acked, self.lost, self.rtt_sum, self.rtts) = (0.0, 0.0, 0.0, 0.0);
        let Some((observed, wanted)) = &self.ends else { return };
        let answer = observed.send(observation).ok().and_then(|()| wanted.recv().ok());
        match answer {
            Some(window) => self.window = window,
            None => self.ends = None,
        }
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("window", &self.window).finish_non_exhaustive()
    }
}

impl Controller for Agent {
    fn on_ack(&mut self, path: &PathView, ack: &Ack) {
        self.acked += ack.newly_acked;
        self.lost += ack.newly_lost;
        if let Some(rtt) = ack.rtt {
            let rtt = rtt.as_secs_f64();
            (self.rtt_sum, self.rtts, self.rtt_min) = (self.rtt_sum + rtt, self.rtts + 1.0, self.rtt_min.min(rtt));
        }
        let since = *self.asked.get_or_insert(ack.departure.time);
        let elapsed = path.now.since(since);
        // Without a sample there is no observation yet.
        if elapsed >= self.interval && self.rtt_min.is_finite() {
            self.asked = Some(path.now);
            self.ask(path, elapsed);
        }
    }

    fn on_loss(&mut self, _path: &PathView, _loss: &Loss) {}

    fn on_restart(&mut self, _path: &PathView, restart: Restart) {
        if restart == Restart::Established {
            self.ends = self.line.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
    }

    fn window(&self) -> f64 {
        self.window
    }

    fn gauges(&self, gauges: &mut Gauges) {
        gauges.show("window", self.window);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

    /// 10 Mbit/s, 20 ms there and back: 16.7 segments of 1500 B fill it.
    fn scenario() -> Scenario {
        let text = "duration = '4s'\n\
            [[link]]\nid = 'l'\nfrom = 'a'\nto = 'b'\nrate = '10Mbit/s'\ndelay = '10ms'\n\
            queue = { kind = 'drop_tail', packets = 100 }\n\
            [[flow]]\nid = 'f0'\nfrom = 'a'\nto = 'b'\ntransport = 'anabranch'\npacket = '1500B'\n";
        Scenario::parse(&Document::parse("stepped.toml", text).unwrap()).unwrap()
    }

    /// Runs with a constant window, and returns the last observation and the report.
    fn constant(window: f64) -> (Observation, Report) {
        let run = Stepped::start(scenario(), "f0", Span::from_millis(100)).unwrap();
        let mut last = None;
        while let Some(observation) = run.observe() {
            last = Some(observation);
            run.act(window).unwrap();
        }
        (last.unwrap(), run.report().unwrap())
    }

    #[test]
    fn the_window_is_the_callers() {
        // 5 segments every 21.2 ms, which are 20 ms and the transmission of a segment, are about 25 in 100 ms.
        let (seen, report) = constant(5.0);
        assert!((seen.acked - 5.0 * 0.1 / 0.0212).abs() < 2.0, "{seen:?}");
        assert_eq!((seen.window.to_bits(), seen.lost.to_bits()), (5.0_f64.to_bits(), 0));
        assert!((seen.rtt_mean - seen.rtt_min).abs() < 0.0015, "{seen:?}");
        assert!(report.flows[0].goodput_bps < 3e6, "{:?}", report.flows[0]);
        assert_eq!(report.flows[0].cc.as_deref(), Some("agent"));
        // 50 segments fill it, and 33 of them wait.
        let (seen, report) = constant(50.0);
        assert!((seen.rtt_mean - 50.0 * 0.0012).abs() < 0.002, "{seen:?}");
        assert!(report.flows[0].goodput_bps > 9e6, "{:?}", report.flows[0]);
    }

    #[test]
    fn one_story_is_one_run_and_it_can_be_left() {
        assert_eq!(constant(20.0).1.hash, constant(20.0).1.hash);
        let run = Stepped::start(scenario(), "f0", Span::from_millis(100)).unwrap();
        assert!(run.observe().is_some());
        assert!(run.act(0.5).unwrap_err().contains("at least 1"));
        drop(run);
        assert!(Stepped::start(scenario(), "f7", Span::from_millis(100)).unwrap_err().contains("did you mean `f0`"));
    }
}
