"""The documented GPU page of the published package: its names, signatures, levels, snippets and behaviour."""

import inspect
import re
from importlib import import_module

import numpy as np
import pytest
import torch as th
from gpu_player import ACTIONS
from gymnasium import spaces
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer
from stable_baselines3.common.envs import FakeImageEnv

from sb3_extra_buffers import codecs, gpu_buffers
from sb3_extra_buffers.codecs import CodecSpec
from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.gpu_buffers import (
    BaseGpuBuffer,
    GpuDictReplayBuffer,
    GpuReplayBuffer,
    GpuRolloutBuffer,
    RawBuffer,
    SharedRawHeap,
    create_observation_store,
    find_gpu_buffer_dtypes,
    has_zstd,
)
from sb3_extra_buffers.gpu_buffers.compression_methods import default_level
from sb3_extra_buffers.gpu_buffers.utils import numpy_dtype_to_torch

SCREEN = spaces.Box(0, 255, (1, 36, 36), np.uint8)
MODULES = {
    "": "GpuReplayBuffer GpuRolloutBuffer RawBuffer SharedRawHeap SlotMetadata BaseGpuBuffer find_gpu_buffer_dtypes "
    "has_zstd",
    "metadata": "SlotMetadata arr_config_length",
    "raw_buffer": "write_at read_at RawBuffer",
    "observation_store": "DenseObservationStore RawObservationStore create_observation_store",
    "base": "BaseGpuBuffer find_gpu_buffer_dtypes",
    "gpu_replay": "GpuReplayBuffer",
    "gpu_rollout": "GpuRolloutBuffer",
    "utils": "find_smallest_dtype torch_dtype_element_size estimate_max_slot_bytes estimate_total_heap_bytes "
    "numpy_dtype_to_torch torch_dtype_to_numpy",
    "compression_methods": "GpuCompressionMethod GpuCompressionMethods has_zstd",
    "size_estimation": "estimate_max_slot_bytes",
}
SIGNATURES = {
    "GpuReplayBuffer": "buffer_size, observation_space, action_space, device='auto', n_envs=1, "
    "optimize_memory_usage=False, handle_timeout_termination=True, dtypes=None, normalize_images=False, "
    "compression_method='none', compression_kwargs=None, decompression_kwargs=None, output_dtype='raw', "
    "buffer_device=None, heap_bytes=None, max_slot_bytes=None",
    "GpuReplayBuffer.add": "self, obs, next_obs, action, reward, done, infos",
    "GpuReplayBuffer.reconstruct_obs": "self, idx, env_idx=0",
    "GpuReplayBuffer.reconstruct_nextobs": "self, idx, env_idx=0",
    "GpuRolloutBuffer": "buffer_size, observation_space, action_space, device='auto', gae_lambda=1, gamma=0.99, "
    "n_envs=1, dtypes=None, normalize_images=False, compression_method='none', compression_kwargs=None, "
    "decompression_kwargs=None, buffer_device=None, heap_bytes=None, max_slot_bytes=None",
    "GpuRolloutBuffer.reset": "self",
    "GpuRolloutBuffer.get": "self, batch_size=None",
    "GpuRolloutBuffer.add": "self, obs, action, reward, episode_start, value, log_prob",
    "GpuRolloutBuffer.reconstruct_obs": "self, idx",
    "RawBuffer": "size, device='cpu'",
    "RawBuffer.write_bytes": "self, malloc, tensor",
    "RawBuffer.read_bytes": "self, malloc, dtype",
    "RawBuffer.read_into": "self, malloc, tensor",
    "RawBuffer.copy_region": "self, src_start, length, dst_start",
    "SharedRawHeap": "n_cells, heap_bytes, device='cpu'",
    "SharedRawHeap.compact": "self",
    "SharedRawHeap.ensure_space": "self, needed, replaced=()",
    "SlotMetadata": "byte_start, pos_runs, pos_elem, run_length, payload_bytes",
    "BaseGpuBuffer": "compression_method=None, compression_kwargs=None, decompression_kwargs=None, flatten_config=None",
    "find_gpu_buffer_dtypes": "obs_shape, elem_dtype=torch.uint8, compression_method='rle'",
    "arr_config_length": "arr_configs",
    "write_at": "buffer, byte_start, rel_byte_offset, tensor",
    "read_at": "buffer, byte_start, rel_byte_offset, elem_count, dtype",
    "DenseObservationStore": "buffer_size, n_envs, flat_len, elem_type, device",
    "DenseObservationStore.write": "self, pos, env_idx, flat_tensor",
    "DenseObservationStore.read": "self, pos, env_idx",
    "DenseObservationStore.read_flat": "self, flat_idx",
    "DenseObservationStore.flatten": "self",
    "RawObservationStore": "buffer_size, n_envs, flat_len, elem_type, device, field_offset, compress, decompress, "
    "compression_method='rle', runs_type=torch.uint16, shared_heap=None, n_fields=1",
    "RawObservationStore.cell_id": "self, pos, env_idx",
    "RawObservationStore.write": "self, pos, env_idx, flat_tensor",
    "RawObservationStore.read": "self, pos, env_idx",
    "RawObservationStore.read_flat": "self, flat_idx",
    "RawObservationStore.flatten": "self",
    "RawObservationStore.compact": "self",
    "create_observation_store": "compression_method, buffer_size, n_envs, flat_len, elem_type, device, field_offset=0, "
    "compress=None, decompress=None, runs_type=torch.uint16, shared_heap=None, n_fields=1",
    "find_smallest_dtype": "max_val, signed=False, fallback=torch.float32",
    "torch_dtype_element_size": "dtype",
    "estimate_max_slot_bytes": "flat_len, elem_type, runs_type, compression_method, overalloc_factor=1.5, "
    "compresslevel=None",
    "estimate_total_heap_bytes": "n_cells, flat_len, elem_type, runs_type, compression_method, overalloc_factor=1.5, "
    "compresslevel=None",
    "numpy_dtype_to_torch": "dtype",
    "torch_dtype_to_numpy": "dtype",
    "has_zstd": "",
}


