"""What actors put into their rings is in the buffer, as if it had been added there."""

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer

from sb3_extra_buffers.compressed import CompressedDictReplayBuffer, CompressedReplayBuffer
from sb3_extra_buffers.errors import FileDamagedError, HeapFullError, ObservationError, ParameterError
from sb3_extra_buffers.sharing import Feeder, Ring, transition_record

SCREEN = spaces.Box(0, 255, (2, 30, 30), np.uint8)
DICT = spaces.Dict(image=SCREEN, speed=spaces.Box(-1, 1, (3,), np.float32), gear=spaces.Discrete(6))
CASES = [
    (SCREEN, spaces.Discrete(4), ReplayBuffer, CompressedReplayBuffer),
    (SCREEN, spaces.Box(-1, 1, (2,), np.float32), ReplayBuffer, CompressedReplayBuffer),
    (DICT, spaces.MultiDiscrete([3, 4]), DictReplayBuffer, CompressedDictReplayBuffer),
]


@pytest.mark.parametrize(("space", "actions", "plain", "compressed"), CASES)
def test_rows_are_those_of_a_buffer_that_was_added_to(tmp_path, same_samples, space, actions, plain, compressed):
    for part in (space, actions):
        part.seed(0)
    rng, actors, steps = np.random.default_rng(0), 3, 17
    theirs, ours = (kind(30, space, actions, "cpu", actors) for kind in (plain, compressed))
    rings = [Ring.create(tmp_path / str(n), transition_record(space, actions), 8) for n in range(actors)]
    feeder, fed = Feeder(ours, rings), 0
    for _ in range(steps):
        parts = []
        for ring in rings:
            found = np.zeros((), ring.record)
            for name in ("obs", "next_obs"):
                value = space.sample()
                for key, part in value.items() if isinstance(value, dict) else [(None, value)]:
                    found[name if key is None else f"{name}.{key}"] = part
            found["action"], found["reward"] = actions.sample(), rng.normal()
            found["done"] = rng.random() < 0.4
            found["timeout"] = found["done"] and rng.random() < 0.5
            parts.append(found)
            ring.put(found)
            fed += feeder.feed(limit=2)  # whatever is complete, and not more
        rows = np.stack(parts)
        obs, following = (
            {key: rows[f"{name}.{key}"] for key in space.spaces} if isinstance(space, spaces.Dict) else rows[name]
            for name in ("obs", "next_obs")
        )
        infos = [{"TimeLimit.truncated": bool(late)} for late in rows["timeout"]]
        theirs.add(obs, following, rows["action"], rows["reward"], rows["done"], infos)
    assert fed == steps
    assert theirs.full
    same_samples(ours, theirs, 64)
    assert not feeder.is_ended
    rings[1].end()
    assert feeder.is_ended
    assert feeder.feed() == 0


def test_a_ring_for_each_environment_is_asked_for(tmp_path):
    buffer = CompressedReplayBuffer(10, SCREEN, spaces.Discrete(2), "cpu", 2)
    ring = Ring.create(tmp_path / "ring", transition_record(SCREEN, spaces.Discrete(2)), 2)
    with pytest.raises(ParameterError, match="for 2 environments"):
        Feeder(buffer, [ring])


@pytest.fixture
def fed(tmp_path):
    """Two rings with so many transitions, whose rewards are their numbers; a buffer; and its feeder."""

    def fed(count, bad=None):
        record = transition_record(spaces.Box(-1, 1, (3,), np.float32), spaces.Discrete(2))
        rings = [Ring.create(tmp_path / str(actor), record, count) for actor in range(2)]
        for actor, ring in enumerate(rings):
            for number in range(count):
                found = np.zeros((), record)
                found["reward"] = np.nan if (actor, number) == bad else number
                ring.put(found)
        buffer = CompressedReplayBuffer(100, spaces.Box(-1, 1, (3,), np.float32), spaces.Discrete(2), "cpu", 2)
        return rings, buffer, Feeder(buffer, rings)

    return fed


def test_a_record_that_the_buffer_refuses_is_named_and_alone_left_out(fed):
    rings, buffer, feeder = fed(40, bad=(0, 5))
    assert feeder.feed() == 5
    with pytest.raises(ObservationError, match=r"reward, in record 5 of .*0, is NaN.*continues after it"):
        feeder.feed()
    assert [len(ring) for ring in rings] == [34, 35]
    assert feeder.feed() == 34
    assert buffer.rewards[:39, 0].tolist() == [*range(5), *range(6, 40)]
    assert buffer.rewards[:39, 1].tolist() == [*range(39)]
    assert [len(ring) for ring in rings] == [0, 1]


