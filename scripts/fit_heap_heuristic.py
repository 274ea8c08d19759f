"""Fit how small codecs make frames, and write it where size estimates read it. See ``--help``."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from sb3_extra_buffers.codecs import CellSpec, CodecSpec, bind, registry
from sb3_extra_buffers.errors import ExtraBuffersError

_ROOT = Path(__file__).resolve().parents[1]
DEFAULT_TABLE = _ROOT / "scripts" / "codec_sizes.json"
DEFAULT_OUTPUT = _ROOT / "packages/gpu/src/sb3_extra_buffers/gpu_buffers/size_ratios.py"

#: Ranges of levels within which a codec does the same thing with more or less effort. At the borders it does another
#: (level 0 of gzip stores, level 1 of lz4-block turns to another match finder), and no polynomial follows the jump.
#: Far below 0, LZ4 hardly finds anything any more: a curve that flattens at both ends is two curves.
PIECES: dict[str, tuple[tuple[int, int], ...]] = {
    "none": ((0, 0),),
    "rle": ((0, 0),),
    "rle-jit": ((0, 0),),
    "gzip": ((0, 0), (1, 9)),
    "igzip": ((0, 0), (1, 3)),
    "lz4-block": ((-65537, -101), (-100, 0), (1, 12)),
    "lz4-frame": ((-65536, -101), (-100, 2), (3, 16)),
    "zstd": ((-100, -1), (1, 22)),
}
#: Which of the levels below 0 are measured; all others are.
_NEGATIVE = (-65536, -10000, -3000, -1000, -500, -300, -200, -100, -70, -50, -30, -20, -15, -10, -7, -5, -4, -3, -2, -1)
#: What a table looks like, for errors.
_FORM = 'a table must look like {"tables": [{"game": …, "order": …, "figures": [{"codec": …, "ratio": …}]}]}'
_MAX_DEGREE = 3
_DIGITS = 6

Figures = dict[str, dict[int, float]]
Piece = tuple[int, int, tuple[float, ...], float, float]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure if asked to, fit, and write or compare. Returns the exit code: 2 for what cannot be done."""
    options = _options(arguments)
    try:
        return _run(options)
    except (ExtraBuffersError, OSError, OverflowError, ValueError) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    if options.check and options.measure:
        raise ValueError("--check compares with a table that exists; leave --measure out")
    measured = _table_text(measure(options.game, options.frames)) if options.measure else None
    source = options.table.read_text(encoding="utf-8") if measured is None else measured
    try:
        text = rendered(json.loads(source), options.table.name, options.game, options.order)
    except ValueError as error:
        raise ValueError(f"{options.table}: {error}") from error
    if options.check:
        found = options.output.read_text(encoding="utf-8") if options.output.exists() else ""
        if found != text:
            print(f"{options.output.name} is not what {options.table.name} gives. Run this script without --check.")
        return int(found != text)
    # Only now: a table that does not serve shall replace nothing.
    if measured is not None:
        options.table.write_text(measured, encoding="utf-8")
    options.output.write_text(text, encoding="utf-8")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="fit_heap_heuristic.py",
        description="Fit the ratio of payload to raw size over the levels of each codec, and write it as constants.",
        epilog="example: python scripts/fit_heap_heuristic.py --table codecs.json --game Pong --order chw",
    )
    what = f"figures as «python -m benchmarks.codecs --json» writes them (default: {DEFAULT_TABLE.name})"
    parser.add_argument("--table", type=Path, default=DEFAULT_TABLE, metavar="FILE", help=what)
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, metavar="FILE", help="what to write or check")
    parser.add_argument("--game", default="MsPacman", help="which game of the table counts (default: MsPacman)")
    order = "which memory order counts (default: hwc, as environments hand their frames over)"
    parser.add_argument("--order", choices=("hwc", "chw"), default="hwc", help=order)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the output would change")
    every = "first play the game and write the sizes at every level to the table; takes a minute, needs all codecs"
    parser.add_argument("--measure", action="store_true", help=every)
    parser.add_argument("--frames", type=int, default=64, help="how many observations to measure (default: 64)")
    return parser.parse_args(arguments)


def figures_of(content: Any, game: str, order: str) -> Figures:
    """Payload size divided by raw size, by codec and level. Codecs without levels have level 0."""
    known = _tables(content)
    tables = [one for one in known if (one["game"], one["order"]) == (game, order)]
    if len(tables) != 1:
        found = ", ".join(f"{one['game']} {one['order']}" for one in known) or "none"
        raise ValueError(f"the table must have {game} {order} exactly once; it has: {found}")
    figures: Figures = {}
    for row in tables[0]["figures"]:
        name, ratio = _figure(row)
        if "(" in name:  # a variant, with its parameters in brackets: not what is estimated
            continue
        spec = CodecSpec.parse(name, PIECES)
        if spec.name in PIECES:
            figures.setdefault(spec.name, {})[_level(spec)] = 1 / ratio
    return figures


def _tables(content: Any) -> list[Any]:
    found = content.get("tables") if isinstance(content, dict) else None
    keys = {"game", "order", "figures"}
    if not isinstance(found, list) or not all(isinstance(one, dict) and keys <= one.keys() for one in found):
        raise ValueError(f"{_FORM}, as «python -m benchmarks.codecs --json» writes it")
    if not all(isinstance(one["figures"], list) for one in found):
        raise ValueError(f"{_FORM}; figures that are no list were found")
    return found


