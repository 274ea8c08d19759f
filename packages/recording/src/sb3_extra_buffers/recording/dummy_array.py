"""``DummyArray``: takes whatever is written, and keeps nothing."""

from __future__ import annotations

from typing import Any


class DummyArray:
    """Stands where a recording has nothing to keep: writing and filling have no effect, reading is an error."""

    nbytes = 0

    def __setitem__(self, key: Any, value: Any) -> None:
        """Keep nothing."""

    def __getitem__(self, key: Any) -> Any:
        raise TypeError("DummyArray: nothing is kept here, so there is nothing to read.")

    def transpose(self, *axes: Any) -> DummyArray:  # noqa: ARG002
        """Itself: there is nothing to transpose."""
        return self

    def fill(self, value: Any) -> None:
        """Keep nothing."""

    def __repr__(self) -> str:
        return "DummyArray()"
