"""Kernels with bugs, for the sanitizer to find."""

from __future__ import annotations

import triton.language as tl

from sb3_extra_buffers.gpu_buffers.kernels.jit import jit


@jit
def add_one(data: tl.tensor, out: tl.tensor, count: tl.tensor) -> None:
    """No bug."""
    place = tl.program_id(0) * 16 + tl.arange(0, 16)
    tl.store(out + place, tl.load(data + place, mask=place < count, other=0) + 1, mask=place < count)


@jit
def read_beyond(data: tl.tensor, out: tl.tensor, count: tl.tensor) -> None:
    """Forgets the mask of the load."""
    place = tl.program_id(0) * 16 + tl.arange(0, 16)
    tl.store(out + place, tl.load(data + place), mask=place < count)


@jit
def write_before(data: tl.tensor, out: tl.tensor, count: tl.tensor) -> None:
    """Writes a byte too early."""
    place = tl.arange(0, 16)
    tl.store(out + place - 1, tl.load(data + place, mask=place < count, other=0), mask=place < count)


@jit
def read_misaligned(data: tl.tensor, out: tl.tensor, count: tl.tensor) -> None:
    """Reads words from an odd address."""
    word = tl.load((data + 1).to(tl.pointer_type(tl.uint16)))
    tl.store(out, word.to(tl.uint8))


@jit
def write_together(data: tl.tensor, out: tl.tensor, count: tl.tensor) -> None:
    """All programs write to one place."""
    tl.store(out, tl.load(data + tl.program_id(0)))


@jit
def write_overlapping(data: tl.tensor, out: tl.tensor, count: tl.tensor) -> None:
    """Each program writes sixteen bytes, eight bytes behind those of the one before."""
    place = tl.program_id(0) * 8 + tl.arange(0, 16)
    tl.store(out + place, tl.load(data + place, mask=place < count, other=0), mask=place < count)


@jit
def read_neighbour(data: tl.tensor, out: tl.tensor, count: tl.tensor) -> None:
    """Reads what another program writes."""
    program = tl.program_id(0)
    tl.store(out + program, tl.load(out + (program + 1) % 2))


@jit
def write_what_all_read(data: tl.tensor, out: tl.tensor, count: tl.tensor) -> None:
    """Reads one place in all programs, and writes to it in the last."""
    first = tl.load(out)
    if tl.program_id(0) == 2:
        tl.store(out, first + 1)


@jit
def hint_falsely(data: tl.tensor, out: tl.tensor, count: tl.tensor) -> None:
    """Says that an odd address is a multiple of 16."""
    tl.store(tl.multiple_of(out + 1, 16), tl.load(data))


@jit
def assert_falsely(data: tl.tensor, out: tl.tensor, count: tl.tensor) -> None:
    """Asserts what does not hold."""
    tl.device_assert(count < 0, "count is negative")


@jit
def update_together(data: tl.tensor, out: tl.tensor, count: tl.tensor) -> None:
    """No bug: atomics are for that."""
    tl.atomic_max(out.to(tl.pointer_type(tl.int32)), tl.program_id(0))
