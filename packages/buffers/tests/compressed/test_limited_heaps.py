"""A heap with a budget keeps the newest transitions whole, and nothing but these is sampled."""

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers.compressed import CompressedDictReplayBuffer, CompressedReplayBuffer
from sb3_extra_buffers.errors import HeapFullError, HeapStateError
from sb3_extra_buffers.frames import Streams
from sb3_extra_buffers.heaps import TableHeap
from sb3_extra_buffers.stores import cells as cells_module

ACTIONS = spaces.Discrete(2)
IMAGE = spaces.Box(0, 255, (20, 20), np.uint8)
DICT = spaces.Dict(image=IMAGE, other=spaces.Box(0, 255, (300,), np.uint8), vec=spaces.Box(0, 255, (5,), np.uint8))
ONE_PER_STEP = {"optimize_memory_usage": True, "handle_timeout_termination": False}


def observation(space, number, noisy):
    """An observation that begins with its number, followed by noise or by nothing."""
    if isinstance(space, spaces.Dict):
        return {key: observation(part, number, noisy) for key, part in space.items()}
    content = np.random.default_rng(number).integers(0, 256, space.shape, np.uint8) * noisy
    content.reshape(-1)[0] = number
    return content.astype(np.uint8)[np.newaxis]


def play(buffer, steps, noisy=lambda step: True, ends=lambda step: False):
    """Observations 2, 3, 4, ...; after the end of an episode the next one begins 100 further on."""
    space, number = buffer.observation_space, 2
    for step in range(steps):
        obs, following = (observation(space, value % 256, noisy(step)) for value in (number, number + 1))
        buffer.add(obs, following, np.zeros((1, 1)), np.array([number]), np.array([ends(step)]), [{}])
        number += 101 if ends(step) else 1
    return number


def numbers(observations):
    """The numbers that observations begin with, by key."""
    parts = observations if isinstance(observations, dict) else {"": observations}
    return {key: part.reshape(len(part), -1)[:, 0].numpy() for key, part in parts.items()}


def sampled(buffer, count=300):
    """The numbers of transitions that sampling returns, each checked to be whole."""
    np.random.seed(0)
    batch = buffer.sample(count)
    rewards = batch.rewards.numpy().reshape(-1).astype(int)
    for found in numbers(batch.observations).values():
        assert (found == rewards % 256).all()
    for found in numbers(batch.next_observations).values():
        assert (found == (rewards + 1) % 256).all()
    return sorted(set(rewards.tolist()))


@pytest.mark.parametrize("ends", [lambda step: False, lambda step: step % 3 == 2], ids=["endless", "short episodes"])
@pytest.mark.parametrize(
    ("kind", "space"),
    [
        (CompressedReplayBuffer, IMAGE),
        (CompressedReplayBuffer, spaces.Box(0, 255, (150,), np.uint8)),
        (CompressedDictReplayBuffer, DICT),
    ],
    ids=["shared", "small", "Dict"],
)
@pytest.mark.parametrize("steps", [5, 30, 65])
def test_a_ring_keeps_the_newest_transitions_and_only_whole_ones_are_sampled(kind, space, ends, steps):
    buffer = kind(30, space, ACTIONS, compression_method="none", heap="ring", heap_kwargs={"capacity": 6000})
    last = play(buffer, steps, ends=ends)
    assert (buffer._kept_rows() < buffer.size()) == (steps > 5)
    found = sampled(buffer)
    assert max(found) == last - (101 if ends(steps - 1) else 1)
    assert len(found) == buffer._kept_rows() >= 5


@pytest.mark.parametrize("steps", [7, 30, 65])
def test_a_ring_works_with_one_observation_per_step(steps):
    buffer = CompressedReplayBuffer(
        30, IMAGE, ACTIONS, compression_method="none", heap="ring", heap_kwargs={"capacity": 6000}, **ONE_PER_STEP
    )
    last = play(buffer, steps)
    found = sampled(buffer)
    assert found == list(range(last - len(found), last))
    assert len(found) == (7 if steps == 7 else 14)  # 15 observations fit


def test_the_row_that_is_overwritten_next_is_never_sampled_with_one_observation_per_step():
    buffer = CompressedReplayBuffer(
        6, IMAGE, ACTIONS, compression_method="gzip", heap="ring", heap_kwargs={"capacity": 1600}, **ONE_PER_STEP
    )
    # First noise, so that something is dropped, then little enough for every row to be there.
    last = play(buffer, 20, noisy=lambda step: step < 6)
    assert buffer._storage.evicted_cells > 0
    assert sampled(buffer) == list(range(last - 5, last))


