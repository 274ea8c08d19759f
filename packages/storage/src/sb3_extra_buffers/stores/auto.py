"""The automatic choice: which codec and which layout, from the first observations and what plugins declare.

No clock decides: sizes are measured on data, times are declared by plugins. So the choice is the same everywhere.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from sb3_extra_buffers.codecs import CellSpec, Codec, CodecLike, CodecSpec, bind, names, parse, registry
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.frames import FrameGeometry, whole
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.stores.raw import UNCOMPRESSED

logger = logging.getLogger("sb3_extra_buffers")

#: The value of ``compression_method`` and ``layout`` that asks for the automatic choice.
AUTO = "auto"
#: Below this, the index entry of a payload and the call that decodes it cost more than compression can save.
MIN_NBYTES = 256
#: Compressed data must be smaller by a fifth at least to be worth its time.
MIN_RATIO = 1.25
#: About this many rows of a long stream are tried, from all over it.
ROWS_TO_TRY = 32
#: Twice the time to decode must save a fifth of the bytes: 2 ** 0.32 = 1.25.
_COST_EXPONENT = 0.32
#: Chunks that patches make this much smaller are not compressed: they are read fastest.
SMALL_CHUNK = 8
#: An image that is decoded alone takes a fraction of the time of one that is decoded with its chunk.
_ALONE_MAY_BE_LARGER = 1.5


# What the user asked for.

SPEED, BALANCED, MEMORY = "speed", "balanced", "memory"


class Role(Enum):
    """What a codec is to compress, and with it which of the levels that it declares."""

    #: Patches of frames, which are small and irregular: the fastest level.
    PATCHES = "patches"
    #: Whole observations: the middle level.
    OBSERVATIONS = "observations"
    #: Chunks of frames if memory matters most: the strongest level.
    SMALLEST = "smallest"

    def level(self, levels: tuple[int, ...]) -> int:
        """The level for this role, of levels that begin with the fastest."""
        return levels[{Role.PATCHES: 0, Role.OBSERVATIONS: (len(levels) - 1) // 2, Role.SMALLEST: -1}[self]]


@dataclass(frozen=True)
class Preference:
    """How ``prefer`` stores frames.

    :param chunk: frames that are stored, and read, together
    :param every: codecs for every chunk; ``None`` compresses only chunks that patches do not make small
    :param fallback: codecs for these; ``None`` leaves them uncompressed
    """

    chunk: int
    every: Role | None = None
    fallback: Role | None = Role.PATCHES


PREFERENCES = {
    SPEED: Preference(16),
    BALANCED: Preference(16, Role.PATCHES),
    MEMORY: Preference(64, Role.SMALLEST),
}


def preference(owner: str, name: str) -> Preference:
    """Look up a value of ``prefer``."""
    if name not in PREFERENCES:
        raise ParameterError(owner, "prefer", name, f"it must be one of: {', '.join(PREFERENCES)}")
    return PREFERENCES[name]


#: Arguments of the published package that the space decides now. They are accepted and change nothing.
_DERIVED = {"elem_type", "runs_type", "arr_configs"}


def parse_request(
    method: CodecLike,
    compression_kwargs: Mapping[str, Any] | None = None,
    decompression_kwargs: Mapping[str, Any] | None = None,
) -> CodecSpec | None:
    """Read ``compression_method`` and its arguments. ``None`` stands for ``"auto"``.

    :param method: ``"auto"``, a shorthand such as ``"zstd-3"``, or a :class:`CodecSpec`
    :param compression_kwargs: parameters of the codec; ``compresslevel`` is another name for ``level``
    :param decompression_kwargs: accepted for old scripts, without effect; unknown names are refused
    """
    unknown = set(decompression_kwargs or ()) - _DERIVED
    if unknown:
        allowed = f"decoding takes no parameters (accepted for old scripts: {', '.join(sorted(_DERIVED))})"
        raise ParameterError("buffer", "decompression_kwargs", dict(decompression_kwargs or {}), allowed)
    asked = {name: value for name, value in (compression_kwargs or {}).items() if name not in _DERIVED}
    if "compresslevel" in asked:
        asked["level"] = asked.pop("compresslevel")
    if method is None:
        allowed = "it must be 'auto' or the name of a codec"
        raise ParameterError("buffer", "compression_method", method, allowed)
    if method == AUTO:
        if asked:
            allowed = "without a codec there is nothing that they could be for"
            raise ParameterError("buffer", "compression_kwargs", asked, allowed, "Name a compression_method.")
        return None
    spec = parse(method)
    if asked.get("level", spec.params.get("level")) != spec.params.get("level", asked.get("level")):
        allowed = f"compression_method={method!r} asks for another level"
        raise ParameterError("buffer", "compression_kwargs", asked, allowed, "Give the level once.")
    return CodecSpec(spec.name, {**spec.params, **asked}) if asked else spec


# Which codec.


@dataclass(frozen=True)
class Trial:
    """What a codec made of some rows.

    :param codec: the codec
    :param raw_nbytes: size of the rows
    :param nbytes: size of their payloads
    :param cost: time to decode, as a multiple of copying the same bytes
    """

    codec: Codec
    raw_nbytes: int
    nbytes: int
    cost: float = 1.0

    @property
    def ratio(self) -> float:
        """How many times smaller the payloads are."""
        return self.raw_nbytes / self.nbytes

    @property
    def score(self) -> float:
        """Size and time in one number; smaller is better."""
        return self.nbytes * float(self.cost**_COST_EXPONENT)


def pays(ratio: float) -> bool:
    """Whether compression by this factor is worth its time."""
    return ratio >= MIN_RATIO


def try_codecs(role: Role, cell: CellSpec, rows: Bytes, *, special: bool) -> list[Trial]:
    """Try every installed codec that is fit for automatic use; with ``special``, also for special content."""
    found = []
    for name in names():
        try:
            automatic = registry.load(name).automatic
            if automatic is None or not (automatic.general or special):
                continue
            params = {"level": role.level(automatic.levels)} if automatic.levels else {}
            codec = bind(CodecSpec(name, params), cell)
            nbytes = sum(len(codec.encode(row)) for row in rows)
            found.append(Trial(codec, rows.nbytes, nbytes, automatic.decode_cost))
        except MemoryError:  # says nothing about the codec
            raise
        except Exception as error:  # plugins of others may raise anything; none of it may stop a training run
            logger.warning("The codec %r is installed but does not work; it is not considered. %s", name, error)
    return found


@dataclass(frozen=True)
class Choice:
    """A codec, and why it was chosen. ``None`` stands for no codec."""

    codec: Codec | None
    reason: str
    #: How many times smaller it made the rows that it was chosen by.
    ratio: float = 1.0


def choose_by_space(cell: CellSpec) -> Choice | None:
    """Choose without data, or return ``None`` if the choice needs data."""
    if cell.nbytes < MIN_NBYTES:
        return Choice(None, f"chosen: {cell.nbytes} bytes are too few to compress")
    return None


def judge_content(cell: CellSpec, rows: Bytes) -> Choice:
    """Choose the codec with the best score on these rows, shape ``(n, cell.nbytes)``."""
    rows = rows[:: -(-len(rows) // ROWS_TO_TRY)]  # evenly spaced
    blank = rows.min() == rows.max()  # a blank first screen says nothing about those that follow
    trials = try_codecs(Role.OBSERVATIONS, cell, rows, special=not blank)
    best = _best(trials)
    if pays(best.ratio):
        reason = f"chosen: makes the first observations {best.ratio:.1f} times smaller"
        return Choice(best.codec, reason, best.ratio)
    return Choice(None, f"chosen: {best.codec.spec} makes the first observations only {best.ratio:.2f} times smaller")


def choose_by_content(label: str, cell: CellSpec, rows: Bytes) -> Choice:
    """The same, and log the choice. The label says what the rows are."""
    choice = judge_content(cell, rows)
    log_choice(label, choice)
    return choice


def log_choice(label: str, choice: Choice) -> None:
    """Log a choice. The label says what it is for."""
    logger.info("%s: %s %s", label, UNCOMPRESSED if choice.codec is None else choice.codec.spec, choice.reason)


def choose_for_chunks(role: Role, chunk: Bytes) -> Trial:
    """Choose the codec for chunks of frames, on the first of them."""
    return _best(try_codecs(role, CellSpec(np.uint8, len(chunk)), chunk[np.newaxis], special=False))


def _best(trials: list[Trial]) -> Trial:
    return min([trial for trial in trials if pays(trial.ratio)] or trials, key=lambda trial: trial.score)


#: Bytes that the strongest codec is chosen by.
_SAMPLE_NBYTES = 1 << 18


def strongest_codec(sample: Bytes) -> CodecSpec:
    """The codec with the best score on the first 256 KiB of a sample, at the strongest level that it declares."""
    return choose_for_chunks(Role.SMALLEST, sample.reshape(-1)[:_SAMPLE_NBYTES]).codec.spec


# Which layout.

#: After so many changes of the observation that are not a shift by one frame, the observations are not stacks.
_ENOUGH = 16


class StackDetector:
    """Finds out from the first observations how frames are stacked.

    No space says whether four planes are four gray frames or one image of four channels. The data do, usually with the
    first step.

    :param stacks: possible geometries, the deepest first
    :param row_nbytes: size of one observation
    :param streams: number of environments
    """

    def __init__(self, stacks: tuple[FrameGeometry, ...], row_nbytes: int, streams: int) -> None:
        self.stacks = stacks
        self.row_nbytes = row_nbytes
        self.streams = streams
        #: The last observation of each environment.
        self.last: dict[int, Bytes] = {}
        #: Changes that were no shift by one frame.
        self.misfits = 0
        #: Geometries that the data contradict.
        self.refuted: set[FrameGeometry] = set()

    def see(self, cells: Indices, rows: Bytes) -> FrameGeometry | None:
        """Look at observations; return the geometry if one of them is its predecessor shifted by one frame."""
        for stream, row in zip((cells % self.streams).tolist(), rows):
            before = self.last.get(stream)
            self.last[stream] = row.copy()
            if before is None or np.array_equal(before, row):
                continue
            verdicts = [(stack, stack.shifts(before, row)) for stack in self.stacks]
            for stack, shifted in verdicts:
                if shifted:
                    return stack
            self.refuted.update(stack for stack, shifted in verdicts if shifted is False)
            self.misfits += all(shifted is False for _, shifted in verdicts)
        return None

    def gives_up(self, rows: int) -> bool:
        """Whether enough was seen to conclude that there is no stack, with so many rows per write."""
        return self.misfits >= _ENOUGH * rows

    def best_guess(self) -> FrameGeometry:
        """The deepest geometry that the data do not contradict; one frame per observation if they contradict all."""
        possible = [stack for stack in self.stacks if stack not in self.refuted]
        return possible[0] if possible else whole(self.row_nbytes)


def cells_are_better(cell: CellSpec, rows: Bytes, patches: Bytes) -> Choice | None:
    """Choose between cells and frames for images that are not stacked; return the codec if cells are better.

    :param cell: what one row holds
    :param rows: images that differ, shape ``(n, cell.nbytes)``
    :param patches: the same images as patches on their predecessors
    """
    choice, most = judge_content(cell, rows), float(len(patches))
    if len(patches) * SMALL_CHUNK > rows.nbytes:
        # Chunks that patches do not make small are compressed, and an image is decoded with all others of its chunk.
        most = choose_for_chunks(Role.PATCHES, patches).nbytes * _ALONE_MAY_BE_LARGER
    return choice if rows.nbytes / choice.ratio <= most else None


#: Makes a codec ready for cells.
Bind = Callable[[CodecLike, CellSpec], Codec]
