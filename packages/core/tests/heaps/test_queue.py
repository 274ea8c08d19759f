"""The order of writes survives the dropping of dead entries, row by row."""

import numpy as np

from sb3_extra_buffers.heaps.ring import WriteQueue


def test_rows_stay_apart_when_their_first_entry_dies():
    table = np.full(10, -1, np.int64)
    queue, position = WriteQueue(10), 0
    for _ in range(400):  # rows of three; cell 0 is in each of them, so the first entry of every older row is dead
        for partner in (1, 4, 7):
            cells = np.array([0, partner, partner + 1])
            starts = position + np.arange(3)
            table[cells] = starts
            queue.ends[1] = queue.append(cells, starts, table)
            position += 3
    alive = table[[1, 2, 4, 5, 0, 7, 8]]
    assert queue.rows_alive(table).tolist() == [True, False, True, False, True, False, False]
    cells, starts, rows = map(np.array, queue.overtaken(int(alive[0]) + 1))
    queue.ends[0] += len(cells)
    living = table[cells] == starts
    assert cells[living].tolist() == [1, 2]
    assert len(set(rows[living].tolist())) == 1
    assert queue.oldest(-1) <= alive[2]


def test_an_empty_queue_has_no_oldest_entry():
    queue = WriteQueue(5)
    assert queue.oldest(17) == 17
    assert not queue.begins_before(100)
