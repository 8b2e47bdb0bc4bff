"""anabranch: a laboratory for congestion control, and the transport that five papers describe.

    import anabranch as ab
    r = ab.run("scenario.toml", seed=1)
    r.flows, r.series("flow.f0.window"), r.plot("window", "rtt")
"""

from __future__ import annotations

from ._native import (
    Ack,
    Controller,
    ControllerError,
    Departure,
    Error,
    Loss,
    PathSummary,
    PathView,
    Progress,
    Reproduction,
    Round,
    Run,
    Scenario,
    ScenarioError,
    Sent,
    Sweep,
    Table,
    __version__,
    check,
)
from . import _native, _plot
from ._progress import Progress as _Progress

__all__ = [
    "Ack",
    "Controller",
    "ControllerError",
    "Departure",
    "Error",
    "Loss",
    "PathSummary",
    "PathView",
    "Progress",
    "Reproduction",
    "Round",
    "Run",
    "Scenario",
    "ScenarioError",
    "Sent",
    "Sweep",
    "Table",
    "__version__",
    "check",
    "reproduce",
    "run",
    "sweep",
]


def run(scenario, *, seed=None, set=None, cc=None, record=True, progress=None):
    """Runs a scenario, a file or a Scenario, to its end."""
    with _Progress(progress, "of the run") as watch:
        return _native.run(scenario, seed=seed, set=set, cc=cc, record=record, progress=watch)


def sweep(scenario, axes, *, seeds=1, jobs=None, set=None, progress=None):
    """Runs every combination of the axes' values with several seeds, on all cores."""
    with _Progress(progress, "of the sweep") as watch:
        return _native.sweep(scenario, axes, seeds=seeds, jobs=jobs, set=set, progress=watch)


def reproduce(*papers, seeds=None, jobs=None, experiments=None, progress=None):
    """Runs the experiments of some papers, or of all, and judges their claims."""
    with _Progress(progress, "of the runs") as watch:
        return _native.reproduce(list(papers), seeds=seeds, jobs=jobs, experiments=experiments, progress=watch)


Run.plot = _plot.plot
