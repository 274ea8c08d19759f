"""Kernels in Triton's interpreter, without a trace of it left behind.

The usual way, ``TRITON_INTERPRET=1`` before Triton is imported, is for whole processes: it would turn the kernels of
all other tests in this process into interpreted ones, and come too late if one of those has imported Triton. Also, a
device function that is interpreted leaves parts of ``triton.language`` replaced for ever: nothing compiles any more.

:func:`interpreted` puts interpreted functions in the place of compiled ones while it is active: those of the kernels,
and those that ``triton.language`` itself is made of. Then it puts everything back. It depends on nothing that was
imported before and sets no variable of the environment; if ``TRITON_INTERPRET`` is set, it does no harm.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction, mangle_type

from sb3_extra_buffers.gpu_buffers.kernels import cell_copy, frame_decode, rle_decode, rle_encode

KERNELS = (cell_copy, frame_decode, rle_decode, rle_encode)
#: What the interpreter replaces parts of.
LANGUAGE = (tl, tl.core, tl.math, tl.standard, tl.tensor, tl.core.tensor_descriptor_base, tl.condition, tl.dtype)
# What Triton imports only with its first tensor must not find functions that are replaced.
mangle_type(torch.empty(0))
#: By what was decorated: the hash of a compiled function looks at all that it calls.
_made: dict[Any, InterpretedFunction[Any]] = {}


def interpret(function: JITFunction[Any]) -> InterpretedFunction[Any]:
    """The interpreted form of a function, always the same: the interpreter knows the sum of a scan by its identity."""
    return _made.setdefault(function.fn, InterpretedFunction(function.fn))


@contextmanager
def interpreted(*modules: ModuleType) -> Iterator[None]:
    """Interpret the kernels of this package, and those of further modules.

    :param modules: more modules with kernels
    """
    owners = (*LANGUAGE, *KERNELS, *modules)
    before = [dict(vars(owner)) for owner in owners]
    try:
        for owner in owners:
            for name, member in list(vars(owner).items()):
                if isinstance(member, JITFunction):
                    setattr(owner, name, interpret(member))
        yield
    finally:
        for owner, members in zip(owners, before):
            for name, member in members.items():
                if vars(owner).get(name) is not member:
                    setattr(owner, name, member)
