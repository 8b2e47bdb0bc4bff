"""A small policy learns to share a link with `cubic`: two numbers, found by the cross-entropy method.

The policy moves the window by a step that falls with the queueing delay: log2(w) changes by a - b * log2(rtt / least rtt) each
100 ms. Many episodes run at once. At the end the learnt policy runs beside `cubic`, and so does a second `cubic`; with matplotlib
learned.png shows how it learnt, and both windows and queues. Needs gymnasium and numpy.
"""

import anabranch as ab

SCENARIO = """\
duration = "6s"

[[link]]
id = "bottleneck"
from = "a"
to = "b"
rate = "10Mbit/s"
delay = "10ms"
queue = { kind = "drop_tail", packets = 60 }

[[flow]]
id = "learner"
from = "a"
to = "b"
transport = "anabranch"
packet = "1500B"

[[flow]]
id = "rival"
from = "a"
to = "b"
transport = "anabranch"
cc = { name = "cubic" }
packet = "1500B"
"""

POPULATION, ELITE, GENERATIONS = 16, 4, 6


def learn():
    """The two numbers, and the mean reward of each generation."""
    import numpy as np

    from anabranch.gym import CongestionVectorEnv

    random = np.random.default_rng(1)
    env = CongestionVectorEnv(ab.Scenario.parse(SCENARIO), "learner", POPULATION)

    def scores(policies):
        """The mean reward of each policy over one episode, all at once."""
        observations, _ = env.reset(seed=1)
        sums, steps = np.zeros(POPULATION), np.zeros(POPULATION)
        over = np.zeros(POPULATION, dtype=bool)
        while not over.all():
            actions = np.clip(policies[:, 0] - policies[:, 1] * observations[:, 2], -1, 1)
            observations, rewards, _, truncated, _ = env.step(actions.astype(np.float32)[:, None])
            sums += np.where(over, 0.0, rewards)
            steps += ~over & ~truncated
            over |= truncated
        return sums / steps

    mean, spread, curve = np.array([0.0, 0.0]), np.array([0.5, 0.5]), []
    for generation in range(GENERATIONS):
        policies = mean + spread * random.standard_normal((POPULATION, 2))
        values = scores(policies)
        elite = policies[np.argsort(values)[-ELITE:]]
        mean, spread = elite.mean(axis=0), elite.std(axis=0) + 0.02
        curve.append(float(values.mean()))
        print(f"generation {generation}: mean {values.mean():6.2f}, best {values.max():6.2f}, a, b = {mean.round(2)}")
    return tuple(float(it) for it in mean), curve


class Learned(ab.Controller):
    """The same policy as a controller."""

    def __init__(self, a, b):
        self.a, self.b = a, b
        self.asked, self.sum, self.samples = None, 0.0, 0

    def on_ack(self, view, ack):
        import math

        if ack.rtt is not None:
            self.sum, self.samples = self.sum + ack.rtt, self.samples + 1
        if self.asked is None:
            self.asked = view.now
        if view.now - self.asked >= 0.1 and self.samples:
            queueing = math.log2(max(self.sum / self.samples / view.rtt_min, 1.0))
            step = min(max(self.a - self.b * queueing, -1.0), 1.0)
            self.window = max(self.window * 2.0**step, 1.0)
            self.asked, self.sum, self.samples = view.now, 0.0, 0

    def on_loss(self, view, loss):
        pass


def compare(a, b):
    """The run of the learnt policy beside `cubic`, and that of `cubic` in its place."""
    scenario = ab.Scenario.parse(SCENARIO)
    return {
        "learned": ab.run(scenario, cc={"learner": lambda: Learned(a, b)}),
        "cubic": ab.run(scenario, cc={"learner": "cubic"}),
    }


def draw(curve, runs):
    """Draws the learning curve, the windows and the queues."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise ab.Error("the figure needs matplotlib: pip install matplotlib") from missing
    figure = Figure(figsize=(8, 7), layout="constrained")
    learning, window, queue = figure.subplots(3)
    learning.plot(range(len(curve)), curve, marker="o")
    learning.set(xlabel="generation", ylabel="mean reward")
    for name, r in runs.items():
        for axes, series in ((window, "flow.learner.window"), (queue, "link.bottleneck.queue")):
            table = r.series(series)
            axes.step(table["time_s"], table[table.columns[1]], where="post", label=f"{name} beside cubic", linewidth=0.8)
    window.set(ylabel="window (packets)")
    queue.set(xlabel="time (s)", ylabel="queue (packets)")
    window.legend()
    return figure


def main():
    try:
        (a, b), curve = learn()
    except (ImportError, ab.Error) as missing:
        print(missing)
        return
    runs = compare(a, b)
    for name, r in runs.items():
        first, rival = r.flows.rows()
        print(
            f"{name:<8} {first['goodput_bps'] / 1e6:5.2f} Mbit/s beside {rival['goodput_bps'] / 1e6:5.2f} of cubic, "
            f"rtt {first['rtt_mean_s'] * 1e3:5.1f} ms, {first['retransmitted_packets']} packets sent again"
        )
    try:
        draw(curve, runs).savefig("learned.png")
    except ab.Error as missing:
        print(missing)


if __name__ == "__main__":
    main()
