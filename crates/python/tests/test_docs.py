"""Each block of code in docs/python.md runs, in the order of the page, and so does each example."""

import re
import runpy

import pytest
from conftest import ROOT

PAGE = (ROOT / "docs" / "python.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.M | re.S)
EXAMPLES = sorted((ROOT / "python" / "examples").glob("*.py"))


def test_the_page_runs_to_the_letter(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scenarios = [code for language, code in BLOCKS if language == "toml"]
    assert len(scenarios) == 1, "one file is to be saved"
    (tmp_path / "scenario.toml").write_text(scenarios[0])
    # The papers' experiments are those of the project.
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    names = {"__name__": "docs"}
    for number, code in enumerate(code for language, code in BLOCKS if language == "python"):
        exec(compile(code, f"docs/python.md, block {number + 1}", "exec"), names)
    printed = capsys.readouterr().out
    assert (tmp_path / "report.html").stat().st_size > 100_000
    assert "did you mean `queue`?" in printed and "Greedy: a " in printed
    assert {language for language, _ in BLOCKS} == {"console", "toml", "python"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_each_example_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
