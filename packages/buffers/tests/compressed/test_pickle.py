"""A pickled buffer is packed, names its codec and its format, and is independent of the one it came from."""

import copy
import importlib
import pickle
import pickletools
import re
from importlib.metadata import entry_points
from itertools import pairwise

import cloudpickle
import numpy as np
import pytest
import torch as th
from gymnasium import spaces

from sb3_extra_buffers import codecs, compressed
from sb3_extra_buffers.compressed import (
    CompressedDictNStepReplayBuffer,
    CompressedDictPrioritizedReplayBuffer,
    CompressedDictReplayBuffer,
    CompressedDictRolloutBuffer,
    CompressedHerReplayBuffer,
    CompressedMaskableDictRolloutBuffer,
    CompressedMaskableRolloutBuffer,
    CompressedNStepReplayBuffer,
    CompressedPrioritizedReplayBuffer,
    CompressedRecurrentDictRolloutBuffer,
    CompressedRecurrentRolloutBuffer,
    CompressedReplayBuffer,
    CompressedRolloutBuffer,
    base,
)
from sb3_extra_buffers.errors import BufferStateError, UnknownPluginError
from sb3_extra_buffers.errors.install import install_command
from sb3_extra_buffers.testing.processes import in_fresh_process

ACTIONS = spaces.Discrete(5)
# Large enough for some of it to wait for a batch to be compressed in.
IMAGE = spaces.Box(0, 255, (72, 72), np.uint8)
DICT = spaces.Dict(image=IMAGE, second=IMAGE, vec=spaces.Box(-9, 9, (3,), np.float32))
KINDS = {
    CompressedReplayBuffer: IMAGE,
    CompressedDictReplayBuffer: DICT,
    CompressedRolloutBuffer: IMAGE,
    CompressedDictRolloutBuffer: DICT,
}
ROUTES = {
    "pickle": lambda buffer: pickle.loads(pickle.dumps(buffer)),
    "oldest protocol": lambda buffer: pickle.loads(pickle.dumps(buffer, protocol=2)),
    "deepcopy": copy.deepcopy,
    "cloudpickle": lambda buffer: cloudpickle.loads(cloudpickle.dumps(buffer)),
}
each_kind = pytest.mark.parametrize("kind", KINDS)
each_route = pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)


def observation(space, value):
    if isinstance(space, spaces.Dict):
        return {key: observation(part, value) for key, part in space.items()}
    return np.stack([np.full(space.shape, value + env, space.dtype) for env in range(2)])


def fill(buffer, steps, first=0):
    """Two environments; every third step ends an episode."""
    space = buffer.observation_space
    for step in range(first, first + steps):
        obs, action, reward = observation(space, step), np.array([[1], [2]]), np.array([step, -step], np.float32)
        if isinstance(buffer, CompressedRolloutBuffer):
            buffer.add(obs, action, reward, np.zeros(2), th.zeros(2), th.zeros(2))
        else:
            following = observation(space, step + (1 if step % 3 else 5))
            buffer.add(obs, following, action, reward, np.zeros(2), [{}, {}])
    return buffer


def make(kind, steps, **storage):
    size = 8 if issubclass(kind, CompressedReplayBuffer) else 4
    return fill(kind(size, KINDS[kind], ACTIONS, n_envs=2, device="cpu", **storage), steps)


def drawn(buffer, seed=3):
    """All tensors of a batch, as arrays."""
    np.random.seed(seed)
    batch = next(buffer.get(8)) if isinstance(buffer, CompressedRolloutBuffer) else buffer.sample(20)
    parts = {}
    for name, value in batch._asdict().items():
        for key, part in value.items() if isinstance(value, dict) else [("", value)]:
            if part is not None:
                parts[name, key] = part.numpy().copy()
    return parts


def expect_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert (found[name].dtype, found[name].tobytes()) == (value.dtype, value.tobytes()), name


@each_kind
@each_route
@pytest.mark.parametrize("codec", [*codecs.names(), "auto"])
def test_a_copy_samples_the_same_and_neither_notices_the_other(kind, route, codec):
    steps = 6 if issubclass(kind, CompressedReplayBuffer) else 4
    buffer = make(kind, steps, compression_method=codec)
    twin = route(buffer)
    before = drawn(buffer)
    expect_equal(drawn(twin), before)
    twin.reset()
    fill(twin, 4, first=100)
    expect_equal(drawn(buffer), before)
    assert drawn(twin)["observations", "" if KINDS[kind] is IMAGE else "image"].min() >= 100


