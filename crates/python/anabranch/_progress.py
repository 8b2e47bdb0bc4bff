"""Shows progress on a terminal or in a notebook."""

from __future__ import annotations

import sys
import time

# Shorter work needs no progress line.
SHOW_AFTER_S = 1.0
# The shortest interval between two updates.
SHOW_EACH_S = 0.1


class Progress:
    """The progress callback of a run: the caller's own function, a line that is updated, or nothing."""

    def __init__(self, wanted, what):
        self._what = what
        self._own = wanted if callable(wanted) else None
        self._shows = self._own is None and wanted is not False and (wanted is True or _somebody_looks())
        self._began = self._shown = time.monotonic()
        self._width = 0

    def __enter__(self):
        return self._own if self._own is not None else self._show if self._shows else None

    def __exit__(self, *_):
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()

    def _show(self, done, total):
        now = time.monotonic()
        if now - self._began < SHOW_AFTER_S or now - self._shown < SHOW_EACH_S:
            return
        self._shown = now
        left = (now - self._began) * (total - done) / done if done else None
        text = f"{100 * done // max(total, 1)} % {self._what}"
        if left is not None:
            text += f", {left:.0f} s left"
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = max(self._width, len(text))


def _somebody_looks():
    # A notebook has no terminal, but shows what is written to it, carriage returns included.
    return sys.stderr.isatty() or "ipykernel" in sys.modules
