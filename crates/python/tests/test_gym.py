"""The environments: Gymnasium's own checker, physics by hand, and the same results from many at once."""

import pytest

gymnasium = pytest.importorskip("gymnasium")
np = pytest.importorskip("numpy")

import anabranch.gym as abgym  # noqa: E402

SCENARIO = {"flow.f0.cc.name": "anabranch", "flow.f1.start": "0s", "duration": "4s"}


def test_it_is_an_environment(file):
    from gymnasium.utils.env_checker import check_env

    check_env(abgym.CongestionEnv(file, "f0"), skip_render_check=True)


def test_step_before_reset_says_so(file):
    for env in [abgym.CongestionEnv(file, "f0"), abgym.CongestionVectorEnv(file, "f0", 2)]:
        with pytest.raises(gymnasium.error.ResetNeeded, match="call `reset` before `step`"):
            env.step([[0.1], [0.1]])


def test_a_window_is_what_flies(file):
    env = abgym.CongestionEnv(file, "f0", set={**SCENARIO, "flow.f1.start": "3.9s"})
    _, seen = env.reset(seed=1)
    over = False
    while not over and seen["now"] < 3.5:
        # Towards 4 segments, which leave every round trip of 20 ms and what a segment takes.
        action = np.clip(np.log2(4 / seen["window"]), -1, 1)
        _, _, _, over, seen = env.step([action])
    assert seen["window"] == pytest.approx(4)
    assert seen["acked"] / seen["elapsed"] == pytest.approx(4 / 0.0212, rel=0.05)
    assert seen["rtt_mean"] == pytest.approx(seen["rtt_min"], rel=0.08)


def test_episodes_with_a_seed_are_the_same(file):
    def episode():
        env = abgym.CongestionEnv(file, "f1", set=SCENARIO)
        observation, _ = env.reset(seed=3)
        story, over = [observation], False
        while not over:
            observation, value, _, over, _ = env.step([0.1])
            story.append(np.append(observation, value))
        return np.concatenate(story)

    assert np.array_equal(episode(), episode())


def test_many_at_once_are_as_one(file):
    many, one = abgym.CongestionVectorEnv(file, "f0", 3, set=SCENARIO), abgym.CongestionEnv(file, "f0", set=SCENARIO)
    all_observations, _ = many.reset(seed=5)
    observation, _ = one.reset(seed=6)
    assert np.array_equal(all_observations[1], observation)
    over = False
    while not over:
        all_observations, rewards, _, truncated, _ = many.step(np.full((3, 1), 0.2, dtype=np.float32))
        observation, value, _, over, _ = one.step([np.float32(0.2)])
        assert np.array_equal(all_observations[1], observation) and rewards[1] == value
        assert truncated[1] == over
    again, rewards, _, truncated, _ = many.step(np.zeros((3, 1), dtype=np.float32))
    assert not truncated.any() and rewards[1] == 0.0 and again[1][0] == pytest.approx(np.log2(10), rel=1e-6)
