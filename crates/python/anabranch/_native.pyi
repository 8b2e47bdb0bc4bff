"""Types of the part that is written in Rust; `cargo xtask python` checks them against it. What the package alone uses is `Any`."""

from __future__ import annotations

import array
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, Union, final

from typing_extensions import Self, disjoint_base

__version__: str

class Error(Exception): ...
class ScenarioError(Error): ...
class ControllerError(Error): ...

def check(
    make: Callable[[], Controller],
    *,
    loss: Literal["shrinks", "shrinks_unless_random", "may_hold", "holds"] = "shrinks",
    shrinks_above: float = 2.0,
    timeout_window_max: float = 1.0,
    cases: int = 200,
) -> None: ...
@final
class Table:
    columns: Final[list[str]]
    metadata: Final[dict[str, str]]
    def rows(self) -> list[dict[str, Any]]: ...
    def to_dict(self) -> dict[str, list[Any]]: ...
    def array(self, name: str) -> array.array[float]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, name: str, /) -> list[Any]: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def _repr_html_(self) -> str: ...

@final
class Run:
    seed: Final[int]
    hash: Final[str]
    wall_seconds: Final[float]
    simulated_seconds: Final[float]
    events: Final[int]
    jain_index: Final[float | None]
    question: Final[str]
    notes: Final[list[str]]
    flows: Final[Table]
    links: Final[Table]
    paths: Final[Table]
    measures: Final[dict[str, float | None]]
    series_names: Final[list[str]]
    def series(self, name: str) -> Table: ...
    def summary(self) -> dict[str, Any]: ...
    def plot(self, *names: str) -> Any: ...
    def __getitem__(self, expression: str, /) -> float: ...
    def _repr_html_(self) -> str: ...

@final
class Sweep:
    axes: Final[list[str]]
    table: Final[Table]
    def ci(self, measure: str, by: Sequence[str] | None = None) -> Table: ...
    def write(self, path: str | os.PathLike[str]) -> None: ...
    def __len__(self) -> int: ...
    def _repr_html_(self) -> str: ...

@final
class Reproduction:
    claims: Final[Table]
    hash: Final[str]
    missed: Final[int]
    def summary(self) -> dict[str, Any]: ...
    def report(self) -> str: ...
    def _repr_html_(self) -> str: ...

@final
class Evaluation:
    law: Final[str]
    against: Final[list[str]]
    criteria: Final[Table]
    claims: Final[Table]
    scenarios: Final[dict[str, str]]
    hash: Final[str]
    missed: Final[int]
    def summary(self) -> dict[str, Any]: ...
    def report(self) -> str: ...
    def _repr_html_(self) -> str: ...

@final
class Field:
    law: Final[str]
    against: Final[list[str]]
    statistics: Final[Table]
    figures: Final[Table]
    draws: Final[Table]
    worst: Final[Table]
    scenarios: Final[dict[str, str]]
    hash: Final[str]
    def summary(self) -> dict[str, Any]: ...
    def report(self) -> str: ...
    def _repr_html_(self) -> str: ...

@final
class Scenario:
    def __new__(cls, **keys: Any) -> Scenario: ...
    @staticmethod
    def read(path: str | os.PathLike[str]) -> Scenario: ...
    @staticmethod
    def parse(text: str, name: str = "scenario") -> Scenario: ...
    @staticmethod
    def from_dict(keys: dict[str, Any]) -> Scenario: ...
    def link(self, id: str, from_: str, to: str, **keys: Any) -> Scenario: ...
    def flow(self, id: str, from_: str, to: str, **keys: Any) -> Scenario: ...
    def add(self, kind: str, **keys: Any) -> Scenario: ...
    def measure(self, **expressions: str) -> Scenario: ...
    def to_dict(self) -> dict[str, Any]: ...
    def to_toml(self) -> str: ...
    def write(self, path: str | os.PathLike[str]) -> None: ...
    def check(self) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...

