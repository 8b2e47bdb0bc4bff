"""Shared fixtures: the folder of the project, a scenario of two flows, the command line, and a loop for tests that are coroutines."""

import inspect
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from network import run

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


def pytest_pyfunc_call(pyfuncitem):
    """Runs a test that is a coroutine on a loop of its own."""
    if inspect.iscoroutinefunction(pyfuncitem.obj):
        run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}))
        return True


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def wasm():
    """Makes a WASM controller whose window is constant. Its table is at 1024, and begins with the version of the interface."""

    def section(number, content):
        return bytes([number, len(content)]) + content

    def text(name):
        return bytes([len(name)]) + name.encode()

    def data(address, content):
        return b"\0\x41" + leb(address) + b"\x0b" + bytes([len(content)]) + content

    def leb(number):
        return bytes([number & 0x7F | 0x80, number >> 7])

    def module(window):
        types = section(1, b"\2\x60\0\1\x7f\x60\0\0")
        functions = section(3, b"\2\0\1")
        memory = section(5, b"\1\0\1")
        exports = section(7, b"\3" + text("memory") + b"\2\0" + text("anabranch") + b"\0\0" + text("on_ack") + b"\0\1")
        code = section(10, b"\2" + b"\5\0\x41" + leb(1024) + b"\x0b" + b"\2\0\x0b")
        table = section(11, b"\2" + data(1024, b"\1") + data(1056, struct.pack("<d", window)))
        return b"\0asm\1\0\0\0" + types + functions + memory + exports + code + table

    return module


@pytest.fixture(scope="session")
def command():
    """The command line, built by cargo, in the profile that the module was built in."""
    return built(["--bin", "anabranch"], "anabranch")


def built(what, name):
    subprocess.run(["cargo", "build", "--quiet", "--locked", "--profile", "quick", *what], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return str(target / "quick" / name) + (".exe" if sys.platform == "win32" else "")
