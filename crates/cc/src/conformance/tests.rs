use super::*;
use crate::registry::{self, Settings};

/// A law with one fault each.
#[derive(Debug)]
struct Faulty {
    window: f64,
    before: f64,
    fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    GrowsOnLoss,
    KeepsOnLoss,
    FallsBelowOne,
    KeepsOnTimeout,
    ForgetsUndo,
    NeverGrows,
    SendingMoves,
    CopyBeginsAnew,
}

impl Controller for Faulty {
    fn on_sent(&mut self, _: &PathView, _: &Sent) {
        if self.fault == Fault::SendingMoves {
            self.window += 1.0;
        }
    }

    fn on_ack(&mut self, _: &PathView, ack: &Ack) {
        if self.fault != Fault::NeverGrows {
            self.window += ack.newly_acked;
        }
    }

    fn on_loss(&mut self, _: &PathView, loss: &Loss) {
        self.before = self.window;
        self.window = match (self.fault, loss.signal) {
            (Fault::GrowsOnLoss, Signal::DupAcks) => self.window + 1.0,
            (Fault::KeepsOnLoss, Signal::DupAcks) | (Fault::KeepsOnTimeout, Signal::Timeout) => self.window,
            (Fault::FallsBelowOne, _) => self.window / 2.0,
            (_, Signal::Timeout) => 1.0,
            _ => (self.window / 2.0).max(1.0),
        };
    }

    fn on_undo(&mut self, _: &PathView) {
        if self.fault != Fault::ForgetsUndo {
            self.window = self.window.max(self.before);
        }
    }

    fn window(&self) -> f64 {
        self.window
    }

    fn copy(&self) -> Option<Box<dyn Controller>> {
        let window = if self.fault == Fault::CopyBeginsAnew { 10.0 } else { self.window };
        Some(Box::new(Self { window, ..*self }))
    }
}

const CONTRACT: LossContract =
    LossContract { shrinks_above: 2.0, timeout_window_max: WINDOW_MIN, loss: LossResponse::Shrinks };

fn checked(fault: Fault) -> Result<(), Violation> {
    check(&|| Box::new(Faulty { window: 10.0, before: 1.0, fault }), &CONTRACT, 200)
}

#[test]
fn each_fault_is_found_and_told_by_a_short_story() {
    assert_eq!(checked(Fault::None), Ok(()));
    // The message, and the length of the shortest story that leads to it.
    let cases = [
        (Fault::GrowsOnLoss, "enlarges the window from 10 to 11", 1),
        (Fault::KeepsOnLoss, "leaves the window at 10", 1),
        (Fault::KeepsOnTimeout, "a timeout leads from 10 to 10, more than 1", 1),
        (Fault::ForgetsUndo, "less than", 2),
        (Fault::NeverGrows, "not twice as much", 0),
        (Fault::SendingMoves, "a departure changes", 1),
        // The window moves, and the next event shows that the copy has not kept it.
        (Fault::CopyBeginsAnew, "copies of the controller gave different bits", 2),
        // 10, 5, 2.5, 1.25, 0.625: four losses, each a timeout or a mark.
        (Fault::FallsBelowOne, "a timeout leads from 10 to 5, more than 1", 1),
    ];
    for (fault, message, events) in cases {
        let violation = checked(fault).unwrap_err();
        assert!(violation.message.contains(message), "{fault:?}: {violation}");
        assert_eq!(violation.story.len(), events, "{fault:?}: {violation}");
    }
}

#[test]
fn a_window_below_one_segment_is_found() {
    let contract = LossContract { timeout_window_max: f64::INFINITY, ..CONTRACT };
    let make =
        || -> Box<dyn Controller> { Box::new(Faulty { window: 10.0, before: 1.0, fault: Fault::FallsBelowOne }) };
    let violation = check(&make, &contract, 200).unwrap_err();
    assert_eq!(violation.message, "the window is 0.625");
    assert_eq!(violation.story.len(), 4, "{violation}");
}

#[test]
fn random_operations_find_registered_laws_conforming() {
    for row in registry::rows() {
        let settings = Settings::default_for(row);
        let outcome = check(&|| row.build(&settings), &row.loss_contract, 100);
        assert_eq!(outcome, Ok(()), "{}", row.name);
    }
}