@pytest.mark.parametrize("codec", ["none", "gzip", "auto"])
@pytest.mark.parametrize(
    ("kind", "space", "options"),
    [
        (CompressedReplayBuffer, IMAGE, {}),
        (CompressedReplayBuffer, IMAGE, ONE_PER_STEP),
        (CompressedReplayBuffer, spaces.Box(0, 255, (40,), np.uint8), {}),
        (CompressedReplayBuffer, spaces.Box(0, 255, (40,), np.uint8), ONE_PER_STEP),
        (CompressedDictReplayBuffer, DICT, {}),
    ],
    ids=["shared", "one per step", "small", "small, one per step", "Dict"],
)
def test_a_file_without_a_limit_never_drops_a_transition(kind, space, options, codec):
    buffer = kind(20, space, ACTIONS, compression_method=codec, heap="mmap", **options)
    for rate in (1, 3, 2, 50, 1):  # how long episodes are, so that the ring in the file is out of step with itself
        last = play(buffer, 33, ends=lambda step, rate=rate: step % rate == 0)
        assert buffer._kept_rows() == 20
        assert buffer.memory_report().evicted == 0
    if not options:
        assert sampled(buffer) == list(range(last - 20 * 101, last, 101))


def test_after_a_reset_a_ring_has_all_its_room_again():
    buffer = CompressedReplayBuffer(
        30, IMAGE, ACTIONS, compression_method="none", heap="ring", heap_kwargs={"capacity": 4000}
    )
    play(buffer, 50)
    buffer.reset()
    play(buffer, 5)
    assert sampled(buffer) == [2, 3, 4, 5, 6]


def test_a_step_whose_keys_do_not_fit_together_is_refused_and_nothing_changes():
    space = spaces.Dict(image=IMAGE, more=IMAGE)
    buffer = CompressedDictReplayBuffer(
        20, space, ACTIONS, compression_method="none", heap="ring", heap_kwargs={"capacity": 700}
    )
    with pytest.raises(HeapFullError, match="The keys of one step must fit together"):
        play(buffer, 1)
    assert buffer.size() == 0


def test_one_array_of_a_buffer_cannot_be_cleared_because_others_share_its_heap():
    buffer = CompressedDictReplayBuffer(20, spaces.Dict(image=IMAGE, more=IMAGE), ACTIONS, compression_method="gzip")
    play(buffer, 10)
    with pytest.raises(HeapStateError, match="other arrays share its heap"):
        buffer.observations["image"].clear()
    assert sampled(buffer) == list(range(2, 12))
    buffer.reset()
    assert buffer.size() == 0
    assert not np.asarray(buffer.observations["more"]).any()


def test_a_refused_step_that_has_driven_out_all_others_leaves_nothing_to_sample():
    """The first keys of a step are stored before the last one turns out not to fit."""
    space = spaces.Dict(a=spaces.Box(0, 255, (30,), np.uint8), b=spaces.Box(0, 255, (200,), np.uint8))
    limited = {"heap": "ring", "heap_kwargs": {"capacity": 400}}
    buffer = CompressedDictReplayBuffer(9, space, ACTIONS, compression_method="rle", device="cpu", **limited)
    play(buffer, 3, noisy=lambda step: False)
    assert sampled(buffer) == [2, 3, 4]
    with pytest.raises(HeapFullError, match="must fit together"):
        play(buffer, 1)
    assert buffer.pos == 3
    with pytest.raises(ValueError, match="no step is left that could be stored completely"):
        buffer.sample(4)
    play(buffer, 1, noisy=lambda step: False)
    assert sampled(buffer) == [2]


