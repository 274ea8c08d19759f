"""The kernel, interpreted, beside the core's codec and the reference in torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sb3_extra_buffers.errors import ParameterError, PayloadError
from sb3_extra_buffers.gpu_buffers.kernels import rle_reference as reference

COUNTS = (1, 2, 63, 64, 65, 1000, 28224, 65535, 65536, 65537)


def decode(watched, cells, payloads, count, item, scale=None, block=None, lengths_dtype=torch.int64, margin=0):
    """Decode with the kernel, under the sanitizer; return the rows and the status."""
    from sb3_extra_buffers.gpu_buffers.kernels import rle_decode as launch

    tensors = [cells.tensor(payload) for payload in payloads]
    nbytes = count if scale is not None else count * item
    whole = torch.full((len(payloads), nbytes + margin), 99, dtype=torch.uint8 if scale is None else torch.float32)
    status, addresses = torch.zeros(1, dtype=torch.int32), cells.addresses(tensors)
    lengths = cells.lengths(tensors).to(lengths_dtype)
    block = block or cells.few_tiles(count * item)
    with watched(addresses, lengths, whole, status, *tensors) as watch:
        launch.decode(addresses, lengths, whole[:, :nbytes], status, count=count, item=item, scale=scale, block=block)
    assert watch.checked >= whole[:, :nbytes].numel()
    assert (whole[:, nbytes:] == 99).all()
    return whole[:, :nbytes], int(status)


@pytest.mark.parametrize("count", COUNTS)
def test_bytes(watched, cells, count):
    made = [cells.make(kind, "u1", count) for kind in cells.KINDS]
    rows, status = decode(watched, cells, cells.encode(made), count, 1)
    assert status == 0
    assert torch.equal(rows, cells.rows(made))


@pytest.mark.parametrize("dtype", ["<u2", "<f4", ">f8", "g"])
@pytest.mark.parametrize("count", [1, 63, 255, 256, 1000])
def test_wider_elements(watched, cells, dtype, count):
    made = [cells.make(kind, dtype, count) for kind in cells.KINDS]
    rows, status = decode(watched, cells, cells.encode(made), count, np.dtype(dtype).itemsize)
    assert status == 0
    assert torch.equal(rows, cells.rows(made))


@pytest.mark.parametrize("dtype", ["<u2", "g"])
def test_wide_elements_with_wide_ends(watched, cells, dtype):
    made = [cells.make(kind, dtype, 65536) for kind in ("runs", "constant")]
    rows, status = decode(watched, cells, cells.encode(made), 65536, np.dtype(dtype).itemsize)
    assert status == 0
    assert torch.equal(rows, cells.rows(made))


@pytest.mark.parametrize("block", [16, 64, 128])
def test_many_small_tiles(watched, cells, block):
    made = [cells.make(kind, "u1", 500) for kind in ("runs", "frame")]
    rows, _ = decode(watched, cells, cells.encode(made), 500, 1, block=block)
    assert torch.equal(rows, cells.rows(made))


def test_scaled(watched, cells):
    made = [cells.make(kind, "u1", 1000) for kind in cells.KINDS]
    payloads = cells.encode(made)
    rows, status = decode(watched, cells, payloads, 1000, 1, scale=1 / 255)
    assert status == 0
    assert np.array_equal(rows.numpy(), np.stack(made).astype(np.float32) * np.float32(1 / 255))
    expected = torch.empty_like(rows)
    reference.decode([cells.tensor(payload) for payload in payloads], expected, count=1000, item=1, scale=1 / 255)
    assert torch.equal(rows, expected)


def test_short_lengths_and_rows_with_a_margin(watched, cells):
    made = [cells.make(kind, "u1", 300) for kind in cells.KINDS]
    rows, _ = decode(watched, cells, cells.encode(made), 300, 1, lengths_dtype=torch.int32, margin=20)
    assert torch.equal(rows, cells.rows(made))


def test_nothing_to_decode(watched, cells):
    from sb3_extra_buffers.gpu_buffers.kernels import rle_decode as launch

    nothing, status = torch.empty(0, dtype=torch.int64), torch.zeros(1, dtype=torch.int32)
    launch.decode(nothing, nothing, torch.empty((0, 8), dtype=torch.uint8), status, count=8, item=1)
    assert int(status) == 0


def test_elements_of_three_bytes_are_refused(watched):
    from sb3_extra_buffers.gpu_buffers.kernels import rle_decode as launch

    nothing, status = torch.empty(0, dtype=torch.int64), torch.zeros(1, dtype=torch.int32)
    with pytest.raises(ParameterError, match="elements have 1, 2, 4, 8, 16 bytes"):
        launch.decode(nothing, nothing, torch.empty((0, 9), dtype=torch.uint8), status, count=3, item=3)


def ends(*numbers):
    return np.array(numbers, "<u2").tobytes() + (np.arange(len(numbers)) + 1).astype(np.uint8).tobytes()


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x01",
        ends(1000)[:-1],
        ends(1000) + b"\0",
        bytes(1001),
        ends(999),
        ends(1001),
        ends(0, 1000),
        ends(500, 500, 1000),
        ends(800, 300, 1000),
        ends(1000, 1000),
        ends(10, 20, 65535, 1000),
        ends(*range(1, 101), 5, *range(102, 300), 1000),
        ends(*range(1, 334), 1000),
    ],
    ids=lambda payload: f"{len(payload)}-{payload[-4:].hex()}",
)
def test_damage_is_reported_and_does_no_harm(watched, cells, payload):
    sound = cells.make("runs", "u1", 1000)
    good = cells.encode([sound])[0]
    with pytest.raises(PayloadError):
        cells.decode(payload, "u1", 1000)
    rows, status = decode(watched, cells, [good, payload, good], 1000, 1)
    assert status == 2
    assert torch.equal(rows[[0, 2]], cells.rows([sound, sound]))


@pytest.mark.parametrize("dtype", ["u1", "<f4"])
def test_altered_bytes(watched, cells, dtype):
    """Whatever happens to bytes: the verdict is that of the core, and so is the cell if it is accepted."""
    random, count = np.random.default_rng(1), 200
    payloads, verdicts = [], []
    for _ in range(24):
        altered = bytearray(cells.encode([cells.make("runs", dtype, count, int(random.integers(1 << 30)))])[0])
        altered[random.integers(len(altered))] = random.integers(256)
        payloads.append(bytes(altered))
        try:
            verdicts.append(cells.decode(bytes(altered), dtype, 200))
        except PayloadError:
            verdicts.append(None)
    assert None in verdicts
    assert any(verdicts)
    rows, status = decode(watched, cells, payloads, count, np.dtype(dtype).itemsize, block=1024)
    assert status == 1 + max(index for index, cell in enumerate(verdicts) if cell is None)
    for row, cell in zip(rows, verdicts):
        assert cell is None or row.numpy().tobytes() == cell
