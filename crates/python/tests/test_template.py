"""The project in Python that `anabranch cc new` writes: it runs as it is, and its law is Reno to the bit."""

import re
import runpy
import subprocess
import sys

import anabranch as ab


def test_python_template_runs_as_reno(command, tmp_path):
    new = [command, "cc", "new", "mine", "--language", "python"]
    told = subprocess.run(new, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert told.endswith("Next:\n  cd mine\n  python3 mine.py\n"), told
    project = tmp_path / "mine"
    ran = subprocess.run([sys.executable, "mine.py"], cwd=project, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    goodputs = re.fullmatch(r" +mine +([0-9.]+) Mbit/s\n +cubic +([0-9.]+) Mbit/s\n", ran.stdout)
    assert goodputs, ran.stdout
    # Both have a share of 20 Mbit/s, and headers have the rest.
    assert min(map(float, goodputs.groups())) > 1 and 17 < sum(map(float, goodputs.groups())) < 20, ran.stdout
    law = runpy.run_path(str(project / "mine.py"))["Law"]
    scenario = project / "scenario.toml"
    mine, theirs = ab.run(scenario, cc={"mine": law}), ab.run(scenario, cc={"mine": "reno"})
    for series in ("flow.mine.window", "flow.mine.ssthresh"):
        assert mine.series(series).to_dict() == theirs.series(series).to_dict(), series
