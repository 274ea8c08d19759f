"""Both ways to decode chunks, the kernel (interpreted) and the reference in torch, beside the frames themselves."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sb3_extra_buffers import frames as core
from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.gpu_buffers.kernels import frame_reference as reference

UNTOUCHED = 0xAA


@pytest.fixture
def chunks(helpers):
    return helpers("chunks")


@pytest.fixture(params=["kernel", "reference"])
def decode(request, cells):
    """Decodes a batch; the result is -1 or the index of a damaged chunk."""
    watched = request.getfixturevalue("watched") if request.param == "kernel" else None

    def with_kernel(batch, out, frame_nbytes, group, stride, alignment):
        from sb3_extra_buffers.gpu_buffers.kernels import frame_decode as launch

        tensors = [cells.tensor(chunk) for chunk in batch.chunks]
        bases = [torch.from_numpy(base).clone() for base in batch.bases]
        heads = cells.addresses(tensors), cells.lengths(tensors), torch.tensor(batch.sizes, dtype=torch.int32)
        places = cells.addresses(bases)
        scratch = torch.empty((len(tensors), frame_nbytes), dtype=torch.uint8)
        status, needs = torch.zeros(1, dtype=torch.int32), batch.needs
        layout = {"frame_nbytes": frame_nbytes, "group": group, "stride": stride, "alignment": alignment}
        # Scratch frames that lie side by side are one storage: what another program touches there is a race.
        with watched(*heads, places, *needs, scratch, out, status, *tensors, *bases) as watch:
            launch.decode(*heads, places, needs, scratch, out, status, **layout)
        assert watch.checked >= len(tensors)
        return int(status) - 1

    def with_torch(batch, out, frame_nbytes, group, stride, alignment):
        tensors = [cells.tensor(chunk) for chunk in batch.chunks]
        bases = [torch.from_numpy(base).clone() for base in batch.bases]
        try:
            reference.decode(
                tensors, batch.sizes, bases, batch.needs, out, frame_nbytes=frame_nbytes, group=group, stride=stride
            )
        except PayloadError as error:
            damaged = error
        else:
            return -1
        assert (damaged.codec, damaged.payload_nbytes) == ("frames", len(batch.chunks[damaged.index]))
        return damaged.index

    def run(batch, out_nbytes, frame_nbytes, group=None, stride=None, alignment=1):
        out = torch.full((out_nbytes,), UNTOUCHED, dtype=torch.uint8)
        group, stride = group or frame_nbytes, stride or frame_nbytes
        damaged = (with_kernel if watched else with_torch)(batch, out, frame_nbytes, group, stride, alignment)
        return out.numpy(), damaged

    return run


def batch_of(chunks, nbytes, numbers, wanted, targets):
    played = [chunks.play(nbytes, number, seed) for seed, number in enumerate(numbers)]
    packed = [chunks.pack(base, frames) for base, frames in played]
    batch = chunks.Batch(packed, numbers, [base for base, _ in played], wanted, targets)
    return batch, [frames for _, frames in played]


@pytest.mark.parametrize("nbytes", [1, 2, 10, 63, 64, 65, 1000, 7056, 28224, 65535, 65536, 65537])
def test_frames_where_they_are_needed(decode, chunks, nbytes):
    wanted = [[0, 1, 2, 2, 7], [3], [], [0, 0, 8]]
    places = [[0, 3, 1, 8, 7], [2], [], [5, 4, 9]]  # the sixth is left out
    targets = [[place * nbytes for place in each] for each in places]
    batch, frames = batch_of(chunks, nbytes, [8, 5, 3, 9], wanted, targets)
    out, damaged = decode(batch, 10 * nbytes, nbytes, alignment=16 if nbytes % 16 == 0 else 1)
    assert damaged == -1
    rows, expected = out.reshape(10, nbytes), np.full((10, nbytes), UNTOUCHED, np.uint8)
    for chunk, each in enumerate(zip(wanted, places)):
        for frame, place in zip(*each):
            expected[place] = frames[chunk][frame]
    assert np.array_equal(rows, expected)


@pytest.mark.parametrize(("group", "depth"), [(1, 4), (3, 4), (4, 2), (16, 3)])
def test_frames_that_alternate(decode, chunks, group, depth):
    """Stacked last, the groups of frames alternate in an observation."""
    nbytes, stride = 48 * group, group * depth
    wanted = [[*range(depth)], [*range(depth)]]
    targets = [[row * nbytes * depth + index * group for index in range(depth)] for row in (1, 0)]
    batch, frames = batch_of(chunks, nbytes, [depth, depth], wanted, targets)
    out, damaged = decode(batch, 2 * nbytes * depth, nbytes, group, stride)
    assert damaged == -1
    stacked = [np.stack(each).reshape(depth, 48, group).transpose(1, 0, 2) for each in frames[::-1]]
    assert np.array_equal(out, np.stack(stacked).reshape(-1))


@pytest.mark.parametrize(("depth", "nbytes", "block"), [(2, 16, 2048), (4, 48, 64), (4, 7056, 2048), (8, 1008, 2048)])
def test_frames_that_were_decoded_apart_are_interleaved(watched, depth, nbytes, block):
    from sb3_extra_buffers.gpu_buffers.kernels import frame_decode

    assert frame_decode.can_interleave(nbytes, depth, 1)
    planes = torch.from_numpy(np.random.default_rng(0).integers(256, size=(3, depth * nbytes), dtype=np.uint8))
    out = torch.full_like(planes, UNTOUCHED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "empty_like", lambda tensor: out)
        with watched(planes, out) as watch:
            found = frame_decode.interleave(planes, depth, block=block)
    assert found is out
    assert watch.checked >= 2 * planes.numel()
    assert torch.equal(found, planes.view(3, depth, nbytes).transpose(1, 2).reshape(3, -1))
    assert frame_decode.interleave(planes[:0], depth).shape == (0, depth * nbytes)


@pytest.mark.parametrize(("nbytes", "depth", "group"), [(1000, 4, 1), (48, 3, 1), (48, 4, 3), (48, 1, 1), (48, 4, 48)])
def test_other_shapes_are_not_interleaved(interpreter, nbytes, depth, group):
    from sb3_extra_buffers.gpu_buffers.kernels import frame_decode

    assert not frame_decode.can_interleave(nbytes, depth, group)


def test_targets_in_no_order_at_all(decode, chunks):
    batch, frames = batch_of(chunks, 100, [3], [[0, 2]], [[107, 3]])
    out, damaged = decode(batch, 211, 100)
    assert damaged == -1
    assert np.array_equal(out[107:207], frames[0][0])
    assert np.array_equal(out[3:103], frames[0][2])
    assert (out[[0, 1, 2, 103, 104, 105, 106, 207, 208, 209, 210]] == UNTOUCHED).all()


def test_large_frames_have_wide_counts(decode, chunks):
    nbytes = (1 << 17) + 48
    batch, frames = batch_of(chunks, nbytes, [2], [[0, 1]], [[nbytes, 0]])
    random = np.random.default_rng(5)
    frames = random.integers(0, 256, (2, nbytes), dtype=np.uint8)
    frames[1, 1000:] = frames[0, 1000:]
    batch.chunks = [chunks.pack(batch.bases[0], frames)]
    out, damaged = decode(batch, 2 * nbytes, nbytes, alignment=16)
    assert damaged == -1
    assert np.array_equal(out.reshape(2, nbytes)[::-1], frames)


def test_long_ways(decode, chunks):
    """A step that puts nothing goes 256 times as far, and several of them behind each other further still."""
    nbytes, places = 140_000, [5, 261, 600, 66_000, 131_600, 139_999]
    base = np.full(nbytes, 3, np.uint8)
    frames = np.repeat(base[np.newaxis], 2, axis=0)
    frames[0, places], frames[1, places[::2]] = 8, 9
    batch = chunks.Batch([chunks.pack(base, frames)], [2], [base], [[0, 1]], [[nbytes, 0]])
    out, damaged = decode(batch, 2 * nbytes, nbytes, alignment=16)
    assert damaged == -1
    assert np.array_equal(out.reshape(2, nbytes)[::-1], frames)


def test_many_short_steps(decode, chunks):
    """More steps in a patch than are taken at once, and steps that only skip."""
    base = np.zeros(3000, np.uint8)
    frames = np.zeros((3, 3000), np.uint8)
    frames[0, ::4] = 1
    frames[1, 2999] = 7
    frames[2] = frames[0]
    frames[2, 5:2000] = 9
    batch = chunks.Batch([chunks.pack(base, frames)], [3], [base], [[0, 1, 2]], [[0, 3000, 6000]])
    out, damaged = decode(batch, 9000, 3000)
    assert damaged == -1
    assert np.array_equal(out.reshape(3, 3000), frames)


def test_chunks_that_the_core_has_written(decode, chunks):
    """The core's kernels in numpy write a stream; its open chunk is what is decoded."""
    random = np.random.default_rng(3)
    rows = np.repeat(random.integers(0, 256, (1, 500), dtype=np.uint8), 6, axis=0)
    for index in range(6):
        rows[index, 40 * index : 40 * index + 90] = random.integers(0, 256, 90)
    streams = core.Streams(core.whole(500), chunk=8, streams=1, cells=6, slots=8)
    core.create("numpy").write(streams, np.arange(6), rows, 0)
    packed, base = streams.filling.packed(0, 6).tobytes(), streams.filling.base[0].copy()
    assert packed == chunks.pack(base, rows)
    batch = chunks.Batch([packed], [6], [base], [[*range(6)]], [[500 * index for index in range(6)]])
    out, damaged = decode(batch, 3000, 500)
    assert damaged == -1
    assert np.array_equal(out.reshape(6, 500), rows)


