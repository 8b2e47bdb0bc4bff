"""Scenarios are read, built and written without loss."""

import json

import pytest
from conftest import ROOT

import anabranch as ab

FILES = sorted(file for file in (ROOT / "experiments").glob("*/*.toml") if file.parent.name != "generated")


def ordered(scenario):
    """With the order of keys, which is that of rows and axes."""
    return json.dumps(scenario.to_dict())


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_experiment_goes_there_and_back(path):
    read = ab.Scenario.read(path)
    assert read.to_toml() == path.read_text()
    again = ab.Scenario.from_dict(read.to_dict())
    assert ordered(again) == ordered(read)
    # What it extends lies beside it.
    written = ab.Scenario.parse(again.to_toml(), str(path))
    assert ordered(written) == ordered(read)
    assert written == read


def built():
    return (
        ab.Scenario(duration="5s", seed=3)
        .link("bottleneck", "a", "b", rate="10Mbit/s", delay="10ms", queue={"kind": "drop_tail", "packets": 40})
        .flow("f0", "a", "b", transport="anabranch", cc={"name": "cubic"}, packet="1500B")
        .measure(goodput="flow.f0.goodput_bps")
    )


def test_a_scenario_that_is_built_runs_as_its_file_does(tmp_path):
    scenario = built()
    scenario.check()
    scenario.write(tmp_path / "built.toml")
    run, of_file = ab.run(scenario), ab.run(tmp_path / "built.toml")
    assert run.hash == of_file.hash and run.seed == 3
    assert 8e6 < run.measures["goodput"] < 1e7
    assert ab.Scenario.read(tmp_path / "built.toml") == scenario
    assert repr(scenario) == "<anabranch.Scenario scenario: 1 links, 1 flows>"


def test_any_list_of_a_file_can_be_added_to():
    scenario = built().add("axis", name="rate", values={"fast": {"link.bottleneck.rate": "20Mbit/s"}})
    scenario.check()
    assert scenario.to_dict()["axis"][0]["values"] == {"fast": {"link.bottleneck.rate": "20Mbit/s"}}


def test_mistakes_are_found_with_their_place():
    with pytest.raises(ab.ScenarioError, match=r"scenario:\d+:\d+: "):
        built().flow("f1", "a", "c", transport="anabranch", packet="1500B").check()
    with pytest.raises(ab.ScenarioError, match="unknown key `colour`"):
        ab.run(built().link("l", "b", "c", colour="red"))
    with pytest.raises(ab.ScenarioError, match=r"mine:1:\d+: not TOML"):
        ab.Scenario.parse("duration =", name="mine")
    with pytest.raises(TypeError, match="no object"):
        built().flow("f1", "a", "b", packet=object())
