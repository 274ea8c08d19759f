"""Whether a step that was refused has left the row that it was to replace as it was."""

from __future__ import annotations

from typing import Any

from sb3_extra_buffers.compressed.storage import ObservationStorage


def places_of(storage: ObservationStorage, row: int) -> list[Any] | None:
    """Where in a heap that refuses what it cannot take the observations of a row are. The same places later are the
    same content: a heap of this kind writes nothing twice in one place without dropping what was there.

    :param storage: the observations of a buffer
    :param row: a row that was written
    :return: ``None`` if heap or stores do not tell: frames do not
    """
    heap = storage.heap
    if heap is None or not getattr(heap, "refuses_when_full", False):
        return None
    found: list[Any] = []
    for store in storage.stores():
        origins = getattr(store, "origins", None)
        if origins is None:
            return None
        here = origins(storage.cells_of(row))
        if here.at_hand:
            return None  # not in the heap yet
        held = here.cells[here.cells >= 0]
        found.append((here.cells.tolist(), heap.locate(held)[0].tolist()))
    return found
