"""The memory report counts what is stored, what is needed beside it, and what Stable-Baselines3 would keep."""

import dataclasses
import io
from itertools import pairwise

import numpy as np
import pytest
import torch as th
from gymnasium import spaces

from sb3_extra_buffers import codecs
from sb3_extra_buffers import frames as frames_package
from sb3_extra_buffers.compressed import (
    CompressedDictReplayBuffer,
    CompressedReplayBuffer,
    CompressedRolloutBuffer,
    KeyReport,
    MemoryReport,
)

ACTIONS = spaces.Discrete(2)
IMAGE = spaces.Box(0, 255, (40, 40), np.uint8)
EXAMPLE = MemoryReport(
    "CompressedDictReplayBuffer",
    12_345,
    (KeyReport("image", "gzip/1", 8_000_000, 1_000_000), KeyReport("vec", "none", 999, 999)),
    "ring",
    2_500_000_000,
    600_000,
    7_000,
)


def frames(count, seed=0, noisy=False):
    numbers = np.random.default_rng(seed)
    if noisy:
        return numbers.integers(0, 256, (count, 40, 40), np.uint8)
    return numbers.integers(0, 9, (count, 4, 4), np.uint8).repeat(10, axis=1).repeat(10, axis=2)


def play(buffer, observations):
    """Steps without an end of an episode, for one environment."""
    for obs, next_obs in pairwise(observations):
        buffer.add(obs[np.newaxis], next_obs[np.newaxis], np.zeros((1, 1)), np.zeros(1), np.zeros(1), [{}])
    return buffer


@pytest.mark.parametrize("codec", codecs.names())
def test_raw_is_what_stable_baselines3_would_keep_for_what_is_stored_now(codec):
    buffer = CompressedReplayBuffer(50, IMAGE, ACTIONS, compression_method=codec)
    assert buffer.memory_report().raw_nbytes == 0
    play(buffer, frames(11))
    report = buffer.memory_report()
    assert (report.buffer, report.transitions, report.heap) == ("CompressedReplayBuffer", 10, "memory")
    assert report.raw_nbytes == 2 * 10 * 1600
    play(buffer, frames(200))
    assert buffer.memory_report().transitions == 50
    assert buffer.memory_report().raw_nbytes == 2 * 50 * 1600


def test_one_observation_per_step_is_compared_with_one_observation_per_step():
    buffer = CompressedReplayBuffer(
        50, IMAGE, ACTIONS, optimize_memory_usage=True, handle_timeout_termination=False, compression_method="gzip"
    )
    assert play(buffer, frames(11)).memory_report().raw_nbytes == 10 * 1600


def test_rollouts_are_counted_too():
    buffer = CompressedRolloutBuffer(5, IMAGE, ACTIONS, n_envs=2, compression_method="gzip", layout="cells")
    for obs in frames(8).reshape(4, 2, 40, 40):
        buffer.add(obs, np.zeros((2, 1)), np.zeros(2), np.zeros(2), th.zeros(2), th.zeros(2))
    report = buffer.memory_report()
    assert (report.transitions, report.raw_nbytes) == (8, 8 * 1600)
    assert report.live_nbytes == buffer._storage.heap.live > 0


@pytest.mark.parametrize("codec", sorted({*codecs.names()} - {"none"}))
@pytest.mark.parametrize(("heap", "parameters"), [("memory", {}), ("ring", {"capacity": 1 << 18}), ("mmap", {})])
def test_live_is_what_the_heap_holds(codec, heap, parameters):
    buffer = CompressedReplayBuffer(
        30, IMAGE, ACTIONS, compression_method=codec, heap=heap, heap_kwargs=parameters, layout="cells"
    )
    for seed in range(4):
        play(buffer, frames(20, seed))
        report = buffer.memory_report()
        assert report.live_nbytes == buffer._storage.heap.live + 1600  # the last next observation waits
        assert report.live_nbytes == sum(key.live_nbytes for key in report.keys)
        assert report.capacity == buffer._storage.heap.capacity >= report.live_nbytes


def test_what_is_not_compressed_is_counted_as_it_is():
    buffer = play(CompressedReplayBuffer(50, IMAGE, ACTIONS, compression_method="none"), frames(11))
    report = buffer.memory_report()
    assert report.live_nbytes == 11 * 1600
    assert report.capacity == report.live_nbytes


