"""Rules about arrays that are not in the order of C, for kernels that bring them into it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.frames.testing.subject import KERNEL_RULES, KernelSubject
from sb3_extra_buffers.testing.rule import NotApplicable, expect

#: From one pixel to more than any register holds, by one channel to more than any stack of gray frames.
_IMAGES = ((1, 1), (3, 5), (4, 8), (6, 11), (12, 12), (33, 31))
_CHANNELS = (1, 2, 3, 4, 5, 12)


@KERNEL_RULES.rule(
    "contiguous", "Arrays are brought into the order of C as numpy does it, bit by bit, each into memory of its own."
)
def contiguous(subject: KernelSubject) -> None:
    kernels = subject.create()
    arrange = getattr(kernels, "contiguous", None)
    if arrange is None:
        raise NotApplicable("the kernels leave it to numpy")
    kept = []
    for what, array in _arrays(np.random.default_rng(0)):
        before, found = array.copy(), arrange(array)
        expect(found.flags.c_contiguous, f"{what}: not C-contiguous")
        expect(found is array or not np.shares_memory(found, array), f"{what}: a view of what was given")
        expect(array.tobytes() == before.tobytes(), f"{what}: what was given has changed")
        kept.append((what, np.ascontiguousarray(array), found))
    for what, expected, found in kept:  # only now: what is handed out stays what it is
        same = (found.shape, found.dtype) == (expected.shape, expected.dtype)
        expect(same, f"{what}: {found.dtype} of {found.shape}, not {expected.dtype} of {expected.shape}")
        expect(found.tobytes() == expected.tobytes(), f"{what}: other values")


def _arrays(rng: np.random.Generator) -> Iterator[tuple[str, NDArray[Any]]]:
    for count in (1, 3):
        for channels in _CHANNELS:
            for height, width in _IMAGES:
                shape = (count, height, width, channels)
                images, name = (
                    rng.integers(0, 256, shape).astype(np.uint8),
                    f"{channels} channels of {height} x {width}",
                )
                yield from _views(f"{count} images, {name}", images)
                yield f"floats, {name}", images.astype(np.float32).transpose(0, 3, 1, 2)
    many = rng.integers(0, 256, (2, 8, 9, 4, 5)).astype(np.uint8)
    yield "five axes", many.transpose(0, 4, 3, 1, 2)
    yield "two axes", many[0, 0, :, :, 0].T
    yield "one axis", many.reshape(-1)[::3]
    yield "no elements", many[:0, :, :, :, 0].transpose(0, 3, 1, 2)


def _views(what: str, images: NDArray[np.uint8]) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    turned = images.transpose(0, 3, 1, 2)
    yield f"{what}, turned", turned
    yield f"{what}, in order", np.ascontiguousarray(turned)
    yield f"{what}, backwards", turned[:, ::-1]
    yield f"{what}, upside down", turned[:, :, ::-1]
    yield f"{what}, every other one", np.repeat(images, 2, axis=0)[::2].transpose(0, 3, 1, 2)
    yield (
        f"{what}, a part of each",
        np.pad(images, ((0, 0), (1, 1), (2, 0), (0, 3)))[:, 1:-1, 2:, :-3].transpose(0, 3, 1, 2),
    )
    yield f"{what}, columns first", images.transpose(0, 3, 2, 1)
    frozen = images.copy().transpose(0, 3, 1, 2)
    frozen.flags.writeable = False
    yield f"{what}, read-only", frozen
    yield f"{what}, one for all", np.broadcast_to(turned[:1], turned.shape)
