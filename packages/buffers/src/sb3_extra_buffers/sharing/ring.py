"""``Ring``: records from one process to another, in order."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import FileDamagedError, ParameterError
from sb3_extra_buffers.memory import Bytes
from sb3_extra_buffers.sharing.mapping import LINE_NBYTES, attach, make
from sb3_extra_buffers.sharing.records import described, parsed

_MAGIC = b"SB3XRING"
#: Where numbers are: slots and the size of the description; how many records were written, and taken; whether it ends.
_SIZES, _WRITTEN, _TAKEN, _ENDED = (LINE_NBYTES * line for line in range(1, 5))
_DESCRIPTION = LINE_NBYTES * 5
#: Before each record stand its number and its checksum.
_HEAD_NBYTES = 16
#: A record that looks torn may be on its way from another core; after so many looks it is damaged.
_LOOKS = 50
#: How long to wait before looking again.
_PAUSE = 0.0005


class Ring:
    """
    A queue of records in a file that is mapped by two processes: one puts, one takes. Neither can hold the other up by
    dying: a record counts when it is complete, and what was not taken is taken by whoever reads next.

    A slot holds the number of its record and a checksum. The writer fills the slot, then its number, then the count of
    all records. On processors that keep the order of writes, such as x86, that is enough; on others the checksum tells
    a record that is still on its way from a complete one.

    Make it with :meth:`create`, and open it elsewhere with :meth:`attach`. The file is the caller's: put it on a file
    system in memory, such as ``/dev/shm``, and delete it in the end.
    """

    def __init__(self, path: str | os.PathLike[str], content: Bytes) -> None:
        self.path = Path(path)
        slots, described_nbytes = (int(number) for number in content[_SIZES : _SIZES + 16].view("<u8"))
        try:
            #: What a record holds.
            self.record = parsed(bytes(content[_DESCRIPTION : _DESCRIPTION + min(described_nbytes, len(content))]))
        except ValueError as error:
            raise FileDamagedError(str(path), (f"the description of its records: {error}",)) from None
        #: How many records there is room for.
        self.slots = slots
        slot, begin = _slot_dtype(self.record), _slots_begin(described_nbytes)
        if not slots >= 1 or len(content) - begin != slots * slot.itemsize:
            found = f"it has {len(content)} bytes, {slots} slots of {slot.itemsize} were expected behind {begin}"
            raise FileDamagedError(str(path), (found,))
        self._slots: NDArray[Any] = content[begin:].view(slot)
        # As bytes: of a structure, numpy need not copy what lies between its fields.
        self._bytes = content[begin:].reshape(slots, slot.itemsize)
        self._written, self._taken, self._ended = (
            content[place : place + 8].view("<u8") for place in (_WRITTEN, _TAKEN, _ENDED)
        )

    @classmethod
    def create(cls, path: str | os.PathLike[str], record: np.dtype[Any], slots: int) -> Ring:
        """
        Make a ring.

        :param path: where; there must be nothing
        :param record: what a record holds, for instance a :func:`transition_record`
        :param slots: how many records it has room for
        """
        if isinstance(slots, bool) or not isinstance(slots, (int, np.integer)) or slots < 1:
            raise ParameterError("Ring", "slots", slots, "it must be an integer of at least 1")
        text = described(record)
        begin = _slots_begin(len(text))
        parts = {_SIZES: np.array([slots, len(text)], "<u8").tobytes(), _DESCRIPTION: text}
        return cls(path, make(path, _MAGIC, begin + int(slots) * _slot_dtype(record).itemsize, parts))

    @classmethod
    def attach(cls, path: str | os.PathLike[str]) -> Ring:
        """
        Open a ring that another process has made.

        :param path: where it is
        """
        content = attach(path, _MAGIC, "a ring")
        if len(content) < _DESCRIPTION:
            raise FileDamagedError(str(path), (f"it has only {len(content)} bytes",))
        return cls(path, content)

    def __len__(self) -> int:
        """How many records wait to be taken."""
        written, taken = int(self._written[0]), int(self._taken[0])
        if not 0 <= written - taken <= self.slots:
            found = f"{written} records were written and {taken} taken, it has {self.slots} slots"
            raise FileDamagedError(str(self.path), (found,), "Make it anew.")
        return written - taken

    @property
    def taken(self) -> int:
        """How many records were ever taken: the number of the oldest that waits."""
        return int(self._taken[0])

    @property
    def written(self) -> int:
        """How many records were ever put; a writer that takes over goes on from there."""
        return int(self._written[0])

    @property
    def is_ended(self) -> bool:
        """Whether its writer has said that nothing will follow."""
        return bool(self._ended[0])

    def put(self, record: NDArray[Any], timeout: float | None = None) -> bool:
        """
        Append a record, for the one process that does so.

        :param record: of dtype ``record``, one alone
        :param timeout: how long to wait for room, in seconds; ``None`` waits until there is
        :return: whether it was appended
        """
        if not self._wait(lambda: len(self) < self.slots, timeout):
            return False
        number = int(self._written[0])
        slot, payload = self._slots[number % self.slots], _payload(self._bytes[number % self.slots], self.record)
        slot["number"] = 0  # until it is complete, it is none
        slot["record"] = record
        slot["checksum"] = crc32(payload, number & 0xFFFFFFFF)
        slot["number"] = number + 1
        self._written[0] = number + 1
        return True

    def end(self) -> None:
        """Say that nothing will follow."""
        self._ended[0] = 1

    def take(self, limit: int | None = None, timeout: float | None = 0) -> NDArray[Any]:
        """
        Take the oldest records out, for the one process that does so.

        Those before a damaged one are handed out, and the next call says which it is.

        :param limit: how many at the most; ``None`` takes all
        :param timeout: how long to wait for the first, in seconds; ``None`` waits until there is one, or the end
        :return: a copy, of dtype ``record``
        """
        self._wait(lambda: len(self) > 0 or self.is_ended, timeout)
        found = self.look(limit)
        self.skip(len(found))
        return found

    def look(self, limit: int | None = None) -> NDArray[Any]:
        """
        The oldest records, which stay: up to one that is damaged, which is an error if it is the oldest.

        :param limit: how many at the most; ``None`` looks at all
        :return: a copy, of dtype ``record``
        """
        first = int(self._taken[0])
        count = len(self) if limit is None else min(limit, len(self))
        places = (first + np.arange(count)) % self.slots
        for look in range(_LOOKS):
            found = self._bytes[places]
            torn = self._torn(found, first)
            if torn is None:
                break
            if look == _LOOKS - 1:
                if torn == first:
                    hint = "skip() leaves it out; or make the ring anew."
                    raise FileDamagedError(str(self.path), (f"record {torn}, in slot {torn % self.slots}",), hint)
                found = found[: torn - first]
                break
            time.sleep(_PAUSE)
        records: NDArray[Any] = found.view(self._slots.dtype).reshape(len(found))["record"]
        return records

    def skip(self, count: int = 1) -> None:
        """
        Let go of the oldest records, for the one process that takes: those that it has looked at, or a damaged one.

        :param count: how many
        """
        if not 0 <= count <= len(self):
            raise ParameterError("Ring", "count", count, f"{len(self)} records wait in {self.path}")
        self._taken[0] += np.uint64(count)

    def _torn(self, found: Bytes, first: int) -> int | None:
        """The first of these records that is not complete."""
        slots = found.view(self._slots.dtype).reshape(len(found))
        for index, (number, checksum) in enumerate(zip(slots["number"].tolist(), slots["checksum"].tolist())):
            expected = first + index
            payload = _payload(found[index], self.record)
            if number != expected + 1 or checksum != crc32(payload, expected & 0xFFFFFFFF):
                return expected
        return None

    def _wait(self, is_ready: Any, timeout: float | None) -> bool:
        deadline = None if timeout is None else time.monotonic() + timeout
        while not is_ready():
            if deadline is not None and time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE)
        return True

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path}: {len(self)} of {self.slots} slots wait>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Ring.attach, (str(self.path),)  # a process that gets it maps the same file


def _payload(slot: Bytes, record: np.dtype[Any]) -> Bytes:
    return slot[_HEAD_NBYTES : _HEAD_NBYTES + record.itemsize]


def _slot_dtype(record: np.dtype[Any]) -> np.dtype[Any]:
    itemsize = -(-(_HEAD_NBYTES + record.itemsize) // LINE_NBYTES) * LINE_NBYTES
    names, formats = ["number", "checksum", "record"], ["<u8", "<u4", record]
    return np.dtype({"names": names, "formats": formats, "offsets": [0, 8, _HEAD_NBYTES], "itemsize": itemsize})


def _slots_begin(described_nbytes: int) -> int:
    return -(-(_DESCRIPTION + described_nbytes) // LINE_NBYTES) * LINE_NBYTES
