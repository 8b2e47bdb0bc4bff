"""anabranch: a laboratory for congestion control, and the transport that five papers describe.

    import anabranch as ab
    r = ab.run("scenario.toml", seed=1)
    r.flows, r.series("flow.f0.window"), r.plot("window", "rtt")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Literal, Mapping, Sequence, Union, overload

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

if TYPE_CHECKING:
    import os

    from . import net as net

    _Path = Union[str, os.PathLike[str]]
    _Class = Union[str, Callable[[], Controller]]
    _Law = Union[_Class, Mapping[str, Any]]
    _Watch = Union[bool, Callable[[int, int], object], None]

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


def run(
    scenario: _Path | Scenario,
    *,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,
    cc: Mapping[str, _Law] | None = None,
    record: bool | Sequence[str] = True,
    progress: _Watch = None,
) -> Run:
    """Runs a scenario, a file or a Scenario, to its end."""
    with _Progress(progress, "of the run") as watch:
        return _native.run(scenario, seed=seed, set=set, cc=cc, record=record, progress=watch)


def sweep(
    scenario: _Path | Scenario,
    axes: Mapping[str, Sequence[Any] | Mapping[str, Any]],
    *,
    seeds: int = 1,
    jobs: int | None = None,
    set: Mapping[str, Any] | None = None,
    cc: Mapping[str, _Law] | None = None,
    rows: _Path | None = None,
    executor: Any = None,
    progress: _Watch = None,
) -> Sweep:
    """Runs every combination of the axes' values with several seeds, on all cores, or wherever an executor runs them."""
    grid = _native.Grid(scenario, axes, seeds=seeds, set=set, cc=cc, rows=rows)
    with _Progress(progress, "of the sweep") as watch:
        return _executors.sweep(grid, executor, jobs, watch)


def reproduce(
    *papers: str,
    seeds: int | None = None,
    jobs: int | None = None,
    experiments: _Path | None = None,
    progress: _Watch = None,
) -> Reproduction:
    """Runs the experiments of some papers, or of all papers, and judges their claims."""
    with _Progress(progress, "of the runs") as watch:
        return _native.reproduce(list(papers), seeds=seeds, jobs=jobs, experiments=experiments, progress=watch)


@overload
def evaluate(
    law: _Class,
    *,
    against: Sequence[_Class] | None = None,
    quick: bool = False,
    seeds: int | None = None,
    field: Literal[False] = False,
    jobs: int | None = None,
    progress: _Watch = None,
) -> Evaluation: ...
@overload
def evaluate(
    law: _Class,
    *,
    against: Sequence[_Class] | None = None,
    field: Literal[True],
    draws: int | None = None,
    seed: int | None = None,
    family: Sequence[str] | None = None,
    jobs: int | None = None,
    progress: _Watch = None,
) -> Field: ...
def evaluate(
    law: _Class,
    *,
    against: Sequence[_Class] | None = None,
    quick: bool = False,
    seeds: int | None = None,
    field: bool = False,
    draws: int | None = None,
    seed: int | None = None,
    family: Sequence[str] | None = None,
    jobs: int | None = None,
    progress: _Watch = None,
) -> Evaluation | Field:
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


def __getattr__(name: str) -> Any:
    # Asyncio takes longer to import than all other modules, and many programs need no network.
    if name == "net":
        from importlib import import_module

        return import_module(".net", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


setattr(Run, "plot", _plot.plot)
setattr(Sweep, "write", _write.write)
