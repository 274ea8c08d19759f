"""Every altered, missing or added byte is found and named, and no header makes the reader allocate or hang."""

import json
import os
import signal
import tracemalloc
from zlib import crc32

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sb3_extra_buffers import checkpoints
from sb3_extra_buffers.checkpoints.format import CHECKSUM_BLOCK_NBYTES
from sb3_extra_buffers.errors import FileDamagedError, FileError, FileVersionError, ForeignFileError


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "a"
    arrays = {"x": np.arange(7), "y": np.arange(11, dtype=np.uint8), "z": np.ones((2, 3), np.float32)}
    checkpoints.write(path, arrays, {"note": "small"}, "test")
    return path


def test_every_flipped_bit_is_found(small):
    content = small.read_bytes()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << (place % 8)
        small.write_bytes(damaged)
        with pytest.raises(FileError):
            checkpoints.open_arrays(small, "test", verify=True)


def test_every_truncation_and_extension_is_found_at_opening(small):
    content = small.read_bytes()
    for length in range(len(content)):
        small.write_bytes(content[:length])
        with pytest.raises(FileError):
            checkpoints.open_arrays(small, "test")
    small.write_bytes(content + b"\0")
    with pytest.raises(FileDamagedError, match="bytes of data"):
        checkpoints.open_arrays(small, "test")


def test_verify_names_every_damaged_block_and_nothing_else(tmp_path):
    path = tmp_path / "a"
    checkpoints.write(path, {"x": np.zeros(4 * CHECKSUM_BLOCK_NBYTES + 5, np.uint8), "y": np.arange(3)}, {}, "test")
    with path.open("r+b") as file:
        for place in (-1, -5 - 2 * CHECKSUM_BLOCK_NBYTES):
            file.seek(place, 2)
            file.write(b"\1")
    found = checkpoints.open_arrays(path)  # its header is whole
    with pytest.raises(FileDamagedError) as caught:
        found.verify()
    begin = 2 * CHECKSUM_BLOCK_NBYTES
    assert caught.value.damage == (
        f"'x', bytes {begin} to {begin + CHECKSUM_BLOCK_NBYTES - 1}",
        f"'x', bytes {4 * CHECKSUM_BLOCK_NBYTES} to {4 * CHECKSUM_BLOCK_NBYTES + 4}",
    )


@pytest.mark.parametrize("content", [b"", b"PK\3\4" + bytes(200), b"\x89HDF\r\n", b"\x80\x05", b"{}" * 100])
def test_another_format_is_called_by_what_it_begins_with(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ForeignFileError, match="not a file of sb3-extra-buffers"):
        checkpoints.open_arrays(tmp_path / "a")


def test_a_file_of_safetensors_that_is_not_ours_is_foreign(tmp_path):
    safetensors.numpy.save_file({"x": np.arange(3)}, tmp_path / "a", {"format": "np"})
    with pytest.raises(ForeignFileError):
        checkpoints.open_arrays(tmp_path / "a")


def test_a_newer_version_is_told_before_anything_else_is_looked_at(tmp_path):
    content = b'\xff\xff\xff\0\0\0\0\0{"__metadata__":{"format":"sb3-extra-buffers","format_version":"2",whatever'
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(FileVersionError, match="version 2, this version reads up to 1"):
        checkpoints.open_arrays(tmp_path / "a")


def forged(entries, data=bytes(64), metadata="{}"):
    """A file with a correct checksum of any header."""
    said = {"format": "sb3-extra-buffers", "format_version": "1", "kind": "test", "metadata": metadata}
    text = json.dumps({"__metadata__": said, **entries}, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % 64)
    header = len(text).to_bytes(8, "little") + text
    data = crc32(header).to_bytes(4, "little") + crc32(data[8:64]).to_bytes(4, "little") + data[8:]
    return header + data


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


SUMS = {"__crc32__": entry("U32", [16], 0, 64)}


def test_the_forgery_without_a_lie_is_accepted(tmp_path):
    (tmp_path / "a").write_bytes(forged(SUMS))
    assert not checkpoints.open_arrays(tmp_path / "a", verify=True)


LIES = {
    "huge": {**SUMS, "x": entry("U8", [1 << 60], 64, 64 + (1 << 60))},
    "overflow": {**SUMS, "x": entry("F64", [1 << 62, 1 << 62], 64, 64)},
    "huge beside nothing": {**SUMS, "x": entry("F64", [0, 1 << 62, 1 << 62], 64, 64)},
    "beyond 64 bits": {**SUMS, "x": entry("U8", [1 << 70], 64, 64)},
    "axes": {**SUMS, "x": entry("U8", [1] * 100, 64, 65)},
    "gap": {**SUMS, "x": entry("U8", [0], 65, 65)},
    "backwards": {**SUMS, "x": entry("U8", [0], 64, 0)},
    "overlap": {**SUMS, "x": entry("U8", [64], 0, 64)},
    "negative": {**SUMS, "x": entry("U8", [-1], 64, 63)},
    "fraction": {**SUMS, "x": entry("U8", [0.0], 64, 64)},
    "bool": {**SUMS, "x": entry("U8", [False], 64, 64)},
    "dtype": {**SUMS, "x": entry("OBJECT", [0], 64, 64)},
    "text": {**SUMS, "x": "text"},
    "no checksums": {},
    "few checksums": {"__crc32__": entry("U32", [2], 0, 8), "x": entry("U8", [56], 8, 64)},
    "many checksums": {"__crc32__": entry("U32", [1 << 58], 0, 1 << 60)},
}