def test_a_damaged_record_is_named_and_alone_left_out(fed):
    rings, buffer, feeder = fed(20)
    rings[1]._bytes[3, 20] ^= 1
    assert feeder.feed() == 3
    with pytest.raises(FileDamagedError, match=r"1 is damaged: record 3, in slot 3\. It was left out"):
        feeder.feed()
    assert [len(ring) for ring in rings] == [17, 16]
    assert feeder.feed() == 16
    assert buffer.rewards[:19, 1].tolist() == [*range(3), *range(4, 20)]
    assert buffer.rewards[:19, 0].tolist() == [*range(19)]


def test_what_a_buffer_has_no_room_for_stays_in_the_rings(fed, monkeypatch):
    _, buffer, feeder = fed(10)
    monkeypatch.setattr(buffer, "add", lambda *_: (_ for _ in ()).throw(HeapFullError("ring", 2, 1)))
    with pytest.raises(HeapFullError):
        feeder.feed()
    monkeypatch.undo()
    assert feeder.feed() == 10


@pytest.fixture
def crowded(tmp_path):
    """Two rings with so many transitions, the sixth of the second larger than the heap of a buffer; and its feeder."""

    def crowded(count, **options):
        record, rng = transition_record(SCREEN, spaces.Discrete(2)), np.random.default_rng(0)
        rings = [Ring.create(tmp_path / str(actor), record, count) for actor in range(2)]
        for actor, ring in enumerate(rings):
            for number in range(count):
                found = np.zeros((), record)
                found["reward"], found["obs"][:, 0, 0], found["next_obs"][:, 0, 0] = number, number, number + 1
                if (actor, number) == (1, 5):
                    found["obs"], found["next_obs"] = rng.integers(0, 256, (2, *SCREEN.shape))
                ring.put(found)
        place = {"heap": "ring", "heap_kwargs": {"capacity": 1500}, **options}
        buffer = CompressedReplayBuffer(2 * count, SCREEN, spaces.Discrete(2), "cpu", 2, **place)
        return rings, buffer, Feeder(buffer, rings)

    return crowded


def test_a_row_that_can_never_fit_is_named_and_alone_left_out(crowded):
    rings, buffer, feeder = crowded(40, layout="cells", compression_method="gzip")
    assert feeder.feed() == 5
    told = r"ring, for record 5 of .*0 and record 5 of .*1: \d+ bytes were .* capacity is 1500 .*continues after it"
    with pytest.raises(HeapFullError, match=told) as caught:
        feeder.feed()
    assert caught.value.never_fits
    assert [len(ring) for ring in rings] == [34, 34]
    assert feeder.feed() == 34
    assert buffer.rewards[:39].tolist() == [[number] * 2 for number in range(40) if number != 5]


def test_frames_that_do_not_fit_cost_no_record_that_comes_behind_them(crowded):
    rings, buffer, feeder = crowded(200, layout="frames", compression_method="gzip")
    told, fed = [], 0
    while len(rings[0]) and len(told) < 9:
        try:
            fed += feeder.feed(limit=1)
        except HeapFullError as error:  # noqa: PERF203 - several are expected
            told.append(error.never_fits)
    assert 0 < len(told) < 9
    assert not any(told)
    assert fed == 200
    assert buffer.rewards[:, 0].tolist() == [*range(200)]


def test_what_there_is_no_room_for_now_is_told_after_how_many_rows_were_added(fed, monkeypatch):
    rings, buffer, feeder = fed(10)
    add = buffer.add

    def filling_up(*step):
        if buffer.pos == 4:
            raise HeapFullError("mmap", 2, 100, "No space left.")
        add(*step)

    monkeypatch.setattr(buffer, "add", filling_up)
    assert feeder.feed() == 4
    for _ in range(2):
        with pytest.raises(HeapFullError, match="No space left"):
            feeder.feed()
    assert [len(ring) for ring in rings] == [6, 6]
    monkeypatch.undo()
    assert feeder.feed() == 6


def test_a_space_without_a_shape_is_refused():
    with pytest.raises(ParameterError, match="a shape and a dtype"):
        transition_record(spaces.Text(5), spaces.Discrete(2))