def damage(chunk, how):
    """Damaged chunks of eight frames of 300 bytes."""
    altered = bytearray(chunk)
    if how == "empty":
        return b""
    if how == "cut in the counts":
        return chunk[:9]
    if how == "cut in the padding":
        return chunk[:-1]
    if how == "too many steps":
        altered[15] = 255
    elif how == "one step too many":
        altered[0] += 1
    elif how == "skips beyond the frame":
        altered[16] = altered[18] = altered[20] = 255
    elif how == "puts beyond the end":
        altered[17] = 255
    return bytes(altered)


@pytest.mark.parametrize(
    "how",
    [
        "empty",
        "cut in the counts",
        "cut in the padding",
        "too many steps",
        "one step too many",
        "skips beyond the frame",
        "puts beyond the end",
    ],
)
def test_damage_is_reported_and_does_no_harm(decode, chunks, how):
    base, frames = np.zeros(300, np.uint8), np.zeros((8, 300), np.uint8)
    for index in range(8):
        frames[index, index * 7 : index * 7 + 200 : 9] = index + 1
    good = chunks.pack(base, frames)
    bad = damage(good, how)
    with pytest.raises(PayloadError):
        chunks.unpack(bad, base, 8, 8)
    targets = [[0, 300], [600, 900], [1200, 1500]]
    batch = chunks.Batch([good, bad, good], [8, 8, 8], [base] * 3, [[0, 7]] * 3, targets)
    out, damaged = decode(batch, 1800, 300)
    assert damaged == 1
    if (out != UNTOUCHED).any():  # the reference writes nothing at all
        assert np.array_equal(out.reshape(6, 300)[[0, 1, 4, 5]], frames[[0, 7, 0, 7]])


