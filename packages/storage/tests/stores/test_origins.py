"""What stores say about where their content is leads to the same bytes as reading it."""

import numpy as np
import pytest

from sb3_extra_buffers import heaps
from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.errors import HeapStateError
from sb3_extra_buffers.stores import (
    CellStore,
    LazyStore,
    LocatedStore,
    NextFace,
    ObservationFace,
    RawStore,
    RewrittenStore,
    TransitionStore,
)
from sb3_extra_buffers.stores.batched import BatchedStore
from sb3_extra_buffers.stores.origins import joined

NBYTES, ENVS, STEPS = 40, 2, 10
CODEC = bind("rle", CellSpec(np.uint8, NBYTES))


def rows(seed, count=ENVS):
    return np.random.default_rng(seed).integers(0, 3, (count, NBYTES), np.uint8)


def by_origins(heap, origins):
    """What a reader makes of it that knows the heap and the codec alone."""
    found = np.zeros((len(origins.cells), NBYTES), np.uint8)
    for row, cell in enumerate(origins.cells.tolist()):
        starts, lengths = heap.locate(np.array([cell])) if cell >= 0 else ([-1], [0])
        if starts[0] >= 0:
            origins.codec.decode_into(heap.view(int(starts[0]), int(lengths[0])), found[row])
    for places, content in origins.at_hand:
        found[places] = content
    return found


def read(store, cells):
    out = np.full((len(cells), NBYTES), 99, np.uint8)
    store.read(cells, out)
    return out


@pytest.mark.parametrize("batch", [0, 6])
def test_both_sides_of_transitions_in_every_state(batch):
    heap = heaps.create("memory", 2 * STEPS * ENVS)
    own, others = (CellStore(CODEC, heap, first, STEPS * ENVS) for first in (0, STEPS * ENVS))
    if batch:
        own = BatchedStore(own, batch)
    transitions = TransitionStore(own, others, ENVS)
    faces = [ObservationFace(transitions), NextFace(transitions)]
    random, last = np.random.default_rng(0), rows(0)
    everything = np.arange(STEPS * ENVS)
    for step in range(27):  # some episodes end, and some next observations wait
        cells = np.arange(ENVS) + step % STEPS * ENVS
        following = rows(step + 1)
        faces[0].write(cells, last)
        faces[1].write(cells, following)
        last = rows(1000 + step) if random.random() < 0.3 else following
        order = random.permutation(everything)
        parts = [face.origins(order) for face in faces]
        for face, part in zip(faces, parts):
            assert isinstance(face, LocatedStore)
            assert (by_origins(heap, part) == read(face, order)).all()
        both = np.concatenate([read(face, order) for face in faces])
        assert (by_origins(heap, joined(parts)) == both).all()


def test_a_store_that_is_not_decided_has_no_content():
    heap = heaps.create("memory", 6)
    store = LazyStore(6, NBYTES, lambda _: CellStore(CODEC, heap, 0, 6))
    found = store.origins(np.arange(4))
    assert (found.codec, found.cells.tolist(), found.at_hand) == (None, [-1] * 4, [])
    store.write(np.array([1, 3]), rows(5))
    assert (by_origins(heap, store.origins(np.arange(4))) == read(store, np.arange(4))).all()


def test_what_is_written_twice_is_where_it_was():
    heap = heaps.create("memory", 6)
    store = RewrittenStore(CellStore(CODEC, heap, 0, 6))
    for _ in range(2):
        store.write(np.array([4, 2]), rows(7))
    assert (by_origins(heap, store.origins(np.arange(6))) == read(store, np.arange(6))).all()


def test_what_was_dropped_is_an_error():
    heap = heaps.create("ring", 6, capacity=60)
    store = CellStore(bind("none", CellSpec(np.uint8, NBYTES)), heap, 0, 6)
    for cell in range(3):
        store.write(np.array([cell]), rows(cell, 1))
    assert (by_origins(heap, store.origins(np.array([2]))) == rows(2, 1)).all()
    with pytest.raises(HeapStateError, match="evicted"):
        store.origins(np.array([2, 0]))


def test_not_every_store_is_on_a_heap():
    assert not isinstance(RawStore(4, NBYTES), LocatedStore)
