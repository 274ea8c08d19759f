"""A buffer that was filled before a process was forked or spawned is whole in the child, and in the parent."""

import pytest
from stacked_scenes import Scene, add, make, sampled

from sb3_extra_buffers import codecs
from sb3_extra_buffers.errors import HeapStateError
from sb3_extra_buffers.testing.processes import in_forked_child, in_fresh_process

HEAPS = {"memory": None, "ring": {"capacity": 1 << 20}, "mmap": {"capacity": 1 << 20}}
EVENTS = ["shift", "shift", "shift", "end", "shift", "junk", "shift"]


def filled(kind="plain", steps=40, **storage):
    scene = Scene("gray first", 2, seed=3)
    buffer, _ = make(kind, scene, 20, 2, **storage)
    for number in range(steps):
        add([buffer], scene, [EVENTS[number % 7], "shift"], number)
    return buffer, scene


def expect_whole(buffer, scene, expected, *, writes):
    """It samples what it did, goes on, and samples again."""
    assert sampled(buffer, 5) == expected
    if writes:
        for number in range(30):
            add([buffer], scene, ["shift", "shift"], number)
        assert len(sampled(buffer, 6)) == len(expected)


@pytest.mark.parametrize("layout", ["cells", "frames"])
@pytest.mark.parametrize("codec", [*codecs.names(), "auto"])
def test_every_codec_works_in_a_forked_child_and_in_its_parent(codec, layout):
    buffer, scene = filled(compression_method=codec, layout=layout)
    expected = sampled(buffer, 5)
    in_forked_child(lambda: expect_whole(buffer, scene, expected, writes=True))
    expect_whole(buffer, scene, expected, writes=True)


@pytest.mark.parametrize("heap", HEAPS)
@pytest.mark.parametrize("options", [{"layout": "cells"}, {"layout": "frames"}, {"prefetch": True}, {"threads": 2}])
def test_every_heap_works_in_a_forked_child_and_in_its_parent(heap, options):
    buffer, scene = filled(compression_method="gzip", heap=heap, heap_kwargs=HEAPS[heap], **options)
    expected = sampled(buffer, 5) if "prefetch" not in options else None
    if expected is None:
        buffer.sample(30)  # a batch is on its way when the process is forked
    else:
        in_forked_child(lambda: expect_whole(buffer, scene, expected, writes=heap != "mmap"))
        expect_whole(buffer, scene, expected, writes=True)
        return
    in_forked_child(lambda: [buffer.sample(30) for _ in range(3)])
    assert len(sampled(buffer, 5)) == 5


def test_a_forked_child_may_not_write_to_the_file_of_its_parent():
    buffer, scene = filled(compression_method="gzip", layout="cells", heap="mmap", heap_kwargs=HEAPS["mmap"])

    def in_child():
        with pytest.raises(HeapStateError, match="forked"):
            add([buffer], scene, ["shift", "shift"], 0)

    in_forked_child(in_child)
    expected = sampled(buffer, 5)
    expect_whole(buffer, scene, expected, writes=True)


@pytest.mark.parametrize("kind", ["plain", "one array", "n-step", "dict"])
@pytest.mark.parametrize("layout", ["cells", "frames"])
def test_a_spawned_process_samples_the_same(kind, layout):
    buffer, _ = filled(kind, layout=layout)
    assert in_fresh_process(sampled, buffer, 5) == sampled(buffer, 5)
