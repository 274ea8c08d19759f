"""Exit codes besides 0."""

from __future__ import annotations

#: Something is broken: a plugin that was examined, or something unforeseen.
UNFORESEEN = 1
#: What was asked for cannot be done; it was said why.
REFUSED = 2
