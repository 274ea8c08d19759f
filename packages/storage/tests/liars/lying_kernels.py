"""Frame kernels that lie. Each is the reference but for one thing, and names the rules that this must break."""

import ctypes
import time
from dataclasses import replace

import numpy as np

from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.frames.numpy_kernels import NumpyKernels
from sb3_extra_buffers.frames.streams import NONE


class Honest(NumpyKernels):
    """Keeps every rule, and has every capability."""

    breaks: frozenset[str] = frozenset()

    def contiguous(self, array, /):
        return np.ascontiguousarray(array)


class HasAnotherName(Honest):
    """Is not called what it is registered as."""

    breaks = frozenset({"name"})
    name = "fastest"


class ReadsNoNextObservations(Honest):
    """Returns the observation also where the next one was asked for."""

    breaks = frozenset({"read-back", "sources", "workspace", "interrupts", "pickle"})

    def read(self, streams, source, references, out, next_out=None, /):
        super().read(streams, source, references, out)
        if next_out is not None:
            next_out[:] = out


class StoresAgain(Honest):
    """Never finds a frame again."""

    breaks = frozenset({"same-numbers"})

    def write(self, streams, references, rows, begin, next_rows=None, /):
        streams.last_number[:] = NONE
        return super().write(streams, references, rows, begin, next_rows)


class MeasuresTooMuch(Honest):
    """Counts a byte that is not there."""

    breaks = frozenset({"same-bytes"})

    def measure(self, old, new, /):
        return super().measure(old, new) + 1


class WritesBeside(Honest):
    """Clears the memory after the rows that were asked for."""

    breaks = frozenset({"inside"})

    def read(self, streams, source, references, out, next_out=None, /):
        super().read(streams, source, references, out, next_out)
        if isinstance(out.base, np.ndarray):
            out.base[-1] = 0


class HidesDamage(Honest):
    """Reads damaged chunks as zeros."""

    breaks = frozenset({"damage"})

    def read(self, streams, source, references, out, next_out=None, /):
        try:
            super().read(streams, source, references, out, next_out)
        except PayloadError:
            out[:] = 0


class _Wrapped:
    """A source of chunks whose chunks are replaced."""

    def __init__(self, source, load):
        self.load = lambda slots: load(source.load(slots), slots)


class IgnoresReferenceFrames(Honest):
    """Takes a frame of zeros for the reference frame of every chunk."""

    breaks = frozenset({"read-back", "sources", "workspace", "interrupts"})

    def read(self, streams, source, references, out, next_out=None, /):
        def load(chunks, slots):
            return replace(chunks, bases=[np.zeros_like(base) for base in chunks.bases])

        super().read(streams, _Wrapped(source, load), references, out, next_out)


class TrustsOldAddresses(Honest):
    """Reads chunks from the addresses where they were when it asked first."""

    breaks = frozenset({"sources"})

    def __init__(self):
        super().__init__()
        self._known = {}

    def read(self, streams, source, references, out, next_out=None, /):
        if (known := source.known()) is not None:
            for slot in np.flatnonzero(known.addresses).tolist():
                memory = (ctypes.c_uint8 * known.lengths.item(slot)).from_address(known.addresses.item(slot))
                chunk = source.packed[slot]  # held, so that its memory exists
                self._known.setdefault(slot, (chunk, np.ctypeslib.as_array(memory)))

        def load(chunks, slots):
            packed = [self._known.get(slot, (None, chunk))[1] for slot, chunk in zip(slots, chunks.packed)]
            return replace(chunks, packed=packed)

        super().read(streams, _Wrapped(source, load), references, out, next_out)


class TrustsTheWorkspace(Honest):
    """Takes every workspace for its own."""

    breaks = frozenset({"workspace"})

    def write(self, streams, references, rows, begin, next_rows=None, /):
        if streams.workspace is None:
            streams.workspace = [0]
        streams.workspace[0] += 1
        return super().write(streams, references, rows, begin, next_rows)


class WritesInSteps(Honest):
    """Leaves streams half changed for a moment."""

    breaks = frozenset({"interrupts"})

    def write(self, streams, references, rows, begin, next_rows=None, /):
        filled = streams.filling.filled.copy()
        streams.filling.filled[:] = 0
        streams.filling.filled[:] = filled
        return super().write(streams, references, rows, begin, next_rows)


class SharesScratch(Honest):
    """Reads every batch into the same memory first, which it keeps."""

    breaks = frozenset({"threads", "batch-memory"})

    def __init__(self):
        super().__init__()
        self._scratch = np.empty((0, 0), np.uint8)

    def read(self, streams, source, references, out, next_out=None, /):
        if self._scratch.shape != out.shape:
            self._scratch = np.empty_like(out)
        scratch = self._scratch
        super().read(streams, source, references, scratch, next_out)
        time.sleep(0.0005)
        out[:] = scratch


class CannotBePickled(Honest):
    """Does not travel with its buffer."""

    breaks = frozenset({"pickle"})

    def __reduce__(self):
        raise TypeError("cannot pickle a handle")


class HidesItsMemory(Honest):
    """Keeps memory between batches and does not say so."""

    breaks = frozenset({"batch-memory"})
    nbytes_for_batches = 0


class HoardsMemory(Honest):
    """Keeps every batch, and says so."""

    breaks = frozenset({"batch-memory"})

    def __init__(self):
        super().__init__()
        self._batches = []

    @property
    def nbytes_for_batches(self):
        return super().nbytes_for_batches + sum(batch.nbytes for batch in self._batches)

    def read(self, streams, source, references, out, next_out=None, /):
        super().read(streams, source, references, out, next_out)
        self._batches.append(out.copy())


class OverlapsAnything(Honest):
    """Takes every next observation for a shifted observation."""

    breaks = frozenset({"overlapping"})

    def read_overlapping(self, streams, source, references, out, /):
        nbytes = streams.geometry.frame_nbytes
        obs, next_obs = (np.empty((len(out), streams.geometry.row_nbytes), np.uint8) for _ in range(2))
        self.read(streams, source, references, obs, next_obs)
        out[:, :-nbytes], out[:, -nbytes:] = obs, next_obs[:, -nbytes:]
        return True


class NeverOverlaps(Honest):
    """Finds no batch that overlaps."""

    breaks = frozenset({"overlapping"})

    def read_overlapping(self, streams, source, references, out, /):
        return False


class RepeatsTheNewestFrame(Honest):
    """Reads the newest frame of the observation where that of the next one belongs."""

    breaks = frozenset({"overlapping"})

    def read_overlapping(self, streams, source, references, out, /):
        nbytes, found = streams.geometry.frame_nbytes, super().read_overlapping(streams, source, references, out)
        if found:
            out[:, -nbytes:] = out[:, -2 * nbytes : -nbytes]
        return found


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
