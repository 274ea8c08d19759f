"""Codecs that lie. Each is honest but for one thing, and names the rules that this must break, all of them."""

import ctypes
import os
import threading
import time
import zlib

import numpy as np

from sb3_extra_buffers.codecs import Automatic, CodecPlugin, CodecSpec, Levels
from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.memory import view_bytes

CRC = 4


class Honest:
    """The raw cell and its checksum. Keeps every rule."""

    breaks: frozenset[str] = frozenset()
    detects_corruption = True
    levels: Levels | None = None
    automatic: Automatic | None = None
    identity = False

    def __init__(self, spec, cell):
        self.spec, self.cell = spec, cell
        self.payload_nbytes = self.max_encoded_nbytes = cell.nbytes + CRC

    @classmethod
    def plugin(cls):
        declared = {"levels": cls.levels, "automatic": cls.automatic, "identity": cls.identity}
        return CodecPlugin(protocol=1, factory=cls, summary=cls.__doc__, **declared)

    def encode(self, cell, /):
        view = self.cell.view("liar", "cell", cell)
        return bytes(view) + zlib.crc32(view).to_bytes(CRC, "little")

    def elements(self, cell):
        """An independent copy of the cell, in its dtype but native byte order."""
        view = self.cell.view("liar", "cell", cell)
        return np.frombuffer(view, self.cell.dtype.newbyteorder("=")).copy()

    def decode_into(self, payload, out, /):
        target = self.cell.view("liar", "out", out, writable=True)
        source = view_bytes("liar", "payload", payload)
        cell, crc = source[:-CRC], source[-CRC:]
        if len(source) != self.payload_nbytes or zlib.crc32(cell) != int.from_bytes(crc, "little"):
            raise PayloadError("liar", len(source), "size or checksum")
        target[:] = cell


class RunsOverAt65536(Honest):
    """Counts elements in two bytes."""

    breaks = frozenset({"round-trip", "threads"})

    def decode_into(self, payload, out, /):
        super().decode_into(payload, out)
        if self.cell.count > 65535:
            view_bytes("liar", "out", out)[-1] ^= 1


class MakesZerosPositive(Honest):
    """Adds 0.0 to floats, which turns -0.0 into 0.0, also those that arbitrary bytes happen to make."""

    breaks = frozenset({"special-floats", "round-trip"})

    def encode(self, cell, /):
        data = np.frombuffer(self.cell.view("liar", "cell", cell), self.cell.dtype.newbyteorder("=")).copy()
        if data.dtype.kind == "f" and data.dtype.itemsize <= 8:
            data[data == 0] = 0.0
        return super().encode(data.view(np.uint8))


class ForgetsNaNPayloads(Honest):
    """Normalises every NaN, also those that arbitrary bytes happen to make."""

    breaks = frozenset(
        {
            "any-buffer",
            "batch-decode",
            "cells-alike",
            "damage-contained",
            "round-trip",
            "special-floats",
        }
    )

    def encode(self, cell, /):
        data = np.frombuffer(self.cell.view("liar", "cell", cell), self.cell.dtype.newbyteorder("=")).copy()
        if data.dtype.kind == "f" and data.dtype.itemsize <= 8:
            data[np.isnan(data)] = np.nan
        return super().encode(data.view(np.uint8))


class UnderstatesItsBound(Honest):
    """Forgets its checksum in the size bound, so that batches have no room for it."""

    breaks = frozenset({"size-bound", "batch-encode"})

    def __init__(self, spec, cell):
        super().__init__(spec, cell)
        self.max_encoded_nbytes = cell.nbytes


class SaltsPayloads(Honest):
    """Never writes the same payload twice."""

    breaks = frozenset({"any-buffer", "batch-encode", "repeatable", "threads"})
    count = 0

    def __init__(self, spec, cell):
        super().__init__(spec, cell)
        self.max_encoded_nbytes += 1

    def encode(self, cell, /):
        view = self.cell.view("liar", "cell", cell)
        SaltsPayloads.count += 1
        salted = bytes(view) + bytes([self.count % 256])
        return salted + zlib.crc32(salted).to_bytes(CRC, "little")

    def decode_into(self, payload, out, /):
        target = self.cell.view("liar", "out", out, writable=True)
        source = view_bytes("liar", "payload", payload)
        if len(source) != self.max_encoded_nbytes or zlib.crc32(source[:-CRC]) != int.from_bytes(
            source[-CRC:], "little"
        ):
            raise PayloadError("liar", len(source), "size or checksum")
        target[:] = source[: self.cell.nbytes]


