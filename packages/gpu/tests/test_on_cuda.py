"""On CUDA or ROCm: no waiting, the memory that was promised, the speed, and damage. Skipped without such a device."""

from importlib.util import find_spec
from statistics import median
from time import perf_counter

import numpy as np
import pytest
import torch as th
from gpu_hardware import expect_same, filled, needs_cuda, sampled
from stable_baselines3.common.buffers import ReplayBuffer

from sb3_extra_buffers import codecs
from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.gpu_buffers import GpuReplayBuffer

pytestmark = needs_cuda
each_kernel = pytest.mark.parametrize(
    "options",
    [{"compression_method": "rle"}, {"compression_method": "auto", "layout": "frames"}],
    ids=["rle", "frames"],
)


@each_kernel
@pytest.mark.parametrize("room", [{}, {"heap_bytes": 1 << 25}], ids=["growing", "ring"])
def test_making_a_batch_does_not_wait_for_the_device(options, room):
    ours = filled(GpuReplayBuffer, "cuda", 500, decode_on="device", **options, **room)
    ours.sample(64)  # compiles
    th.cuda.synchronize()
    th.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(3):
            ours.sample(64)
    finally:
        th.cuda.set_sync_debug_mode("default")


@each_kernel
def test_device_memory_is_a_tenth_more_than_what_is_live(options):
    th.cuda.empty_cache()
    before = th.cuda.memory_allocated()
    ours = filled(GpuReplayBuffer, "cuda", 3000, **options)
    grown, heap = th.cuda.memory_allocated() - before, ours.shared_heap
    assert heap.live > 1 << 20  # much more than the smallest segment
    assert grown <= 1.1 * heap.live


@each_kernel
@pytest.mark.parametrize("size", [32, 256])
def test_sampling_is_faster_than_uploading_raw_batches(options, size):
    """What it is for: the batch is on the device sooner than Stable-Baselines3's buffer could bring it there."""
    ours = filled(GpuReplayBuffer, "cuda", 3000, decode_on="device", **options)
    theirs = filled(ReplayBuffer, "cuda", 3000)
    seconds = {id(ours): [], id(theirs): []}
    for _ in range(60):
        for buffer in (ours, theirs):
            th.cuda.synchronize()
            begin = perf_counter()
            buffer.sample(size)
            th.cuda.synchronize()
            seconds[id(buffer)].append(perf_counter() - begin)
    ratio = median(seconds[id(ours)][10:]) / median(seconds[id(theirs)][10:])
    assert ratio < 1, f"it took {ratio:.2f} times as long"


def test_damage_is_an_error_one_batch_later():
    ours = filled(GpuReplayBuffer, "cuda", 50, compression_method="rle", decode_on="device")
    heap = ours.shared_heap
    cells = np.flatnonzero(heap.locate(np.arange(heap.cells))[1])
    for payload in heap.slices(*heap.locate(cells)):
        payload.fill_(255)
    ours.sample(8)
    th.cuda.synchronize()
    with pytest.raises(PayloadError, match="rle"):
        ours.sample(8)


@pytest.mark.parametrize("codec", ["zstd-3", "zstd5", "lz4-block/1"])
def test_nvcomp_reads_what_the_host_wrote(codec):
    if find_spec("nvidia") is None or find_spec("nvidia.nvcomp") is None:
        pytest.skip("nvCOMP is not installed")
    if codec.partition("/")[0].rstrip("-0123456789") not in codecs.names():
        pytest.skip("the codec is not installed")
    ours = filled(GpuReplayBuffer, "cuda", 300, compression_method=codec, decode_on="device")
    theirs = filled(ReplayBuffer, "cpu", 300)
    for seed in range(5):
        expect_same(sampled(ours, 100, seed), sampled(theirs, 100, seed), "cuda")
