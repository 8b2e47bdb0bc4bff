"""Sweeps: each row equals the result of `run` with any executor, and an interval is the textbook's."""

import concurrent.futures
import multiprocessing
import statistics

import pytest

import anabranch as ab

AXES = {"link.bottleneck.rate": ["5Mbit/s", "10Mbit/s"], "flow.*.cc.name": ["cubic", "reno"]}


@pytest.fixture
def lossy(file):
    """With losses by chance, so that seeds differ."""
    text = file.read_text().replace("queue = { kind", 'error = { kind = "uniform", rate = 0.01 }\nqueue = { kind', 1)
    file.write_text(text)
    return file


def test_each_row_is_a_run(lossy):
    file = lossy
    s = ab.sweep(file, AXES, seeds=2)
    table = s.table
    assert s.axes == ["rate", "cc"] and table.columns[:4] == ["rate", "cc", "seed", "hash"]
    assert len(s) == len(table) == 8
    row = table.rows()[5]
    assert (row["rate"], row["cc"], row["seed"]) == ("10Mbit/s", "cubic", 2)
    alone = ab.run(file, seed=2, set={"link.bottleneck.rate": "10Mbit/s"}, cc={"*": "cubic"})
    assert row["hash"] == alone.hash and row["late"] == alone.measures["late"]
    assert row["flow.f0.goodput_bps"] == alone["flow.f0.goodput_bps"]
    assert table.metadata["version"] == ab.__version__ and "[[axis]]" in table.metadata["scenario"]
    assert ab.sweep(file, AXES, seeds=2, jobs=1).table.to_dict() == table.to_dict()


def test_a_point_without_chance_is_run_once(file):
    assert ab.sweep(file, AXES, seeds=5).table["seed"] == [1, 1, 1, 1]


def test_an_interval_is_students(lossy):
    s = ab.sweep(ab.Scenario.parse(lossy.read_text()), AXES, seeds=3)
    ci = s.ci("goodput", by=["cc"])
    assert ci.columns == ["cc", "runs", "mean", "sd", "low", "high"] and ci["cc"] == ["cubic", "reno"]
    rows = [row for row in s.table if row["cc"] == "cubic"]
    values = [row["flow.f0.goodput_bps"] + row["flow.f1.goodput_bps"] for row in rows]
    assert ci["runs"][0] == 6 and ci["mean"][0] == pytest.approx(statistics.mean(values))
    assert ci["sd"][0] == pytest.approx(statistics.stdev(values))
    # The 97.5 % quantile of Student's t with 5 degrees of freedom.
    half = 2.570582 * statistics.stdev(values) / 6**0.5
    assert ci["high"][0] - ci["mean"][0] == pytest.approx(half, rel=1e-3)
    # Of the run itself, as of each flow.
    assert s.ci("jain_index", by=["cc"])["mean"][0] == pytest.approx(statistics.mean(row["jain_index"] for row in rows))
    assert len(s.ci("late")) == 4 and s.ci("goodput", by=["flow.*.cc.name"]).columns[0] == "cc"
    with pytest.raises(ab.Error, match="no axis is called `rat`; there are rate, cc"):
        s.ci("goodput", by=["rat"])
    with pytest.raises(ab.Error, match="no measure or gauge of a run is called `goodputs`"):
        s.ci("goodputs")


def test_an_interval_does_not_go_below_zero_where_no_value_can(lossy):
    """Of two values, one near zero, Student's interval reaches far below it: t is 12.7 with one degree of freedom."""
    scenario = ab.Scenario.parse(lossy.read_text()).measure(lead="flow.f0.goodput_bps - flow.f1.goodput_bps")
    s = ab.sweep(scenario, {"flow.f1.start": ["4.9s", "1s"]})
    for measure, is_cut in (("flow.f1.goodput_bps", True), ("lead", False)):
        ci = s.ci(measure, by=[])
        half = 12.706205 * ci["sd"][0] / 2**0.5
        low = ci["mean"][0] - half
        assert ci["runs"] == [2] and low < 0 and ci["high"][0] == pytest.approx(ci["mean"][0] + half, rel=1e-4)
        assert ci["low"] == [0.0 if is_cut else pytest.approx(low, rel=1e-4)]


def test_a_table_is_written_whole_or_not_at_all(lossy, tmp_path):
    s = ab.sweep(lossy, AXES, seeds=2)
    path = tmp_path / "runs.csv"
    s.write(path)
    lines = path.read_text().splitlines()
    facts = [line for line in lines if line.startswith("#")]
    assert f"# version: {ab.__version__}" in facts and "# seeds: 2" in facts and "# scenario: [[axis]]" in facts
    head, *rows = lines[len(facts) :]
    assert head.split(",") == s.table.columns and len(rows) == 8
    # As floats are printed, so that they are read again to the bit.
    assert [float(field) for field in rows[3].split(",")[-3:]] == [s.table[name][3] for name in s.table.columns[-3:]]
    with pytest.raises(ab.Error, match=r"runs.txt: a table is written as .parquet or .csv"):
        s.write(tmp_path / "runs.txt")
    with pytest.raises(FileNotFoundError):
        s.write(tmp_path / "no" / "runs.csv")
    assert sorted(it.name for it in tmp_path.iterdir()) == ["runs.csv", "scenario.toml"]


