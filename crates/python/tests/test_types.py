"""The types of the Rust part agree with it, and those of the Python part with each other."""

import subprocess
import sys

import pytest


def test_types_agree_with_the_module(tmp_path):
    pytest.importorskip("mypy")
    # Names with an underscore are private. A stub has no way to say that `net` is a module, so it is a class.
    allowed = tmp_path / "allowed"
    allowed.write_text("anabranch\\.(.*\\.)?_(?!native).*\nanabranch\\._native\\.net\n")
    # Some optional dependencies have no types.
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nignore_missing_imports = True\n")
    options = ["--mypy-config-file", str(config), "--ignore-unused-allowlist", "--allowlist", str(allowed)]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "anabranch", *options], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
