"""Gymnasium environments in which an agent sets the congestion window of one flow.

An episode is a run of a scenario: its other flows, under any law, are the opponents. Needs gymnasium and numpy: pip install anabranch[gym].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from ._native import Episodes, Error

try:
    import gymnasium
    import numpy as np
    from gymnasium.vector import AutoresetMode
except ImportError as _missing:
    raise Error("anabranch.gym needs gymnasium: pip install gymnasium") from _missing

if TYPE_CHECKING:
    import os

    from ._native import Scenario

    _Seen = dict[str, float]
    _Scenario = Union[str, os.PathLike[str], Scenario]

__all__ = ["CongestionEnv", "CongestionVectorEnv", "FIELDS", "reward"]

# The observation of a flow since its last action, in segments and seconds.
FIELDS: tuple[str, ...] = ("now", "elapsed", "window", "flight", "acked", "lost", "rtt_mean", "rtt_min")

# The range of windows; nobody needs a larger one.
_WINDOW_MIN, _WINDOW_MAX = 1.0, 1e6

# Each element of an observation: log2 of the window, of segments a second, of the RTT over the least; share that was lost; log2 of the elapsed seconds.
_LOW = np.array([0.0, -10.0, 0.0, 0.0, -20.0], dtype=np.float32)
_HIGH = np.array([20.0, 30.0, 20.0, 1.0, 10.0], dtype=np.float32)


def reward(seen: _Seen) -> float:
    """Power with a price for losses: log2 of segments a second, less log2 of the RTT over the least, less ten times the share that was lost."""
    rate = np.log2(max(seen["acked"] / seen["elapsed"], 1e-3))
    queueing = np.log2(max(seen["rtt_mean"] / seen["rtt_min"], 1.0))
    return float(rate - queueing - 10.0 * _lost(seen))


def _lost(seen):
    return seen["lost"] / max(seen["acked"] + seen["lost"], 1.0)


def _observation(seen):
    values = [
        np.log2(seen["window"]),
        np.log2(max(seen["acked"] / seen["elapsed"], 1e-3)),
        np.log2(max(seen["rtt_mean"] / seen["rtt_min"], 1.0)),
        _lost(seen),
        np.log2(max(seen["elapsed"], 1e-6)),
    ]
    return np.clip(np.array(values, dtype=np.float32), _LOW, _HIGH)


def _window(seen, action):
    """An action of 1 doubles the window, of -1 halves it."""
    return float(min(max(seen["window"] * 2.0 ** float(action), _WINDOW_MIN), _WINDOW_MAX))


def _spaces():
    observation = gymnasium.spaces.Box(_LOW, _HIGH, dtype=np.float32)
    return observation, gymnasium.spaces.Box(-1.0, 1.0, shape=(1,), dtype=np.float32)


class CongestionEnv(gymnasium.Env):
    """One flow of a scenario. `interval` is the time between two actions, in seconds; `reward` is a function of a dict of `FIELDS`."""

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        scenario: _Scenario,
        flow: str,
        *,
        interval: float = 0.1,
        set: Mapping[str, Any] | None = None,
        reward: Callable[[_Seen], float] = reward,
    ) -> None:
        self._episodes = Episodes(scenario, flow, interval=interval, set=set)
        self._reward = reward
        self._seen: Any = None
        self.observation_space, self.action_space = _spaces()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, _Seen]:
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(2**31))
        self._seen = _named(self._episodes.start(0, seed if seed is not None else drawn))
        return _observation(self._seen), dict(self._seen)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, _Seen]:
        _check_begun(self._seen)
        (after,) = self._episodes.step([_window(self._seen, np.asarray(action).ravel()[0])])
        if after is None:
            # The scenario is over, so this returns the last observation.
            return _observation(self._seen), 0.0, False, True, dict(self._seen)
        self._seen = _named(after)
        return _observation(self._seen), self._reward(self._seen), False, False, dict(self._seen)


class CongestionVectorEnv(gymnasium.vector.VectorEnv):
    """Many such environments, each in its own Rust thread. A finished episode restarts in the next step, with another seed."""

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        scenario: _Scenario,
        flow: str,
        num_envs: int,
        *,
        interval: float = 0.1,
        set: Mapping[str, Any] | None = None,
        reward: Callable[[_Seen], float] = reward,
    ) -> None:
        super().__init__()
        self._episodes = Episodes(scenario, flow, interval=interval, set=set, count=num_envs)
        self._reward = reward
        self._seen: list[Any] = [None] * num_envs
        self._over = np.zeros(num_envs, dtype=bool)
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = _spaces()
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)  # type: ignore[arg-type]
        seeds = [seed + place for place in range(self.num_envs)] if isinstance(seed, int) else seed
        for place in range(self.num_envs):
            self._start(place, None if seeds is None else seeds[place])
        self._over[:] = False
        return self._observations(), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        for seen in self._seen:
            _check_begun(seen)
        actions = np.asarray(actions).reshape(self.num_envs, -1)[:, 0]
        windows = [None if over else _window(seen, it) for over, seen, it in zip(self._over, self._seen, actions)]
        after = self._episodes.step(windows)
        rewards, truncated = np.zeros(self.num_envs), np.zeros(self.num_envs, dtype=bool)
        for place, seen in enumerate(after):
            if self._over[place]:
                self._start(place, None)
            elif seen is None:
                truncated[place] = True
            else:
                self._seen[place] = _named(seen)
                rewards[place] = self._reward(self._seen[place])
        self._over = truncated.copy()
        return self._observations(), rewards, np.zeros(self.num_envs, dtype=bool), truncated, {}

    def _start(self, place, seed):
        drawn = int(self.np_random.integers(2**31))
        self._seen[place] = _named(self._episodes.start(place, drawn if seed is None else seed))

    def _observations(self):
        return np.stack([_observation(seen) for seen in self._seen])


def _check_begun(seen):
    if seen is None:
        raise gymnasium.error.ResetNeeded("call `reset` before `step`")


def _named(seen):
    if seen is None:
        raise Error("the flow has seen nothing before its scenario was over: use a longer `duration`")
    return dict(zip(FIELDS, seen))
