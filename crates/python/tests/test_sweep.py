"""Sweeps: each row is the run that `run` gives, and an interval is the textbook's."""

import statistics

import pytest

import anabranch as ab

AXES = {"link.bottleneck.rate": ["5Mbit/s", "10Mbit/s"], "flow.*.cc.name": ["cubic", "reno"]}


def test_each_row_is_a_run(file):
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


def test_an_interval_is_students(file):
    text = file.read_text().replace('queue = { kind', 'error = { kind = "uniform", rate = 0.01 }\nqueue = { kind', 1)
    s = ab.sweep(ab.Scenario.parse(text), AXES, seeds=3)
    ci = s.ci("goodput", by=["cc"])
    assert ci.columns == ["cc", "runs", "mean", "sd", "low", "high"] and ci["cc"] == ["cubic", "reno"]
    rows = [row for row in s.table if row["cc"] == "cubic"]
    values = [row["flow.f0.goodput_bps"] + row["flow.f1.goodput_bps"] for row in rows]
    assert ci["runs"][0] == 6 and ci["mean"][0] == pytest.approx(statistics.mean(values))
    assert ci["sd"][0] == pytest.approx(statistics.stdev(values))
    # The 97.5 % quantile of Student's t with 5 degrees of freedom.
    half = 2.570582 * statistics.stdev(values) / 6**0.5
    assert ci["high"][0] - ci["mean"][0] == pytest.approx(half, rel=1e-3)
    assert len(s.ci("late")) == 4 and s.ci("goodput", by=["flow.*.cc.name"]).columns[0] == "cc"
    with pytest.raises(ab.Error, match="no axis is called `rat`; there are rate, cc"):
        s.ci("goodput", by=["rat"])
    with pytest.raises(ab.Error, match="no measure or gauge of a run is called `goodputs`"):
        s.ci("goodputs")


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
