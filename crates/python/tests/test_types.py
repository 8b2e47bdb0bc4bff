"""The stubs agree with the module."""

import subprocess
import sys

import pytest


def test_the_stubs_are_those_of_the_module(tmp_path):
    pytest.importorskip("mypy")
    # Names with an underscore are private and have no stubs.
    allowed = tmp_path / "allowed"
    allowed.write_text("anabranch\\._.*\n")
    # Some optional dependencies have no types.
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nignore_missing_imports = True\n")
    options = ["--mypy-config-file", str(config), "--ignore-unused-allowlist", "--allowlist", str(allowed)]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "anabranch", *options], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