@pytest.mark.parametrize("count", [1, 200, 65535])
def test_steps_that_are_not_there(decode, chunks, count):
    """Nothing but counts: there is no content whose end could be missed."""
    base = np.zeros(300, np.uint8)
    bad = bytearray(chunks.pack(base, np.zeros((8, 300), np.uint8)))
    bad[14:16] = count.to_bytes(2, "little")
    batch = chunks.Batch([bytes(bad)], [8], [base], [[7]], [[0]])
    out, damaged = decode(batch, 300, 300)
    assert damaged == 0
    assert (out == UNTOUCHED).all()


def test_frames_that_a_chunk_does_not_have(decode, chunks):
    batch, _ = batch_of(chunks, 64, [3, 3], [[0], [3]], [[0], [64]])
    out, damaged = decode(batch, 128, 64)
    assert damaged == 1
    assert (out[64:] == UNTOUCHED).all()


def test_altered_bytes(decode, chunks):
    """Whatever happens to bytes: the verdict is that of the core, and so are the frames if it is accepted."""
    random = np.random.default_rng(4)
    base, frames = chunks.play(200, 4, 1)
    good, refused = chunks.pack(base, frames), 0
    for _ in range(40):
        altered = bytearray(good)
        # Mostly where counts and steps are: an altered content is just another content.
        altered[random.integers(60)] = random.integers(256)
        batch = chunks.Batch([bytes(altered)], [4], [base], [[0, 3]], [[0, 200]])
        out, damaged = decode(batch, 400, 200)
        try:
            expected = chunks.unpack(bytes(altered), base, 4, 4)
        except PayloadError:
            refused += 1
            assert damaged == 0
        else:
            assert damaged == -1
            assert np.array_equal(out.reshape(2, 200), expected[[0, 3]])
    assert 5 < refused < 35


def test_nothing_to_decode(interpreter, cells):
    from sb3_extra_buffers.gpu_buffers.kernels import frame_decode as launch
    from sb3_extra_buffers.gpu_buffers.kernels.frame_reference import Needs

    longs, ints = torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.int32)
    needs, out = Needs(torch.zeros(1, dtype=torch.int32), ints, longs), torch.full((10,), 3, dtype=torch.uint8)
    scratch, status = torch.empty((0, 10), dtype=torch.uint8), torch.zeros(1, dtype=torch.int32)
    launch.decode(longs, longs, ints, longs, needs, scratch, out, status, frame_nbytes=10, group=10, stride=10)
    reference.decode([], [], [], needs, out, frame_nbytes=10, group=10, stride=10)
    assert out.tolist() == [3] * 10
    assert int(status) == 0
