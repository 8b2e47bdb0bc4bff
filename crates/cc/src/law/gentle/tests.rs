use crate::controller::Cause;
use crate::testing::{Flow, assert_near};

#[test]
fn a_loss_takes_a_tenth() {
    let mut flow = Flow::new("gentle", &[("initial_window", "50")]);
    flow.lose(Cause::Congestion);
    assert_near(flow.window(), 45.0, 1e-12);
    flow.round();
    assert_near(flow.window(), 46.0, 0.01);
}