@pytest.mark.parametrize("module", MODULES)
def test_names_are_where_they_were(module):
    found = import_module(f"sb3_extra_buffers.gpu_buffers.{module}".rstrip("."))
    assert [name for name in MODULES[module].split() if not hasattr(found, name)] == []


@pytest.mark.parametrize("name", SIGNATURES)
def test_documented_arguments_have_their_names_order_and_defaults(name):
    found = gpu_buffers
    for part in name.split("."):
        found = getattr(found, part)
    parameters = inspect.signature(found).parameters.values()
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)  # what is ours, and later
    shown = [str(one.replace(annotation=one.empty)) for one in parameters if one.kind not in kinds]
    assert ", ".join(shown).replace(", /", "") == SIGNATURES[name]


def test_buffers_are_those_of_stable_baselines3_and_have_documented_attributes():
    assert issubclass(GpuReplayBuffer, (ReplayBuffer, BaseGpuBuffer))
    assert issubclass(GpuRolloutBuffer, (RolloutBuffer, BaseGpuBuffer))
    replay = GpuReplayBuffer(4, SCREEN, ACTIONS, "cpu")
    rollout = GpuRolloutBuffer(4, SCREEN, ACTIONS, "cpu")
    names = {replay: "actions rewards dones timeouts"}
    names[rollout] = "actions rewards advantages returns episode_starts log_probs values"
    for buffer, attributes in names.items():
        assert [word for word in attributes.split() if not isinstance(getattr(buffer, word), np.ndarray)] == []


