"""The conformance kit for device codecs: every rule of their contract as a test.

A test file of a distribution, complete::

    from sb3_extra_buffers.gpu_buffers.testing import DeviceCodecConformance

    class TestMine(DeviceCodecConformance):
        codec = "mine"
        device = "cuda"

The host codec of the same name must be installed. :data:`DEVICE_CODEC_RULES` lists the rules, and
``rule.verify(subject)`` checks one without pytest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch as th
from numpy.typing import NDArray

from sb3_extra_buffers.codecs import CellSpec, Codec, bind, parse
from sb3_extra_buffers.errors import DeviceError, MissingExtraError, PayloadError
from sb3_extra_buffers.gpu_buffers.codecs import DEVICE_CODEC_PROTOCOL, DeviceCodec, DeviceCodecPlugin, registry
from sb3_extra_buffers.gpu_buffers.devices import CPU, aligned, as_device
from sb3_extra_buffers.gpu_buffers.memory import GrowingDeviceHeap
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.testing import NotApplicable, Rule, RuleBook

__all__ = ["DEVICE_CODEC_RULES", "DeviceCodecConformance", "DeviceCodecSubject"]

#: Dtypes and element counts of the cells that are decoded and encoded, around the limits of one and two bytes.
_CELLS = (
    *(("u1", count) for count in (1, 2, 63, 255, 256, 257, 1000, 65535, 65536)),
    *(("?", 300), ("<i2", 257), ("<f4", 1000), ("<f8", 65), ("g", 33)),
)
#: Larger cells have one content instead of four: an interpreted kernel is slow.
_LARGE = 1 << 14
_FILL = 0xA5
#: Calls within which damage must be reported.
_CALLS = 20


@dataclass(frozen=True)
class DeviceCodecSubject:
    """A device codec under test.

    :param codec: name of the codec, optionally with a level, such as ``"zstd-5"``
    :param plugin: the device codec
    :param device: device to test it on
    """

    codec: str
    plugin: DeviceCodecPlugin
    device: th.device = CPU

    @classmethod
    def installed(cls, codec: str, device: th.device | str = "cpu") -> DeviceCodecSubject:
        """The device codec that is registered under a name.

        :param codec: its name, optionally with a level
        :param device: device to test it on
        """
        return cls(codec, registry.load(parse(codec).name), as_device(device))

    def bind(self, dtype: str = "u1", count: int = 1000) -> tuple[Codec, DeviceCodec]:
        """The codec of the host, and the device codec for its payloads.

        :param dtype: dtype of the cells
        :param count: elements of a cell
        :raise NotApplicable: if the device codec does not support the cells on this device
        """
        host = bind(self.codec, CellSpec(np.dtype(dtype), count))
        try:
            return host, self.plugin.factory(host, self.device)
        except (DeviceError, MissingExtraError) as error:
            raise NotApplicable(str(error)) from error

    def cells(self, *, is_large: bool = True) -> Iterator[tuple[Codec, DeviceCodec, Bytes]]:
        """Bound codecs for cells of many kinds, with rows of content.

        :param is_large: whether to include large cells
        """
        reason: NotApplicable | None = None
        found = False
        for dtype, count in _CELLS:
            if count > _LARGE and not is_large:
                continue
            try:
                host, codec = self.bind(dtype, count)
            except NotApplicable as error:
                reason = error
                continue
            found = True
            yield host, codec, _content(host.cell)
        if not found and reason is not None:
            raise reason

    def store(self, host: Codec, rows: Bytes) -> GrowingDeviceHeap:
        """A heap with one payload per row, encoded by the host."""
        return self.store_payloads([_encoded(host, row) for row in rows])

    def store_payloads(self, payloads: list[Bytes]) -> GrowingDeviceHeap:
        """A heap with these payloads."""
        heap = GrowingDeviceHeap(len(payloads), self.device)
        for cell, payload in enumerate(payloads):
            heap.reserve(np.array([cell]), len(payload))[:] = payload
            heap.commit(np.array([len(payload)]))
        return heap

    def decode(self, codec: DeviceCodec, heap: GrowingDeviceHeap, cells: Indices, nbytes: int) -> Bytes:
        """Decode cells of a heap; return their rows on the host."""
        out = th.full((len(cells), nbytes), _FILL, dtype=th.uint8, device=self.device)
        codec.decode(heap, *heap.locate(cells), out)
        return _on_host(out)

    def __str__(self) -> str:
        return f"{self.codec} on {self.device}"


#: The contract of a device codec.
DEVICE_CODEC_RULES: RuleBook[DeviceCodecSubject] = RuleBook()
_rule = DEVICE_CODEC_RULES.rule


@_rule("plugin", f"The plugin has protocol {DEVICE_CODEC_PROTOCOL} as a number, a factory, and a summary of one line.")
def _(subject: DeviceCodecSubject) -> None:
    plugin = subject.plugin
    protocol_is_right = type(plugin.protocol) is int and plugin.protocol == DEVICE_CODEC_PROTOCOL
    _expect(protocol_is_right, f"its protocol is {plugin.protocol!r}")
    _expect(callable(plugin.factory), f"its factory is {plugin.factory!r}")
    summary: Any = plugin.summary
    one_line = isinstance(summary, str) and summary.strip() == summary != "" and "\n" not in summary
    _expect(one_line, f"its summary is {summary!r}")


@_rule("protocol", "A bound device codec has the methods decode and encode.")
def _(subject: DeviceCodecSubject) -> None:
    _, codec = subject.bind()
    _expect(isinstance(codec, DeviceCodec), f"{type(codec).__name__} lacks a method")


@_rule("decode", "Payloads of the host decode to their cells, for every dtype and size, in the order of the batch.")
def _(subject: DeviceCodecSubject) -> None:
    for host, codec, rows in subject.cells():
        order = np.array([2, 0, 3, 1, 0]) % len(rows)
        found = subject.decode(codec, subject.store(host, rows), order, host.cell.nbytes)
        _expect(np.array_equal(found, rows[order]), f"cells of {host.cell} are decoded wrongly")


@_rule("encode", "encode gives the payloads of the host byte for byte, at multiples of 16 bytes, and their sizes.")
def _(subject: DeviceCodecSubject) -> None:
    for host, codec, rows in subject.cells():
        given = th.from_numpy(rows.copy()).to(subject.device)
        payloads, sizes = codec.encode(given)
        _expect(payloads.device == given.device, f"the payloads are on {payloads.device}")
        _expect(payloads.dtype == th.uint8, f"the payloads have the dtype {payloads.dtype}")
        expected = [_encoded(host, row) for row in rows]
        _expect(list(sizes) == [len(one) for one in expected], f"the sizes of {host.cell} are {sizes}")
        found, begin = _on_host(payloads), 0
        for payload in expected:
            part = found[begin : begin + len(payload)]
            _expect(np.array_equal(part, payload), f"a payload of {host.cell} at byte {begin} differs")
            begin += aligned(len(payload))


@_rule("floats", "decode gives cells of uint8 as floats if the output is float32.")
def _(subject: DeviceCodecSubject) -> None:
    host, codec = subject.bind()
    rows = _content(host.cell)
    heap, out = subject.store(host, rows), th.full(rows.shape, -1.0, device=subject.device)
    codec.decode(heap, *heap.locate(np.arange(len(rows))), out)
    _expect(np.array_equal(_on_host(out), rows.astype(np.float32)), "the floats are not the elements")


@_rule("output", "decode writes the rows of its output and nothing beside them.")
def _(subject: DeviceCodecSubject) -> None:
    for host, codec, rows in subject.cells(is_large=False):
        heap = subject.store(host, rows)
        _decode_with_margin(subject, codec, heap, *heap.locate(np.arange(len(rows))), host.cell.nbytes)


@_rule("input", "decode does not change payloads, and encode does not change rows.")
def _(subject: DeviceCodecSubject) -> None:
    host, codec = subject.bind()
    rows = _content(host.cell)
    heap, cells = subject.store(host, rows), np.arange(len(rows))
    before = heap.gather(*heap.locate(cells)).copy()
    subject.decode(codec, heap, cells, host.cell.nbytes)
    _expect(np.array_equal(heap.gather(*heap.locate(cells)), before), "decode has changed a payload")
    given = th.from_numpy(rows.copy()).to(subject.device)
    codec.encode(given)
    _expect(np.array_equal(_on_host(given), rows), "encode has changed a row")


@_rule("batches", "A batch may have any size and repeat payloads, which may be in several blocks of the heap.")
def _(subject: DeviceCodecSubject) -> None:
    host, codec = subject.bind()
    # Noise, so that the heap needs more than its first block of 64 KiB.
    rows = np.random.default_rng(0).integers(256, size=(120, host.cell.nbytes), dtype=np.uint8)
    heap = subject.store(host, rows)
    for size in (1, 150, 2):
        cells = np.random.default_rng(size).integers(len(rows), size=size)
        found = subject.decode(codec, heap, cells, host.cell.nbytes)
        _expect(np.array_equal(found, rows[cells]), f"a batch of {size} is decoded wrongly")


@_rule("stateless", "What decode returns depends on the payloads alone: other content at the same position is decoded.")
def _(subject: DeviceCodecSubject) -> None:
    host, codec = subject.bind()
    first = _content(host.cell)
    second = np.ascontiguousarray(255 - first)
    cells = np.arange(len(first))
    for rows in (first, second, first):
        found = subject.decode(codec, subject.store(host, rows), cells, host.cell.nbytes)
        _expect(np.array_equal(found, rows), "cells of an earlier batch are returned")


@_rule(
    "too-long", "A payload that is too long for any cell is a PayloadError with its index, now or a few calls later."
)
def _(subject: DeviceCodecSubject) -> None:
    host, codec = subject.bind()
    sound = _encoded(host, _content(host.cell)[1])
    too_long = np.zeros(max(host.max_encoded_nbytes, host.cell.nbytes) + 1, np.uint8)
    heap = subject.store_payloads([sound, sound, too_long])
    error = _damage(subject, codec, heap, host.cell.nbytes, np.array([0, 1, 2]))
    _expect(error is not None, f"{len(too_long)} bytes are decoded")
    assert error is not None
    _expect(error.index == 2, f"the error names the payload {error.index} instead of 2")


@_rule("damage", "A truncated payload raises nothing but PayloadError, and nothing is written beside the output.")
def _(subject: DeviceCodecSubject) -> None:
    host, codec = subject.bind()
    for row in _content(host.cell):
        payload = _encoded(host, row)
        for length in {max(len(payload) - 1, 1), max(len(payload) // 2, 1)}:
            heap = subject.store_payloads([payload, payload[:length]])
            _damage(subject, codec, heap, host.cell.nbytes, np.array([0, 1]))


class DeviceCodecConformance:
    """Tests an installed device codec against every rule of the contract.

    .. code-block:: python

        class TestMine(DeviceCodecConformance):
            codec = "mine"
            device = "cuda"

    A rule that does not apply, such as on a device that the codec does not support, is skipped with the reason.
    """

    codec: ClassVar[str]
    device: ClassVar[str] = "cpu"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.test_rule is not DeviceCodecConformance.test_rule:
            raise TypeError(f"{cls.__name__} overrides test_rule; a subclass may add tests, but not replace the kit's")

    @pytest.mark.parametrize("rule", DEVICE_CODEC_RULES, ids=lambda rule: rule.id)
    def test_rule(self, rule: Rule[DeviceCodecSubject]) -> None:
        __tracebackhide__ = True
        try:
            rule.verify(DeviceCodecSubject.installed(self.codec, self.device))
        except NotApplicable as reason:
            pytest.skip(f"[{rule.id}] does not apply: {reason}")


def _expect(condition: object, detail: str) -> None:
    if not condition:
        raise AssertionError(detail)


def _on_host(tensor: th.Tensor) -> NDArray[Any]:
    """The tensor as an array, when the device is done."""
    found: NDArray[Any] = tensor.cpu().numpy()
    return found


def _encoded(host: Codec, row: Bytes) -> Bytes:
    return np.frombuffer(host.encode(row.view(host.cell.dtype)), np.uint8).copy()


def _content(cell: CellSpec) -> Bytes:
    """Rows of noise, runs, alternating elements and one value; of large cells, runs only."""
    random, item = np.random.default_rng(cell.nbytes), cell.dtype.itemsize
    values = random.integers(256, size=(cell.count, item), dtype=np.uint8)
    runs = np.repeat(values, random.integers(1, 40, cell.count), axis=0)[: cell.count]
    kinds = [runs] if cell.nbytes > _LARGE else [values, runs, np.resize(values[:2], runs.shape), runs * 0]
    rows: Bytes = np.stack(kinds).reshape(len(kinds), cell.nbytes)
    return rows % 2 if cell.dtype == np.bool_ else rows


def _decode_with_margin(
    subject: DeviceCodecSubject,
    codec: DeviceCodec,
    heap: GrowingDeviceHeap,
    starts: Indices,
    lengths: Indices,
    nbytes: int,
) -> None:
    """Decode into the middle of a tensor, and expect that its margins stay as they are."""
    whole = th.full((len(starts) + 2, nbytes), _FILL, dtype=th.uint8, device=subject.device)
    try:
        codec.decode(heap, starts, lengths, whole[1:-1])
    finally:
        margins = _on_host(whole[[0, -1]])
        _expect((margins == _FILL).all(), "bytes beside the rows are written")


def _damage(
    subject: DeviceCodecSubject, codec: DeviceCodec, heap: GrowingDeviceHeap, nbytes: int, cells: Indices
) -> PayloadError | None:
    """Decode a damaged batch, then sound batches until the damage is reported."""
    try:
        _decode_with_margin(subject, codec, heap, *heap.locate(cells), nbytes)
        for _ in range(_CALLS):
            subject.decode(codec, heap, cells[:1], nbytes)
    except PayloadError as error:
        return error
    return None