@each_route
@pytest.mark.parametrize("kind", [CompressedReplayBuffer, CompressedDictReplayBuffer])
def test_a_copy_goes_on_where_the_original_stopped(kind, route):
    buffer = make(kind, 6, compression_method="gzip")
    twin = route(buffer)
    for part in (buffer, twin):
        fill(part, 3, first=6)
    expect_equal(drawn(twin), drawn(buffer))
    assert twin._storage.heap.live == buffer._storage.heap.live


@each_kind
@each_route
def test_an_empty_buffer_travels_and_chooses_its_codec_later(kind, route):
    twin = route(make(kind, 0, layout="cells"))
    assert "not yet chosen" in twin.memory_report().keys[0].codec
    fill(twin, 4)
    assert "chosen: makes the first observations" in twin.memory_report().keys[0].codec
    expect_equal(drawn(twin), drawn(make(kind, 4, layout="cells")))


@each_route
def test_a_rollout_travels_between_batches(route):
    buffer = make(CompressedRolloutBuffer, 4)
    first = drawn(buffer)
    twin = route(buffer)
    expect_equal(drawn(twin), first)
    twin.reset()
    fill(twin, 4)
    expect_equal(drawn(twin), first)


@each_route
@pytest.mark.parametrize("heap", ["memory", "ring", "mmap"])
def test_buffers_travel_with_every_heap(route, heap):
    parameters = {"capacity": 1 << 16} if heap != "memory" else {}
    buffer = make(CompressedReplayBuffer, 6, compression_method="gzip", heap=heap, heap_kwargs=parameters)
    twin = route(buffer)
    expect_equal(drawn(twin), drawn(buffer))
    assert type(twin._storage.heap) is type(buffer._storage.heap)


@each_route
def test_one_observation_per_step_travels(route):
    options = {"optimize_memory_usage": True, "handle_timeout_termination": False}
    buffer = make(CompressedReplayBuffer, 6, compression_method="gzip", **options)
    twin = route(buffer)
    for part in (buffer, twin):
        fill(part, 2, first=6)
    expect_equal(drawn(twin), drawn(buffer))


def large(codec, **storage):
    buffer = CompressedReplayBuffer(
        500, spaces.Box(0, 255, (100, 100), np.uint8), ACTIONS, compression_method=codec, **storage
    )
    frames = np.random.default_rng(0).integers(0, 3, (101, 10, 10), np.uint8).repeat(10, axis=1).repeat(10, axis=2)
    for obs, next_obs in pairwise(frames[:, np.newaxis]):
        buffer.add(obs, next_obs, np.zeros((1, 1)), np.zeros(1), np.zeros(1), [{}])
    return buffer


@pytest.mark.parametrize("codec", codecs.names())
@pytest.mark.parametrize(("heap", "parameters"), [("memory", {}), ("mmap", {"capacity": 1 << 24})])
def test_the_pickle_is_about_as_large_as_what_is_live(codec, heap, parameters):
    buffer = large(codec, heap=heap, heap_kwargs=parameters)
    report = buffer.memory_report()
    beside = sum(array.nbytes for array in (buffer.actions, buffer.rewards, buffer.dones, buffer.timeouts))
    beside += report.overhead + len(pickle.dumps(buffer.observation_space))
    size = len(pickle.dumps(buffer))
    names = 6000  # of classes and attributes, in any buffer
    assert report.live_nbytes < size < report.live_nbytes + beside + names


@pytest.mark.parametrize("codec", codecs.names())
def test_the_pickle_names_its_codec_and_holds_no_code_of_it(codec):
    packed = pickle.dumps(large(codec, heap="ring", heap_kwargs={"capacity": 1 << 22}))
    assert codec.encode() in packed
    assert b"sb3_extra_buffers_codec_" not in packed


def test_a_buffer_is_read_by_a_process_that_has_imported_nothing():
    buffer = make(CompressedDictReplayBuffer, 6, compression_method="gzip")
    found = in_fresh_process(base.BaseCompressedBuffer.memory_report, buffer)
    assert found.keys == buffer.memory_report().keys


# What cannot be loaded


def test_the_state_has_a_format_version():
    buffer = make(CompressedReplayBuffer, 2)
    assert buffer.__getstate__()["format_version"] == base.FORMAT_VERSION == 1
    assert "format_version" not in vars(pickle.loads(pickle.dumps(buffer)))


