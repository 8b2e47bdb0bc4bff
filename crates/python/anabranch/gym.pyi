"""Types of the environments. Types of gymnasium and numpy are not checked, because anabranch needs neither."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import Scenario

__all__ = ["CongestionEnv", "CongestionVectorEnv", "FIELDS", "reward"]

FIELDS: tuple[str, ...]

_Seen = dict[str, float]
_Scenario = str | os.PathLike[str] | Scenario

def reward(seen: _Seen) -> float: ...

class CongestionEnv:
    metadata: dict[str, Any]
    observation_space: Any
    action_space: Any
    def __init__(
        self,
        scenario: _Scenario,
        flow: str,
        *,
        interval: float = 0.1,
        set: Mapping[str, Any] | None = None,
        reward: Callable[[_Seen], float] = ...,
    ) -> None: ...
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, _Seen]: ...
    def step(self, action: Any) -> tuple[Any, float, bool, bool, _Seen]: ...

class CongestionVectorEnv:
    metadata: dict[str, Any]
    num_envs: int
    single_observation_space: Any
    single_action_space: Any
    observation_space: Any
    action_space: Any
    def __init__(
        self,
        scenario: _Scenario,
        flow: str,
        num_envs: int,
        *,
        interval: float = 0.1,
        set: Mapping[str, Any] | None = None,
        reward: Callable[[_Seen], float] = ...,
    ) -> None: ...
    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]: ...
    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]: ...
