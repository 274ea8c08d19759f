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


def layers() -> str:
    """What imports what: each row only from the rows below it."""
    picture = Picture(860, 648, "Layers, from the command line at the top down to the errors")
    rows: list[tuple[str, list[tuple[str, str]]]] = [
        (PALE_ORANGE, [("cli", "the command sb3-buffers")]),
        (PALE_ORANGE, [("advisor", "which way to store suits your observations")]),
        (
            PALE_ORANGE,
            [
                ("gpu_buffers", "on a torch device"),
                ("recording", "what an agent saw"),
                ("training_utils", "play, evaluate, fill"),
                ("vec_buf", "feeds many buffers"),
            ],
        ),
        (
            PALE_ORANGE,
            [("compressed", "the buffers of Stable-Baselines3, with observations stored compressed")],
        ),
        (PALE_BLUE, [("arrays", "cells that index like an ndarray")]),
        (
            PALE_BLUE,
            [
                ("stores", "rows of bytes by cell number"),
                ("testing", "the conformance kit"),
                ("doctor", "does it run?"),
            ],
        ),
        (
            PALE_BLUE,
            [
                ("sharing", "process to process"),
                ("frames", "images, as patches"),
                ("heaps", "where bytes live"),
                ("codecs", "what bytes become"),
            ],
        ),
        (
            PALE_BLUE,
            [("registry", "names to plugins"), ("views", "bytes without copies"), ("files", "arrays on the disk")],
        ),
        (PALE_BLUE, [("errors", "one hierarchy"), ("progress", "bars for long work")]),
    ]
    left, width, height, gap = 70, 600, 52, 12
    for number, (fill, boxes) in enumerate(rows):
        y = 28 + number * (height + gap)
        each = (width - gap * (len(boxes) - 1)) / len(boxes)
        for place, (name, note) in enumerate(boxes):
            picture.labelled(left + place * (each + gap), y, each, height, name, note, fill)
    bottom = 28 + len(rows) * (height + gap) - gap
    picture.path(f"M30 168 V{bottom - 8}", BLUE, 2, tip=True)
    picture.words(30, bottom + 12, "add", BLUE, bold=True, at="middle")
    picture.path(f"M48 {bottom - 8} V168", ORANGE, 2, tip=True)
    picture.words(40, 156, "sample", ORANGE, bold=True, at="middle")
    for top, end, color, lines in (
        (28, 272, ORANGE, ["need torch and", "Stable-Baselines3;", "recording does not,", "cli only to advise"]),
        (284, bottom, BLUE, ["need numpy and", "pluggy alone;", "testing also pytest"]),
    ):
        picture.path(f"M684 {top} h8 V{end} h-8", color, 2)
        for number, line in enumerate(lines):
            picture.words(702, top + 32 + 17 * number, line, color)
    picture.box(712, 412, 132, 76, PALE_GREEN, dashed=True)
    for number, line in enumerate(["codec-zstd, -lz4,", "-isal, -rle-numba,", "and yours"]):
        picture.words(778, 433 + 18 * number, line, at="middle", size=12)
    picture.path("M712 444 H674", GREEN, 2, dashed=True, tip=True)
    picture.words(778, 506, "found by entry point", GREEN, 11, at="middle")
    picture.words(70, 634, "A row imports only from those below it, and neighbours do not know each other.", GRAY, 12)
    return picture.svg()


def sample_path() -> str:
    """One batch, from drawn numbers down to payloads and up again to tensors."""
    picture = Picture(860, 470, "The way of a sample through the layers")
    lanes = [
        ("compressed", "sample() of Stable-Baselines3", PALE_ORANGE),
        ("arrays", "CompressedArray", PALE_BLUE),
        ("stores", "TransitionStore, CellStore", PALE_BLUE),
        ("heaps", "where bytes live", PALE_BLUE),
        ("codecs", "what bytes become", PALE_BLUE),
    ]
    for number, (name, note, fill) in enumerate(lanes):
        y = 16 + number * 84
        picture.box(16, y, 828, 70, fill, fill)
        picture.words(30, y + 30, name, bold=True)
        picture.words(30, y + 48, note, GRAY, 11)
    down = [
        (41, "draws rows and environments", "rows 41, 7, 41 · environments 0, 1, 0"),
        (125, "turns them into cell numbers", "cells 82, 15, 82"),
        (209, "follows what is shared", "next_obs of 15 is obs of 17"),
        (293, "locates the payloads", "positions and lengths: 9,140+312 · 2,055+298"),
    ]
    for y, does, example in down:
        picture.words(262, y, does, BLUE)
        picture.words(262, y + 20, example, GRAY, 11)
    for y in (66, 150, 234, 318):
        picture.path(f"M240 {y} v54", BLUE, 2, tip=True)
    picture.words(262, 377, "decodes the payloads, straight into the rows of the batch", GREEN)
    picture.words(262, 397, "on several threads, where the codec says that this pays", GRAY, 11)
    picture.path("M640 372 H770 V90", GREEN, 2, tip=True)
    picture.words(584, 209, "one new array for obs,", GREEN)
    picture.words(584, 229, "one for next_obs", GREEN)
    picture.words(584, 41, "to_torch wraps both arrays", ORANGE)
    picture.words(584, 61, "no further copy; then the model trains", GRAY, 11)
    picture.words(
        16,
        458,
        "With frames, a kernel finds the chunks of a batch, and decodes each frame once, straight into the two arrays.",
        GRAY,
        12,
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
