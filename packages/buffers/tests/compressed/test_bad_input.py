"""A mistake is one clear error, and the buffer is as it was and works on."""

from pathlib import Path

import numpy as np
import pytest
import torch as th
from gymnasium import spaces

from sb3_extra_buffers.compressed import (
    CompressedDictReplayBuffer,
    CompressedDictRolloutBuffer,
    CompressedReplayBuffer,
    CompressedRolloutBuffer,
)
from sb3_extra_buffers.errors import (
    BufferStateError,
    HeapFullError,
    ObservationError,
)

ENVS = 2
IMAGE = spaces.Box(0, 255, (20, 20), np.uint8)
DICT = spaces.Dict(image=IMAGE, more=IMAGE, vec=spaces.Box(-1, 1, (3,), np.float32))
ACTIONS = spaces.Box(-1, 1, (2,), np.float32)
REPLAY, ROLLOUT = (
    (CompressedReplayBuffer, CompressedDictReplayBuffer),
    (CompressedRolloutBuffer, CompressedDictRolloutBuffer),
)
each_kind = pytest.mark.parametrize("kind", [*REPLAY, *ROLLOUT])


def observation(space, seed):
    numbers = np.random.default_rng(seed)
    if isinstance(space, spaces.Dict):
        return {key: observation(part, seed + place) for place, (key, part) in enumerate(space.items())}
    return numbers.integers(0, 2, (ENVS, *space.shape)).repeat(2, axis=1)[:, : space.shape[0]].astype(space.dtype)


def step(kind, seed):
    """The arguments of ``add``, by name."""
    space = DICT if "Dict" in kind.__name__ else IMAGE
    numbers = np.random.default_rng(seed)
    found = {"obs": observation(space, seed), "action": numbers.random((ENVS, 2), np.float32)}
    found["reward"] = numbers.random(ENVS, np.float32)
    if kind in REPLAY:
        return {**found, "next_obs": observation(space, seed + 1), "done": np.zeros(ENVS), "infos": [{}] * ENVS}
    return {**found, "episode_start": np.zeros(ENVS), "value": th.rand(ENVS), "log_prob": th.rand(ENVS)}


def make(kind, steps, **storage):
    """A buffer with room for three steps per environment."""
    size = 3 * ENVS if kind in REPLAY else 3
    space = DICT if "Dict" in kind.__name__ else IMAGE
    buffer = kind(size, space, ACTIONS, n_envs=ENVS, **storage)
    for seed in range(steps):
        buffer.add(**step(kind, seed))
    return buffer


def content(buffer):
    """Everything that the buffer holds, as plain arrays."""
    found = {"pos": buffer.pos, "full": buffer.full}
    for name, value in vars(buffer).items():
        if name in ("observations", "next_observations") and isinstance(value, dict):
            found.update({(name, key): np.asarray(part) for key, part in value.items()})
        elif name in ("observations", "next_observations") or isinstance(value, np.ndarray):
            found[name] = np.array(value)
    return found


def expect_same(found, expected):
    assert found.keys() == expected.keys()
    changed = [name for name in expected if not np.array_equal(found[name], expected[name])]
    assert changed == []


def expect_works_on(buffer, kind, seed=50):
    """A further step is stored as it is, and can be read."""
    if buffer.full and kind in ROLLOUT:
        buffer.reset()
    place, given = buffer.pos, step(kind, seed)
    buffer.add(**given)
    for key in given["obs"] if isinstance(given["obs"], dict) else [None]:
        array = buffer.observations if key is None else buffer.observations[key]
        assert (array[place] == (given["obs"] if key is None else given["obs"][key])).all()
    if kind in REPLAY:
        assert len(buffer.sample(5).rewards) == 5
        return
    while not buffer.full:
        buffer.add(**step(kind, seed))
    assert sum(len(batch.actions) for batch in buffer.get(4)) == 3 * ENVS


def with_image(change):
    """Change an image, which for Dict spaces is one of several parts."""

    def changed(obs):
        return {**obs, "image": change(obs["image"])} if isinstance(obs, dict) else change(obs)

    return changed


def put(value):
    """Put a value into the middle of an array or tensor, which changes its dtype if need be."""

    def changed(array):
        array = array.clone() if isinstance(array, th.Tensor) else np.array(array, np.result_type(array, type(value)))
        array[-1, ...] = value
        return array

    return changed


