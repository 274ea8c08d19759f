"""How much room is set aside: enough for anything, and close to what frames take."""

import math

import numpy as np
import pytest
import torch as th
from hypothesis import given
from hypothesis import strategies as st

from sb3_extra_buffers.codecs import CellSpec, bind, names
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.gpu_buffers.size_estimation import (
    estimate_max_slot_bytes,
    estimate_packed_heap_bytes,
    estimate_save_ratio,
    estimate_total_heap_bytes,
    parse_compression_method,
    validate_compresslevel,
)
from sb3_extra_buffers.gpu_buffers.size_ratios import RATIOS
from sb3_extra_buffers.gpu_buffers.utils import torch_dtype_to_numpy

RAW = 84 * 84 * 4
LEVELS = {
    "gzip": [0, 1, 5, 9],
    "igzip": [0, 1, 2, 3],
    "zstd": [-100, -50, -3, -1, 1, 3, 10, 22],
    "lz4-frame": [-65536, -3000, -101, -100, -8, -1, 0, 2, 3, 9, 16],
    "lz4-block": [-65537, -3000, -101, -100, -8, -1, 0, 1, 5, 12],
}
WRONG_LEVELS = {
    "gzip": [-1, 10],
    "igzip": [-1, 4],
    "zstd": [-101, 0, 23],
    "lz4-frame": [17, -65537],
    "lz4-block": [13, -65538],
}
RIGHT = [(family, level) for family, levels in LEVELS.items() for level in levels]
WRONG = [(family, level) for family, levels in WRONG_LEVELS.items() for level in levels]


@pytest.mark.parametrize(
    ("method", "parsed"),
    [
        ("none", ("none", None)),
        ("rle", ("rle", None)),
        ("rle-jit", ("rle-jit", None)),
        ("zstd", ("zstd", None)),
        ("zstd3", ("zstd", 3)),
        ("zstd-5", ("zstd", -5)),
        ("zstd/-5", ("zstd", -5)),
        ("igzip0", ("igzip", 0)),
        ("lz4-frame/5", ("lz4-frame", 5)),
        ("lz4-block/-8", ("lz4-block", -8)),
        ("somebodys-codec", ("somebodys-codec", None)),
        ("somebodys-codec/7", ("somebodys-codec", 7)),
    ],
)
def test_names_are_read_as_buffers_read_them(method, parsed):
    assert parse_compression_method(method) == parsed


@pytest.mark.parametrize("method", ["", "zstd/fast", "/3", None])
def test_what_is_no_name_is_refused(method):
    with pytest.raises(ParameterError):
        parse_compression_method(method)


@pytest.mark.parametrize(("family", "level"), RIGHT)
def test_every_documented_level_has_a_ratio_between_those_of_the_nearest_measured_levels(family, level):
    validate_compresslevel(family, level)
    ratio, measured = estimate_save_ratio(f"{family}/{level}"), RATIOS[family]
    below = max((one for one in measured if one <= level), default=min(measured))
    above = min(one for one in measured if one >= level)
    smallest, largest = sorted((measured[below], measured[above]))
    assert 0 < smallest <= ratio <= largest <= 1
    assert ratio == estimate_save_ratio(family, level) == estimate_save_ratio(family, np.int64(level))


@pytest.mark.parametrize(("family", "level"), WRONG)
def test_levels_outside_are_refused_wherever_they_are_given(family, level):
    arguments = (8, th.uint8, th.uint16)
    for call in (
        lambda: validate_compresslevel(family, level),
        lambda: estimate_save_ratio(f"{family}/{level}"),
        lambda: estimate_save_ratio(family, level),
        lambda: estimate_max_slot_bytes(*arguments, f"{family}/{level}"),
        lambda: estimate_total_heap_bytes(3, *arguments, family, compresslevel=level),
        lambda: estimate_packed_heap_bytes(3, 8, th.uint8, family, compresslevel=level),
    ):
        with pytest.raises(ValueError, match=rf"codec '{family}': compresslevel={level} is not allowed; levels: "):
            call()


