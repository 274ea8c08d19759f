"""Frame kernels that lie. Each is the reference but for one thing, and names the rules that this must break."""

import numpy as np

from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.frames.numpy_kernels import NumpyKernels


class Honest(NumpyKernels):
    """Keeps every rule, and brings arrays into order as well."""

    breaks: frozenset[str] = frozenset()

    def contiguous(self, array, /):
        return np.ascontiguousarray(array)


class ReadsOnePlane(Honest):
    """Hands out the observation also where the next one was asked for."""

    breaks = frozenset({"read-back"})

    def read(self, streams, source, references, out, following=None, /):
        super().read(streams, source, references, out)
        if following is not None:
            following[:] = out


class StoresAgain(Honest):
    """Never finds a frame again."""

    breaks = frozenset({"same-numbers"})

    def write(self, streams, references, rows, begin, following=None, /):
        for stream in range(streams.streams):
            streams.forget_last(stream)
        return super().write(streams, references, rows, begin, following)


class MeasuresTooMuch(Honest):
    """Counts a byte that is not there."""

    breaks = frozenset({"same-bytes"})

    def measure(self, old, new, /):
        return super().measure(old, new) + 1


class WritesBeside(Honest):
    """Clears what is behind the rows that were asked for."""

    breaks = frozenset({"inside"})

    def read(self, streams, source, references, out, following=None, /):
        super().read(streams, source, references, out, following)
        if isinstance(out.base, np.ndarray):
            out.base[-1] = 0


class HidesDamage(Honest):
    """Makes zeros of chunks that are damaged."""

    breaks = frozenset({"damage"})

    def read(self, streams, source, references, out, following=None, /):
        try:
            super().read(streams, source, references, out, following)
        except PayloadError:
            out[:] = 0


class KeepsTheOrder(Honest):
    """Copies as an ordinary copy does: in the order of the memory."""

    breaks = frozenset({"contiguous"})

    def contiguous(self, array, /):
        return array.copy(order="K")


class UsesRoomAgain(Honest):
    """Puts every image of a shape into the same memory."""

    breaks = frozenset({"contiguous"})

    def __init__(self):
        super().__init__()
        self._rooms = {}

    def contiguous(self, array, /):
        if array.flags.c_contiguous:
            return array
        room = self._rooms.setdefault((array.shape, array.dtype), np.empty(array.shape, array.dtype))
        room[:] = array
        return room


class TrustsTheShape(Honest):
    """Takes every array with few channels for an image that was turned."""

    breaks = frozenset({"contiguous"})

    def contiguous(self, array, /):
        if array.ndim == 4 and array.shape[1] <= 4 and not array.flags.c_contiguous:
            count, channels, height, width = array.shape
            flat = array.copy(order="K").ravel(order="K")
            return np.ascontiguousarray(flat.reshape(count, height, width, channels).transpose(0, 3, 1, 2))
        return np.ascontiguousarray(array)


LIARS = [liar for liar in list(globals().values()) if isinstance(liar, type) and hasattr(liar, "breaks")]