def test_the_ratio_counts_the_overhead():
    report = play(CompressedReplayBuffer(50, IMAGE, ACTIONS, compression_method="gzip"), frames(51)).memory_report()
    (key,) = report.keys
    assert key.ratio == key.raw_nbytes / key.live_nbytes
    assert report.ratio == report.raw_nbytes / (report.live_nbytes + report.overhead)
    assert 1 < report.ratio < key.ratio


@pytest.mark.parametrize("heap", ["memory", "mmap"])
def test_the_overhead_is_the_memory_that_is_no_payload(heap):
    buffer = CompressedReplayBuffer(50, IMAGE, ACTIONS, compression_method="gzip", heap=heap, layout="cells")
    play(buffer, frames(51))
    own = buffer._storage.heap
    index = own.nbytes - (own.capacity if heap == "memory" else 0)
    slots, shared = 50 * 4, 50
    assert buffer.memory_report().overhead == index + slots + shared


def test_noise_is_not_made_out_to_be_smaller_than_it_is():
    buffer = play(CompressedReplayBuffer(50, IMAGE, ACTIONS, layout="cells"), frames(51, noisy=True))
    report = buffer.memory_report()
    assert 1.5 < report.ratio < 2  # each observation is stored once instead of twice
    assert report.keys[0].codec.startswith("none (chosen: ")


def test_what_a_ring_dropped_does_not_count_as_saved():
    buffer = CompressedReplayBuffer(
        200, IMAGE, ACTIONS, compression_method="none", heap="ring", heap_kwargs={"capacity": 20 * 1600}
    )
    report = play(buffer, frames(150, noisy=True)).memory_report()
    assert report.transitions < 25
    assert report.keys[0].ratio < 2.2
    assert report.evicted >= 120
    assert report.capacity == 20 * 1600


def test_each_key_has_its_own_line():
    space = spaces.Dict(image=IMAGE, empty=spaces.Box(0, 1, (0,)), vec=spaces.Box(-1, 1, (3,), np.float32))
    wish = {"image": "gzip1", "vec": "none"}
    buffer = CompressedDictReplayBuffer(50, space, ACTIONS, compression_method=wish, layout="cells")
    for image, vec in zip(frames(10), np.ones((10, 3), np.float32)):
        obs = {"image": image[np.newaxis], "vec": vec[np.newaxis], "empty": np.zeros((1, 0), np.float32)}
        buffer.add(obs, obs, np.zeros((1, 1)), np.zeros(1), np.zeros(1), [{}])
    report = buffer.memory_report()
    assert {key.key: (key.codec, key.raw_nbytes) for key in report.keys} == {
        "image": ("gzip/1", 2 * 10 * 1600),
        "empty": ("none (cells are empty)", 0),
        "vec": ("none", 2 * 10 * 12),
    }
    assert sum(key.raw_nbytes for key in report.keys) == report.raw_nbytes
    assert report.keys[2].live_nbytes == 2 * 10 * 12


def test_an_automatic_choice_is_explained():
    buffer = CompressedReplayBuffer(50, IMAGE, ACTIONS, layout="cells", prefer="memory")
    assert buffer.memory_report().keys[0].codec == "auto (not yet chosen, until 25 observations are stored)"
    play(buffer, frames(30))
    (key,) = buffer.memory_report().keys
    assert "chosen: makes the first observations" in key.codec
    assert str(buffer.memory_report()).count("chosen: makes") == 1
    assert key.choice.startswith("prefer='memory': ")
    assert all(f"; {other!r}: " in key.choice for other in ("balanced", "speed"))
    assert f"chosen: {key.choice}" in str(buffer.memory_report())


def test_an_empty_buffer_has_a_ratio_of_one():
    report = CompressedReplayBuffer(50, IMAGE, ACTIONS, compression_method="gzip").memory_report()
    assert (report.ratio, report.keys[0].ratio, report.live_nbytes, report.transitions) == (1, 1, 0, 0)
    assert "0 transitions" in str(report)


def test_after_a_reset_nothing_is_live():
    buffer = play(CompressedReplayBuffer(50, IMAGE, ACTIONS, compression_method="gzip"), frames(11))
    buffer.reset()
    assert (buffer.memory_report().live_nbytes, buffer.memory_report().raw_nbytes) == (0, 0)