@each_kind
def test_a_newer_format_is_refused_with_what_to_do(kind, monkeypatch):
    with monkeypatch.context() as later:
        later.setattr(base, "FORMAT_VERSION", 2)
        packed = pickle.dumps(make(kind, 2))
        assert pickle.loads(packed).pos == 2
    told = f"{kind.__name__}: cannot load a pickled buffer: its format version is 2, this version reads 1. Upgrade"
    with pytest.raises(BufferStateError, match=told):
        pickle.loads(packed)


@each_kind
def test_a_buffer_from_before_version_1_is_refused_with_what_to_do(kind, monkeypatch):
    with monkeypatch.context() as earlier:
        home = "compressed_rollout" if "Rollout" in kind.__name__ else "compressed_replay"
        earlier.setattr(kind, "__module__", f"sb3_extra_buffers.compressed.{home}")
        earlier.setattr(base.BaseCompressedBuffer, "__getstate__", lambda self: {"pos": self.pos})
        packed = pickle.dumps(make(kind, 2))
    assert home.encode() in packed
    with pytest.raises(BufferStateError, match=r"it has no format version.*before 1; fill a new buffer instead"):
        pickle.loads(packed)


@pytest.mark.parametrize(
    ("codec", "home"), [("zstd", "zstd"), ("igzip", "isal"), ("rle-jit", "rle-numba"), ("lz4-block", "lz4")]
)
def test_a_codec_that_is_missing_when_loading_is_named_with_the_command_that_installs_it(codec, home, monkeypatch):
    there = {name: offers for name, offers in codecs.registry.offers().items() if name in ("none", "rle", "gzip")}
    codecs.registry.refresh()
    with monkeypatch.context() as patch:
        patch.setattr(codecs.registry, "_offers", {**there, codec: there["rle"]})  # installed here, in a way
        packed = pickle.dumps(make(CompressedReplayBuffer, 6, compression_method=codec))
        expected = drawn(pickle.loads(packed))
    codecs.registry.refresh()
    with monkeypatch.context() as patch:
        patch.setattr(codecs.registry, "_offers", there)
        command = re.escape(install_command(f"sb3-extra-buffers-codec-{home}"))
        with pytest.raises(UnknownPluginError, match=rf"{codec!r} is not .*{command}$"):
            pickle.loads(packed)
        expect_equal(drawn(make(CompressedReplayBuffer, 6, compression_method="rle")), expected)
    codecs.registry.refresh()


@pytest.mark.parametrize("layout", ["cells", "frames"])
@pytest.mark.parametrize("route", [copy.deepcopy, lambda array: pickle.loads(pickle.dumps(array))])
def test_an_array_of_a_buffer_can_be_copied_alone(route, layout):
    """Many chunks, so that there are reference frames and addresses of chunks that were read."""
    space, rng = spaces.Box(0, 255, (3, 40, 40), np.uint8), np.random.default_rng(0)
    buffer = CompressedReplayBuffer(200, space, ACTIONS, n_envs=1, device="cpu", layout=layout)
    shown = np.repeat(rng.integers(1, 9, (1, 1, 40, 40)), 210, axis=0).astype(np.uint8)
    shown[np.arange(210), 0, rng.integers(0, 40, 210), rng.integers(0, 40, 210)] ^= 1
    for step in range(200):
        obs, following = (np.concatenate(shown[first : first + 3])[np.newaxis] for first in (step, step + 1))
        buffer.add(obs, following, np.zeros((1, 1)), np.zeros(1), np.zeros(1), [{}])
    expected = [np.asarray(buffer.observations).copy(), np.asarray(buffer.next_observations).copy()]
    twins = [route(buffer.observations), route(buffer.next_observations)]
    buffer.reset()
    for twin, content in zip(twins, expected):
        assert (np.asarray(twin) == content).all()
        twin[3] = 7
        assert (twin[3] == 7).all()
        assert (twin[4] == content[4]).all()


# A pickle of a training run outlives the private modules of the version that wrote it.