def test_a_parquet_file_has_the_table_and_what_was_swept(lossy, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    s = ab.sweep(lossy, AXES, seeds=2)
    s.write(tmp_path / "runs.parquet")
    table = parquet.read_table(tmp_path / "runs.parquet")
    assert table.to_pydict() == s.table.to_dict()
    metadata = {key.decode(): text.decode() for key, text in table.schema.metadata.items()}
    assert metadata == s.table.metadata and metadata["seeds"] == "2"


def test_numbers_stay_numbers_and_values_may_have_names(file):
    s = ab.sweep(file, {"link.bottleneck.queue.packets": [10, 40]})
    assert s.table["packets"] == [10.0, 40.0]
    s = ab.sweep(file, {"link.bottleneck.rate": {"slow": "5Mbit/s", "fast": "10Mbit/s"}})
    assert s.table["rate"] == ["slow", "fast"]
    s = ab.sweep(file, {"flow.f0.cc.name": ["cubic", "reno"], "flow.f1.cc.name": ["cubic", "reno"]})
    assert s.axes == ["flow.f0.cc.name", "flow.f1.cc.name"]
    assert s.table["flow.f1.cc.name"] == ["cubic", "reno", "cubic", "reno"]


def test_mistakes_are_found_before_anything_runs(file):
    with pytest.raises(ab.ScenarioError, match="unknown key `quque`"):
        ab.sweep(file, {"link.bottleneck.quque": [1]})
    with pytest.raises(ValueError, match="seeds is 0"):
        ab.sweep(file, AXES, seeds=0)
    with pytest.raises(ab.ScenarioError, match="is there twice"):
        ab.sweep(file, {"link.bottleneck.rate": ["5Mbit/s", "5Mbit/s"]})

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ab.sweep(file, AXES, progress=stop)


class Later:
    """A future that can only be polled, as submitit's."""

    def __init__(self, work):
        self.work, self.asked = work, 0

    def done(self):
        self.asked += 1
        return self.asked > 2

    def result(self):
        return self.work()

    def cancel(self):
        pass


class Backwards:
    """A foreign executor: it has its own type of future, and runs a task when its future is polled."""

    def submit(self, function, *arguments):
        return Later(lambda: function(*arguments))


def processes(workers=2):
    # As on Windows and macOS: a new interpreter, which has only what it was sent.
    return concurrent.futures.ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))


GRID = {"set": {"flow.f1.start": "2s"}, "seeds": 3}


def test_the_table_is_the_same_whoever_runs_it(lossy, monkeypatch):
    monkeypatch.setattr("anabranch._executors.LOOK_EACH_S", 0.001)
    alone = ab.sweep(lossy, AXES, **GRID)
    assert len(alone) == 12 and len(set(alone.table["hash"])) == 12
    for executor in (concurrent.futures.ThreadPoolExecutor(1), Backwards()):
        told = []
        s = ab.sweep(lossy, AXES, executor=executor, progress=lambda *it: told.append(it), **GRID)
        assert s.table.to_dict() == alone.table.to_dict() and s.table.metadata == alone.table.metadata
        assert told[0] == (0, 12) and (12, 12) in told
    with processes() as pool:
        assert ab.sweep(lossy, AXES, executor=pool, jobs=2, **GRID).table.to_dict() == alone.table.to_dict()
    with pytest.raises(TypeError, match="is no executor: it has no `submit`"):
        ab.sweep(lossy, AXES, executor=3)


def test_after_a_killed_worker_only_what_is_missing_is_run(lossy, tmp_path):
    whole = ab.sweep(lossy, AXES, rows=tmp_path / "whole.csv", **GRID)
    rows = tmp_path / "rows.csv"
    with processes() as pool:

        def kill(done, total):
            if done >= 2:
                for process in list((pool._processes or {}).values())[:1]:
                    process.kill()

        error = r"of 12 runs failed, the first with rate = \d+Mbit/s, cc = \w+ and seed \d: Broken"
        with pytest.raises(ab.Error, match=error):
            ab.sweep(lossy, AXES, executor=pool, rows=rows, progress=kill, **GRID)
    told = []
    with processes() as pool:
        again = ab.sweep(lossy, AXES, executor=pool, rows=rows, progress=lambda *it: told.append(it), **GRID)
    assert 0 < told[0][1] <= 10, "what was done is kept"
    assert again.table.to_dict() == whole.table.to_dict()
    assert rows.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    # A seed more is one run more at each of four points.
    told.clear()
    more = ab.sweep(lossy, AXES, rows=rows, set=GRID["set"], seeds=4, progress=lambda *it: told.append(it))
    assert told[-1] == (4, 4) and len(more) == 16


