"""Where the published package leaked, printed or let things pass; each rule begins with the number of the bug."""

import gc
import os
import re
import subprocess
import sys
import tracemalloc
import weakref

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers import codecs
from sb3_extra_buffers.compressed import (
    CompressedDictReplayBuffer,
    CompressedDictRolloutBuffer,
    CompressedReplayBuffer,
    CompressedRolloutBuffer,
    init_jit,
)
from sb3_extra_buffers.errors import ParameterError, UnknownPluginError
from sb3_extra_buffers.errors.install import install_command

ACTIONS = spaces.Discrete(2)
FRAMES = spaces.Box(0, 255, (84, 84), np.uint8)
LEVELS = {"gzip": 99, "igzip": 9, "zstd": 99, "lz4-frame": 99, "lz4-block": 99}


@pytest.fixture
def used(add):
    """A buffer that has done all that could leave a trace."""

    def used(kind):
        buffer = kind(4, FRAMES, ACTIONS, compression_method="rle")
        for value in range(4):
            add(buffer, np.full((1, 84, 84), value, np.uint8))
        if isinstance(buffer, CompressedRolloutBuffer):
            list(buffer.get(2))
            buffer.reconstruct_obs(0)
        else:
            buffer.sample(8)
            buffer.reconstruct_obs(0, 0)
            buffer.reconstruct_nextobs(0, 0)
        str(buffer.memory_report())
        return buffer

    return used


@pytest.mark.parametrize("kind", [CompressedReplayBuffer, CompressedRolloutBuffer])
def test_c1_a_buffer_that_nobody_holds_is_gone(kind, used):
    buffer = used(kind)
    heap = weakref.ref(buffer._storage.heap)
    buffer = weakref.ref(buffer)
    gc.collect()
    assert buffer() is None
    assert heap() is None


def test_c2_decoded_observations_do_not_pile_up(add):
    space = spaces.Box(0, 255, (3, 240, 320), np.uint8)
    buffer = CompressedReplayBuffer(4, space, ACTIONS, compression_method="rle")
    for value in range(4):
        add(buffer, np.full((1, 3, 240, 320), value, np.uint8))
    batch_nbytes = 2 * 40 * 3 * 240 * 320
    tracemalloc.start()
    try:
        for _ in range(12):
            batch = buffer.sample(40)
        del batch
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    # The memory of two batches is kept for the next ones, and the report says so.
    assert after < 2.1 * batch_nbytes
    assert buffer.memory_report().batches == 2 * batch_nbytes


@pytest.mark.skipif("rle-jit" not in codecs.names(), reason="needs the codec rle-jit")
def test_c3_after_init_jit_nothing_is_compiled_any_more(add, used):
    from numba.core import event

    init_jit(elem_type=np.uint8, runs_type=np.uint16)
    with event.install_recorder("numba:compile") as recorder:
        used(CompressedReplayBuffer)
        buffer = CompressedReplayBuffer(4, FRAMES, ACTIONS, compression_method="rle-jit")
        add(buffer, np.zeros((1, 84, 84), np.uint8))
        buffer.sample(8)
    assert recorder.buffer == []


@pytest.mark.parametrize(
    ("codec", "home"), [("igzip3", "isal"), ("rle-jit", "rle-numba"), ("zstd-3", "zstd"), ("lz4-frame/1", "lz4")]
)
def test_c4_a_codec_that_is_not_installed_is_an_error_and_not_another_codec(codec, home, monkeypatch):
    there = {name: offers for name, offers in codecs.registry.offers().items() if name in ("none", "rle", "gzip")}
    codecs.registry.refresh()
    with monkeypatch.context() as patch:
        patch.setattr(codecs.registry, "_offers", there)
        command = re.escape(install_command(f"sb3-extra-buffers-codec-{home}"))
        with pytest.raises(UnknownPluginError, match=rf"is not installed. Run: {command}$"):
            CompressedReplayBuffer(4, FRAMES, ACTIONS, compression_method=codec)
    codecs.registry.refresh()


