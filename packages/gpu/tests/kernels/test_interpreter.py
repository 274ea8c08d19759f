"""Interpreting kernels leaves nothing behind that other tests of the process could notice."""

from __future__ import annotations

import os

import pytest
import torch

from sb3_extra_buffers.gpu_buffers.kernels.launch import launch_options


def language(interpreter):
    return [dict(vars(owner)) for owner in interpreter.LANGUAGE]


def run_one():
    from sb3_extra_buffers.gpu_buffers.kernels import rle_encode as launch

    rows = torch.zeros((1, 64), dtype=torch.uint8)
    return launch.measure(rows, item=1).lengths.tolist()


def test_puts_everything_back(interpreter):
    before, environment = language(interpreter), dict(os.environ)
    with interpreter.interpreted():
        assert run_one() == [2]
    assert dict(os.environ) == environment
    for owner, then, now in zip(interpreter.LANGUAGE, before, language(interpreter)):
        changed = [name for name, member in then.items() if now.get(name) is not member]
        assert changed == [], owner


def test_puts_everything_back_after_an_error(interpreter):
    before = language(interpreter)
    with pytest.raises(KeyError), interpreter.interpreted():
        raise KeyError
    assert language(interpreter) == before


def test_kernels_still_compile_afterwards(interpreter):
    triton = pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from sb3_extra_buffers.gpu_buffers.kernels import rle_encode as kernel

    if triton.knobs.runtime.interpret:
        pytest.skip("TRITON_INTERPRET is set: nothing compiles in this process")
    with interpreter.interpreted():
        assert run_one() == [2]
    types = {"rows": "*u8", "counts": "*i32", "count": "i32", "stride": "i32", "tiles": "i32"}
    signature = types | {"ITEM": "constexpr", "BLOCK": "constexpr"}
    source = ASTSource(fn=kernel.count_runs, signature=signature, constexprs={"ITEM": 1, "BLOCK": 512})
    options = launch_options(64, is_hip=False)
    compiled = triton.compile(source, target=GPUTarget("cuda", 80, 32), options=options)
    assert "count_runs" in compiled.asm["ptx"]
