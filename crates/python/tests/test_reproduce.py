"""The papers' claims, as the command line judges them."""

import json

import pytest
from conftest import ROOT

import anabranch as ab

EXPERIMENTS = ROOT / "experiments"


def test_a_paper_is_judged():
    told = []
    r = ab.reproduce("rrfast-2017", experiments=EXPERIMENTS, seeds=2, progress=lambda done, total: told.append(done))
    claims = r.claims
    assert set(claims["paper"]) == {"rrfast-2017"} and len(claims) > 5
    document = r.summary()
    assert "reproduced" in claims["verdict"]
    assert [claim["measured"]["ours"]["value"] for claim in document["claims"]] == claims["value"]
    assert document["hash"] == r.hash and len(document["claims"]) == len(claims)
    assert json.dumps(document) and told[-1] == max(told)
    assert r.report().startswith("<!DOCTYPE html>") and "rrfast-2017" in repr(r)
    assert r.missed == sum(claim["is_missed"] for claim in document["claims"])


def test_mistakes_are_named_and_it_can_be_stopped(tmp_path):
    with pytest.raises(ab.ScenarioError, match="there is no paper `ctcp-2091`; did you mean `ctcp-2019`"):
        ab.reproduce("ctcp-2091", experiments=EXPERIMENTS)
    with pytest.raises(ab.ScenarioError, match="there are no experiments"):
        ab.reproduce(experiments=tmp_path)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ab.reproduce("analytic", experiments=EXPERIMENTS, progress=stop)
