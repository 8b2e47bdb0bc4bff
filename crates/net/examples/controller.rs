//! A congestion controller of your own, in your own program: a transfer over loopback with it, and one with the default law.
//!
//! The law grows by two segments per round, and reduces its window by a fifth at a loss. A law for the project itself is a file
//! in `anabranch-cc` instead: see docs/adding-a-congestion-controller.md.

#![expect(clippy::print_stdout, reason = "it is what the example shows")]

use std::error::Error;
use std::time::Instant;

use anabranch::cc::registry::{Law, LossContract, LossResponse, NoSettings};
use anabranch::cc::{Ack, Controller, Limit, Loss, PathView, Phase, Row, Settings, Signal};
use anabranch::{Config, Endpoint, SecretKey};
use bytes::Bytes;

/// The registry entry of the law: its constructor and its properties.
static STEADY: Row = Row {
    name: "steady",
    summary: "two segments more a round, a fifth less on loss",
    citation: "none",
    loss_contract: LossContract { shrinks_above: 1.0, timeout_window_max: 1.0, loss: LossResponse::Shrinks },
    law: &Law { defaults: NoSettings, make: |_| Box::new(Steady { window: 10.0, before: 10.0 }) },
};

/// The window of one path in segments, and its value before the latest loss.
#[derive(Debug)]
struct Steady {
    window: f64,
    before: f64,
}

impl Controller for Steady {
    fn on_ack(&mut self, _: &PathView, ack: &Ack) {
        if ack.phase == Phase::Open && ack.limit == Limit::Window {
            self.window += 2.0 * ack.newly_acked / self.window;
        }
    }

    fn on_loss(&mut self, _: &PathView, loss: &Loss) {
        self.before = self.window;
        self.window = if loss.signal == Signal::Timeout { 1.0 } else { (0.8 * self.window).max(1.0) };
    }

    /// The loss was spurious.
    fn on_undo(&mut self, _: &PathView) {
        self.window = self.window.max(self.before);
    }

    fn window(&self) -> f64 {
        self.window
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let default = Config::default();
    for law in [Settings::default_for(&STEADY), default.law.clone()] {
        let name = law.row().name;
        let begin = Instant::now();
        let window = transfer(Config { law, ..default.clone() }, 50 << 20).await?;
        println!("{name}: 50 MiB in {:.2?}, at last with a window of {window:.0} segments", begin.elapsed());
    }
    Ok(())
}

async fn transfer(config: Config, bytes: usize) -> Result<f64, Box<dyn Error>> {
    let server = Endpoint::server("127.0.0.1:0".parse()?, &SecretKey::generate()?, config.clone())?;
    let client = Endpoint::client(config)?;
    let ticket = server.ticket();
    let (there, here) = tokio::join!(client.connect(&ticket), server.accept());
    let (there, here) = (there?, here.ok_or("the socket is gone")?);
    let read = tokio::spawn(async move { here.accept_message(usize::MAX).await });
    there.send_message(Bytes::from(vec![7; bytes])).await?;
    let read = read.await??;
    assert_eq!(read.len(), bytes, "all of it");
    Ok(there.paths().first().map_or(0.0, |path| path.report.window))
}