@pytest.mark.parametrize("lie", list(LIES))
def test_a_header_that_lies_is_refused_and_nothing_is_allocated(tmp_path, lie):
    (tmp_path / "a").write_bytes(forged(LIES[lie]))
    tracemalloc.start()
    try:
        with pytest.raises(FileDamagedError, match="header"):
            checkpoints.open_arrays(tmp_path / "a", verify=True)
        assert tracemalloc.get_traced_memory()[1] < 1 << 17
    finally:
        tracemalloc.stop()


def test_metadata_that_are_no_json_are_damage(tmp_path):
    for metadata in ("", "{", "[" * 100_000):
        (tmp_path / "a").write_bytes(forged(SUMS, metadata=metadata))
        with pytest.raises(FileDamagedError, match="metadata"):
            checkpoints.open_arrays(tmp_path / "a")


def test_a_name_that_is_there_twice_is_damage(tmp_path):
    content = forged({**SUMS, "x": entry("U8", [0], 64, 64), "y": entry("U8", [0], 64, 64)})
    header = content[:-(64)].replace(b'"y"', b'"x"')
    (tmp_path / "a").write_bytes(header + crc32(header).to_bytes(4, "little") + content[-60:])
    with pytest.raises(FileDamagedError, match="twice"):
        checkpoints.open_arrays(tmp_path / "a")


@pytest.fixture
def no_waiting():
    """An error instead of a test that never ends."""

    def stop(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFO")
@pytest.mark.parametrize(
    "make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "folder", "device"]
)
@pytest.mark.parametrize("name", ["manifest.safetensors", "segment-000001.safetensors"])
def test_what_is_no_regular_file_is_refused_without_waiting(make, name, tmp_path, no_waiting):
    path = tmp_path / "state"
    checkpoints.save_state(path, checkpoints.State({}, {"x": np.arange(9000)}), {})
    _, known = checkpoints.load_state(path)
    (path / name).unlink()
    make(path / name)
    for verify in (False, True):
        with pytest.raises(ForeignFileError, match=rf"{name}.*it is a (folder|pipe or a device)"):
            checkpoints.load_state(path, verify)
        with pytest.raises(ForeignFileError, match=r"it is a (folder|pipe or a device)"):
            checkpoints.open_arrays(path / name, verify=verify)
    if not (path / name).is_dir():
        checkpoints.save_state(path, checkpoints.State({}, {"x": np.arange(9001)}), {}, known)
        assert checkpoints.load_state(path, verify=True)[0].arrays["x"].size == 9001


SIZES = st.integers(-1, 70) | st.integers(0, 1 << 66) | st.none() | st.floats() | st.text(max_size=2)
ENTRIES = st.fixed_dictionaries(
    {"dtype": st.sampled_from(["U8", "F64", "BOOL", "x"]), "shape": st.lists(SIZES, max_size=4) | SIZES},
    optional={"data_offsets": st.lists(SIZES, max_size=3) | SIZES},
)


@settings(max_examples=150, deadline=None)
@given(entries=st.dictionaries(st.sampled_from(["a", "b", "c"]), ENTRIES | SIZES), tail=st.binary(max_size=80))
@example(entries={}, tail=b"")
def test_any_header_is_accepted_or_refused_with_an_error_of_ours(tmp_path_factory, entries, tail):
    path = tmp_path_factory.mktemp("files") / "a"
    path.write_bytes(forged({**SUMS, **entries}, bytes(64) + tail))
    try:
        found = checkpoints.open_arrays(path)
        for name in found:
            assert found[name].nbytes <= len(tail)
        found.verify()
    except FileError:
        pass


@settings(max_examples=150, deadline=None)
@given(content=st.binary(max_size=300), keep=st.integers(0, 400))
def test_any_bytes_are_refused_with_an_error_of_ours(tmp_path_factory, content, keep):
    folder = tmp_path_factory.mktemp("files")
    checkpoints.write(folder / "a", {"x": np.arange(9)}, {}, "test")
    whole = (folder / "a").read_bytes()
    mixed = whole[:keep] + content
    (folder / "a").write_bytes(mixed)
    if mixed != whole:
        with pytest.raises(FileError):
            checkpoints.open_arrays(folder / "a", verify=True)