class WritesToItsInput(Honest):
    """Marks cells that it has seen; read-only ones make it fail."""

    # Whoever compares what comes back with what went in sees it.
    breaks = frozenset(
        {
            "any-buffer",
            "batch-damage",
            "batch-decode",
            "batch-encode",
            "bounded-memory",
            "cells-alike",
            "damage-contained",
            "damage-detected",
            "fills-output",
            "fork",
            "input-unchanged",
            "pickle",
            "repeatable",
            "round-trip",
            "spec-complete",
            "special-floats",
            "threads",
            "wrong-size",
        }
    )

    def encode(self, cell, /):
        payload = super().encode(cell)
        view_bytes("liar", "cell", cell, writable=True)[0] ^= 0xFF
        return payload


class KeepsItsInput(Honest):
    """Returns the cell itself."""

    breaks = frozenset({"input-not-kept"})
    detects_corruption = False

    def __init__(self, spec, cell):
        super().__init__(spec, cell)
        self.max_encoded_nbytes = cell.nbytes

    def encode(self, cell, /):
        return self.cell.view("liar", "cell", cell)

    def decode_into(self, payload, out, /):
        target = self.cell.view("liar", "out", out, writable=True)
        source = view_bytes("liar", "payload", payload)
        if len(source) != len(target):
            raise PayloadError("liar", len(source), "size")
        target[:] = source


class ReusesItsBuffer(Honest):
    """Writes every payload into the same memory."""

    breaks = frozenset({"input-not-kept"})
    lock = threading.Lock()

    def encode(self, cell, /):
        payload = np.frombuffer(super().encode(cell), np.uint8)
        with self.lock:
            here = self.__dict__.setdefault(f"scratch-{threading.get_ident()}", np.empty_like(payload))
            here[:] = payload
        return here


class SkipsZeros(Honest):
    """Assumes that outputs are zeroed."""

    breaks = frozenset(
        {
            "any-buffer",
            "batch-decode",
            "cells-alike",
            "damage-contained",
            "fills-output",
            "fork",
            "round-trip",
            "spec-complete",
            "special-floats",
            "threads",
        }
    )
    levels = Levels(1, ((1, 1),))

    def decode_into(self, payload, out, /):
        decoded = np.empty(self.cell.nbytes, np.uint8)
        super().decode_into(payload, decoded)
        target = np.frombuffer(self.cell.view("liar", "out", out, writable=True), np.uint8)
        target[decoded != 0] = decoded[decoded != 0]


class OvershootsItsOutput(Honest):
    """Writes whole words, past the end."""

    breaks = frozenset(
        {"fills-output", "any-buffer", "batch-decode", "damage-contained", "batch-damage", "damage-detected"}
    )

    def decode_into(self, payload, out, /):
        super().decode_into(payload, out)
        # Only where the kit has put memory behind the output: elsewhere this would corrupt the interpreter.
        if isinstance(out, np.ndarray) and out.base is not None and out.base.nbytes > out.nbytes:
            ctypes.memset(out.ctypes.data + out.nbytes, 0x77, 1)


class TakesAnySize(Honest):
    """Pads short cells and cuts long ones."""

    breaks = frozenset({"wrong-size"})

    def encode(self, cell, /):
        data = np.resize(np.ascontiguousarray(np.frombuffer(memoryview(cell).tobytes(), np.uint8)), self.cell.nbytes)
        return super().encode(data)


class TakesAnyDtype(Honest):
    """Looks at sizes alone."""

    breaks = frozenset({"wrong-size"})

    def encode(self, cell, /):
        return super().encode(view_bytes("liar", "cell", cell))

    def decode_into(self, payload, out, /):
        super().decode_into(payload, view_bytes("liar", "out", out))


class ExpandsEverything(Honest):
    """Decompresses first and looks at the size afterwards."""

    breaks = frozenset({"bounded-memory"})

    def encode(self, cell, /):
        payload = zlib.compress(super().encode(cell))
        return payload if len(payload) < self.payload_nbytes else super().encode(cell)

    def decode_into(self, payload, out, /):
        if len(payload) == self.payload_nbytes:
            super().decode_into(payload, out)
            return
        try:
            inner = zlib.decompress(payload)
        except zlib.error as error:
            raise PayloadError("liar", len(payload), str(error)) from error
        super().decode_into(inner, out)


class SilentAboutDamage(Honest):
    """Declares that it detects corruption, but has no checksum."""

    breaks = frozenset({"damage-detected"})

    def decode_into(self, payload, out, /):
        target = self.cell.view("liar", "out", out, writable=True)
        source = view_bytes("liar", "payload", payload)
        if len(source) != self.max_encoded_nbytes:
            raise PayloadError("liar", len(source), "size")
        target[:] = source[: self.cell.nbytes]