@pytest.mark.parametrize(("family", "level"), RIGHT + WRONG)
def test_the_codecs_themselves_have_the_same_levels(family, level):
    if family not in names():
        pytest.skip(f"{family} is not installed")
    allowed = level in LEVELS[family]
    if allowed:
        assert bind(f"{family}/{level}", CellSpec(np.uint8, 8)).spec.params["level"] == level
    else:
        with pytest.raises(ParameterError):
            bind(f"{family}/{level}", CellSpec(np.uint8, 8))


@pytest.mark.parametrize("level", [2.0, "3", True])
def test_a_level_is_a_whole_number(level):
    with pytest.raises(ParameterError, match="levels: 0 to 9"):
        estimate_save_ratio("gzip", level)


@pytest.mark.parametrize("method", ["none/1", "rle3", "rle-jit/2"])
def test_codecs_without_levels_take_none(method):
    with pytest.raises(ParameterError, match="this codec has no levels"):
        estimate_save_ratio(method)


def test_bare_zstd_counts_as_level_minus_three_and_an_explicit_level_overrides_the_name():
    assert estimate_save_ratio("zstd") == estimate_save_ratio("zstd-3")
    assert estimate_save_ratio("zstd3", compresslevel=-50) == estimate_save_ratio("zstd-50")
    assert estimate_save_ratio("zstd-50") > 2 * estimate_save_ratio("zstd3")


def test_levels_between_measured_ones_are_interpolated_in_the_logarithm(monkeypatch):
    monkeypatch.setitem(RATIOS, "zstd", {-31: 0.5, -7: 0.3, 1: 0.1, 3: 0.05})
    assert estimate_save_ratio("zstd/-31") == 0.5
    assert estimate_save_ratio("zstd/-7") == 0.3
    # log2(1 + 15) = 4 is halfway between log2(1 + 31) = 5 and log2(1 + 7) = 3.
    assert estimate_save_ratio("zstd/-15") == pytest.approx(0.4)
    assert 0.1 < estimate_save_ratio("zstd/-1") < estimate_save_ratio("zstd/-3") < 0.3
    assert estimate_save_ratio("zstd/-100") == 0.5
    assert estimate_save_ratio("zstd/22") == 0.05


def test_ratios_are_in_the_known_order():
    assert estimate_save_ratio("none") == estimate_save_ratio("gzip0") == 1
    assert estimate_save_ratio("zstd19") < estimate_save_ratio("zstd1") < estimate_save_ratio("zstd-3")
    assert estimate_save_ratio("gzip9") < estimate_save_ratio("gzip1") < estimate_save_ratio("igzip0")
    assert estimate_save_ratio("lz4-block/9") < estimate_save_ratio("lz4-block/0") < estimate_save_ratio("rle") < 1
    assert estimate_save_ratio("rle") == estimate_save_ratio("rle-jit")
    assert 0.99 < estimate_save_ratio("lz4-block/-65537") <= 1


def test_a_codec_of_somebody_else_counts_as_one_that_saves_nothing():
    assert estimate_save_ratio("somebodys-codec/7") == 1
    slot = estimate_max_slot_bytes(RAW, th.uint8, th.uint16, "somebodys-codec", overalloc_factor=3)
    assert slot == RAW + 16
    assert estimate_packed_heap_bytes(100, RAW, th.uint8, "somebodys-codec") == 100 * (RAW + 16)


