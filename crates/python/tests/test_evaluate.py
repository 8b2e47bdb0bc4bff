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
