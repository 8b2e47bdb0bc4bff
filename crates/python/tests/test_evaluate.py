"""A law judged by the criteria of RFC 9743, as the command line judges it."""

import json

import pytest

import anabranch as ab


def test_a_law_of_delay_starves_beside_a_full_buffer():
    told = []
    e = ab.evaluate("vegas", against=["cubic"], quick=True, progress=lambda done, total: told.append((done, total)))
    assert (e.law, e.against) == ("vegas", ["cubic"]) and told[-1][0] == told[-1][1]
    rows = {row["section"]: row for row in e.criteria}
    # At rest Vegas has 2 to 4 packets in the queue, of which CUBIC fills eight bandwidth-delay products.
    assert rows["5.2"]["ruling"] == "missed" and "(buffer 8)" in rows["5.2"]["sentence"]
    # It is about the text of a specification, which no run judges.
    assert rows["5.3.1"]["ruling"] == "not_judged" and rows["5.3.1"]["claims"] == 0
    assert e.missed == e.criteria["ruling"].count("missed") > 0
    for section, row in rows.items():
        claims = [claim for claim in e.claims if claim["item"] == section]
        assert len(claims) == row["claims"]
        assert sum(claim["verdict"] == "reproduced" for claim in claims) == row["met"]
    document = e.summary()
    assert document["schema"] == "anabranch-eval/1" and document["outcome"]["hash"] == e.hash
    assert document["command"] == "anabranch eval --cc vegas --against cubic --quick" and json.dumps(document)
    assert e.report().startswith("<!DOCTYPE html>") and "RFC 9743" in e.report()
    for name, text in e.scenarios.items():
        ab.Scenario.parse(text, name).check()
    assert "vegas beside cubic" in repr(e) and "5.2" in e._repr_html_()


def test_mistakes_are_named_and_it_can_be_stopped():
    with pytest.raises(ab.Error, match="vegsa.*did you mean `vegas`"):
        ab.evaluate("vegsa")
    with pytest.raises(ValueError, match="seeds is 0"):
        ab.evaluate("vegas", seeds=0)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ab.evaluate("vegas", against=["cubic"], quick=True, progress=stop)


def test_field_same_networks_for_every_law():
    told = []
    asked = dict(field=True, draws=3, seed=7, family=["policer", "short"])
    f = ab.evaluate("reno", against=["cubic"], progress=lambda done, total: told.append((done, total)), **asked)
    # Two laws on two families of three draws, as the command line runs them.
    assert (f.law, f.against, told[-1]) == ("reno", ["cubic"], (12, 12))
    assert f.summary()["command"] == "anabranch eval --cc reno --against cubic --field --draws 3 --seed 7 --family policer,short"
    assert ab.evaluate("reno", against=["cubic"], jobs=1, **asked).hash == f.hash
    used = [row["value"] for row in f.figures if (row["family"], row["law"], row["figure"]) == ("policer", "reno", "used")]
    worst = [row for row in f.worst if (row["family"], row["law"]) == ("policer", "reno")]
    assert [row["value"] for row in worst] == sorted(used) and worst[0]["scenario"] == f"policer-{worst[0]['draw']}-reno.toml"
    ab.Scenario.parse(f.scenarios[worst[0]["scenario"]]).check()
    # The mean of the statistics is that of the draws.
    mean = [
        row["value"]
        for row in f.statistics
        if (row["family"], row["law"], row["figure"], row["statistic"]) == ("policer", "reno", "used", "mean")
    ]
    assert mean == [pytest.approx(sum(used) / 3)]
    assert {row["name"] for row in f.draws if row["family"] == "short cubic"} >= {"rate_mbit_per_s", "bytes"}
    assert f.report().startswith("<!DOCTYPE html>") and "reno, cubic" in repr(f) and "policer" in f._repr_html_()


def test_field_mistakes_are_named():
    with pytest.raises(ValueError, match="no family `polcier`.*policer"):
        ab.evaluate("reno", field=True, family=["polcier"])
    with pytest.raises(ValueError, match="need field=True"):
        ab.evaluate("reno", draws=3)
    with pytest.raises(ValueError, match="draws is 0"):
        ab.evaluate("reno", field=True, draws=0)


class Careful(ab.Controller):
    """Keeps two segments in the queue, as Vegas does."""

    def on_round(self, view, round):
        if view.rtt_min is not None:
            queued = self.window * (1 - view.rtt_min / view.rtt_smoothed)
            self.window = max(1, self.window + (1 if queued < 2 else -1))


def test_a_class_is_evaluated_as_a_law_of_the_registry():
    e = ab.evaluate(Careful, against=["cubic"], quick=True, seeds=1)
    rows = {row["section"]: row for row in e.criteria}
    assert (e.law, e.against) == ("Careful", ["cubic"])
    # A law of delay starves beside a full buffer, whoever wrote it.
    assert rows["5.2"]["ruling"] == "missed" and "(buffer 8)" in rows["5.2"]["sentence"]
    document = e.summary()
    assert document["command"] == 'anabranch.evaluate(Careful, against=["cubic"], quick=True, seeds=1)'
    assert document["laws"][0]["summary"] == "Keeps two segments in the queue, as Vegas does."
    assert 'cc = { plugin = "Careful" }' in e.scenarios["alone"] and "Careful" in e.report()
    assert ab.evaluate(Careful, against=["cubic"], quick=True, seeds=1, jobs=1).hash == e.hash


def test_a_class_beside_a_law_and_a_module_beside_both(wasm, tmp_path):
    path = tmp_path / "mine.wasm"
    path.write_bytes(wasm(8))
    e = ab.evaluate("reno", against=[Careful, str(path)], quick=True, seeds=1)
    assert e.against == ["Careful", "mine.wasm"]
    assert 'plugin = "mine.wasm"' in e.scenarios["beside-mine.wasm"]


def test_a_class_that_fails_raises_what_it_raised():
    class Broken(ab.Controller):
        def on_ack(self, view, ack):
            raise LookupError("nothing")

    with pytest.raises(LookupError, match="nothing"):
        ab.evaluate(Broken, quick=True)
    with pytest.raises(TypeError, match="5 is no law"):
        ab.evaluate(5)
    other = type("Careful", (ab.Controller,), {"on_round": lambda self, view, round: None})
    with pytest.raises(ab.Error, match="two different laws are called `Careful`; give one of them another `__name__`"):
        ab.evaluate(Careful, against=[other])


def test_field_of_class_has_call_that_runs_it_again():
    f = ab.evaluate(Careful, against=["cubic"], field=True, draws=2, family=["policer"])
    assert f.summary()["command"] == (
        'anabranch.evaluate(Careful, against=["cubic"], field=True, draws=2, seed=1, family=["policer"])'
    )
    assert all(0 < row["value"] < 1 for row in f.figures if row["figure"] == "used")
