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
    Evaluation,
    Field,
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
from . import _executors, _native, _plot, _write
from ._executors import SweepError
from ._progress import Progress as _Progress

__all__ = [
    "Ack",
    "Controller",
    "ControllerError",
    "Departure",
    "Error",
    "Evaluation",
    "Field",
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
    "SweepError",
    "Table",
    "__version__",
    "check",
    "evaluate",
    "reproduce",
    "run",
    "sweep",
]


def run(scenario, *, seed=None, set=None, cc=None, record=True, progress=None):
    """Runs a scenario, a file or a Scenario, to its end."""
    with _Progress(progress, "of the run") as watch:
        return _native.run(scenario, seed=seed, set=set, cc=cc, record=record, progress=watch)


def sweep(scenario, axes, *, seeds=1, jobs=None, set=None, cc=None, rows=None, executor=None, progress=None):
    """Runs every combination of the axes' values with several seeds, on all cores, or wherever an executor runs them."""
    grid = _native.Grid(scenario, axes, seeds=seeds, set=set, cc=cc, rows=rows)
    with _Progress(progress, "of the sweep") as watch:
        return _executors.sweep(grid, executor, jobs, watch)


def reproduce(*papers, seeds=None, jobs=None, experiments=None, progress=None):
    """Runs the experiments of some papers, or of all, and judges their claims."""
    with _Progress(progress, "of the runs") as watch:
        return _native.reproduce(list(papers), seeds=seeds, jobs=jobs, experiments=experiments, progress=watch)


def evaluate(
    law,
    *,
    against=None,
    quick=False,
    seeds=None,
    field=False,
    draws=None,
    seed=None,
    family=None,
    jobs=None,
    progress=None,
):
    """Evaluates a law against the criteria of RFC 9743, alone and beside its rivals; with `field`, on random networks."""
    if field and (quick or seeds is not None):
        raise ValueError("quick and seeds are of the criteria, and have no meaning with field")
    if not field and (draws, seed, family) != (None, None, None):
        raise ValueError("draws, seed and family need field=True")
    with _Progress(progress, "of the runs") as watch:
        if field:
            return _native.field(
                law, against=against, draws=draws, seed=seed, family=family, jobs=jobs, progress=watch
            )
        return _native.evaluate(law, against=against, quick=quick, seeds=seeds, jobs=jobs, progress=watch)


def __getattr__(name):
    # Asyncio takes longer to import than all other modules, and many programs need no network.
    if name == "net":
        from importlib import import_module

        return import_module(".net", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


Run.plot = _plot.plot
Sweep.write = _write.write
