"""An ``add`` that is interrupted at any of its lines changes no other row, and can be repeated."""

import copy
import sys
from functools import partial

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import (
    DictReplayBuffer,
    DictRolloutBuffer,
    NStepReplayBuffer,
    ReplayBuffer,
    RolloutBuffer,
)
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from sb3_extra_buffers.compressed import (
    CompressedDictReplayBuffer,
    CompressedDictRolloutBuffer,
    CompressedHerReplayBuffer,
    CompressedNStepReplayBuffer,
    CompressedReplayBuffer,
    CompressedRolloutBuffer,
)

ROWS, ENVS = 4, 2
ACTIONS = spaces.Discrete(5)
VECTOR = spaces.Box(-9, 9, (80,), np.float32)
GOALS = spaces.Dict(observation=VECTOR, achieved_goal=VECTOR, desired_goal=VECTOR)
OPTIMIZED = {"optimize_memory_usage": True, "handle_timeout_termination": False}
#: Their class, ours, the observation space, arguments of both.
KINDS = {
    "replay": (ReplayBuffer, CompressedReplayBuffer, VECTOR, {}),
    "optimized": (ReplayBuffer, CompressedReplayBuffer, VECTOR, OPTIMIZED),
    "dict": (DictReplayBuffer, CompressedDictReplayBuffer, GOALS, {}),
    "n-step": (NStepReplayBuffer, CompressedNStepReplayBuffer, VECTOR, {"n_steps": 2}),
    "her": (HerReplayBuffer, CompressedHerReplayBuffer, GOALS, {"env": None, "copy_info_dict": True}),
    "rollout": (RolloutBuffer, CompressedRolloutBuffer, VECTOR, {}),
    "dict rollout": (DictRolloutBuffer, CompressedDictRolloutBuffer, GOALS, {}),
}
ROLLOUT = ("rollout", "dict rollout")
#: Files in which lines are interrupted: those of the buffers, here and in Stable-Baselines3.
FILES = ("sb3_extra_buffers/compressed/", "stable_baselines3/common/buffers.py", "her_replay_buffer.py")


def filled(cls, kind, steps, given):
    theirs, _, space, both = KINDS[kind]
    size = ROWS if kind in ROLLOUT else ROWS * ENVS
    own = {"compression_method": "none"} if cls is not theirs else {}
    buffer = cls(size, space, ACTIONS, device="cpu", n_envs=ENVS, **both, **own)
    for step in given[:steps]:
        buffer.add(*copy.deepcopy(step))
    return buffer


def steps_of(kind, walk):
    space = KINDS[kind][2]
    found = list(walk(space, ACTIONS, ENVS, 2 * ROWS + 3, seed=3))
    if kind not in ROLLOUT:
        return found
    numbers = [th.full((ENVS,), float(number)) for number in range(len(found))]
    return [(obs, *rest, number, -number) for (obs, _, *rest, _), number in zip(found, numbers)]


def visible(buffer, kind, is_torn=False):
    """Every row that can be sampled, in the order of their age: observations, next observations, numbers, episodes."""
    size = buffer.size()
    rows = (buffer.pos - size + np.arange(size)) % ROWS
    if not is_torn and kind == "optimized" and buffer.full:
        rows = rows[1:]
    if is_torn:
        rows = rows[2 if kind == "optimized" else 1 :]
    names = ("actions", "rewards", "dones", "timeouts", "values", "log_probs", "ep_start")
    found = {name: getattr(buffer, name)[rows] for name in names if hasattr(buffer, name)}
    for name in ("observations", "next_observations"):
        parts = getattr(buffer, name, {})
        for key, part in parts.items() if isinstance(parts, dict) else [("", parts)]:
            found[f"{name} {key}"] = np.asarray(part)[rows]
    if kind == "optimized":
        found["next"] = np.asarray(buffer.observations)[(rows + 1) % ROWS]
    return found


class Interrupt:
    """Raises at the n-th line of the buffers' files; without a number, counts the lines."""

    def __init__(self, at=None):
        self.at, self.lines = at, 0

    def __call__(self, frame, event, _arg):
        if not any(part in frame.f_code.co_filename.replace("\\", "/") for part in FILES):
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self.at:
                raise KeyboardInterrupt
        return self

    def run(self, call):
        before = sys.gettrace()
        sys.settrace(self)
        try:
            call()
        finally:
            sys.settrace(before)


def interrupted(buffer, step):
    """Copies of a buffer, in each of which adding the step was interrupted at another line."""
    counted, spare = Interrupt(), copy.deepcopy(buffer)
    counted.run(partial(spare.add, *copy.deepcopy(step)))
    assert counted.lines > 20
    for at in range(1, counted.lines + 1):
        twin = copy.deepcopy(buffer)
        with pytest.raises(KeyboardInterrupt):
            Interrupt(at).run(partial(twin.add, *copy.deepcopy(step)))
        yield f"line {at}", twin


def episodes(buffer):
    return {name: getattr(buffer, name, None) for name in ("ep_start", "ep_length", "_current_ep_start")}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, ROWS - 1, ROWS + 2], ids=lambda count: f"after {count} steps")