def test_the_alias_is_the_class_and_bytes_are_in_an_untyped_storage():
    assert gpu_buffers.GpuCompressionMethods is gpu_buffers.GpuCompressionMethod
    storage = RawBuffer(64).bytes.untyped_storage()
    assert isinstance(storage, th.UntypedStorage)
    assert storage.nbytes() == 64


@pytest.mark.parametrize("method", ["none", "rle"])
@pytest.mark.parametrize("output_dtype", ["raw", "float"])
def test_every_part_of_a_batch_is_on_the_device_of_the_model(method, output_dtype):
    places = {"device": "meta", "buffer_device": "cpu"}
    buffer = GpuReplayBuffer(8, SCREEN, ACTIONS, **places, compression_method=method, output_dtype=output_dtype)
    add(buffer, 4)
    batch = buffer.sample(2)
    assert {part.device.type for part in batch if part is not None} == {"meta"}
    assert batch.observations.dtype == (th.float32 if output_dtype == "float" else th.uint8)


LEVELS = {"gzip": (0, 9), "igzip": (0, 3), "zstd": (-100, -1, 1, 22), "lz4-frame": (-1, 0, 16)}
LEVELS["lz4-block"] = (-1, 0, 1, 12)
INVALID = {"gzip": (-1, 10), "igzip": (-1, 4), "zstd": (-101, 0, 23), "lz4-frame": (17,), "lz4-block": (13,)}


@pytest.mark.parametrize("codec", LEVELS)
def test_documented_levels_are_accepted_and_others_are_value_errors(codec):
    if codec not in codecs.names():
        pytest.skip(f"{codec} is not installed")
    for level in LEVELS[codec]:
        GpuReplayBuffer(4, SCREEN, ACTIONS, "cpu", compression_method=f"{codec}/{level}")
    for level in INVALID[codec]:
        with pytest.raises(ValueError, match="level"):
            GpuReplayBuffer(4, SCREEN, ACTIONS, "cpu", compression_method=f"{codec}/{level}")


def level_of(array):
    return int(re.match(r"zstd/(-?\d+)", array.codec)[1])


needs_zstd = pytest.mark.skipif(not has_zstd(), reason="zstd is not installed")


@needs_zstd
@pytest.mark.parametrize("kind", [GpuReplayBuffer, GpuRolloutBuffer])
@pytest.mark.parametrize(
    ("asked", "level"),
    [
        ({"compression_method": "zstd"}, -3),
        ({"compression_method": CodecSpec("zstd", {"checksum": True})}, -3),
        ({"compression_method": "zstd", "compression_kwargs": {"checksum": True}}, -3),
        ({"compression_method": "zstd", "compression_kwargs": {"compresslevel": 5}}, 5),
        ({"compression_method": "zstd", "compression_kwargs": {"level": 5}}, 5),
        ({"compression_method": "zstd3"}, 3),
    ],
)
def test_a_bare_zstd_is_level_minus_3(kind, asked, level, tmp_path):
    buffer = kind(4, SCREEN, ACTIONS, "cpu", **asked)
    assert level_of(buffer.observations) == level
    buffer.save(tmp_path / "checkpoint")
    loaded = kind.load(tmp_path / "checkpoint", "cpu")
    assert level_of(loaded.observations) == level


@needs_zstd
def test_a_bare_zstd_is_level_minus_3_for_keys_callables_and_stores():
    space = spaces.Dict({"left": SCREEN, "right": SCREEN})
    ours = GpuDictReplayBuffer(4, space, ACTIONS, "cpu", compression_method={"left": "zstd", "right": "zstd5"})
    levels = {key: level_of(array) for key, array in ours.observations.items()}
    assert levels == {"left": -3, "right": 5}
    row = th.arange(28224).remainder(9).sort().values.to(th.uint8)
    for method in ("zstd", "zstd-3"):
        made, store = BaseGpuBuffer(method), create_observation_store(method, 1, 1, 28224, th.uint8, "cpu")
        found = RawBuffer(1 << 15), RawBuffer(1 << 15)
        sizes = [made.compress(row, found[0]).payload_bytes, store._compress(row, found[1]).payload_bytes]
        expected = codecs.bind("zstd-3", codecs.CellSpec(np.uint8, 28224)).encode(row.numpy())
        assert sizes == [len(expected)] * 2
        assert all(bytes(one.bytes[: len(expected)].tolist()) == bytes(expected) for one in found)