class LeaksLibraryErrors(Honest):
    """Lets whatever its library raises escape."""

    breaks = frozenset({"damage-contained", "damage-detected", "never-empty", "batch-damage", "bounded-memory"})

    def decode_into(self, payload, out, /):
        try:
            super().decode_into(payload, out)
        except PayloadError as error:
            raise zlib.error("incorrect data check") from error


class StaysBrokenAfterDamage(Honest):
    """Decodes nothing right any more once it has met a damaged payload."""

    breaks = frozenset({"damage-contained", "batch-damage", "damage-detected"})
    broken = False

    def decode_into(self, payload, out, /):
        try:
            super().decode_into(payload, out)
        except PayloadError:
            self.broken = True
            raise
        if self.broken:
            view_bytes("liar", "out", out)[0] ^= 1


class AcceptsNothing(Honest):
    """Takes an empty payload for a cell of zeros."""

    breaks = frozenset({"never-empty", "damage-detected"})

    def decode_into(self, payload, out, /):
        if not len(payload):
            self.cell.view("liar", "out", out, writable=True)[:] = bytes(self.cell.nbytes)
            return
        super().decode_into(payload, out)


class HonestBatches(Honest):
    """Loops over batches itself. Keeps every rule."""

    def encode_batch(self, rows, out, /):
        payloads = [self.encode(row) for row in rows]
        out[: sum(map(len, payloads))] = np.frombuffer(b"".join(payloads), np.uint8)
        return np.array([len(payload) for payload in payloads], np.int64)

    def decode_batch(self, source, starts, lengths, out, /):
        index = 0
        try:
            for index, place in enumerate(zip(starts.tolist(), lengths.tolist())):
                self.decode_into(source.view(*place), out[index])
        except PayloadError as error:
            error.index = index
            raise


class SortsItsBatches(HonestBatches):
    """Decodes in the order of the heap."""

    breaks = frozenset({"batch-decode"})

    def decode_batch(self, source, starts, lengths, out, /):
        try:
            for index, place in enumerate(np.argsort(starts, kind="stable")):
                self.decode_into(source.view(int(starts[place]), int(lengths[place])), out[index])
        except PayloadError as error:
            error.index = int(place)
            raise


class BlamesTheWrongPayload(HonestBatches):
    """Always says that the first payload of a batch is damaged."""

    breaks = frozenset({"batch-damage"})

    def decode_batch(self, source, starts, lengths, out, /):
        try:
            for index, place in enumerate(zip(starts.tolist(), lengths.tolist())):
                self.decode_into(source.view(*place), out[index])
        except PayloadError as error:
            error.index = 0
            raise


class PadsItsBatches(HonestBatches):
    """Aligns payloads in a batch, but not alone."""

    breaks = frozenset({"batch-encode"})

    def __init__(self, spec, cell):
        super().__init__(spec, cell)
        self.max_encoded_nbytes += 8

    def decode_into(self, payload, out, /):
        super().decode_into(view_bytes("liar", "payload", payload)[: self.payload_nbytes], out)

    detects_corruption = False  # what follows the payload is not looked at

    def encode_batch(self, rows, out, /):
        lengths = np.full(len(rows), self.max_encoded_nbytes, np.int64)
        for index, row in enumerate(rows):
            payload = self.encode(row)
            start = index * self.max_encoded_nbytes
            out[start : start + len(payload)] = np.frombuffer(payload, np.uint8)
            out[start + len(payload) : start + self.max_encoded_nbytes] = 0
        return lengths


class NotForThreads(Honest):
    """Keeps the cell that it works on in itself."""

    breaks = frozenset({"threads"})

    def encode(self, cell, /):
        self.current = bytes(self.cell.view("liar", "cell", cell))
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.001)
        return super().encode(self.current)


class DiesInChildren(Honest):
    """Remembers the process in which it was bound."""

    breaks = frozenset({"fork"})

    def __init__(self, spec, cell):
        super().__init__(spec, cell)
        self.home = os.getpid()

    def encode(self, cell, /):
        if os.getpid() != self.home:
            raise RuntimeError("contexts do not survive a fork")
        return super().encode(cell)


class CannotBePickled(Honest):
    """Holds a lock."""

    breaks = frozenset({"pickle"})

    def __init__(self, spec, cell):
        super().__init__(spec, cell)
        self.lock = threading.Lock()


