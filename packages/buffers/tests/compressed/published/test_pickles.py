"""Replay buffers that the published package pickled are refused by an error that says what to do."""

import importlib
import pickle

import pytest

from sb3_extra_buffers.errors import BufferStateError

METHODS = "sb3_extra_buffers.compressed.compression_methods"
#: What the pickles of 0.5 name, by the module that they name it in.
FUNCTIONS = {
    "compression_methods": [
        "no_compress",
        "no_decompress",
        "rle_compress",
        "rle_numpy_decompress",
        "rle_numpy_decompress_old",
        "gzip_compress",
        "gzip_decompress",
        "igzip_compress",
        "igzip_decompress",
    ],
    "compression_methods_numba": ["rle_numba_decompress"],
    "compression_methods_zstd": ["zstd_compress", "zstd_decompress"],
    "compression_methods_lz4": [
        "lz4_frame_compress",
        "lz4_frame_decompress",
        "lz4_block_compress",
        "lz4_block_decompress",
    ],
}
each_function = pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in FUNCTIONS.items() for name in names]
)


def as_0_5_pickled_it(kind: str, module: str, name: str) -> bytes:
    """A buffer whose state has one entry: the function that it compressed with."""
    home = "sb3_extra_buffers.compressed.compressed_replay"
    made = f"c{home}\n{kind}\n)".encode() + pickle.NEWOBJ
    state = f"(S'_compress'\nc{METHODS}.{module}\n{name}\nd".encode()
    return pickle.PROTO + b"\x02" + made + state + pickle.BUILD + pickle.STOP


@each_function
@pytest.mark.parametrize("kind", ["CompressedReplayBuffer", "CompressedDictReplayBuffer"])
def test_a_pickle_of_0_5_is_refused_with_what_to_do(kind, module, name):
    with pytest.raises(BufferStateError, match=rf"^{kind}: .* no format version.*before 1; fill a new buffer instead"):
        pickle.loads(as_0_5_pickled_it(kind, module, name))


@each_function
def test_functions_of_0_5_can_be_named_but_not_called(module, name):
    function = getattr(importlib.import_module(f"{METHODS}.{module}"), name)
    with pytest.raises(BufferStateError, match=r"Use sb3_extra_buffers\.codecs\.bind instead"):
        function(b"", compresslevel=3)
