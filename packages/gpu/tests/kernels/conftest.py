"""Kernels are interpreted here. ``interpreter.py`` says how, and why no other test in the process notices."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def load(name: str) -> ModuleType:
    """A helper beside this file, under a name that nothing else has: this folder is on no path."""
    full = f"sb3_extra_buffers_gpu_kernel_tests_{name}"
    if full not in sys.modules:
        spec = spec_from_file_location(full, Path(__file__).with_name(f"{name}.py"))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[full] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[full])
    return sys.modules[full]


@pytest.fixture
def interpreter() -> ModuleType:
    """The module ``interpreter.py``."""
    pytest.importorskip("triton", reason="Triton is not installed, and it is what interprets kernels")
    return load("interpreter")


@pytest.fixture
def sanitizer(interpreter: ModuleType) -> ModuleType:
    """The module ``sanitizer.py``."""
    return load("sanitizer")


@pytest.fixture
def watched(interpreter: ModuleType, sanitizer: ModuleType) -> Iterator[Any]:
    """The class ``Sanitizer``, while kernels are interpreted."""
    with interpreter.interpreted():
        yield sanitizer.Sanitizer


@pytest.fixture
def helpers() -> Callable[[str], ModuleType]:
    """Loads a helper beside this file."""
    return load


@pytest.fixture
def cells() -> ModuleType:
    """The module ``cells.py``."""
    return load("cells")