def test_c5_nothing_is_printed_when_buffers_are_made_and_used(capfd, add, used):
    space = spaces.Dict(image=FRAMES, vec=spaces.Box(-1, 1, (3,), np.float32))
    for kind in (CompressedDictReplayBuffer, CompressedDictRolloutBuffer):
        add(kind(4, space, ACTIONS), {"image": np.zeros((1, 84, 84), np.uint8), "vec": np.zeros((1, 3), np.float32)})
    used(CompressedReplayBuffer)
    used(CompressedRolloutBuffer)
    assert capfd.readouterr() == ("", "")


def run(code, *options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, *options, "-c", code], capture_output=True, text=True, env=environment, timeout=1800
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_c5_importing_prints_nothing_and_sets_up_no_logging():
    code = """
import logging
import sb3_extra_buffers.compressed as package
[getattr(package, name) for name in package.__all__ if "Maskable" not in name and "Recurrent" not in name]
logger = logging.getLogger("sb3_extra_buffers")
assert not logger.handlers and not logging.getLogger().handlers and logger.level == logging.NOTSET
"""
    assert run(code) == ("", "")


def test_c6_checks_survive_python_without_assertions():
    code = """
import numpy as np
from gymnasium import spaces
from sb3_extra_buffers.compressed import *
assert False, "assertions are on"
space, actions = spaces.Box(0, 255, (84, 84), np.uint8), spaces.Discrete(2)
image = np.zeros((1, 84, 84), np.uint8)
rest = np.zeros((1, 1)), np.zeros(1), np.zeros(1), [{}]
calls = [
    lambda: CompressedReplayBuffer(4, space, actions, compression_method="nowhere"),
    lambda: CompressedReplayBuffer(4, space, actions, compression_method="gzip99"),
    lambda: CompressedReplayBuffer(4, space, actions, compression_method=""),
    lambda: CompressedDictReplayBuffer(4, space, actions),
    lambda: CompressedReplayBuffer(4, spaces.Dict(a=space), actions),
    lambda: CompressedReplayBuffer(4, space, actions).add(image[:, :3], image, *rest),
    lambda: CompressedReplayBuffer(4, space, actions).add(image.astype(int) - 1, image, *rest),
    lambda: CompressedReplayBuffer(4, space, actions).sample(1),
    lambda: CompressedRolloutBuffer(4, space, actions).get(1),
]
for call in calls:
    try:
        call()
    except Exception as error:
        print(type(error).__name__)
    else:
        print("nothing")
"""
    names = run(code, "-O")[0].split()
    assert names == [
        "UnknownPluginError",
        *["ParameterError"] * 4,
        *["ObservationError"] * 2,
        *["BufferStateError"] * 2,
    ]


@pytest.mark.parametrize("codec", [name for name in LEVELS if name in codecs.names()])
def test_levels_out_of_range_are_refused_when_the_buffer_is_made(codec):
    shorthand = f"{codec}/{LEVELS[codec]}"
    for kind in (CompressedReplayBuffer, CompressedRolloutBuffer):
        with pytest.raises(ParameterError, match=rf"codec '{codec}': level={LEVELS[codec]} is not allowed; levels: "):
            kind(4, FRAMES, ACTIONS, compression_method=shorthand)
        with pytest.raises(ParameterError, match=f"level={LEVELS[codec]} is not allowed"):
            kind(4, FRAMES, ACTIONS, compression_method=codec, compression_kwargs={"compresslevel": LEVELS[codec]})


@pytest.mark.parametrize("codec", ["rle5", "none7"])
def test_a_codec_without_levels_takes_none(codec):
    with pytest.raises(ParameterError, match="it takes no parameters"):
        CompressedReplayBuffer(4, FRAMES, ACTIONS, compression_method=codec)


def test_resetting_lets_go_of_the_payloads(used):
    buffer = used(CompressedReplayBuffer)
    assert buffer.memory_report().live_nbytes > 0
    buffer.reset()
    assert buffer.memory_report().live_nbytes == 0
    assert buffer.size() == 0
