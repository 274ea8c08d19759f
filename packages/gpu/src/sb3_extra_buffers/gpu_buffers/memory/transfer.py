"""Copies from the host to a device, and the order of streams that use the same memory."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import torch as th

#: Copies that may be pending. The staging memory of a copy is reused only when the copy is complete.
_SLOTS = 32
#: Longer uploads are split, so that loading a buffer does not need its size again as staging memory.
_MAX_NBYTES = 1 << 20
_MIN_NBYTES = 1 << 16


def has_streams(device: th.device) -> bool:
    """Whether work on a device is queued in streams that do not wait for each other."""
    return device.type == "cuda"


class Uploader:
    """Copies bytes to a device, on CUDA without waiting for it. Threads may share it.

    An asynchronous copy needs pinned memory that does not change until the copy is complete. Pinning memory takes
    longer than the copy, so a few pinned buffers are used in turn.

    :param device: the target device
    """

    def __init__(self, device: th.device) -> None:
        self.device = device
        self._is_pinned = has_streams(device)
        self._slots: list[tuple[th.Tensor, Any]] = []
        self._next = 0
        # A buffer that prefetches uploads in two threads: its worker, and the one that takes a batch.
        self._lock = threading.Lock()

    def upload(self, data: Any, target: th.Tensor) -> None:
        """Copy bytes to a tensor of the same size.

        :param data: an object with the buffer protocol
        :param target: ``uint8``, on the device
        """
        view = memoryview(data)
        for begin in range(0, len(view), _MAX_NBYTES):
            piece = view[begin : begin + _MAX_NBYTES]
            # A copy of read-only memory: torch warns about it, although this only reads.
            source = th.frombuffer(bytearray(piece) if piece.readonly else piece, dtype=th.uint8)
            self._copy(source, target[begin : begin + len(piece)])

    def _copy(self, source: th.Tensor, target: th.Tensor) -> None:
        if not self._is_pinned:
            target.copy_(source)
            return
        with self._lock:
            staging, event = self._slot(len(source))
            staged = staging[: len(source)]
            staged.copy_(source)
            target.copy_(staged, non_blocking=True)
            event.record(_current_stream(self.device))

    def _slot(self, nbytes: int) -> tuple[th.Tensor, Any]:
        """Staging memory whose last copy is complete, and the event of that copy."""
        index = self._next
        if index == len(self._slots):
            self._slots.append(self._make(nbytes))
        else:
            self._slots[index][1].synchronize()
            if len(self._slots[index][0]) < nbytes:
                self._slots[index] = self._make(nbytes)
        self._next = (index + 1) % _SLOTS
        return self._slots[index]

    @staticmethod
    def _make(nbytes: int) -> tuple[th.Tensor, Any]:
        size = max(_MIN_NBYTES, 1 << (nbytes - 1).bit_length())
        event: Any = th.cuda.Event  # has no types
        return th.empty(size, dtype=th.uint8, pin_memory=True), event()

    def __reduce__(self) -> tuple[Any, ...]:
        return Uploader, (self.device,)


class StreamOrder:
    """Orders the streams that use the memory of one heap.

    Streams of a device run independently. If a script adds in ``torch.cuda.stream(side)`` and samples elsewhere, no
    kernel of one stream waits for the copies of the other. Here, readers wait for the last writer; a writer waits for
    the last writer and for all readers since. Waiting happens on the device: the host never waits.

    The allocator of torch reuses freed memory in the stream that it was allocated in, so every other stream that uses a
    tensor is recorded there.

    :param device: the device; only CUDA and ROCm have streams
    """

    def __init__(self, device: th.device) -> None:
        self._device = device
        self._is_active = has_streams(device)
        self._lock = threading.Lock()
        self._writer: Any = None
        #: Streams that have waited for the writer.
        self._readers: set[Any] = set()
        #: All streams so far, and the tensors that they may use.
        self._streams: set[Any] = set()
        self._tensors: weakref.WeakValueDictionary[int, th.Tensor] = weakref.WeakValueDictionary()

    def own(self, tensor: th.Tensor) -> None:
        """Protect a tensor that several streams may use, as long as it lives.

        :param tensor: new, allocated in the current stream
        """
        if self._is_active:
            with self._lock:
                self._tensors[id(tensor)] = tensor
                for stream in self._streams:
                    tensor.record_stream(stream)

    def read(self) -> None:
        """Call before the current stream reads: its next operations follow the last write."""
        if self._is_active:
            with self._lock:
                stream = self._enter()
                if stream not in self._readers:
                    if self._writer is not None:
                        stream.wait_stream(self._writer)
                    self._readers.add(stream)

    def write(self) -> None:
        """Call before the current stream writes: its next operations follow all writes and reads so far."""
        if self._is_active:
            with self._lock:
                stream = self._enter()
                self._wait_for_all(stream)
                self._writer, self._readers = stream, {stream}

    def take(self, tensor: th.Tensor) -> th.Tensor:
        """Let the current stream use a tensor that another one may have filled, such as a batch that was prefetched.

        :param tensor: the result of a read
        """
        if self._is_active and tensor.device == self._device:
            with self._lock:
                stream = self._enter()
                if self._wait_for_all(stream):
                    tensor.record_stream(stream)
        return tensor

    def _wait_for_all(self, stream: Any) -> bool:
        """Let a stream wait for all others, and say whether there are any."""
        others = {self._writer, *self._readers} - {None, stream}
        for other in others:
            stream.wait_stream(other)
        return bool(others)

    def _enter(self) -> Any:
        stream = _current_stream(self._device)
        if stream not in self._streams:
            self._streams.add(stream)
            for tensor in self._tensors.values():
                tensor.record_stream(stream)
        return stream

    def __reduce__(self) -> tuple[Any, ...]:
        return StreamOrder, (self._device,)


def _current_stream(device: th.device) -> Any:
    return th.cuda.current_stream(device)
