"""The automatic choice: which codec and which layout, from the first observations and what plugins declare.

No clock decides: sizes are measured on data, times are declared by plugins. So the choice is the same everywhere. Every
way to store is a :class:`Candidate` with a memory and a time, both relative to Stable-Baselines3's plain buffer, and
``prefer`` takes one of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from sb3_extra_buffers.codecs import CellSpec, Codec, CodecLike, CodecSpec, bind, names, parse, registry
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.frames import FrameGeometry, whole
from sb3_extra_buffers.frames.packing import count_dtype, patch
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.stores.raw import UNCOMPRESSED

logger = logging.getLogger("sb3_extra_buffers")

#: The value of ``compression_method`` and ``layout`` that asks for the automatic choice.
AUTO = "auto"
#: Below this, the index entry of a payload and the call that decodes it cost more than compression can save.
MIN_NBYTES = 256
#: Compressed data must be smaller by a fifth at least to be worth its time.
MIN_RATIO = 1.25
#: The choice waits for so many observations, or changes of an image, unless the buffer is smaller.
ENOUGH = 128
#: About this many rows of a long stream are tried, from all over it.
ROWS_TO_TRY = 32
#: For chunks, twice the time to decode must save a fifth of the bytes: 2 ** 0.32 = 1.25.
_COST_EXPONENT = 0.32
#: Chunks that patches make this much smaller are not compressed: they are read fastest.
SMALL_CHUNK = 8
#: Estimates of memory that differ by less than this factor are equal.
_NEARLY = 1.02

# Times, in copies of as many bytes that are in a cache.

#: Sampling from Stable-Baselines3's arrays: a gather into new memory, and a copy into a tensor.
_PLAIN_COST = 3.0
#: A gather into memory that is used again.
_GATHER_COST = 1.4
#: Writing frames, which are in a cache, into observations.
_WRITE_COST = 1.0
#: Applying a patch, by its bytes.
_PATCH_COST = 2.0
# A codec declares the time to decode a cell of mixed content. Content that gets much smaller decodes faster.
#: The share of the declared cost that counts for every byte of a cell.
_OUTPUT_SHARE = 0.2
#: The multiple of the declared cost that counts for every byte of a payload.
_PAYLOAD_SHARE = 1.6

# Memory besides payloads, in bytes.

#: For a cell: the index of the heap, and which next observations are shared.
_CELL_NBYTES = 17
#: For a row without a codec.
_RAW_NBYTES = 6
#: For an observation made of frames: its newest frame, and its pattern.
_FRAMES_NBYTES = 5


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
    :param every: codecs for every chunk, or one; ``None`` compresses only chunks that patches do not make small
    :param fallback: codecs for these; ``None`` leaves them uncompressed
    """

    chunk: int
    every: Role | CodecSpec | None = None
    fallback: Role | None = Role.PATCHES

    def to_json(self) -> dict[str, Any]:
        """A form that :meth:`from_json` reads."""
        every = self.every.to_json() if isinstance(self.every, CodecSpec) else self.every and self.every.value
        return {"chunk": self.chunk, "every": every, "fallback": self.fallback and self.fallback.value}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Preference:
        """The inverse of :meth:`to_json`; raises ``ValueError``, ``KeyError`` or ``TypeError`` for anything else."""
        chunk, every, fallback = (content[name] for name in ("chunk", "every", "fallback"))
        if type(chunk) is not int or not 0 < chunk < 1 << 16:
            raise ValueError(f"a chunk of {chunk!r} frames")
        codec = CodecSpec.from_json(every) if isinstance(every, Mapping) else every and Role(every)
        return cls(chunk, codec, fallback and Role(fallback))


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
    :param call_cost: time to decode even the smallest payload, in bytes that are copied meanwhile
    """

    codec: Codec
    raw_nbytes: int
    nbytes: int
    cost: float = 1.0
    call_cost: float = 0.0

    @property
    def ratio(self) -> float:
        """How many times smaller the payloads are."""
        return self.raw_nbytes / self.nbytes


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
            found.append(Trial(codec, rows.nbytes, nbytes, automatic.decode_cost, automatic.call_cost))
        except MemoryError:  # says nothing about the codec
            raise
        except Exception as error:  # plugins of others may raise anything; none of it may stop a training run
            logger.warning("The codec %r is installed but does not work; it is not considered. %s", name, error)
    return found


# What to store, and how: candidates.


@dataclass(frozen=True)
class Candidate:
    """One way to store observations.

    :param label: what reports call it
    :param memory: bytes that it takes, as a multiple of what Stable-Baselines3's plain buffer takes
    :param time: time to sample, likewise
    :param codec: the codec of cells; ``None`` for uncompressed cells and for frames
    :param ratio: how many times smaller the codec made the rows that were tried
    :param frames: for frames, how they are stored; ``None`` for cells
    :param is_strong: whether it is for ``prefer="memory"`` only: encoding takes long, or decoding a long chunk
    """

    label: str
    memory: float
    time: float
    codec: Codec | None = None
    ratio: float = 1.0
    frames: Preference | None = None
    is_strong: bool = False

    def __str__(self) -> str:
        smaller = 1 / self.memory
        return f"{self.label} ({smaller:.{1 if smaller < 10 else 0}f} times less, time {self.time:.2g})"


def pick(candidates: Sequence[Candidate], prefer: str) -> Candidate:
    """The candidate that a value of ``prefer`` takes; of equal ones, the first."""
    if prefer == MEMORY:  # noise is not compressed for a few bytes
        limit = _NEARLY * min(one.memory for one in candidates)
        return min((one for one in candidates if one.memory <= limit), key=lambda one: one.time)
    candidates = [one for one in candidates if not one.is_strong]
    if prefer == SPEED:
        candidates = [one for one in candidates if one.time <= 1] or [min(candidates, key=lambda one: one.time)]
    return min(candidates, key=lambda one: one.memory * one.time if prefer == BALANCED else one.memory)


def explain(candidates: Sequence[Candidate], prefer: str) -> str:
    """What was chosen, what other values of ``prefer`` would take, and against what; by estimates, relative to SB3."""
    chosen = pick(candidates, prefer)
    text = [f"prefer={prefer!r}: {chosen}"]
    for other in (BALANCED, SPEED, MEMORY):
        if other != prefer:
            found = pick(candidates, other)
            text.append(f"{other!r}: {'the same' if found is chosen else found}")
    shown = {id(pick(candidates, one)) for one in PREFERENCES}  # a codec of others may have no hash
    others = [str(one) for one in candidates if id(one) not in shown]
    return "; ".join([*text, *(["against " + ", ".join(others)] if others else [])])


def cell_candidates(cell: CellSpec, rows: Bytes, *, has_next: bool) -> list[Candidate]:
    """Observations one by one: uncompressed, and through every codec that makes them smaller.

    :param cell: one observation
    :param rows: observations to try, shape ``(n, cell.nbytes)``
    :param has_next: whether next observations are stored as well, and shared
    """
    rows = rows[:: -(-len(rows) // ROWS_TO_TRY)]  # evenly spaced
    plain = cell.nbytes * (1 + has_next)
    found = [Candidate(UNCOMPRESSED, (cell.nbytes + _RAW_NBYTES) / plain, _GATHER_COST / _PLAIN_COST)]
    blank = rows.min() == rows.max()  # a blank first screen says nothing about those that follow
    known = set()
    for role in (Role.OBSERVATIONS, Role.SMALLEST):
        for trial in try_codecs(role, cell, rows, special=not blank):
            spec, ratio, payload = trial.codec.spec, trial.ratio, trial.nbytes / len(rows)
            if pays(ratio) and spec not in known:
                memory, time = (payload + _CELL_NBYTES) / plain, _decoding(trial, cell.nbytes, payload)
                is_strong, relative = role is Role.SMALLEST, time / (_PLAIN_COST * cell.nbytes)
                found.append(Candidate(str(spec), memory, relative, trial.codec, ratio, is_strong=is_strong))
            known.add(spec)
    return found


def _decoding(trial: Trial, nbytes: float, payload: float) -> float:
    """Time to decode a payload of so many bytes, in bytes that are copied meanwhile."""
    output = max(_GATHER_COST, _OUTPUT_SHARE * trial.cost) * nbytes
    return trial.call_cost + output + _PAYLOAD_SHARE * trial.cost * payload


@dataclass(frozen=True)
class Changes:
    """Frames of one stream after the other, in the order in which they came, each different from the one before it.

    :param geometry: how frames lie in an observation
    :param planes: 1, or 2 with next observations
    :param frames: shape ``(n, geometry.frame_nbytes)``
    :param firsts: for each frame, the index of the first one of its stream, which is its reference frame
    :param observations: number of observations that they were found in
    """

    geometry: FrameGeometry
    planes: int
    frames: Bytes
    firsts: Sequence[int]
    observations: int

    @property
    def changed(self) -> list[int]:
        """The indices of frames that come after another one of their stream."""
        return [index for index, first in enumerate(self.firsts) if first != index]

    def chunks(self, size: int) -> list[tuple[Bytes, float]]:
        """Frames that changed, packed as chunks of this size; for each chunk, which share of a complete one it is."""
        frames, changed, found = self.frames, self.changed, []
        for begin in range(0, len(changed), size):
            some = changed[begin : begin + size]
            before = [self.firsts[some[0]], *(index - 1 for index in some[1:])]
            patches = [patch(frames[old], frames[new]) for old, new in zip(before, some)]
            counts = np.array([len(steps) // 2 for steps, _ in patches], count_dtype(frames.shape[1]))
            parts = [counts.view(np.uint8), *(steps for steps, _ in patches), *(content for _, content in patches)]
            found.append((np.concatenate(parts), len(patches) / size))
        return found

    def candidate(self, label: str, how: Preference, parts: list[_Part]) -> Candidate:
        """Chunks as a candidate, by what is known about them."""
        geometry, count, size = self.geometry, len(self.changed), how.chunk
        plain = self.planes * geometry.row_nbytes
        time = _WRITE_COST * plain + _GATHER_COST * geometry.frame_nbytes
        # On average, half of a chunk comes before the newest frame, and older frames may be in the chunk before it.
        time += (size / 2 + geometry.depth) * _PATCH_COST * sum(part.packed for part in parts) / count
        time += (size + geometry.depth) * sum(part.time for part in parts) / count
        memory = (sum(part.stored for part in parts) / self.observations + self.planes * _FRAMES_NBYTES) / plain
        return Candidate(label, memory, time / (_PLAIN_COST * plain), frames=how)


@dataclass(frozen=True)
class _Part:
    """A chunk that was tried: its size, what is stored of it, and the time to decompress it."""

    packed: int
    stored: int
    time: float = 0.0

    @classmethod
    def through(cls, chunk: Bytes, trial: Trial, share: float) -> _Part:
        """A chunk that goes through a codec; ``share`` says how much of a complete chunk it is."""
        time = _decoding(trial, len(chunk), trial.nbytes) - (1 - share) * trial.call_cost
        return cls(len(chunk), trial.nbytes, time)


def frame_candidates(changes: Changes, sizes: Sequence[int]) -> list[Candidate]:
    """Frames as patches: compressed where patches are large, never, through every codec, and for the least memory.

    Where patches alone make frames small, a codec for every chunk is considered for the least memory only: chunks
    without a codec are read fastest.

    :param changes: frames to try
    :param sizes: sizes of chunks that go through a codec
    """
    count, raw = len(changes.changed), changes.geometry.frame_nbytes
    speed, memory = PREFERENCES[SPEED], PREFERENCES[MEMORY]
    parts, is_small = [], True
    for chunk, share in changes.chunks(speed.chunk):
        part = _Part(len(chunk), len(chunk))
        if len(chunk) * SMALL_CHUNK > share * speed.chunk * raw and speed.fallback is not None:
            is_small, trial = False, choose_for_chunks(speed.fallback, chunk)
            part = _Part.through(chunk, trial, share) if pays(trial.ratio) else part
        parts.append(part)
    found = [changes.candidate("frames as patches", speed, parts)]
    for size in () if is_small else sizes:
        chunks = changes.chunks(size)
        plain = [_Part(len(chunk), len(chunk)) for chunk, _ in chunks]
        found.append(changes.candidate(f"frames as patches, chunks of {size}", Preference(size, fallback=None), plain))
        through: dict[CodecSpec, list[_Part]] = {}
        for chunk, share in chunks:
            for trial in try_codecs(Role.PATCHES, CellSpec(np.uint8, len(chunk)), chunk[np.newaxis], special=False):
                through.setdefault(trial.codec.spec, []).append(_Part.through(chunk, trial, share))
        for spec, own in through.items():
            if len(own) == len(chunks):
                label = f"frames as patches, {spec}, chunks of {size}"
                found.append(changes.candidate(label, Preference(size, spec), own))
    assert isinstance(memory.every, Role)
    (chunk, _), *_ = changes.chunks(count)
    trial = choose_for_chunks(memory.every, chunk)
    label = f"frames as patches, {trial.codec.spec}, chunks of {memory.chunk}"
    longest = changes.candidate(label, memory, [_Part.through(chunk, trial, count / memory.chunk)])
    return [*found, replace(longest, is_strong=True)]


@dataclass(frozen=True)
class Choice:
    """A codec for cells, and why it was chosen. ``None`` stands for no codec."""

    codec: Codec | None
    reason: str
    #: What was chosen, against what, and what other values of ``prefer`` would take.
    explanation: str = ""


def choose_by_space(cell: CellSpec) -> Choice | None:
    """Choose without data, or return ``None`` if the choice needs data."""
    if cell.nbytes < MIN_NBYTES:
        return Choice(None, f"chosen: {cell.nbytes} bytes are too few to compress")
    return None


def cells_chosen(candidates: Sequence[Candidate], prefer: str) -> Choice:
    """The candidate that ``prefer`` takes, which must be one of cells, as a choice with its reason."""
    chosen, text = pick(candidates, prefer), explain(candidates, prefer)
    if chosen.codec is not None:
        return Choice(chosen.codec, f"chosen: makes the first observations {chosen.ratio:.1f} times smaller", text)
    smallest = max(candidates, key=lambda one: one.ratio)
    if smallest.codec is None:
        return Choice(None, "chosen: no codec makes the first observations a fifth smaller", text)
    reason = f"chosen: {smallest.label} makes them {smallest.ratio:.1f} times smaller, but takes longer to read"
    return Choice(None, reason, text)


def choose_by_content(
    label: str, cell: CellSpec, rows: Bytes, prefer: str = BALANCED, *, has_next: bool = True
) -> Choice:
    """Choose between no codec and every codec that is fit, on these rows, shape ``(n, cell.nbytes)``, and log it."""
    choice = cells_chosen(cell_candidates(cell, rows, has_next=has_next), prefer)
    log_choice(label, choice)
    return choice


def log_choice(label: str, choice: Choice) -> None:
    """Log a choice. The label says what it is for."""
    chosen = UNCOMPRESSED if choice.codec is None else choice.codec.spec
    logger.info("%s: %s %s; %s", label, chosen, choice.reason, choice.explanation)


def choose_for_chunks(role: Role, chunk: Bytes) -> Trial:
    """Choose the codec for chunks of frames, on the first of them."""
    trials = try_codecs(role, CellSpec(np.uint8, len(chunk)), chunk[np.newaxis], special=False)
    paying = [trial for trial in trials if pays(trial.ratio)]
    return min(paying or trials, key=lambda trial: trial.nbytes * float(trial.cost**_COST_EXPONENT))


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
        #: Changes of an observation, and those that were no shift by one frame.
        self.changes = 0
        self.misfits = 0
        #: The geometry, once an observation was its predecessor shifted by one frame.
        self.found: FrameGeometry | None = None
        #: Geometries that the data contradict.
        self.refuted: set[FrameGeometry] = set()

    def see(self, cells: Indices, rows: Bytes) -> FrameGeometry | None:
        """Look at observations; return the geometry once one of them is its predecessor shifted by one frame."""
        for stream, row in zip((cells % self.streams).tolist(), rows):
            before = self.last.get(stream)
            self.last[stream] = row.copy()
            if before is None or np.array_equal(before, row):
                continue
            self.changes += 1
            if self.found is not None:
                continue
            verdicts = [(stack, stack.shifts(before, row)) for stack in self.stacks]
            self.found = next((stack for stack, shifted in verdicts if shifted), None)
            if self.found is not None:
                continue
            self.refuted.update(stack for stack, shifted in verdicts if shifted is False)
            self.misfits += all(shifted is False for _, shifted in verdicts)
        return self.found

    def gives_up(self, rows: int) -> bool:
        """Whether enough was seen to conclude that there is no stack, with so many rows per write."""
        return self.misfits >= _ENOUGH * rows

    def best_guess(self) -> FrameGeometry:
        """What was found, or the deepest geometry that the data do not contradict; one frame if they contradict all."""
        if self.found is not None:
            return self.found
        possible = [stack for stack in self.stacks if stack not in self.refuted]
        return possible[0] if possible else whole(self.row_nbytes)


#: Makes a codec ready for cells.
Bind = Callable[[CodecLike, CellSpec], Codec]