def _figure(row: Any) -> tuple[str, float]:
    name, ratio = (row.get("codec"), row.get("ratio")) if isinstance(row, dict) else (None, None)
    value = float(ratio) if isinstance(ratio, (int, float)) and not isinstance(ratio, bool) else 0.0
    if not isinstance(name, str) or not 0 < value < math.inf:
        raise ValueError(f"a figure must have a codec and a finite ratio above 0; found: {json.dumps(row)[:120]}")
    return name, value


def _level(spec: CodecSpec) -> int:
    """The level that was measured: the codec's own default if the name has none."""
    level = spec.params.get("level")
    if level is None and PIECES[spec.name] != ((0, 0),):
        levels = registry.load(spec.name).levels
        level = None if levels is None else levels.default
    return level if isinstance(level, int) else 0


def fitted(figures: Figures) -> dict[str, tuple[Piece, ...]]:
    """A polynomial in the logarithm of the level for each range of levels that has figures."""
    fits = {}
    for name, ranges in PIECES.items():
        pieces = [_piece(low, high, figures.get(name, {})) for low, high in ranges]
        if any(pieces):
            fits[name] = tuple(piece for piece in pieces if piece is not None)
    return fits


def _piece(low: int, high: int, measured: dict[int, float]) -> Piece | None:
    levels = [level for level in sorted(measured) if low <= level <= high]
    if not levels:
        return None
    ratios = [measured[level] for level in levels]
    efforts = [math.log2(1 + abs(level)) for level in levels]
    # As many points again as coefficients: a curve through every point would swing between them.
    degree = min(_MAX_DEGREE, len(set(efforts)) // 2) if len(levels) > 1 else 0
    fit = Polynomial.fit(efforts, ratios, degree).convert() if degree else Polynomial([sum(ratios) / len(ratios)])
    return low, high, tuple(map(_short, fit.coef.tolist())), _short(min(ratios)), _short(max(ratios))


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def rendered(content: dict[str, Any], table: str, game: str, order: str) -> str:
    """The text of the module with the constants."""
    fits = fitted(figures_of(content, game, order))
    if not fits:
        raise ValueError(f"{game} {order} has no figure of these codecs at their levels: {', '.join(PIECES)}")
    settings = content.get("settings")
    frames = settings.get("frames") if isinstance(settings, dict) else None
    count = frames if isinstance(frames, int) else "some"
    lines = [
        '"""How small codecs make frames, by level. Written by scripts/fit_heap_heuristic.py: change that, not this.',
        "",
        f"From {table}: {count} observations of {game}, 84 x 84, four stacked, memory order {order.upper()}.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "#: For each codec and range of levels: lowest and highest level, the coefficients of a polynomial in",
        "#: log2(1 + |level|), lowest power first, and the smallest and largest ratio of payload to raw size measured.",
        "FITS: dict[str, tuple[tuple[int, int, tuple[float, ...], float, float], ...]] = {",
    ]
    for name, pieces in fits.items():
        if len(pieces) == 1:
            lines.append(f'    "{name}": ({pieces[0]!r},),')
        else:
            lines += [f'    "{name}": (', *(f"        {piece!r}," for piece in pieces), "    ),"]
    return "\n".join([*lines, "}", ""])


def measure(game: str, count: int) -> dict[str, Any]:
    """Encode observations of a game, played at random, at the levels of every codec."""
    sys.path.insert(0, str(_ROOT))  # a script finds its own folder only
    from benchmarks._lib.atari import stacked_frames
    from benchmarks._lib.machine import machine_info

    # Every eighth: neighbours are nearly equal.
    observations = stacked_frames(game, 8 * count)[::8]
    tables = []
    for order, axes in (("hwc", (0, 1, 2, 3)), ("chw", (0, 3, 1, 2))):
        rows = np.ascontiguousarray(observations.transpose(axes)).reshape(count, -1)
        sizes = [{"codec": str(spec), "ratio": _times_smaller(spec, rows)} for spec in _specs()]
        tables.append({"game": game, "order": order, "figures": sizes})
    info = {key: value for key, value in machine_info().items() if key in ("zlib", "libraries")}
    return {"machine": info, "settings": {"frames": count}, "tables": tables}


def _specs() -> Iterator[CodecSpec]:
    for name, ranges in PIECES.items():
        if ranges == ((0, 0),):
            yield CodecSpec(name)
            continue
        for low, high in ranges:
            for level in (*(below for below in _NEGATIVE if low <= below <= high), *range(max(low, 0), high + 1)):
                yield CodecSpec(name, {"level": level})


def _times_smaller(spec: CodecSpec, rows: np.ndarray[Any, np.dtype[np.uint8]]) -> float:
    codec = bind(spec, CellSpec(np.uint8, rows.shape[1]))
    return round(rows.nbytes / sum(len(codec.encode(row)) for row in rows), 3)


def _table_text(table: dict[str, Any]) -> str:
    """JSON with one line for each codec, so that a new measurement reads well as a difference."""
    shells = [{**one, "figures": f"@{index}"} for index, one in enumerate(table["tables"])]
    text = json.dumps({**table, "tables": shells}, indent=2)
    for index, one in enumerate(table["tables"]):
        rows = ",\n".join(f"        {json.dumps(row)}" for row in one["figures"])
        text = text.replace(f'"@{index}"', f"[\n{rows}\n      ]")
    return text + "\n"


if __name__ == "__main__":
    sys.exit(main())