#: Which argument, what is done to it, and what the error says that it is.
MISTAKES = {
    "7 elements of 400": ("obs", with_image(lambda a: a[:, 0, :7]), r"of shape \(2, 7\), expected shape \(2, 20, 20\)"),
    "1 row for 2 environments": ("obs", with_image(lambda a: a[:1]), r"of shape \(1, 20, 20\), expected shape \(2, "),
    "no axis for environments": ("obs", with_image(lambda a: a[0]), r"of shape \(20, 20\)"),
    "3 rows for 2 environments": ("obs", with_image(lambda a: a[[0, 1, 1]]), r"of shape \(3, 20, 20\)"),
    "a value above the dtype": ("obs", with_image(put(256)), ".* the value 256 in it .*uint8: integers from 0 to 255"),
    "a value below the dtype": ("obs", with_image(put(-1)), ".* the value -1 in it .*uint8: integers from 0 to 255"),
    "a fraction": ("obs", with_image(put(0.5)), ".* the value 0.5 in it"),
    "NaN among integers": ("obs", with_image(put(np.nan)), ".* the value nan in it"),
    "no numbers": ("obs", with_image(lambda a: a.astype(str)), "an array of <U.*expected numbers"),
    "nothing": ("obs", lambda obs: None, ".*, expected "),
    "NaN as an action": ("action", put(np.nan), "NaN, expected numbers. .*VecCheckNan"),
    "too few actions": ("action", lambda a: a[:1], r"of shape \(1, 2\), expected 4 values"),
    "too many actions": ("action", lambda a: a[[0, 1, 0]], r"of shape \(3, 2\), expected 4 values"),
    "words as rewards": ("reward", lambda a: np.array(["x", "y"]), "an array of <U1, expected numbers"),
    "NaN as a reward": ("reward", put(np.nan), "NaN"),
    "3 rewards for 2 environments": ("reward", lambda a: np.zeros(3), r"of shape \(3,\), expected 2 values"),
}
IN_REPLAYS = {
    "a wrong next observation": ("next_obs", with_image(put(300)), ".* the value 300 in it"),
    "a next observation of another shape": ("next_obs", with_image(lambda a: a[:1]), r"of shape \(1, 20, 20\)"),
    "3 dones for 2 environments": ("done", lambda a: np.zeros(3), r"of shape \(3,\), expected 2 values"),
    "too few infos": ("infos", lambda infos: infos[:1], r"\[\{\}\], expected a dictionary for each of 2 environments"),
    "no infos at all": ("infos", lambda infos: None, "None, expected a dictionary"),
    "infos that are none": ("infos", lambda infos: [None, None], r"\[None, None\], expected a dictionary"),
}
IN_ROLLOUTS = {
    "NaN as a value": ("value", put(np.nan), "NaN, expected numbers. .*VecCheckNan"),
    "NaN as a log probability": ("log_prob", put(np.nan), "NaN"),
    "3 values for 2 environments": ("value", lambda a: th.zeros(3), r"of shape \(3,\), expected 2 values"),
    "a value that is no tensor": ("value", lambda a: "text", ".*, expected "),
    "3 starts for 2 environments": ("episode_start", lambda a: np.zeros(3), r"of shape \(3,\), expected 2 values"),
}
EVERYWHERE = [(kind, what, MISTAKES[what]) for kind in (*REPLAY, *ROLLOUT) for what in MISTAKES]
EVERYWHERE += [(kind, what, IN_REPLAYS[what]) for kind in REPLAY for what in IN_REPLAYS]
EVERYWHERE += [(kind, what, IN_ROLLOUTS[what]) for kind in ROLLOUT for what in IN_ROLLOUTS]


@pytest.mark.parametrize("compression", ["none", "gzip", "auto"])
@pytest.mark.parametrize(
    ("kind", "what", "mistake"), EVERYWHERE, ids=lambda part: part if isinstance(part, str) else ""
)
def test_a_step_that_cannot_be_stored_as_it_is_changes_nothing(kind, what, mistake, compression):
    argument, change, message = mistake
    # Replay buffers have wrapped around, so that there is something to lose at the place of the next step.
    buffer = make(kind, 4 if kind in REPLAY else 2, compression_method=compression)
    before, given = content(buffer), step(kind, 40)
    with pytest.raises(ObservationError, match=rf"{kind.__name__}: {argument}(\['image'\])? is {message}"):
        buffer.add(**{**given, argument: change(given[argument])})
    expect_same(content(buffer), before)
    expect_works_on(buffer, kind)


@pytest.mark.parametrize("kind", [CompressedDictReplayBuffer, CompressedDictRolloutBuffer])
@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda obs: {"image": obs["image"], "more": obs["more"]}, r"dict of \['image', 'more'\]"),
        (lambda obs: obs["image"], "ndarray"),
        (lambda obs: list(obs.values()), "list"),
    ],
    ids=["missing key", "array", "list"],
)
def test_an_observation_without_its_keys_is_refused_by_the_names_of_the_keys(kind, change, found):
    buffer = make(kind, 2)
    before, given = content(buffer), step(kind, 40)
    with pytest.raises(ObservationError, match=f"obs is {found}, expected a dictionary with the keys image, more, vec"):
        buffer.add(**{**given, "obs": change(given["obs"])})
    expect_same(content(buffer), before)
    expect_works_on(buffer, kind)


@pytest.mark.parametrize("kind", REPLAY)
def test_an_empty_buffer_cannot_be_sampled(kind):
    buffer = make(kind, 0)
    with pytest.raises(BufferStateError, match=r"cannot sample 7 transitions: the buffer is empty. .*learning_starts"):
        buffer.sample(7)
    expect_works_on(buffer, kind)
    buffer.reset()
    with pytest.raises(BufferStateError, match="the buffer is empty"):
        buffer.sample(7)