#: Modules that a pickle may name: public ones, and those that heaps are registered by.
PUBLIC = {
    "sb3_extra_buffers.compressed",
    "sb3_extra_buffers.heaps",
    *(point.value for point in entry_points(group="sb3_extra_buffers.heaps")),
}
GOALS = spaces.Dict(dict.fromkeys(["observation", "achieved_goal", "desired_goal"], DICT["vec"]))
HIDDEN = {"hidden_state_shape": (4, 1, 2, 3)}
EVERY_CLASS = {
    CompressedReplayBuffer: (IMAGE, {}),
    CompressedDictReplayBuffer: (DICT, {}),
    CompressedHerReplayBuffer: (GOALS, {"env": None}),
    CompressedNStepReplayBuffer: (IMAGE, {"n_steps": 3}),
    CompressedDictNStepReplayBuffer: (DICT, {"n_steps": 3}),
    CompressedPrioritizedReplayBuffer: (IMAGE, {}),
    CompressedDictPrioritizedReplayBuffer: (DICT, {}),
    CompressedRolloutBuffer: (IMAGE, {}),
    CompressedDictRolloutBuffer: (DICT, {}),
    CompressedMaskableRolloutBuffer: (IMAGE, {}),
    CompressedMaskableDictRolloutBuffer: (DICT, {}),
    CompressedRecurrentRolloutBuffer: (IMAGE, HIDDEN),
    CompressedRecurrentDictRolloutBuffer: (DICT, HIDDEN),
}


def globals_of(pickled):
    """Every ``module name`` that a pickle imports."""
    found, strings, memo = set(), [], {}
    for opcode, argument, _ in pickletools.genops(pickled):
        if opcode.name in ("GLOBAL", "INST"):
            found.add(tuple(argument.split(" ")))
        elif opcode.name == "STACK_GLOBAL":
            found.add((strings[-2], strings[-1]))
        elif opcode.name == "MEMOIZE":
            memo[len(memo)] = strings[-1] if strings else None
        elif opcode.name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = strings[-1] if strings else None
        elif opcode.name in ("BINGET", "LONG_BINGET"):
            strings.append(memo[argument])
        elif isinstance(argument, str):
            strings.append(argument)
        else:
            strings.append(None)
    return found


def full(kind, **storage):
    """A buffer with more than one lap of steps, or a whole rollout."""
    space, arguments = EVERY_CLASS[kind]
    is_replay = issubclass(kind, CompressedReplayBuffer)
    buffer = kind(8 if is_replay else 4, space, ACTIONS, n_envs=2, device="cpu", **arguments, **storage)
    for step in range(6 if is_replay else 4):
        obs, action, reward = observation(space, step), np.array([[1], [2]]), np.array([step, -step], np.float32)
        if is_replay:
            following = observation(space, step + (1 if step % 3 else 5))
            buffer.add(obs, following, action, reward, np.zeros(2), [{}, {}])
            continue
        rest = {}
        if "Recurrent" in kind.__name__:
            states = [(th.zeros(1, 2, 3), th.zeros(1, 2, 3))] * 2
            rest["lstm_states"] = type("States", (), {"pi": states[0], "vf": states[1]})()
        if "Maskable" in kind.__name__:
            rest["action_masks"] = np.ones((2, 5))
        buffer.add(obs, action, reward, np.zeros(2), th.zeros(2), th.zeros(2), **rest)
    return buffer


def test_every_class_is_among_those_whose_pickles_are_checked():
    names = {name for name in compressed.__all__ if name.startswith("Compressed") and name.endswith("Buffer")}
    assert {kind.__name__ for kind in EVERY_CLASS} == names


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
@pytest.mark.parametrize(
    "storage",
    [
        {},
        {"layout": "cells", "compression_method": "gzip"},
        {"layout": "cells", "compression_method": "none"},
        {"heap": "ring", "heap_kwargs": {"capacity": 1 << 20}},
        {"heap": "mmap"},
        {"dtypes": np.uint8},
        {"prefetch": True},
    ],
    ids=["default", "cells", "uncompressed", "ring", "mmap", "dtypes", "prefetch"],
)
@pytest.mark.parametrize("kind", EVERY_CLASS)
def test_a_pickle_names_public_modules_only(kind, storage, protocol):
    if "prefetch" in storage and kind not in (*KINDS, CompressedMaskableRolloutBuffer):
        pytest.skip("this class does not prefetch")
    if "dtypes" in storage and EVERY_CLASS[kind][0] is not IMAGE:
        pytest.skip("its space has floats")
    buffer = full(kind, **storage)
    if "prefetch" in storage:
        next(buffer.get(4)) if isinstance(buffer, CompressedRolloutBuffer) else buffer.sample(4)
    found = globals_of(pickle.dumps(buffer, protocol=protocol))
    own = {(module, name) for module, name in found if module.startswith("sb3_extra_buffers")}
    assert ("sb3_extra_buffers.compressed", kind.__name__) in own
    for module, name in own:
        assert module in PUBLIC, f"{module}.{name}"
        assert not name.startswith("_"), f"{module}.{name}"
        assert hasattr(importlib.import_module(module), name)
