"""Figures in sentences are those that were measured, to the digits that are printed."""

import json
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from pathlib import Path

import pytest

from sb3_extra_buffers.advisor import advise, make, play

ROOT = Path(__file__).parents[2]
FRAMES = json.loads((ROOT / "docs" / "frames.json").read_text())
KINDS = json.loads((ROOT / "docs" / "benchmarks" / "choosing.json").read_text())["kinds"]
#: What the process with 50,000 transitions held, and how long it took for a batch.
GAMES = {game: {way["codec"]: way for way in ways} for game, ways in FRAMES["games"].items()}
TRANSITIONS = 50_000
BATCHES = ("sample_32", "sample_256")


def rounded(value: float, like: str, rounding: str = ROUND_HALF_EVEN) -> Decimal:
    """``value`` with the digits of a printed number: 222 like «200» is 200, 0.75 like «0.6» is 0.8."""
    printed = Decimal(like.replace(",", ""))
    digits = printed if "." in like else printed.normalize()
    return Decimal(value).quantize(Decimal(1).scaleb(int(digits.as_tuple().exponent)), rounding)


def about(printed, values):
    """«about 200»: so much, rounded to the digits that are printed."""
    (number,) = printed
    assert {rounded(value, number) for value in values} == {Decimal(number.replace(",", ""))}


def under(printed, values):
    """«under 300»: less, but more than one less in the last digit."""
    (number,) = printed
    assert {rounded(value, number, ROUND_CEILING) for value in values} == {Decimal(number)}


def ends(printed, values):
    """«100 to 600»: the smallest and the largest value lie there, and no narrower range holds them."""
    low, high = printed
    assert rounded(min(values), low, ROUND_FLOOR) == Decimal(low)
    assert rounded(max(values), high, ROUND_CEILING) == Decimal(high)


def spans(printed, values):
    """«50 to 100»: the smallest and the largest value, rounded to the digits that are printed."""
    low, high = printed
    assert (rounded(min(values), low), rounded(max(values), high)) == (Decimal(low), Decimal(high))


def times_smaller(way, game="MsPacman"):
    return [GAMES[game]["SB3"]["resident_nbytes"] / GAMES[game][way]["resident_nbytes"]]


def bytes_each(way, game="MsPacman"):
    return [GAMES[game][way]["resident_nbytes"] / TRANSITIONS]


def batch_times(way, *games):
    return [GAMES[game][way]["to_sb3"][batch] for game in games or ("MsPacman",) for batch in BATCHES]


def advised(kind, field, wanted):
    return [way[field] for way in KINDS[kind]["measured"] if re.fullmatch(wanted, way["name"])]


def slower_as_frames(kind, codec):
    frames, cells = (advised(kind, "sample_ms", f"{layout} {codec}")[0] for layout in ("frames", "cells"))
    return [frames / cells]


def of_every_game():
    text = (ROOT / "docs" / "frames.md").read_text()
    row = re.search(r"Breakout \|.*\n\| ---.*\n\| `speed` \|(.+)\|\n", text)
    return [float(cell) for cell in row[1].split("|")]


MILLION = FRAMES["growth"][-1]
assert MILLION["transitions"] == 1_000_000
IN_MB = [MILLION["resident"] / 1e6]
OF_SB3_AT_A_MILLION = [bytes_each("SB3")[0] * 1e6 / MILLION["resident"]]
SB3_IN_GB = [bytes_each("SB3")[0] * 1e6 / 1e9]
SPEED, BALANCED, MEMORY, NUMPY = "frames/speed", "frames/balanced", "frames/memory", "frames/speed/numpy"

