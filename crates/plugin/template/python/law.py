"""@NAME@: Reno, to begin with. Change it into your own law."""

from pathlib import Path

import anabranch as ab


class Law(ab.Controller):
    """Times are in seconds, windows in segments. An unknown value is None."""

    ssthresh = float("inf")
    before_loss = (1.0, 2.0)
    reduction = "proportional"

    def on_ack(self, view, ack):
        if ack.phase == "recovery" or ack.limit == "application":
            return
        below = min(max(self.ssthresh - self.window, 0.0), ack.newly_acked)
        window = self.window + below
        self.window = window + (ack.newly_acked - below) / window

    def on_loss(self, view, loss):
        self.before_loss = (self.window, self.ssthresh)
        self.ssthresh = max(self.window / 2, 2.0)
        self.window = 1.0 if loss.signal == "timeout" else min(self.window, self.ssthresh)

    def on_undo(self, view):
        self.window = max(self.window, self.before_loss[0])
        self.ssthresh = max(self.ssthresh, self.before_loss[1])

    def gauges(self):
        return {"window": self.window, "ssthresh": self.ssthresh}


if __name__ == "__main__":
    ab.check(Law)
    run = ab.run(Path(__file__).with_name("scenario.toml"), cc={"mine": Law})
    for flow, goodput in zip(run.flows["id"], run.flows["goodput_bps"]):
        print(f"{flow:>8} {goodput / 1e6:6.2f} Mbit/s")