@pytest.mark.parametrize("method", ["none", "rle", "auto", None, 7, "gzip", "zstd3"])
def test_other_methods_stay_as_they_are(method):
    assert default_level(method) == method


def add(buffer, steps):
    random = np.random.default_rng(0)
    for _ in range(steps):
        obs, next_obs = random.integers(256, size=(2, 1, *SCREEN.shape), dtype=np.uint8)
        buffer.add(obs, next_obs, np.zeros(1), np.zeros(1), np.zeros(1), [{}])


def test_a_heap_that_the_user_sized_raises_when_it_is_full_and_evicts_if_asked():
    strict = GpuReplayBuffer(50, SCREEN, ACTIONS, "cpu", compression_method="rle", heap_bytes=20_000)
    with pytest.raises(HeapFullError, match="larger heap_bytes"):
        add(strict, 50)
    assert strict.size() == strict.pos == 8
    evicting = GpuReplayBuffer(50, SCREEN, ACTIONS, "cpu", compression_method="rle", heap_bytes=20_000, on_full="evict")
    add(evicting, 50)
    assert evicting.memory_report().evicted > 0
    growing = GpuReplayBuffer(50, SCREEN, ACTIONS, "cpu", compression_method="rle")
    add(growing, 50)
    assert growing.size() == 50


def test_the_heap_tells_how_far_it_is_used_and_packing_leaves_the_payloads():
    for room in ({}, {"heap_bytes": 1 << 20}):
        buffer = GpuReplayBuffer(50, SCREEN, ACTIONS, "cpu", compression_method="rle", **room)
        add(buffer, 120)  # wraps
        heap = buffer.shared_heap
        assert heap.live <= heap.data_end <= heap.capacity
        heap.compact()
        assert heap.data_end == sum(-(-length // 16) * 16 for length in heap.lengths.tolist())
    heap = SharedRawHeap(4, 64)
    heap.ensure_space(64)
    with pytest.raises(HeapFullError):
        heap.ensure_space(65)


def test_the_snippet_for_replay_runs():
    env = FakeImageEnv(screen_height=36, screen_width=36, n_channels=1, discrete=True)
    device = "cuda" if th.cuda.is_available() else "cpu"
    dtypes = find_gpu_buffer_dtypes(
        env.observation_space.shape,
        elem_dtype=numpy_dtype_to_torch(env.observation_space.dtype),
        compression_method="rle",
    )
    model = DQN(
        "CnnPolicy",
        env,
        replay_buffer_class=GpuReplayBuffer,
        replay_buffer_kwargs={"dtypes": dtypes, "compression_method": "rle", "buffer_device": device},
        device=device,
        buffer_size=100,
        learning_starts=10,
    )
    model.learn(16)
    assert model.replay_buffer.size() == 16


def test_the_snippet_for_rollouts_runs():
    env = FakeImageEnv(screen_height=36, screen_width=36, n_channels=1, discrete=True)
    compression_method = "zstd" if has_zstd() else "rle"
    dtypes = find_gpu_buffer_dtypes(env.observation_space.shape, compression_method=compression_method)
    model = PPO(
        "CnnPolicy",
        env,
        rollout_buffer_class=GpuRolloutBuffer,
        rollout_buffer_kwargs={"dtypes": dtypes, "compression_method": compression_method, "buffer_device": "cpu"},
        device="cpu",
        n_steps=16,
        batch_size=8,
        n_epochs=1,
    )
    model.learn(16)
    assert model.rollout_buffer.full