#: Page, what it says, how that is to be read, and what was measured.
SAID = [
    ("README.md", r"one million Atari transitions takes (\d+) GB", about, SB3_IN_GB),
    ("README.md", r"Here it takes under (\d+) MB", under, IN_MB),
    ("README.md", r"under \d+ MB, about 1/(\d+)", about, [*OF_SB3_AT_A_MILLION, *times_smaller(SPEED)]),
    ("README.md", r"a batch is sampled in ([\d.]+) to ([\d.]+) of the time", spans, batch_times(SPEED)),
    ("README.md", r"under (\d+) MB is what a process really grew by", under, IN_MB),
    ("docs/index.md", r"\[took under (\d+) MB\]", under, IN_MB),
    ("docs/index.md", r"instead of (\d+) GB", about, SB3_IN_GB),
    ("docs/start.md", r"\[under (\d+) bytes for each\]", under, bytes_each(SPEED, "Pong")),
    ("docs/start.md", r"instead of ([\d,]+), everything", about, bytes_each("SB3", "Pong")),
    ("docs/choosing.md", r'"speed"`, the default \| about 1/(\d+)', about, times_smaller(SPEED)),
    ("docs/choosing.md", r'"balanced"` \| about 1/(\d+)', about, times_smaller(BALANCED)),
    ("docs/choosing.md", r'"memory"` \| about 1/(\d+)', about, times_smaller(MEMORY)),
    ("docs/choosing.md", r'"speed"`, the default \| [^|]+ \| ([\d.]+) to ([\d.]+) \|', spans, batch_times(SPEED)),
    ("docs/choosing.md", r'"balanced"` \| [^|]+ \| ([\d.]+) to ([\d.]+) \|', spans, batch_times(BALANCED)),
    ("docs/choosing.md", r'"memory"` \| [^|]+ \| ([\d.]+) to ([\d.]+) \|', spans, batch_times(MEMORY)),
    ("docs/choosing.md", r"\[1/(\d+) to 1/(\d+)\]", spans, advised("gray", "times_smaller", r"cells zstd/\d+")),
    (
        "docs/choosing.md",
        r"A batch of them takes about ([\d.]+) to ([\d.]+) times as long",
        spans,
        advised("gray", "sample_to_sb3", r"cells zstd/\d+"),
    ),
    (
        "docs/choosing.md",
        r"adding them (\d+) to (\d+) times as long",
        spans,
        advised("gray", "add_to_sb3", r"cells zstd/\d+"),
    ),
    (
        "docs/choosing.md",
        r"as long: (\d+) to (\d+) times for both together",
        spans,
        advised("gray", "cost_to_sb3", r"cells zstd/\d+"),
    ),
    ("docs/choosing.md", r"frames are about (\d+) times", about, advised("palette", "times_smaller", "auto")),
    (
        "docs/choosing.md",
        r"`zstd` are (\d+) to (\d+) times",
        spans,
        advised("palette", "times_smaller", "cells zstd.+"),
    ),
    (
        "docs/choosing.md",
        r"takes (\d) to (\d) times as long",
        spans,
        advised("palette", "sample_to_sb3", "cells zstd.+"),
    ),
    ("docs/choosing.md", r"about (\d) times as long to read", about, slower_as_frames("rgb", "zstd/1")),
    (
        "docs/choosing.md",
        r"through a codec are about (\d) times smaller",
        about,
        advised("rgb", "times_smaller", "auto"),
    ),
    ("docs/choosing.md", r"a batch takes about (\d) times", about, advised("rgb", "sample_to_sb3", "auto")),
    (
        "docs/choosing.md",
        r"a codec makes them (\d) to (\d) times smaller",
        spans,
        advised("rgb", "times_smaller", "auto|cells lz4-block/-4"),
    ),
    ("docs/saving-memory.md", r"a transition took (\d+) to (\d+) bytes", ends, of_every_game()),
    ("docs/saving-memory.md", r"Stable-Baselines3 \| ([\d,]+) \|", about, bytes_each("SB3")),
    ("docs/saving-memory.md", r'"speed"`[^|]*\| under (\d+) \|', under, bytes_each(SPEED)),
    ("docs/saving-memory.md", r'"memory"`[^|]*\| under (\d+) \|', under, bytes_each(MEMORY)),
    ("docs/saving-memory.md", r'"speed"`[^|]*\| under \d+ \| about 1/(\d+) \|', about, times_smaller(SPEED)),
    ("docs/saving-memory.md", r'"memory"`[^|]*\| under \d+ \| about 1/(\d+) \|', about, times_smaller(MEMORY)),
    ("docs/saving-memory.md", r"a batch took ([\d.]+) to ([\d.]+) of the time", spans, batch_times(SPEED)),
    (
        "docs/troubleshooting.md",
        r"a batch takes \[([\d.]+) to ([\d.]+) times as long\]",
        spans,
        batch_times(NUMPY, *GAMES),
    ),
]


@pytest.mark.parametrize(
    ("page", "pattern", "check", "measured"), SAID, ids=[f"{page} {said}" for page, said, *_ in SAID]
)
def test_what_a_page_says_was_measured(page, pattern, check, measured):
    assert measured, "nothing of this name was measured"
    text = " ".join((ROOT / page).read_text().split())  # sentences go on in the next line
    found = re.findall(pattern, text)
    assert len(set(found)) == 1, f"{page} does not say this once: {pattern}"
    check(found[0] if isinstance(found[0], tuple) else (found[0],), measured)


@pytest.fixture(scope="module")
def now():
    """What the command says of Pendulum, of which nothing depends on the machine but the times."""
    return advise(play(make("Pendulum-v1"), "Pendulum", 64), rounds=1, progress=False).as_json()


@pytest.mark.parametrize("kind", KINDS)
def test_published_advice_has_what_advice_has_now_and_the_page_says_it(kind, now):
    assert list(KINDS[kind]) == list(now)
    assert list(KINDS[kind]["measured"][0]) == list(now["measured"][0])
    if kind == "vector":
        assert KINDS[kind]["reason"] == now["reason"]
    page = (ROOT / "docs" / "benchmarks" / "choosing.md").read_text()
    assert f"## {KINDS[kind]['stream']['label']}\n\n{KINDS[kind]['reason']}\n" in page


@pytest.mark.parametrize("kind", KINDS)
def test_of_every_codec_that_was_tried_it_is_told_why_it_went_into_no_buffer(kind):
    tried = {one["codec"] for one in KINDS[kind]["screened"]}
    stored = {one["name"].removeprefix("cells ") for one in KINDS[kind]["measured"] if one["name"].startswith("cells ")}
    assert tried - stored == set(KINDS[kind]["dropped"])


@pytest.mark.parametrize(
    ("check", "printed", "right", "wrong"),
    [
        (about, ("200",), [222, 208], [255]),
        (about, ("0.56",), [0.5561], [0.6]),
        (under, ("300",), [254.9], [199.0]),
        (spans, ("0.6", "0.8"), [0.56, 0.75], [0.66, 0.75]),
        (ends, ("100", "600"), [144, 579], [144, 620]),
        (spans, ("50", "100"), [49.5, 101.7], [39.0, 101.7]),
    ],
)
def test_a_figure_that_contradicts_is_noticed(check, printed, right, wrong):
    check(printed, right)
    with pytest.raises(AssertionError):
        check(printed, wrong)
