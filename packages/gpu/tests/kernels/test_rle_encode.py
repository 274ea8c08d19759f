"""Both ways to make payloads, the kernels (interpreted) and the reference in torch: the bytes are those of the core."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sb3_extra_buffers.gpu_buffers.kernels import rle_reference as reference

UNTOUCHED = 0xAA


@pytest.fixture(params=["kernel", "reference"])
def encode(request, cells):
    """Makes payloads of rows, as bytes; what lies between payloads must stay as it was."""
    watched = request.getfixturevalue("watched") if request.param == "kernel" else None

    def room(lengths):
        offsets = torch.cumsum((lengths + 31) // 16 * 16, 0).roll(1)
        offsets[0] = 0
        return offsets, torch.full((int(offsets[-1] + lengths[-1]),), UNTOUCHED, dtype=torch.uint8)

    def with_kernel(rows, item, block):
        from sb3_extra_buffers.gpu_buffers.kernels import rle_encode as launch

        block = block or cells.few_tiles(rows.shape[1])
        tiles = -(-rows.shape[1] // block)
        counted = torch.empty((len(rows), tiles), dtype=torch.int32)
        with pytest.MonkeyPatch.context() as patch:
            # The one tensor that is made within: it must be known to be allowed.
            patch.setattr(torch, "empty", lambda *_, **__: counted)
            with watched(rows, counted) as watch:
                measured = launch.measure(rows, item=item, block=block)
        assert watch.checked >= rows.numel()
        offsets, out = room(measured.lengths)
        with watched(rows, *measured, offsets, out) as watch:
            launch.write(rows, measured, offsets, out, item=item, block=block)
        assert watch.checked >= int(measured.lengths.sum())
        return measured.lengths, offsets, out

    def with_torch(rows, item, block):
        measured = reference.measure(rows, item=item)
        offsets, out = room(measured.lengths)
        reference.write(rows, measured, offsets, out, item=item)
        return measured.lengths, offsets, out

    def run(rows, item, block=None):
        lengths, offsets, out = (with_kernel if watched else with_torch)(rows, item, block)
        assert lengths.dtype == torch.int64
        payloads, between = [], torch.ones(len(out), dtype=torch.bool)
        for begin, length in zip(offsets.tolist(), lengths.tolist()):
            payloads.append(out[begin : begin + length].numpy().tobytes())
            between[begin : begin + length] = False
        assert (out[between] == UNTOUCHED).all()
        return payloads

    return run


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 255, 256, 1000, 28224, 65535, 65536, 65537])
def test_bytes(encode, cells, count):
    made = [cells.make(kind, "u1", count) for kind in cells.KINDS]
    assert encode(cells.rows(made), 1) == cells.encode(made)


@pytest.mark.parametrize("dtype", ["<u2", "<f4", ">f8", "g"])
@pytest.mark.parametrize("count", [1, 63, 1000])
def test_wider_elements(encode, cells, dtype, count):
    made = [cells.make(kind, dtype, count) for kind in cells.KINDS]
    assert encode(cells.rows(made), np.dtype(dtype).itemsize) == cells.encode(made)


def test_wide_elements_with_wide_ends(encode, cells):
    made = [cells.make(kind, "<f4", 65536) for kind in ("runs", "constant")]
    assert encode(cells.rows(made), 4) == cells.encode(made)


@pytest.mark.parametrize("block", [16, 64])
def test_many_small_tiles(encode, cells, block):
    made = [cells.make(kind, "u1", 500) for kind in ("runs", "frame")]
    assert encode(cells.rows(made), 1, block) == cells.encode(made)


def test_where_runs_just_pay(encode, cells):
    """Runs of three bytes and less are raw, a byte more and they are not: 333 runs take 999 bytes, 334 take 1002."""
    made = []
    for runs in (332, 333, 334):
        lengths = np.full(runs, 1000 // runs)
        lengths[: 1000 - lengths.sum()] += 1
        made.append(np.repeat(np.arange(runs) % 2, lengths).astype("u1"))
    payloads = encode(cells.rows(made), 1)
    assert [len(payload) for payload in payloads] == [996, 999, 1000]
    assert payloads == cells.encode(made)


def test_equal_numbers_that_differ_in_a_bit_are_kept_apart(encode, cells):
    made = np.repeat(np.array([0.0, -0.0, np.nan, -np.nan, 0.0], "<f8"), 20)
    assert encode(cells.rows([made]), 8) == cells.encode([made])
    assert len(encode(cells.rows([made]), 8)[0]) == 5 * 9


def test_rows_with_a_margin(encode, cells):
    made = [cells.make(kind, "u1", 300) for kind in cells.KINDS]
    wide = torch.full((len(made), 333), 5, dtype=torch.uint8)
    wide[:, :300] = cells.rows(made)
    assert encode(wide[:, :300], 1) == cells.encode(made)


def test_nothing_to_encode(interpreter):
    from sb3_extra_buffers.gpu_buffers.kernels import rle_encode as launch

    rows, nothing = torch.empty((0, 100), dtype=torch.uint8), torch.empty(0, dtype=torch.int64)
    for module in (launch, reference):
        measured = module.measure(rows, item=1)
        assert measured.lengths.tolist() == []
        module.write(rows, measured, nothing, torch.empty(0, dtype=torch.uint8), item=1)
