"""What is particular to zstd: plain frames, joined batches, bounded memory."""

import numpy as np
import pytest
import zstandard

from sb3_extra_buffers.codecs import CellSpec, CodecSpec, bind, decode_batch, encode_batch
from sb3_extra_buffers.errors import ParameterError, PayloadError
from sb3_extra_buffers.heaps import create
from sb3_extra_buffers.memory import FlatBytes

CELL = CellSpec(np.uint8, 4000)
FLAT = np.zeros(4000, np.uint8)


@pytest.mark.parametrize("codec", ["zstd", "zstd-5", "zstd/22", CodecSpec("zstd", {"checksum": True})])
def test_a_payload_is_one_plain_frame_with_its_content_size(codec):
    payload = bind(codec, CELL).encode(FLAT)
    parameters = zstandard.get_frame_parameters(payload)
    assert parameters.content_size == 4000
    assert parameters.dict_id == 0
    assert parameters.has_checksum == (codec == CodecSpec("zstd", {"checksum": True}))
    assert zstandard.ZstdDecompressor().decompress(payload) == FLAT.tobytes()


@pytest.mark.parametrize("level", [0, 23, -101])
def test_levels_outside_the_documented_ranges_are_refused(level):
    with pytest.raises(ParameterError, match=rf"level={level} is not allowed; levels: -100 to -1, 1 to 22 "):
        bind(f"zstd/{level}", CELL)


def test_a_frame_for_another_cell_is_refused_before_it_is_decompressed():
    codec = bind("zstd", CELL)
    for nbytes in (3999, 4001, 1 << 30):
        compressor = zstandard.ZstdCompressor().compressobj(size=nbytes)
        frame = compressor.compress(bytes(min(nbytes, 4001))) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        with pytest.raises(PayloadError, match=f"its frame claims {nbytes} bytes, the cell has 4000"):
            codec.decode_into(frame, bytearray(4000))


@pytest.mark.parametrize("heap", [("memory", {}), ("ring", {"capacity": 1 << 20})], ids=lambda heap: heap[0])
def test_a_batch_of_raw_and_compressed_cells_comes_back_in_any_order(heap):
    random = np.random.default_rng(0)
    rows = np.stack([FLAT, random.integers(0, 256, 4000, np.uint8), np.arange(4000) // 100 % 256, FLAT + 7]).astype(
        np.uint8
    )
    codec, store = bind("zstd", CELL), create(heap[0], 4, **heap[1])
    lengths = encode_batch(codec, rows, store.reserve(np.arange(4), 4 * codec.max_encoded_nbytes))
    store.commit(lengths)
    assert lengths[1] == 4000 > lengths[[0, 2, 3]].max()
    for order in ([0, 2, 3], [3, 2, 0, 0], [1, 0, 1, 2], [1], []):
        out = np.full((len(order), 4000), 9, np.uint8)
        decode_batch(codec, store, *store.locate(np.array(order, np.int64)), out)
        assert (out == rows[order]).all()


def test_a_cut_frame_in_a_joined_batch_does_not_eat_the_next_one():
    codec = bind("zstd", CELL)
    payloads = [bytes(codec.encode((np.arange(4000) // step).astype(np.uint8))) for step in (7, 11, 13)]
    for cut in range(1, len(payloads[1])):
        batch = [payloads[0], payloads[1][:-cut], payloads[2]]
        lengths = np.array([len(part) for part in batch])
        source = FlatBytes(np.frombuffer(b"".join(batch), np.uint8))
        with pytest.raises(PayloadError, match="payload 1 of the batch"):
            decode_batch(codec, source, lengths.cumsum() - lengths, lengths, np.empty((3, 4000), np.uint8))


def test_a_payload_that_spans_its_neighbour_does_not_shift_the_rows_behind_it():
    codec, rows = bind("zstd", CELL), np.stack([FLAT + np.uint8(value) for value in (1, 2, 3, 4)])
    room = np.zeros(4 * codec.max_encoded_nbytes, np.uint8)
    lengths = encode_batch(codec, rows, room)
    starts = lengths.cumsum() - lengths
    lengths[0] += lengths[1]
    out = np.zeros_like(rows)
    decode_batch(codec, FlatBytes(room), starts, lengths, out)
    assert (out == rows).all()
