"""What does a controller in Python cost?

Runs one flow over a fast link with controllers that override more or fewer hooks and change nothing, so that all runs are the same. Prints ACKs a second of
the whole simulation, in which links, both ends and the receiver's ACKs take most of the time; and what the controller adds to an ACK: the
processor time of a run beside that of a run whose controller is never called, over its ACKs. Of one that is called for every ACK this is all that
Python costs: making the arguments, the call, its body, and reading the window. Its inverse is how many ACKs it would carry if nothing else ran.
"""

import time

import anabranch as ab

SECONDS = 2


class Silent(ab.Controller):
    """Called only at the start: shows the cost of the simulation itself."""

    window = 400.0


class EveryRound(ab.Controller):
    """Called once a round trip."""

    window = 400.0

    def on_round(self, view, round):
        self.window = max(self.window, 400.0)


class EveryAck(ab.Controller):
    """Called for every ACK."""

    window = 400.0

    def on_ack(self, view, ack):
        self.window += 0 / self.window


def measured(law):
    """The number of ACKs, and the processor time of the run in seconds."""
    scenario = (
        ab.Scenario(duration=f"{SECONDS}s")
        .link("l", "a", "b", rate="1Gbit/s", delay="2ms", queue={"kind": "drop_tail", "packets": 100000})
        .flow("f", "a", "b", transport="anabranch", packet="1500B")
    )
    began = time.process_time()
    r = ab.run(scenario, cc={"f": law}, record=False)
    return r["flow.f.delivered_packets"], time.process_time() - began


def main():
    laws = (Silent, EveryRound, EveryAck)
    measured(Silent)
    # The laws take turns and the best round counts, because other programs use the processor, too.
    rounds = [[measured(law) for law in laws] for _ in range(7)]
    best = [min((run[index] for run in rounds), key=lambda it: it[1] / it[0]) for index in range(len(laws))]
    for law, (acks, seconds) in zip(laws, best):
        print(f"{law.__name__:<12}{acks:>10.0f} ACKs{acks / seconds / 1e6:>8.2f} M/s of the whole simulation")
    each = [seconds / acks for acks, seconds in best]
    for law, cost in zip(laws[1:], each[1:]):
        print(f"{law.__name__} costs {(cost - each[0]) * 1e9:.0f} ns an ACK beside Silent")
    called = each[laws.index(EveryAck)] - each[0]
    if called > 0:
        print(f"EveryAck carries {1e-6 / called:.2f} million ACKs a second and core, without the simulation around it")


if __name__ == "__main__":
    main()
