"""Where a logarithmic axis is labelled, also one that is much shorter than a decade."""

from __future__ import annotations

import math

#: Within a decade; the first of them that gives enough labels is taken.
_STEPS = ((1,), (1, 2, 5), (1, 2, 3, 4, 5, 6, 8))
_ENOUGH = 3


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