@pytest.mark.parametrize("kind", ROLLOUT)
@pytest.mark.parametrize("steps", [0, 2])
def test_a_rollout_that_is_not_complete_gives_no_batches(kind, steps):
    buffer = make(kind, steps)
    before = content(buffer)
    with pytest.raises(BufferStateError, match=f"cannot get batches: {steps} of 3 steps of the rollout are there"):
        buffer.get(4)
    expect_same(content(buffer), before)
    expect_works_on(buffer, kind)


@pytest.mark.parametrize("kind", ROLLOUT)
def test_a_rollout_that_is_complete_takes_no_further_step(kind):
    buffer = make(kind, 3)
    before = content(buffer)
    with pytest.raises(BufferStateError, match=r"cannot add a step: the rollout is complete. Call reset\(\)"):
        buffer.add(**step(kind, 40))
    expect_same(content(buffer), before)
    expect_works_on(buffer, kind)


@pytest.mark.parametrize("kind", ROLLOUT)
def test_a_ring_that_is_too_small_for_a_rollout_is_an_error_and_the_next_rollout_starts_empty(kind):
    capacity = 2 * ENVS * 400 * (2 if kind is CompressedDictRolloutBuffer else 1) + 50
    buffer = make(kind, 2, heap="ring", heap_kwargs={"capacity": capacity}, compression_method="none")
    with pytest.raises(HeapFullError, match=rf"capacity is {capacity} bytes. A rollout must fit as a whole.*'memory'"):
        buffer.add(**step(kind, 40))
    assert (buffer.pos, buffer.full) == (0, False)
    buffer.add(**step(kind, 1))
    assert buffer.pos == 1


def test_a_ring_that_is_too_small_for_one_step_is_an_error_and_nothing_is_lost():
    buffer = CompressedReplayBuffer(
        6, IMAGE, ACTIONS, compression_method="gzip", heap="ring", heap_kwargs={"capacity": 300}
    )
    flat = np.zeros((1, 20, 20), np.uint8)
    noise = np.random.default_rng(0).integers(0, 256, (1, 20, 20), np.uint8)
    rest = np.zeros((1, 2)), np.zeros(1), np.zeros(1), [{}]
    buffer.add(flat, flat, *rest)
    with pytest.raises(HeapFullError, match=r"\d+ bytes were needed at once, the capacity is 300 bytes"):
        buffer.add(noise, flat, *rest)
    assert buffer.size() == 1
    assert not buffer.sample(3).observations.any()
    buffer.add(flat + 1, flat, *rest)
    assert buffer.size() == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("kind", [CompressedReplayBuffer, CompressedRolloutBuffer])
def test_a_disk_that_is_full_is_an_error_and_nothing_is_lost(kind):
    buffer = make(kind, 4 if kind in REPLAY else 2, heap="mmap", compression_method="gzip")
    before, heap = content(buffer), buffer._storage.heap
    sound = heap._file
    with Path("/dev/full").open("wb", buffering=0) as full:
        heap._file = full
        with pytest.raises(HeapFullError, match=r"No space left on device.*Choose another folder"):
            buffer.add(**step(kind, 40))
        heap._file = sound
    expect_same(content(buffer), before)
    expect_works_on(buffer, kind)


@pytest.mark.parametrize("attempt", range(9))
@pytest.mark.parametrize("heap", ["memory", "ring"])
@pytest.mark.parametrize("kind", REPLAY)
def test_wherever_a_heap_fails_during_a_step_no_mixture_of_old_and_new_is_ever_sampled(
    kind, heap, attempt, monkeypatch
):
    parameters = {"heap": heap, "heap_kwargs": {"capacity": 1 << 16} if heap == "ring" else None}
    buffer = make(kind, 5, compression_method="gzip", **parameters)
    known = {tuple(row) for row in buffer.actions.reshape(-1, 2).tolist()}
    commit, count = buffer._storage.heap.commit, []

    def fail(lengths):
        count.append(1)
        if len(count) > attempt:
            raise HeapFullError(heap, 1, 0)
        commit(lengths)

    with monkeypatch.context() as patch:
        patch.setattr(buffer._storage.heap, "commit", fail)
        try:
            buffer.add(**step(kind, 40))
        except HeapFullError:
            assert (buffer.pos, buffer.full) == (2, True)
        else:
            assert len(count) <= attempt
            return
    samples = buffer.sample(200)
    for seed in range(5):
        given = step(kind, seed)
        for env in range(ENVS):
            mine = (samples.actions == th.as_tensor(given["action"][env])).all(dim=1)
            for name in ("obs", "next_obs"):
                found = getattr(samples, {"obs": "observations", "next_obs": "next_observations"}[name])
                for key in found if isinstance(found, dict) else [None]:
                    part, whole = (found, given[name]) if key is None else (found[key], given[name][key])
                    assert (part[mine] == th.as_tensor(whole[env])).all()
    assert {tuple(row) for row in samples.actions.tolist()} <= known
    buffer.add(**step(kind, 40))
    expect_works_on(buffer, kind)
