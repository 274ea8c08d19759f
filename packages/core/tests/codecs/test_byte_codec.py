"""The base class translates what a library raises, and only that."""

import numpy as np
import pytest

from sb3_extra_buffers.codecs import ByteCodec, CellSpec, CodecSpec, decode_batch
from sb3_extra_buffers.errors import CellMismatchError, HeapStateError, PayloadError
from sb3_extra_buffers.heaps import create


class Careless(ByteCodec):
    """Lists the most general errors, some of which this project's own errors inherit from."""

    library_errors = (RuntimeError, ValueError)

    def compress(self, cell):
        return b"x"

    def decompress_into(self, payload, out):
        if payload == b"short":
            self.fill(out, b"1234567", payload)
        raise RuntimeError("the library gave up")


CODEC = Careless(CodecSpec("careless"), CellSpec(np.uint8, 8))


def test_a_library_error_becomes_a_payload_error_with_its_cause():
    with pytest.raises(
        PayloadError, match=r"careless: payload \(1 bytes\) cannot be decoded: the library gave up"
    ) as caught:
        CODEC.decode_into(b"x", bytearray(8))
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_payload_error_is_not_wrapped_again():
    with pytest.raises(PayloadError) as caught:
        CODEC.decode_into(b"short", bytearray(8))
    assert caught.value.problem == "it holds 7 bytes, the cell has 8"


def test_an_error_of_the_heap_stays_an_error_of_the_heap():
    heap = create("memory", 3)
    with pytest.raises(HeapStateError, match="read 5 bytes at 4096"):
        decode_batch(CODEC, heap, np.array([4096]), np.array([5]), np.zeros((1, 8), np.uint8))


def test_batches_of_another_shape_are_refused_also_by_the_method_itself():
    heap, rows = create("memory", 3), np.zeros((2, 8), np.uint8)
    with pytest.raises(CellMismatchError, match=r"of shape \(3, 8\)"):
        CODEC.decode_batch(heap, np.zeros(3, np.int64), np.ones(3, np.int64), rows)
    with pytest.raises(CellMismatchError, match="at least 16 contiguous uint8"):
        CODEC.encode_batch(rows, np.zeros(15, np.uint8))
