"""Where a logarithmic axis is labelled, also one that is much shorter than a decade, and what is said there."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sb3_extra_buffers.compressed.report import UNITS, readable

#: Within a decade; the first of them that gives enough labels is taken.
_STEPS = ((1,), (1, 2, 5), (1, 2, 3, 4, 5, 6, 8))
_ENOUGH = 3
#: Of a label; an axis that needs more is shorter than what a float tells apart.
_MAX_DECIMALS = 15


def ticks(low: float, high: float) -> list[float]:
    """Round numbers from all over a range, three of them at least.

    :param low: where the axis begins; more than 0
    :param high: where it ends; more than that
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in _STEPS:
        found = [place for decade in decades for step in steps if low <= (place := step * 10.0**decade) <= high]
        if len(found) >= _ENOUGH:
            return found
    # So little is nearly linear.
    wide = (high - low) / _ENOUGH
    decade = 10.0 ** math.floor(math.log10(wide))
    step = max(number * decade for number in (1, 2, 5) if number * decade <= wide)
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def sizes(places: Sequence[float]) -> list[str]:
    """Labels of bytes that say what is there, and not the nearest size with one decimal, which may be the same for all.

    :param places: in ascending order
    """
    if places[-1] >= 10 * places[0]:  # round numbers, for which one decimal of a unit of their own is enough
        return [readable(place) for place in places]
    power = min(max(0, math.floor(math.log10(places[-1]) / 3)), len(UNITS) - 1)
    shown = [place / 1000**power for place in places]
    for decimals in range(1 if power else 0, _MAX_DECIMALS):
        if all(math.isclose(round(number, decimals), number, rel_tol=1e-9) for number in shown):
            break
    return [f"{number:.{decimals}f} {UNITS[power]}" for number in shown]
