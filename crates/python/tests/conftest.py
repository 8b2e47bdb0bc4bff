"""Shared fixtures: the folder of the project, a scenario of two flows, and the command line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

SCENARIO = """\
# Do two flows share a link?
duration = "5s"

[[link]]
id = "bottleneck"
from = "a"
to = "b"
rate = "10Mbit/s"
delay = "10ms"
queue = { kind = "drop_tail", packets = 40 }

[[flow]]
id = "f0"
from = "a"
to = "b"
transport = "anabranch"
cc = { name = "cubic" }
packet = "1500B"

[[flow]]
id = "f1"
from = "a"
to = "b"
transport = "anabranch"
cc = { name = "reno" }
packet = "1500B"
start = "1s"

[measure]
late = "flow.f1.goodput_bps"
queue = "mean(link.bottleneck.queue, 2, 5)"
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture(scope="session")
def command():
    """The command line, built by cargo, in the profile that the module was built in."""
    return built(["--bin", "anabranch"], "anabranch")


def built(what, name):
    subprocess.run(["cargo", "build", "--quiet", "--locked", "--profile", "quick", *what], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return str(target / "quick" / name) + (".exe" if sys.platform == "win32" else "")