class LacksADocumentedLevel(Honest):
    """Documents levels 1 to 9 and has 1 to 8."""

    breaks = frozenset({"levels"})
    levels = Levels(5, ((1, 9),))

    def __init__(self, spec, cell):
        super().__init__(spec, cell)
        if spec.params["level"] == 9:
            raise RuntimeError("level 9 is too much")


class ForgetsItsLevel(Honest):
    """Its payloads depend on the level, and its spec does not tell it."""

    breaks = frozenset({"spec-complete"})
    levels = Levels(5, ((1, 9),))

    def __init__(self, spec, cell):
        super().__init__(CodecSpec(spec.name), cell)
        # Bound without a level after the first time, as its incomplete spec asks for.
        ForgetsItsLevel.bound = getattr(ForgetsItsLevel, "bound", 0) + 1
        self.key = ForgetsItsLevel.bound % 251

    def encode(self, cell, /):
        return super().encode(np.frombuffer(self.cell.view("liar", "cell", cell), np.uint8) ^ np.uint8(self.key))

    def decode_into(self, payload, out, /):
        super().decode_into(payload, out)
        target = np.frombuffer(view_bytes("liar", "out", out), np.uint8)
        target ^= np.uint8(self.key)


class MisstatesItsCell(Honest):
    """Says that it is bound to bytes, whatever it is bound to."""

    breaks = frozenset({"declares-itself", "any-buffer", "wrong-size"})

    def __init__(self, spec, cell):
        super().__init__(spec, cell)
        self.cell = type(cell)(np.uint8, cell.nbytes)


class CachesCells(Honest):
    """Remembers decoded cells by the length and the first bytes of their payloads."""

    breaks = frozenset({"cells-alike"})

    def __init__(self, spec, cell):
        super().__init__(spec, cell)
        self.cache = {}

    def decode_into(self, payload, out, /):
        source = view_bytes("liar", "payload", payload)
        super().decode_into(source, out)
        target, key = view_bytes("liar", "out", out), (len(source), bytes(source[:200]))
        if len(source) > 1000:
            target[:] = self.cache.setdefault(key, bytes(target))


class LeaksPayloads(Honest):
    """Keeps every payload that it has made."""

    breaks = frozenset({"codec-leaks"})

    def encode(self, cell, /):
        payload = super().encode(cell)
        self.__dict__.setdefault("kept", []).append(payload)
        return payload


class LeaksNativeMemory(Honest):
    """Takes memory from the C library for every cell and never gives it back."""

    breaks = frozenset({"codec-leaks"})

    def decode_into(self, payload, out, /):
        super().decode_into(payload, out)
        libc = ctypes.CDLL(None)
        libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        ctypes.memset(libc.malloc(len(payload)), 1, len(payload))


class EncodesInSharedMemory(Honest):
    """Copies each cell into one scratch buffer, and encodes from there."""

    breaks = frozenset({"threads"})

    def encode(self, cell, /):
        if "scratch" not in self.__dict__:
            self.scratch = np.empty(self.cell.nbytes, np.uint8)
        self.scratch[:] = np.frombuffer(self.cell.view("liar", "cell", cell), np.uint8)
        return super().encode(self.scratch)


class DecodesInSharedMemory(Honest):
    """Decodes into one scratch buffer, and copies from there."""

    breaks = frozenset({"threads"})

    def decode_into(self, payload, out, /):
        if "scratch" not in self.__dict__:
            self.scratch = np.empty(self.cell.nbytes, np.uint8)
        target = self.cell.view("liar", "out", out, writable=True)
        super().decode_into(payload, self.scratch)
        target[:] = memoryview(self.scratch)


class NamesAnUnknownLevel(Honest):
    """Would be chosen at a level that it does not have."""

    breaks = frozenset({"automatic"})
    levels = Levels(5, ((1, 9),))
    automatic = Automatic(1.0, (1, 10))


class IsNotIdentity(Honest):
    """Declares that its payloads are its cells, and adds a checksum."""

    breaks = frozenset({"identity"})
    identity = True


class WantsNegativeShares(Honest):
    """Declares that fewer bytes than none repay a thread."""

    breaks = frozenset({"declares-itself"})
    min_nbytes_per_thread = -1


class DecodesNoBatches(Honest):
    """Has one of the two methods for batches."""

    breaks = frozenset({"declares-itself"})

    def encode_batch(self, rows, out, /):
        raise NotImplementedError


LIARS = [liar for liar in list(globals().values()) if isinstance(liar, type) and issubclass(liar, Honest)]