@pytest.mark.parametrize("method", ["none", "rle", "gzip/1", "gzip/9", "igzip/1", "lz4-frame", "lz4-block/0", "zstd3"])
@pytest.mark.parametrize("dtype", [th.uint8, th.bool, th.float32, th.uint16])
@pytest.mark.parametrize("count", [1, 13, 14, 15, 16, 333])
def test_noise_fits_into_its_slot_with_the_next_one_aligned(method, dtype, count):
    if parse_compression_method(method)[0] not in names():
        pytest.skip(f"{method} is not installed")
    codec = bind(method, CellSpec(torch_dtype_to_numpy(dtype), count))
    noise = np.random.default_rng(count).integers(0, 256, codec.cell.nbytes, dtype=np.uint8)
    slot = estimate_max_slot_bytes(count, dtype, th.uint16, method)
    assert slot % 16 == 0
    assert slot >= math.ceil(codec.max_encoded_nbytes / 16) * 16
    assert slot >= codec.cell.nbytes + 16
    assert len(codec.encode(noise)) <= codec.max_encoded_nbytes


@given(
    count=st.integers(0, 10**7),
    dtype=st.sampled_from([th.uint8, th.float16, th.bfloat16, th.int32, th.float64]),
    method=st.sampled_from(["none", "rle", "zstd", "zstd-100", "gzip1", "lz4-frame", "somebodys-codec"]),
    factor=st.floats(0.01, 20),
    cells=st.integers(0, 10**6),
)
def test_no_slot_is_smaller_than_the_worst_case_and_no_packed_heap_larger(count, dtype, method, factor, cells):
    raw = count * dtype.itemsize
    slot = estimate_max_slot_bytes(count, dtype, th.uint16, method, factor)
    packed = estimate_packed_heap_bytes(cells, count, dtype, method, factor)
    assert slot >= raw + 16
    assert estimate_total_heap_bytes(cells, count, dtype, th.uint32, method, factor) == cells * slot
    assert packed <= cells * math.ceil((raw + 16) / 16) * 16
    assert packed >= min(cells, 1) * (raw + 16)
    if cells:
        wanted = cells * raw * estimate_save_ratio(method) * factor
        assert packed >= min(wanted, cells * raw)


def test_headroom_counts_once_it_exceeds_the_worst_case():
    assert estimate_max_slot_bytes(RAW, th.uint8, th.uint16, "zstd3") == RAW + 16
    roomy = estimate_max_slot_bytes(RAW, th.uint8, th.uint16, "zstd3", overalloc_factor=50)
    assert 0 <= roomy - RAW * estimate_save_ratio("zstd3") * 50 < 16
    assert estimate_max_slot_bytes(RAW, th.uint8, th.uint16, "none", overalloc_factor=3) == 3 * RAW


def test_a_packed_heap_of_frames_is_a_fraction_of_the_raw_ones():
    cells = 10_000
    packed = estimate_packed_heap_bytes(cells, RAW, th.uint8, "zstd3")
    assert 1.5 * estimate_save_ratio("zstd3") * cells * RAW < packed < 0.15 * cells * RAW
    assert estimate_total_heap_bytes(cells, RAW, th.uint8, th.uint16, "zstd3") == cells * (RAW + 16)


@pytest.mark.parametrize("factor", [0, -1.5, math.inf, math.nan])
def test_headroom_is_a_positive_number(factor):
    with pytest.raises(ParameterError, match="overalloc_factor"):
        estimate_max_slot_bytes(8, th.uint8, th.uint16, "rle", overalloc_factor=factor)


@pytest.mark.parametrize("count", [-1, 2.5, True, None])
def test_numbers_of_elements_and_cells_are_whole(count):
    with pytest.raises(ParameterError, match="flat_len"):
        estimate_max_slot_bytes(count, th.uint8, th.uint16, "rle")
    with pytest.raises(ParameterError, match="n_cells"):
        estimate_total_heap_bytes(count, 8, th.uint8, th.uint16, "rle")


def test_an_element_type_of_numpy_is_refused_with_the_way_out():
    with pytest.raises(ParameterError, match="numpy_dtype_to_torch"):
        estimate_max_slot_bytes(8, np.uint8, th.uint16, "rle")
