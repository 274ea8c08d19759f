"""The pluggy marker that plugins use, and nothing else.

A plugin module imports :data:`hookimpl` from here (``sb3_extra_buffers.codecs`` and ``.heaps`` re-export it)
and marks the one function that hands over its factory.
"""

from __future__ import annotations

import pluggy

PROJECT = "sb3_extra_buffers"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
