"""The reference in torch, beside the core's codec."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.gpu_buffers.kernels import rle_reference as reference


@pytest.mark.parametrize("dtype", ["?", "u1", "<u2", "<f4", ">f8", "g"])
@pytest.mark.parametrize("count", [1, 2, 63, 64, 255, 256, 1000, 28224, 65535, 65536, 65537])
def test_every_kind_of_cell(cells, dtype, count):
    made = [cells.make(kind, dtype, count) for kind in cells.KINDS]
    out = torch.full((len(made), made[0].nbytes), 99, dtype=torch.uint8)
    payloads = [cells.tensor(payload) for payload in cells.encode(made)]
    reference.decode(payloads, out, count=count, item=made[0].itemsize)
    assert torch.equal(out, cells.rows(made))


def test_payloads_may_begin_anywhere(cells):
    made = [cells.make("runs", "<u2", 500, seed) for seed in range(4)]
    payloads = cells.encode(made)
    heap, views = cells.tensor(b"\0" + b"\0".join(payloads)), []
    begin = 1
    for payload in payloads:
        views.append(heap[begin : begin + len(payload)])
        begin += len(payload) + 1
    out = torch.empty((4, 1000), dtype=torch.uint8)
    reference.decode(views, out, count=500, item=2)
    assert torch.equal(out, cells.rows(made))


def test_scaled(cells):
    made = [cells.make(kind, "u1", 1000) for kind in cells.KINDS]
    out = torch.empty((len(made), 1000))
    reference.decode([cells.tensor(payload) for payload in cells.encode(made)], out, count=1000, item=1, scale=1 / 255)
    assert np.array_equal(out.numpy(), np.stack(made).astype(np.float32) * np.float32(1 / 255))


def test_nothing_to_decode():
    reference.decode([], torch.empty((0, 8), dtype=torch.uint8), count=8, item=1)


@pytest.mark.parametrize("dtype", ["u1", "<f4"])
def test_altered_bytes(cells, dtype):
    """Whatever happens to bytes: the verdict is that of the core, and so is the cell if it is accepted."""
    random, refused = np.random.default_rng(2), 0
    good = cells.encode([cells.make("runs", dtype, 200)])[0]
    out = torch.empty((2, 200 * np.dtype(dtype).itemsize), dtype=torch.uint8)
    for _ in range(200):
        altered = bytearray(good)
        altered[random.integers(len(altered))] = random.integers(256)
        altered = altered[: random.choice([len(altered), random.integers(len(altered) + 1)], p=[0.8, 0.2])]
        payloads = [cells.tensor(good), cells.tensor(bytes(altered))]
        try:
            expected = cells.decode(bytes(altered), dtype, 200)
        except PayloadError:
            refused += 1
            with pytest.raises(PayloadError, match="payload 1 of the batch") as caught:
                reference.decode(payloads, out, count=200, item=np.dtype(dtype).itemsize)
            assert (caught.value.codec, caught.value.payload_nbytes) == ("rle", len(altered))
        else:
            reference.decode(payloads, out, count=200, item=np.dtype(dtype).itemsize)
            assert out[1].numpy().tobytes() == expected
    assert 20 < refused < 180


def test_too_long(cells):
    out = torch.empty((1, 200), dtype=torch.uint8)
    with pytest.raises(PayloadError, match="neither that of the cell, 200, nor some runs"):
        reference.decode([cells.tensor(bytes(202))], out, count=200, item=1)
