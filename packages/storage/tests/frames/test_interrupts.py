"""An exception at any line of writing frames loses nothing but the step that it interrupted."""

import copy
import sys

import numpy as np
import pytest

from sb3_extra_buffers import frames
from sb3_extra_buffers.frames import FrameGeometry, apply_changes
from sb3_extra_buffers.frames.workbench import Workbench, play

GEOMETRY = FrameGeometry(4, 1, 60)


def interrupted(call, after, kind):
    """Call a function and raise in it after some lines of Python code; return whether it was still running."""

    def trace(frame, event, _):
        nonlocal after
        if event == "line":
            after -= 1
            if after < 0:
                raise kind
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except kind:
        return True
    finally:
        sys.settrace(before)
    return False


def arrays(streams):
    """All numbers of streams, and the content of their open chunks."""
    parts = {**vars(streams), **vars(streams.filling)}
    found = {name: part.copy() for name, part in parts.items() if isinstance(part, np.ndarray)}
    for name, size in zip(("steps", "content"), streams.filling.filled.max(axis=0).tolist()):
        found[name] = found[name][:, :size]
    return found


def are_equal(one, other):
    return all(np.array_equal(part, other[name]) for name, part in one.items())


@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("name", frames.registry.names())
def test_after_a_retry_no_row_is_wrong(name, kind):
    """The write path of kernels, and closing a chunk and beginning the next one: an exception at every line."""
    streams, cells, line = 2, 24, 0
    bench = Workbench(frames.create(name), GEOMETRY, cells, streams, chunk=8)
    truth, before, hits = np.zeros((2 * cells, GEOMETRY.row_nbytes), np.uint8), None, 0
    for step, rows in enumerate(play(np.random.default_rng(0), GEOMETRY, streams, 500)):
        if before is not None:
            here = np.arange(streams) + streams * (step % (cells // streams))
            was_interrupted = interrupted(lambda: bench.write(here, before, rows), line, kind)  # noqa: B023
            hits, line = hits + was_interrupted, line + 1 if was_interrupted else 0
            if was_interrupted:
                others = np.setdiff1d(np.arange(2 * cells), [*here, *(here + cells)])
                np.testing.assert_array_equal(bench.read(others), truth[others])
            bench.write(here, before, rows)
            truth[here], truth[here + cells] = before, rows
            np.testing.assert_array_equal(bench.read(np.arange(2 * cells)), truth)
        before = rows
    assert hits > 100
    twin = Workbench(frames.create(name), GEOMETRY, cells, streams, chunk=8)
    twin.streams.restore(bench.streams.state())  # no number leads nowhere


@pytest.mark.parametrize("change", ["begin_chunk", "clear"])
def test_a_change_of_streams_is_complete_or_invisible(change):
    bench = Workbench(frames.create("numpy"), GEOMETRY, 24, 2, chunk=8)
    for step, rows in enumerate(play(np.random.default_rng(0), GEOMETRY, 2, 60)):
        bench.write(np.arange(2) + 2 * (step % 12), rows)
    frame = np.full(60, 9, np.uint8)
    before, changed = arrays(bench.streams), copy.deepcopy(bench.streams)

    def run(streams):
        return streams.begin_chunk(1, frame) if change == "begin_chunk" else streams.clear([frame, frame])

    run(changed)
    after, line, seen = arrays(changed), 0, set()
    while True:
        streams = copy.deepcopy(bench.streams)
        done = not interrupted(lambda: run(streams), line, KeyboardInterrupt)  # noqa: B023
        found = arrays(streams)
        assert are_equal(found, before) or are_equal(found, after), f"half of it is done at line {line}"
        seen.add(are_equal(found, after))
        line += 1
        if done:
            break
    assert seen == {False, True}
    assert line > 10


def test_beginning_a_chunk_tells_its_slot_before_and_takes_other_changes_along():
    streams = frames.Streams(GEOMETRY, 8, 2, 10, 20)
    names, numbers = {}, [0]
    slot = streams.next_slot
    base = np.full(60, 3, np.uint8)
    assert streams.begin_chunk(1, base, [(names, slot, "base"), (numbers, slice(1, None), [slot])]) == slot
    assert (names, numbers) == ({slot: "base"}, [0, slot])
    assert (streams.open.tolist(), streams.previous[slot]) == ([0, slot], 1)
    assert streams.next_slot == 1  # no observation used the previous chunk
    for part in (streams.filling.base, streams.filling.tail):
        np.testing.assert_array_equal(part[1], base)


def test_changes_are_made_in_order():
    target = [0]
    apply_changes([(target, 0, 1), (target, 0, 2)])
    assert target == [2]