@pytest.mark.parametrize("space", [IMAGE, spaces.Box(0, 255, (150,), np.uint8)], ids=["image", "vector"])
@pytest.mark.parametrize("steps", [3, 14], ids=["filling", "full"])
def test_what_leads_to_more_than_the_budget_is_refused_and_keeps_nothing_out(space, steps):
    """A next observation waits to be compared. One that can never be stored would wait for ever."""
    capacity = int(np.prod(space.shape)) - 1
    buffer = CompressedReplayBuffer(
        8,
        space,
        ACTIONS,
        "cpu",
        compression_method="rle",
        layout="cells",
        heap="ring",
        heap_kwargs={"capacity": capacity},
    )
    number = play(buffer, steps, noisy=lambda step: False)
    kept = sampled(buffer)
    pair = observation(space, number, False), observation(space, number + 1, True)
    for _ in range(2):
        with pytest.raises(HeapFullError, match="One row must fit as a whole"):
            buffer.add(*pair, np.zeros((1, 1)), np.array([number]), np.array([False]), [{}])
        assert sampled(buffer) == kept
        assert buffer.memory_report().transitions == len(kept)
    for step in range(5):
        obs, following = (observation(space, number + value, False) for value in (step, step + 1))
        buffer.add(obs, following, np.zeros((1, 1)), np.array([number + step]), np.array([False]), [{}])
    assert sampled(buffer)[-5:] == [*range(number, number + 5)]


@pytest.mark.parametrize(("heap", "capacity", "times"), [("ring", 3400, 2), ("ring", 20_000, 1), ("memory", None, 1)])
def test_a_step_is_encoded_once_and_once_more_where_what_it_leads_to_might_not_fit(heap, capacity, times, monkeypatch):
    envs, counts, encode_batch = 8, [], cells_module.encode_batch
    monkeypatch.setattr(
        cells_module,
        "encode_batch",
        lambda codec, rows, out: counts.append(len(rows)) or encode_batch(codec, rows, out),
    )
    buffer = CompressedReplayBuffer(
        80,
        IMAGE,
        ACTIONS,
        "cpu",
        envs,
        compression_method="gzip",
        layout="cells",
        heap=heap,
        heap_kwargs=None if capacity is None else {"capacity": capacity},
    )
    obs = np.random.default_rng(0).integers(0, 256, (25, envs, 20, 20), np.uint8)
    for step in range(24):
        counts.clear()
        buffer.add(obs[step], obs[step + 1], np.zeros((envs, 1)), np.zeros(envs), np.zeros(envs), [{}] * envs)
        assert sum(counts) == times * envs
    assert buffer._storage.next_observations[""].store._fitting is None


def test_what_was_seen_to_fit_is_seen_anew_if_something_else_is_written():
    buffer = CompressedReplayBuffer(
        8, IMAGE, ACTIONS, "cpu", compression_method="rle", layout="cells", heap="ring", heap_kwargs={"capacity": 399}
    )
    play(buffer, 2, noisy=lambda step: False)
    buffer._storage.refuse_too_large(observation(IMAGE, 4, False))
    with pytest.raises(HeapFullError, match="One row must fit as a whole"):
        buffer.next_observations[2] = observation(IMAGE, 4, True)
    play(buffer, 3, noisy=lambda step: False)
    assert sampled(buffer)[-3:] == [2, 3, 4]


def visited(monkeypatch, steps):
    """How many observations and payloads one add and one sample look at, at the most, once the ring is full."""
    space, counts = spaces.Box(0, 255, (2, 32, 32), np.uint8), {"observations": 0, "payloads": 0}
    ring = {"heap": "ring", "heap_kwargs": {"capacity": 130 * steps}}
    buffer = CompressedReplayBuffer(steps, space, spaces.Discrete(2), "cpu", **ring)
    walk, locate = Streams.walk, TableHeap.locate

    def counting_walk(self, references):
        counts["observations"] += len(references)
        return walk(self, references)

    def counting_locate(self, cells):
        counts["payloads"] += len(cells)
        return locate(self, cells)

    monkeypatch.setattr(Streams, "walk", counting_walk)
    monkeypatch.setattr(TableHeap, "locate", counting_locate)
    images, most = np.random.default_rng(0).integers(0, 256, (steps + 3, 32, 32)).astype(np.uint8), []
    images[:, 4:] = 7
    for step in range(2 * steps):
        counts.update(observations=0, payloads=0)
        first = step % steps
        pair = images[None, first : first + 2], images[None, first + 1 : first + 3]
        buffer.add(*pair, np.zeros((1, 1)), np.zeros(1), np.zeros(1), [{}])
        if step >= 2 * steps - 40:
            buffer.sample(4)
        if step >= 2 * steps - 30:
            most.append(tuple(counts.values()))
    assert 0 < buffer._kept_rows() < steps
    return np.max(most, axis=0)


def test_adding_and_sampling_looks_at_no_more_in_a_larger_buffer(monkeypatch):
    np.random.seed(0)
    small, large = (visited(monkeypatch, steps) for steps in (300, 3000))
    assert (large <= 2 * small).all()
    assert (small < 1000).all()
