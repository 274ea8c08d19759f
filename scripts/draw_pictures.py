"""Draw the diagrams of the documentation: ``python -m scripts.draw_pictures`` writes them to ``docs/images``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from scripts.drawing import (
    BLUE,
    GRAY,
    GREEN,
    INK,
    ORANGE,
    PALE,
    PALE_BLUE,
    PALE_GREEN,
    PALE_ORANGE,
    Picture,
)

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def distributions() -> str:
    """Which distribution depends on which: arrows lead to what is needed."""
    picture = Picture(860, 430, "Distributions, and what each depends on")
    boxes = [
        (40, 40, 180, "cli", "the command sb3-buffers", PALE_ORANGE),
        (250, 40, 180, "gpu", "buffers on a device", PALE_ORANGE),
        (560, 40, 200, "recording", "recordings of episodes", PALE_BLUE),
        (90, 150, 290, "buffers", "sb3-extra-buffers: what people install", PALE_ORANGE),
        (250, 260, 290, "storage", "frames, stores, arrays, checkpoints", PALE_BLUE),
        (250, 360, 290, "core", "contracts, registry, conformance kit", PALE_BLUE),
        (620, 260, 210, "codec-rle-numba", "rle-jit, frame kernels", PALE_GREEN),
        (620, 360, 210, "codec-zstd, -lz4, -isal", "heap-mmap, and yours", PALE_GREEN),
    ]
    for x, y, width, name, note, fill in boxes:
        picture.labelled(x, y, width, 52, name, note, fill)
    for way in (
        "M130 92 V146",
        "M340 92 V146",
        "M320 202 V256",
        "M660 92 V120 H470 V256",
        "M395 312 V356",
        "M620 286 H544",
        "M640 312 L544 372",
        "M620 392 H544",
    ):
        picture.path(way, GRAY, 1.5, tip=True)
    for y, text, color in (
        (156, "Orange: needs torch and Stable-Baselines3", ORANGE),
        (176, "Blue: needs numpy and pluggy", BLUE),
        (196, "Green: plugins, found by entry points", GREEN),
    ):
        picture.words(520, y, text, color, 12)
    return picture.svg()


def layers() -> str:
    """What imports what: each row only from the rows below it."""
    rows: list[tuple[str, str, list[tuple[str, str]]]] = [
        ("cli", PALE_ORANGE, [("cli", "the command sb3-buffers")]),
        ("cli", PALE_ORANGE, [("advisor", "compares ways to store"), ("doctor", "reports what is installed")]),
        (
            "gpu, buffers",
            PALE_ORANGE,
            [
                ("gpu_buffers", "on a torch device"),
                ("training_utils", "play, evaluate, fill"),
                ("prioritized", "algorithms"),
                ("vec_buf", "feeds many buffers"),
            ],
        ),
        (
            "buffers, recording",
            PALE_ORANGE,
            [
                ("compressed", "compressed buffers of SB3"),
                ("sharing", "between processes"),
                ("recording", "episodes in files"),
            ],
        ),
        ("storage", PALE_BLUE, [("arrays", "cells that are indexed like an ndarray")]),
        ("storage", PALE_BLUE, [("stores", "observations by cell number; the automatic choice")]),
        (
            "storage",
            PALE_BLUE,
            [
                ("frames", "streams and patches"),
                ("checkpoints", "arrays on disk"),
                ("sum_tree", "priorities"),
                ("progress", "progress bars"),
            ],
        ),
        ("core", PALE_BLUE, [("testing", "the conformance kit")]),
        ("core", PALE_BLUE, [("codecs", "observations to payloads"), ("heaps", "memory for payloads")]),
        ("core", PALE_BLUE, [("registry", "plugins by name"), ("memory", "bytes without copies")]),
        ("core", PALE_BLUE, [("errors", "one hierarchy of exceptions")]),
    ]
    left, width, height, gap, top = 80, 600, 44, 10, 20
    bottom = top + len(rows) * (height + gap) - gap
    picture = Picture(860, bottom + 36, "Layers, from the command line at the top down to the errors")
    for number, (package, fill, boxes) in enumerate(rows):
        y = top + number * (height + gap)
        each = (width - gap * (len(boxes) - 1)) / len(boxes)
        for place, (name, note) in enumerate(boxes):
            own = PALE_BLUE if name == "recording" else fill
            picture.labelled(left + place * (each + gap), y, each, height, name, note, own)
        picture.words(left + width + 14, y + height / 2 + 5, package, GRAY, 12)
    first = top + 3 * (height + gap)
    picture.path(f"M30 {first} V{bottom - 20}", BLUE, 2, tip=True)
    picture.words(30, bottom, "add", BLUE, bold=True, at="middle")
    picture.path(f"M54 {bottom - 20} V{first}", ORANGE, 2, tip=True)
    picture.words(48, first - 10, "sample", ORANGE, bold=True, at="middle")
    note = "A row imports only from the rows below it. Orange: needs torch. Right: folders in packages/."
    picture.words(left, bottom + 24, note, GRAY, 12)
    return picture.svg()


#: A lane of a path: the package, the class in it, what it does, and a detail.
Lane = tuple[str, str, str, str, str]


def _path(picture: Picture, lanes: list[Lane], color: str) -> None:
    """Lanes with arrows from each to the next."""
    for number, (name, note, does, detail, fill) in enumerate(lanes):
        y = 16 + number * 78
        picture.box(16, y, 828, 64, fill, fill)
        picture.words(30, y + 28, name, bold=True)
        picture.words(30, y + 46, note, GRAY, 11)
        picture.words(262, y + 28, does, color)
        picture.words(262, y + 46, detail, GRAY, 11)
    for number in range(len(lanes) - 1):
        picture.path(f"M240 {66 + number * 78} v40", color, 2, tip=True)


def add_path() -> str:
    """One step, from the environments down to patches and chunks."""
    picture = Picture(860, 438, "The path of one add through the layers")
    lanes = [
        (
            "compressed",
            "CompressedReplayBuffer.add",
            "checks every argument before anything is stored, and holds the lock",
            "images with channels last in memory are copied into the usual order, once",
            PALE_ORANGE,
        ),
        (
            "compressed",
            "ObservationStorage",
            "turns the step into cell numbers and rows of bytes, for each key",
            "step 41 of 2 environments is the cells 82 and 83; the store gets obs and next_obs together",
            PALE_ORANGE,
        ),
        (
            "stores",
            "FrameStore",
            "gives both to the kernel; begins another chunk where one is complete",
            "a chunk has 16 frames or more",
            PALE_BLUE,
        ),
        (
            "frame kernels",
            "NumbaKernels",
            "compares each observation with the last one of its environment",
            "only new frames are appended, as patches; a cell is the newest frame and a pattern, 5 bytes",
            PALE_GREEN,
        ),
        (
            "stores, heaps",
            "ChunkStore, MemoryHeap",
            "complete chunks only: compressed if patches did not make them small",
            "one payload per chunk, about once in 16 steps of an environment",
            PALE_BLUE,
        ),
    ]
    _path(picture, lanes, BLUE)
    picture.words(16, 426, "Actions, rewards and flags go into the arrays of Stable-Baselines3.", GRAY, 12)
    return picture.svg()


def sample_path() -> str:
    """One batch, from drawn numbers down to chunks and up again to tensors."""
    picture = Picture(860, 438, "The path of one sample through the layers")
    lanes = [
        (
            "compressed",
            "CompressedReplayBuffer.sample",
            "draws the same random numbers as Stable-Baselines3",
            "steps 41, 7, 41 of the environments 0, 1, 0 are the cells 82, 15, 82",
            PALE_ORANGE,
        ),
        (
            "compressed, frames",
            "ObservationStorage, BatchMemory",
            "takes memory for obs and for next_obs",
            "the memory of an earlier batch, if that is no longer in use",
            PALE_ORANGE,
        ),
        (
            "stores",
            "FrameStore, ChunkStore",
            "gives the kernel the addresses of all chunks",
            "asks the heap whether payloads have moved since",
            PALE_BLUE,
        ),
        (
            "frame kernels",
            "NumbaKernels",
            "finds the chunks of the batch, decodes each frame once",
            "straight into both arrays; a frame that several cells have is copied",
            PALE_GREEN,
        ),
        (
            "compressed",
            "to_torch",
            "wraps both arrays as tensors, without another copy",
            "actions, rewards and dones come from the arrays of Stable-Baselines3",
            PALE_ORANGE,
        ),
    ]
    _path(picture, lanes, ORANGE)
    picture.words(
        16, 426, "Observations stored as cells take the same path, with a codec in place of the kernel.", GRAY, 12
    )
    return picture.svg()


def _screen(picture: Picture, x: float, y: float, number: int, size: int = 40, faint: bool = False) -> None:
    """A screen on which a ball moves to the right."""
    picture.box(x, y, size, size, PALE if faint else "#2B3A4A")
    step = size / 40
    picture.block(x + (3 + 4 * number) * step, y + (20 - 2 * (number % 3)) * step, 7 * step, 7 * step, "#F2C14E")
    picture.block(x + 6 * step, y + 34 * step, 28 * step, 3 * step, PALE if faint else "#7FB3D5")


def cells() -> str:
    """Observations as cells: each compressed once, next observations shared, payloads packed."""
    picture = Picture(860, 420, "Observations as arrays, and as cells in a heap")
    picture.words(16, 28, "Stable-Baselines3: two arrays, every cell as large as an image", bold=True)
    xs = [150 + 130 * number for number in range(5)]
    for row, (name, shift) in enumerate((("obs", 0), ("next_obs", 1))):
        y = 44 + 60 * row
        picture.words(130, y + 26, name, at="end")
        for number, x in enumerate(xs):
            shown = number + shift if number < 3 else number + shift + 1
            _screen(picture, x, y, shown, 48)
    for number, x in enumerate(xs):
        picture.words(x + 56, 74, f"t = {number}" + (", end" if number == 2 else ""), GRAY, 11)
    picture.words(16, 204, "Cells: each observation once, as a payload of its own length", bold=True)
    picture.words(130, 250, "heap", at="end")
    picture.box(146, 226, 640, 40, "white")
    lengths = [(86, "0", BLUE), (58, "1", BLUE), (74, "2", BLUE), (52, "3", ORANGE), (96, "4", BLUE), (66, "5", BLUE)]
    end, middles = 150, []
    for length, label, color in lengths:
        picture.block(end, 230, length, 32, color)
        picture.words(end + length / 2, 251, label, "white", bold=True, at="middle")
        middles.append(end + length / 2)
        end += length + 3
    picture.words(end + 16, 251, "room that is reserved", GRAY, 11)
    rows: dict[str, list[int | None]] = {"obs": [0, 1, 2, 4, 5], "next_obs": [1, 2, 3, 5, None]}
    for row, (name, targets) in enumerate(rows.items()):
        y = 318 + 40 * row
        picture.words(130, y + 17, name, at="end")
        for place, target in zip(xs, targets):
            color = BLUE if row == 0 else ORANGE if target == 3 else GREEN
            label = "waits" if target is None else f"payload {target}"
            picture.box(place, y, 96, 26, "white", color, dashed=target is None)
            picture.words(place + 48, y + 17, label, color, 12, at="middle")
            if row == 0 and target is not None:
                picture.path(f"M{place + 48:g} {y} L{middles[target]:g} 268", BLUE, 1, tip=True)
    picture.words(
        16,
        408,
        "Green: shared with the following step. Orange: the last of an episode, stored by itself. "
        "Positions and lengths are numbers in two flat arrays.",
        GRAY,
        12,
    )
    return picture.svg()


def frames() -> str:
    """Stacks as streams of frames: each frame once, and of each what changed."""
    picture = Picture(860, 470, "Stacks of frames, and the stream that they come from")
    picture.words(16, 28, "Stable-Baselines3: three transitions hold 24 frames", bold=True)
    for number in range(3):
        for row, (name, first) in enumerate((("obs", number), ("next_obs", number + 1))):
            x, y = 90 + 262 * number, 44 + 64 * row
            if number == 0:
                picture.words(76, y + 30, name, at="end")
            for place in range(4):
                frame = first + place
                _screen(picture, x + 50 * place, y, frame, 44)
                picture.words(x + 50 * place + 22, y + 57, str(frame), GRAY, 11, at="middle")
        picture.words(90 + 262 * number + 97, 186, f"t = {number}", GRAY, 12, at="middle")
    picture.words(16, 226, "Frames: seven of them are different, and each is stored once", bold=True)
    xs = [90 + 84 * frame for frame in range(7)]
    picture.words(76, 272, "stream", at="end")
    for frame, x in enumerate(xs):
        picture.words(x + 24, 304, str(frame), GRAY, 11, at="middle")
        if frame == 0:
            _screen(picture, x, 242, 0, 48)
            continue
        picture.box(x, 242, 48, 48, "white")
        step = 48 / 40
        for shown, color in ((frame - 1, "#2B3A4A"), (frame, "#F2C14E")):
            picture.block(x + (3 + 4 * shown) * step, 242 + (20 - 2 * (shown % 3)) * step, 7 * step, 7 * step, color)
        picture.path(f"M{x - 4:g} 266 h-26", GRAY, 1.2, tip=True)
    picture.words(xs[-1] + 70, 262, "a patch holds", GRAY, 12)
    picture.words(xs[-1] + 70, 279, "what changed", GRAY, 12)
    picture.path("M90 314 v8 h552 v-8", GRAY)
    picture.words(
        366, 340, "a chunk: one payload, through a codec or as it is (16 frames or more; here 7)", GRAY, 12, at="middle"
    )
    picture.words(16, 376, "An observation is five bytes: the newest frame, and a pattern", bold=True)
    for number in range(3):
        x = 90 + 262 * number
        for row, newest in enumerate((number + 3, number + 4)):
            y = 392 + 28 * row
            if number == 0:
                picture.words(76, y + 15, ("obs", "next_obs")[row], at="end")
            picture.box(x, y, 196, 22, (PALE_BLUE, PALE_GREEN)[row])
            picture.words(x + 98, y + 16, f"frame {newest}; 3, 2, 1, 0 further back", INK, 12, at="middle")
    picture.words(90, 462, "What is no stack, or was reset, has another pattern, or frames of its own.", GRAY, 12)
    return picture.svg()


PICTURES: dict[str, Callable[[], str]] = {
    "add-path.svg": add_path,
    "distributions.svg": distributions,
    "layers.svg": layers,
    "memory-cells.svg": cells,
    "memory-frames.svg": frames,
    "sample-path.svg": sample_path,
}


def main() -> None:
    """Write all of them."""
    for name, draw in PICTURES.items():
        (IMAGES / name).write_text(draw(), encoding="utf-8")
        print(IMAGES / name)


if __name__ == "__main__":
    main()