class Faulty(concurrent.futures.ThreadPoolExecutor):
    """Loses each chunk that has the second seed of the third point."""

    def submit(self, function, task, places, jobs):
        if (2, 1) in places:
            return super().submit(lambda: 1 // 0)
        return super().submit(function, task, places, jobs)


def test_a_run_that_fails_is_named_and_stops_no_other(lossy, tmp_path):
    rows = tmp_path / "rows.csv"
    error = r"^1 of 12 runs failed, the first with rate = 10Mbit/s, cc = cubic and seed 2: ZeroDivisionError"
    with pytest.raises(ab.SweepError, match=error) as raised:
        ab.sweep(lossy, AXES, executor=Faulty(1), rows=rows, **GRID)
    (which, because), = raised.value.failed
    assert which == "with rate = 10Mbit/s, cc = cubic and seed 2" and "ZeroDivisionError" in because
    others = [(row["rate"], row["cc"], row["seed"]) for row in raised.value.sweep.table]
    assert len(others) == 11 and ("10Mbit/s", "cubic", 2) not in others
    told = []
    ab.sweep(lossy, AXES, rows=rows, progress=lambda *it: told.append(it), **GRID)
    assert told[-1] == (1, 1)


class Adds(ab.Controller):
    """Reno without slow start."""

    step = 1

    def on_ack(self, view, ack):
        self.window += self.step / self.window


class AddsMore(Adds):
    step = 4


def test_a_sweep_of_classes_is_the_runs_of_these_classes(lossy):
    s = ab.sweep(lossy, {"flow.f0.cc": [Adds, AddsMore, "cubic", {"name": "fast", "alpha": 5}]}, seeds=2, cc={"f1": Adds})
    assert s.axes == ["cc"] and s.table["cc"][::2] == ["Adds", "AddsMore", "cubic", "fast,alpha=5"]
    for index, law in enumerate([Adds, AddsMore, "cubic", {"name": "fast", "alpha": 5}]):
        alone = ab.run(lossy, seed=2, cc={"f0": law, "f1": Adds})
        assert s.table["hash"][2 * index + 1] == alone.hash
    assert ab.sweep(lossy, {"flow.*.cc": {"more": AddsMore}}, seeds=2).table["cc"] == ["more", "more"]
    with pytest.raises(ab.ScenarioError, match="flow.f0.cc.name: a law written in Python belongs to the key `cc`"):
        ab.sweep(lossy, {"flow.f0.cc.name": [Adds]})


def test_kept_rows_belong_to_one_class_of_a_name(lossy, tmp_path):
    def runs(law):
        told = []
        ab.sweep(lossy, {"flow.f0.cc": {"it": law}}, rows=tmp_path / "rows.csv", progress=lambda *it: told.append(it))
        return told[-1][1]

    def law(step):
        return type("Adds", (Adds,), {"step": step})

    assert [runs(law(step)) for step in (1, 1, 2, 2, 1)] == [1, 0, 1, 0, 0]


def test_a_class_that_fails_fails_alone(lossy):
    class Fails(Adds):
        def on_loss(self, view, loss):
            raise ValueError("no losses here")

    with pytest.raises(ab.SweepError, match="1 of 2 runs failed") as error:
        ab.sweep(lossy, {"flow.f0.cc": [Fails, Adds]})
    (place, because), = error.value.failed
    assert "cc = Fails" in place and "flow `f0`: ValueError: no losses here (" in because and "test_sweep.py, line" in because
    assert error.value.sweep.table["cc"] == ["Adds"]


def test_a_digest_is_that_of_all_that_a_law_uses():
    from anabranch._digest import digest

    def law(text, **names):
        names = {"ab": ab, **names}
        exec(text, names)
        return names["Mine"]

    text = "class Mine(ab.Controller):\n  gain = 2\n  def on_ack(self, view, ack):\n    self.window += half(1)\ndef half(n): return n / 2"
    same = "# Another comment.\n\n" + text.replace("n):", "n):\n  ")
    assert digest(law(text)) == digest(law(text)) == digest(law(same))
    changes = [("/ 2", "/ 3"), ("/ 2", "* 2"), ("gain = 2", "gain = 3"), ("half(1)", "half(2)"), ("+=", "-=")]
    others = [text.replace(before, after) for before, after in changes]
    assert len({digest(law(it)) for it in [text, *others]}) == 6
    cell = "def make(gain):\n  class Mine(ab.Controller):\n    def on_ack(self, view, ack): self.window += gain\n  return Mine\nMine = make(GAIN)"
    assert digest(law(cell, GAIN=1)) != digest(law(cell, GAIN=2))
    base = "class Base(ab.Controller):\n  def on_ack(self, view, ack): self.window += 1\nclass Mine(Base): pass"
    assert digest(law(base)) != digest(law(base.replace("+= 1", "+= 2")))
    # Two that name each other.
    circle = "class Mine(ab.Controller):\n  def on_ack(self, view, ack): Other()\nclass Other:\n  def f(self): Mine()"
    assert digest(law(circle)) == digest(law(circle)) != digest(law(circle.replace("f(self)", "g(self)")))
    assert digest(lambda: Adds()) != digest(lambda: AddsMore())
    nested = None
    for _ in range(10_000):
        nested = [nested]
    with pytest.raises(ab.Error, match="the law `Mine` are nested too deep"):
        digest(type("Mine", (ab.Controller,), {"data": nested}))
