"""Controllers in Python: the same hooks, the same numbers as the same law in Rust."""

import pytest

import anabranch as ab


class Mine(ab.Controller):
    def on_ack(self, view, ack):
        self.window += 1 / self.window


class Reno(ab.Controller):
    """Standard TCP, hook by hook as crates/cc/src/law/reno.rs has it."""

    reduction = "proportional"

    def __init__(self):
        self.ssthresh = float("inf")
        self.before = None

    def on_ack(self, view, ack):
        if ack.phase == "open" and ack.limit == "window":
            below = min(max(self.ssthresh - self.window, 0.0), ack.newly_acked)
            self.window += below
            self.window += (ack.newly_acked - below) / self.window

    def on_loss(self, view, loss):
        self.before = (self.window, self.ssthresh)
        self.ssthresh = max(self.window / 2, 2.0)
        self.window = 1.0 if loss.signal == "timeout" else min(self.window, self.ssthresh)

    def on_undo(self, view):
        if self.before:
            self.window, self.ssthresh = max(self.window, self.before[0]), max(self.ssthresh, self.before[1])
            self.before = None

    def on_restart(self, view, restart):
        if restart == "idle":
            self.window = min(self.window, 10.0)
        elif restart == "path_changed":
            self.window, self.ssthresh = 10.0, float("inf")

    def gauges(self):
        return {"window": self.window, "ssthresh": self.ssthresh}


def test_a_class_drives_a_flow(file):
    r = ab.run(file, cc={"f1": Mine})
    assert r.flows["cc"] == ["cubic", "Mine"]
    assert r["flow.f1.goodput_bps"] > 1e5


def test_a_law_in_python_is_the_law_in_rust_to_the_bit(file):
    mine, theirs = ab.run(file, cc={"*": Reno}), ab.run(file, cc={"*": "reno"})
    assert mine.hash == theirs.hash
    assert mine.series("flow.f0.ssthresh").to_dict() == theirs.series("flow.f0.ssthresh").to_dict()


def test_a_controller_may_be_made_by_anything(file):
    class Fixed(ab.Controller):
        def __init__(self, window):
            self.window = window

        def on_loss(self, view, loss):
            pass

        def on_restart(self, view, restart):
            pass

    r = ab.run(file, cc={"f1": lambda: Fixed(4.0)})
    assert set(r.series("flow.f1.window")["window"]) == {4.0}
    assert r.flows["cc"][1] == "<lambda>"


def test_a_class_that_hears_rounds_hears_all_of_them(file):
    heard = []

    class Listener(ab.Controller):
        def on_round(self, view, round):
            heard.append((round.count, view.now))
            self.window += 1

    ab.run(file, cc={"f1": Listener})
    counts, times = zip(*heard)
    assert list(counts) == list(range(counts[0], counts[0] + len(counts)))
    assert list(times) == sorted(times) and 1.0 <= times[0] and times[-1] <= 5.0


def test_hooks_hear_what_the_seam_says(file):
    acks, losses, restarts = [], [], []

    class Listener(Mine):
        def on_ack(self, view, ack):
            super().on_ack(view, ack)
            acks.append((view, ack))

        def on_loss(self, view, loss):
            before = self.window
            super().on_loss(view, loss)
            losses.append((loss, before, self.window))

        def on_restart(self, view, restart):
            super().on_restart(view, restart)
            restarts.append(restart)

    ab.run(file, cc={"f1": Listener})
    assert restarts[0] == "established"
    assert len(acks) > 100 and losses
    # What was kept has not changed since.
    times = [view.now for view, _ in acks]
    assert times == sorted(times) and times[0] < times[-1]
    # 20 ms there and back, and a queue of 40 packets of 1.2 ms besides.
    rtts = [ack.rtt for _, ack in acks if ack.rtt is not None]
    assert 0.020 <= min(rtts) and max(rtts) <= 0.020 + 43 * 0.0012
    view, ack = acks[-1]
    assert 1400 < view.mss <= 1460 and ack.newly_acked > 0
    assert view.rtt_min == min(rtts) and ack.limit in ("window", "application") and ack.phase in ("open", "recovery")
    assert ack.departure.time < ack.arrival <= view.now
    for loss, before, after in losses:
        assert loss.signal in ("dup_acks", "timeout", "ecn") and loss.cause in ("congestion", "random", "unknown")
        assert after == (1.0 if loss.signal == "timeout" else min(before, max(before / 2, 2.0)))


def test_exception_in_hook_ends_run(file):
    class Broken(ab.Controller):
        def on_round(self, view, round):
            raise ZeroDivisionError("of mine")

    with pytest.raises(ZeroDivisionError, match="of mine"):
        ab.run(file, cc={"f1": Broken})


@pytest.mark.parametrize("window", [0.5, float("nan"), float("inf"), -3.0])
def test_a_window_that_is_none_is_refused(file, window):
    class Bad(ab.Controller):
        def on_round(self, view, round):
            self.window = window

    with pytest.raises(ab.ControllerError, match=r"Bad.window is .* after on_round at .* s; it is to be a finite"):
        ab.run(file, cc={"f1": Bad})


def test_mistakes_of_a_class_are_named(file):
    class Misspelt(ab.Controller):
        def on_acks(self, view, ack):
            pass

    with pytest.raises(ab.ControllerError, match="Misspelt.on_acks is no hook; there are on_sent, on_ack"):
        ab.run(file, cc={"f1": Misspelt})

    class Reduced(ab.Controller):
        reduction = "slowly"

    with pytest.raises(ab.ControllerError, match="Reduced.reduction is 'slowly'; write"):
        ab.run(file, cc={"f1": Reduced})
    with pytest.raises(TypeError, match="makes no controller"):
        ab.run(file, cc={"f1": dict})
    sack = {"id": "f1", "from": "a", "to": "b", "transport": "ns2/sack"}
    with pytest.raises(ab.ScenarioError, match="driven by `ns2/sack`"):
        ab.run(file, set={"flow.f1": sack}, cc={"f1": Mine})


def test_a_rate_paces(file):
    class Paced(ab.Controller):
        def __init__(self):
            self.window = 100.0
            self.pacing_rate = 1e6

        def on_loss(self, view, loss):
            pass

        def on_restart(self, view, restart):
            pass

    assert 0.9e6 < ab.run(file, cc={"f1": Paced})["flow.f1.throughput_bps"] < 1.1e6


def test_check_passes_what_conforms_and_tells_what_does_not():
    ab.check(Reno)
    ab.check(Mine)

    class Greedy(ab.Controller):
        def on_ack(self, view, ack):
            self.window += ack.newly_acked

        def on_loss(self, view, loss):
            self.window += 1

    with pytest.raises(ab.ControllerError, match=r"Greedy: a (loss|timeout).*; after "):
        ab.check(Greedy)

    class Still(ab.Controller):
        pass

    with pytest.raises(ab.ControllerError, match="not twice as much"):
        ab.check(Still)
    with pytest.raises(ab.ControllerError, match='write "shrinks"'):
        ab.check(Reno, loss="never")

    class Broken(Reno):
        def on_round(self, view, round):
            raise ZeroDivisionError("of mine")

    with pytest.raises(ZeroDivisionError):
        ab.check(Broken)
