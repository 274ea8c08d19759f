"""Lines are for pasting: they make the buffer that was measured."""

import numpy as np
import pytest

from sb3_extra_buffers import compressed, heaps
from sb3_extra_buffers.advisor import advise
from sb3_extra_buffers.advisor.advice import options_in_a_file
from sb3_extra_buffers.advisor.stream import feed

FEW = {"rounds": 2, "batch_size": 8, "progress": False}


def pasted(lines):
    """The class and its arguments, as a training script has them."""
    imported, arguments = lines
    scope = {}
    exec(f"{imported}\nfound = dict({arguments})", scope)
    return scope["found"]["replay_buffer_class"], scope["found"].get("replay_buffer_kwargs", {})


def test_the_lines_make_the_buffer_that_was_measured(wandering):
    advice = advise(wandering, codecs=["gzip/1"], prefer="memory", **FEW)
    kind, options = pasted(advice.lines)
    assert kind is compressed.CompressedReplayBuffer
    assert options == advice.verdict.chosen.candidate.options
    buffer = kind(100, wandering.observation_space, wandering.action_space, "cpu", **options)
    feed(buffer, wandering.steps[:50])
    assert np.array_equal(buffer.observations[7], wandering.steps[7].observations)


@pytest.mark.parametrize("prefer", ["speed", "balanced", "memory"])
@pytest.mark.parametrize("name", ["wandering", "noise"])
def test_the_lines_for_a_file_make_a_buffer_that_keeps_all_and_claims_little(name, prefer, request, tmp_path):
    stream = request.getfixturevalue(name)
    size = 10 * len(stream.steps)
    advice = advise(stream, size, codecs=["gzip/1"], prefer=prefer, **FEW)
    kind, options = pasted(advice.lines_in_a_file(str(tmp_path)))
    buffer = kind(size, stream.observation_space, stream.action_space, "cpu", **options)
    for _ in range(25):  # twice around, and a half
        feed(buffer, stream.steps)
    report = buffer.memory_report()
    assert (report.heap, report.evicted) == ("mmap", 0)
    assert report.capacity <= 1.25 * advice.verdict.chosen.nbytes(size) + 1e6
    assert np.array_equal(buffer.observations[7], stream.steps[7].observations)


def test_cells_stay_cells_in_a_file_and_frames_stay_frames(wandering, noise):
    for stream, layout in ((wandering, None), (noise, "cells")):
        automatic = advise(stream, codecs=["none"], **FEW).measured[1:4]
        assert [one.candidate.name for one in automatic] == ["auto", "auto speed", "auto memory"]
        for auto in automatic:
            assert options_in_a_file(stream, auto, 1000, "folder").get("layout") == layout


def test_without_a_heap_for_files_there_are_no_lines_for_one(wandering, monkeypatch):
    monkeypatch.setattr(heaps, "names", lambda: ("memory", "ring"))
    advice = advise(wandering, codecs=["gzip/1"], **FEW)
    assert advice.lines
    assert advice.lines_in_a_file("folder") == []


def test_any_heap_that_declares_a_folder_and_the_worst_case_is_one_for_files(wandering, install, monkeypatch):
    source = """
        from sb3_extra_buffers.heaps import HeapPlugin, hookimpl

        @hookimpl
        def sb3_extra_buffers_heap():
            place = {"parameters": {"directory": ""}, "local": ("directory",)}
            return HeapPlugin(1, lambda cells: None, "somewhere", fits_worst_case=True, **place)
    """
    install("other-dist", "other", "fake_other_heap", source, group="heaps")
    monkeypatch.setattr(heaps, "names", lambda: ("memory", "other"))
    auto = advise(wandering, codecs=["none"], **FEW).measured[1]
    options = options_in_a_file(wandering, auto, 1000, "here")
    assert (options["heap"], options["heap_kwargs"]) == ("other", {"directory": "here", "capacity": 1_000_000})
