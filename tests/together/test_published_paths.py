"""Import paths of the published package that docs/migrating.md promises: saved models and pickles name them."""

import importlib
import pickle
from pathlib import Path

import numpy as np
import pytest

from sb3_extra_buffers.errors import BufferStateError

PROMISED = {
    "compressed": "CompressedRolloutBuffer CompressedDictRolloutBuffer CompressedReplayBuffer "
    "CompressedDictReplayBuffer CompressedArray DummyCls find_smallest_dtype has_igzip has_numba init_jit "
    "find_buffer_dtypes",
    "compressed.base": "BaseCompressedBuffer DummyCls find_buffer_dtypes",
    "compressed.compressed_array": "CompressedArray",
    "compressed.compressed_replay": "CompressedReplayBuffer CompressedDictReplayBuffer",
    "compressed.compressed_rollout": "CompressedRolloutBuffer CompressedDictRolloutBuffer",
    "compressed.compression_methods.compression_methods_numba": "init_jit",
    "compressed.utils": "find_smallest_dtype",
    "recording": "RecordBuffer FramelessRecordBuffer DummyRecordBuffer BaseRecordBuffer DummyArray",
    "recording.base": "BaseRecordBuffer DummyArray",
    "recording.dummy_record_buffers": "DummyRecordBuffer FramelessRecordBuffer",
    "recording.record_buffer": "RecordBuffer",
    "recording.utils": "force_alloc_mem",
    "training_utils.atari": "make_env",
    "training_utils.buffer_warmup": "warm_up",
    "training_utils.eval_model": "eval_model process_outcome",
    "vec_buf": "DummyVecRolloutBuffer",
    "vec_buf.buffers": "DummyVecRolloutBuffer",
}
PATHS = [(f"sb3_extra_buffers.{module}", name) for module, names in PROMISED.items() for name in names.split()]


@pytest.mark.parametrize(("module", "name"), PATHS)
def test_a_promised_path_is_found_by_imports_and_by_what_was_saved(module, name):
    found = getattr(importlib.import_module(module), name)
    # How a saved model or a pickle names a class or a function.
    assert pickle.loads(f"c{module}\n{name}\n.".encode()) is found
    if module.rpartition(".")[2] not in ("atari", "buffer_warmup", "eval_model"):  # there, the path is the home
        parent = importlib.import_module(".".join(module.split(".")[:2]))
        assert getattr(parent, name) is found


def test_the_page_on_migrating_names_every_module():
    page = (Path(__file__).parents[2] / "docs" / "migrating.md").read_text()
    assert [module for module in PROMISED if module.rpartition(".")[2] not in page] == []


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("record_buffer", "RecordBuffer"),
        ("dummy_record_buffers", "FramelessRecordBuffer"),
        ("dummy_record_buffers", "DummyRecordBuffer"),
    ],
)
def test_a_record_buffer_that_the_published_package_pickled_is_refused_with_what_to_do(module, name):
    state = {"frames": np.zeros((4, 3, 8, 8), np.uint8), "rewards": np.zeros(4), "actions": np.zeros(4), "_ptr": 2}
    made = f"csb3_extra_buffers.recording.{module}\n{name}\n)".encode() + pickle.NEWOBJ
    pickled = pickle.PROTO + b"\x02" + made + pickle.dumps(state, 2)[2:-1] + pickle.BUILD + pickle.STOP
    with pytest.raises(BufferStateError, match=rf"^{name}: cannot .* version before 1, .* Record anew\.$"):
        pickle.loads(pickled)