def test_an_interrupt_at_any_line_leaves_every_other_row_and_the_step_can_be_added_again(kind, count, walk, same):
    if kind in ROLLOUT and count >= ROWS:
        pytest.skip("a rollout that is complete takes no step")
    theirs, ours, _, _ = KINDS[kind]
    steps = steps_of(kind, walk)
    last = ROWS if kind in ROLLOUT else count + ROWS
    before, after, end = (filled(theirs, kind, number, steps) for number in (count, count + 1, last))
    for where, buffer in interrupted(filled(ours, kind, count, steps), steps[count]):
        if (buffer.pos, buffer.full) != (after.pos, after.full):
            assert (buffer.pos, buffer.full) == (before.pos, before.full), where
            is_torn = getattr(buffer, "_is_torn", False)
            same(visible(buffer, kind, is_torn), visible(before, kind, is_torn), where)
            buffer.add(*copy.deepcopy(steps[count]))
        same(visible(buffer, kind), visible(after, kind), where)
        for step in steps[count + 1 : last]:
            buffer.add(*copy.deepcopy(step))
        same(visible(buffer, kind), visible(end, kind), where)
        same(episodes(buffer), episodes(end), where)


def test_episodes_stay_apart_if_an_interrupted_last_step_is_not_added_again(walk, same):
    theirs, ours, _, _ = KINDS["her"]
    steps = steps_of("her", walk)
    ended = next(number for number, step in enumerate(steps) if number > 1 and step[4].any())
    other = (*steps[ended][:4], np.zeros(ENVS, bool), steps[ended][5])
    expected = filled(theirs, "her", ended, steps)
    place = expected.pos
    expected.add(*copy.deepcopy(other))
    for where, buffer in interrupted(filled(ours, "her", ended, steps), steps[ended]):
        if buffer.pos == place:
            buffer.add(*copy.deepcopy(other))
            same(episodes(buffer), episodes(expected), where)


def test_episodes_of_an_interrupted_reset_are_never_sampled(walk, same):
    theirs, ours, _, _ = KINDS["her"]
    steps = steps_of("her", walk)
    expected = filled(theirs, "her", ROWS, steps)
    expected.reset()
    expected.ep_length[:], expected._current_ep_start[:] = 0, 0  # Stable-Baselines3 keeps them
    expected.add(*copy.deepcopy(steps[0]))
    full = filled(ours, "her", ROWS + 1, steps)
    counted = Interrupt()
    counted.run(copy.deepcopy(full).reset)
    seen = set()
    for at in range(1, counted.lines + 1):
        buffer = copy.deepcopy(full)
        with pytest.raises(KeyboardInterrupt):
            Interrupt(at).run(buffer.reset)
        seen.add(is_reset := not buffer.size())
        if is_reset:
            buffer.add(*copy.deepcopy(steps[0]))
            for name in ("ep_length", "_current_ep_start"):
                same(getattr(buffer, name), getattr(expected, name), f"line {at}")
    assert seen == {True, False}


@pytest.mark.parametrize("is_read", [False, True], ids=["new", "read"])
@pytest.mark.parametrize("kind", ROLLOUT)
def test_an_interrupted_reset_forgets_a_whole_rollout_or_nothing_of_it(kind, is_read, walk, same):
    def content(buffer):
        parts = buffer.observations if isinstance(buffer.observations, dict) else {"": buffer.observations}
        numbers = {name: getattr(buffer, name) for name in ("actions", "rewards", "values", "log_probs")}
        return {**numbers, **{f"observations {key}": np.asarray(part) for key, part in parts.items()}}

    theirs, ours, _, _ = KINDS[kind]
    steps = steps_of(kind, walk)
    full, following = filled(ours, kind, ROWS, steps), filled(theirs, kind, ROWS, steps[ROWS:])
    if is_read:
        assert list(full.get())
    counted, before, seen = Interrupt(), content(full), set()
    counted.run(copy.deepcopy(full).reset)
    for at in range(1, counted.lines + 1):
        buffer = copy.deepcopy(full)
        with pytest.raises(KeyboardInterrupt):
            Interrupt(at).run(buffer.reset)
        seen.add(buffer.full)
        if buffer.full:
            same(content(buffer), before, f"line {at}")
            continue
        for step in steps[ROWS : 2 * ROWS]:
            buffer.add(*copy.deepcopy(step))
        same(content(buffer), content(following), f"line {at}")
    assert seen == {True, False}


def test_hindsight_never_samples_a_row_that_is_partly_overwritten(walk, idle):
    _, ours, space, _ = KINDS["her"]
    steps = steps_of("her", walk)
    full = filled(ours, "her", 0, steps)
    for step in steps[:ROWS]:
        full.add(*copy.deepcopy((*step[:4], np.ones(ENVS, bool), step[5])))
    goals = {row.tobytes() for row in np.asarray(full.next_observations["achieved_goal"]).reshape(-1, *VECTOR.shape)}
    env = idle(space, ACTIONS, ENVS)
    for where, buffer in interrupted(full, steps[ROWS]):
        buffer.set_env(env)
        if buffer.pos == full.pos:
            found = buffer.sample(16).next_observations["achieved_goal"].numpy()
            assert {row.tobytes() for row in found} <= goals, where
            assert not buffer._is_torn or not buffer.ep_length[buffer.pos].any(), where