@disjoint_base
class Controller:
    window: float
    reduction: ClassVar[Literal["at_once", "proportional"]]
    ect: ClassVar[Literal["zero", "one"] | None]
    pacing_rate: float | None
    def __new__(cls, *_args: Any, **_kwargs: Any) -> Controller: ...
    def on_sent(self, view: PathView, sent: Sent) -> None: ...
    def on_ack(self, view: PathView, ack: Ack) -> None: ...
    def on_round(self, view: PathView, round: Round) -> None: ...
    def on_loss(self, view: PathView, loss: Loss) -> None: ...
    def on_recovered(self, view: PathView) -> None: ...
    def on_undo(self, view: PathView) -> None: ...
    def on_restart(
        self, view: PathView, restart: Literal["established", "idle", "after_timeout", "path_changed"]
    ) -> None: ...
    def on_group(self, view: PathView, group: list[PathSummary]) -> None: ...
    def gauges(self) -> dict[str, float]: ...

@final
class PathView:
    now: Final[float]
    flight: Final[float]
    mss: Final[int]
    rtt_smoothed: Final[float | None]
    rtt_min: Final[float | None]
    progress: Final[Progress]

@final
class Progress:
    delivered: Final[float]
    lost: Final[float]
    delivered_at: Final[float]
    departed: Final[float]

@final
class Sent:
    segments: Final[float]
    transmission: Final[Literal["first", "again"]]

@final
class Departure:
    time: Final[float]
    window: Final[float]
    flight: Final[float]
    progress: Final[Progress]
    supply: Final[Literal["enough", "short"]]

@final
class Ack:
    newly_acked: Final[float]
    newly_lost: Final[float]
    newly_marked: Final[float]
    rtt: Final[float | None]
    size: Final[int]
    arrival: Final[float]
    departure: Final[Departure]
    limit: Final[Literal["window", "application"]]
    phase: Final[Literal["open", "recovery"]]

@final
class Round:
    count: Final[int]
    elapsed: Final[float]
    acked: Final[float]
    rtt_min: Final[float | None]
    rtt_mean: Final[float | None]

@final
class Loss:
    signal: Final[Literal["dup_acks", "timeout", "ecn"]]
    cause: Final[Literal["congestion", "random", "unknown"]]
    lost: Final[float]
    departure: Final[Departure]

@final
class PathSummary:
    path: Final[int]
    own: Final[bool]
    window: Final[float]
    flight: Final[float]
    rtt_smoothed: Final[float | None]
    rtt_min: Final[float | None]
    delivered: Final[float]
    lost: Final[float]

class net:
    @final
    class Key:
        @staticmethod
        def generate() -> net.Key: ...
        @staticmethod
        def read(file: str | os.PathLike[str]) -> net.Key: ...
        def write_new(self, file: str | os.PathLike[str]) -> None: ...
        public: Final[net.PublicKey]

    @final
    class PublicKey:
        def __new__(cls, text: str) -> Self: ...
        def __bytes__(self) -> bytes: ...
        def __hash__(self) -> int: ...
        def __eq__(self, other: object, /) -> bool: ...
        def __ne__(self, other: object, /) -> bool: ...

    @final
    class Ticket:
        def __new__(cls, text: str) -> Self: ...
        @staticmethod
        def of(key: net.PublicKey | str, addresses: list[str]) -> net.Ticket: ...
        key: Final[net.PublicKey]
        addresses: Final[list[str]]
        def __hash__(self) -> int: ...
        def __eq__(self, other: object, /) -> bool: ...
        def __ne__(self, other: object, /) -> bool: ...
    Bell: Any
    Connection: Any
    Endpoint: Any
    Operation: Any
    ReceiveStream: Any
    Relay: Any
    SendStream: Any

Episodes: Any
Grid: Any
evaluate: Any
field: Any
reproduce: Any
run: Any
run_places: Any
