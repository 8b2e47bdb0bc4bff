"""Each block of code in docs/python.md runs, in the order of the page, and so do the tutorial's and each example."""

import re
import runpy
import shutil

import pytest
from conftest import ROOT

PAGE = (ROOT / "docs" / "python.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.M | re.S)
NOTEBOOKS = sorted((ROOT / "crates" / "python" / "examples").glob("*.ipynb"))
EXAMPLES = sorted((ROOT / "crates" / "python" / "examples").glob("*.py"))


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


def test_the_tutorials_controller_runs(tmp_path, monkeypatch, capsys):
    page = (ROOT / "docs" / "tutorial" / "own-controller.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    (tmp_path / "mine.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    runpy.run_path("mine.py", run_name="__main__")
    mine, cubic = capsys.readouterr().out.splitlines()
    assert mine.startswith("mine ") and cubic.startswith("cubic ")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_each_example_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_each_notebook_runs_from_top_to_bottom(path, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient").NotebookClient
    pytest.importorskip("ipykernel")
    # A folder of its own, with the examples that it reads.
    folder = tmp_path / "examples"
    shutil.copytree(path.parent, folder)
    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are no part of the repository"
    client(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in shown), "a notebook draws"