def test_as_text_it_is_a_table():
    assert str(EXAMPLE).splitlines() == [
        "CompressedDictReplayBuffer: 12,345 transitions",
        "  image        8.0 MB     1.0 MB     8.0x  gzip/1",
        "  vec           999 B      999 B     1.0x  none",
        "  overhead              600.0 kB           index, staging",
        "  together     8.0 MB     1.6 MB     5.0x",
        "  heap ring: room for 2.5 GB, 7,000 transitions evicted",
    ]


def test_memory_for_batches_is_told_and_not_counted():
    report = dataclasses.replace(EXAMPLE, batches=14_000_000)
    assert report.ratio == EXAMPLE.ratio
    assert str(report).endswith("7,000 transitions evicted; 14.0 MB kept for batches")


def test_memory_that_reading_frames_without_compiled_kernels_takes_is_told(monkeypatch):
    numpy = frames_package.registry.load("numpy")
    monkeypatch.setattr(frames_package, "create", numpy.factory)
    noise = np.random.default_rng(0).integers(0, 256, (41, 40, 40), np.uint8)
    buffer = play(CompressedReplayBuffer(40, IMAGE, ACTIONS, layout="frames", compression_method="none"), noise)
    buffer.sample(32)
    batch = 2 * 32 * 1600
    # Besides the batch itself, eight bytes for each byte that a patch puts: of noise, all of 16 frames or more.
    assert buffer.memory_report().batches > batch + 8 * 16 * 1600


def test_a_buffer_without_keys_calls_its_line_observations():
    report = MemoryReport("CompressedReplayBuffer", 1, (KeyReport("", "rle", 2000, 1000),), "memory", 1000, 0)
    lines = str(report).splitlines()
    assert lines[1].split() == ["observations", "2.0", "kB", "1.0", "kB", "2.0x", "rle"]
    assert lines[-1] == "  heap memory: room for 1.0 kB"
    assert len({line.index("2.0x") for line in lines if "2.0x" in line}) == 1


def test_rich_renders_the_same_table():
    console = pytest.importorskip("rich.console")
    target = io.StringIO()
    console.Console(file=target, width=120, color_system=None).print(EXAMPLE)
    text = target.getvalue()
    for part in ("12,345 transitions", "image", "8.0 MB", "8.0x", "gzip/1", "600.0 kB", "5.0x", "2.5 GB", "7,000"):
        assert part in text


def test_a_buffer_shows_its_size_layout_codec_and_memory_in_one_line():
    buffer = CompressedReplayBuffer(2000, IMAGE, ACTIONS, n_envs=2, compression_method="gzip/1", layout="cells")
    assert repr(buffer).startswith("<CompressedReplayBuffer: 0 of 2,000 transitions, n_envs=2, cells, gzip/1, ")
    space = spaces.Dict(image=IMAGE, vec=spaces.Box(0, 1, (3,)))
    buffer = CompressedDictReplayBuffer(
        100, space, ACTIONS, layout="frames", heap="ring", heap_kwargs={"capacity": 9999}
    )
    line = repr(buffer)
    assert "\n" not in line
    for part in (
        "0 of 100 transitions",
        "n_envs=1",
        "image frames (",
        "vec cells, none",
        "in heap 'ring'",
        "x smaller>",
    ):
        assert part in line


def test_the_line_of_a_buffer_has_the_figures_of_its_report():
    buffer = CompressedReplayBuffer(50, IMAGE, ACTIONS, compression_method="gzip/1", layout="cells")
    play(buffer, frames(21))
    report = buffer.memory_report()
    stored = (report.live_nbytes + report.overhead) / 1000
    assert f"20 of 50 transitions, n_envs=1, cells, gzip/1, {stored:.1f} kB in heap 'memory', " in repr(buffer)
    assert repr(buffer).endswith(f", {report.ratio:.1f}x smaller>")


@pytest.mark.parametrize("kind", [CompressedReplayBuffer, CompressedRolloutBuffer])
def test_a_buffer_that_is_not_complete_can_be_shown(kind):
    assert repr(kind.__new__(kind)) == f"<{kind.__name__}, incomplete>"
