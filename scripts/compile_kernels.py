"""Compile every Triton kernel for several GPU architectures, without a GPU, and check the machine code.

``python scripts/compile_kernels.py`` prints a table. It fails if a kernel does not compile, spills registers, exceeds
its register limit, or if an aligned decode has no 128-bit stores. It takes a minute or two, and needs the distribution
``sb3-extra-buffers-gpu`` and Triton, but neither CUDA nor ROCm: Triton contains the compilers.

:data:`CAPS` has the register limits per thread. They follow from the number of programs that should run in parallel:

- NVIDIA has 65,536 registers for each multiprocessor, and a program of four warps has 128 threads. With 64 registers,
  eight programs fit, which is 32 warps: half of the maximum, and enough to hide memory latency. The launch sets this
  limit for decoding and encoding, too (``maxnreg``).
- ``decode_chunks`` has one program per chunk, some hundreds in a batch: two or three per multiprocessor. It is bound by
  memory latency, patch by patch. Its limit is 128, with which four programs fit.
- AMD's gfx942 has 512 registers per lane of a SIMD. With 128, four waves share a SIMD. The limit of ``decode_cells`` is
  168, with which three do: it needs that many for unaligned rows, and spills with four waves.

A spill is a register that is saved to memory: ``STL`` in NVIDIA code, the count of the compiler for AMD.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Register limits per thread: on NVIDIA, on AMD.
CAPS = {
    "decode_cells": (64, 168),
    "count_runs": (64, 128),
    "write_payloads": (64, 128),
    "decode_chunks": (128, 128),
    "interleave_planes": (128, 128),
    "copy_cells": (64, 128),
}
CUDA, HIP = (80, 90, 100, 120), ("gfx942",)


@dataclass(frozen=True)
class Variant:
    """A kernel with the types of its arguments.

    :param kernel: its name
    :param label: description of the arguments
    :param types: types of the run-time arguments
    :param constants: compile-time arguments; Triton also treats a run-time argument of 1 as one
    :param aligned: arguments besides pointers that are multiples of 16
    :param is_wide: whether it must have 128-bit stores
    """

    kernel: str
    label: str
    types: dict[str, str]
    constants: dict[str, Any]
    aligned: tuple[str, ...] = ()
    is_wide: bool = False


@dataclass
class Finding:
    """The result of compiling a variant.

    :param variant: the compiled variant
    :param target: the target architecture
    :param registers: registers per thread
    :param spills: number of spills
    :param shared: bytes of shared memory
    :param stores: number of 128-bit stores
    :param problems: violated requirements
    """

    variant: Variant
    target: str
    registers: int = 0
    spills: int = 0
    shared: int = 0
    stores: int = 0
    problems: list[str] = field(default_factory=list)

    def judge(self, cap: int) -> None:
        """Check all requirements."""
        if self.spills:
            self.problems.append(f"spills {self.spills} times")
        if self.registers > cap:
            self.problems.append(f"{self.registers} registers, {cap} are allowed")
        if self.variant.is_wide and not self.stores:
            self.problems.append("has no 128-bit store")


def variants() -> list[Variant]:
    """All variants: the common cases, and the limits of the kernels."""
    elements = ((1, 2, "images"), (4, 2, "floats"), (16, 4, "16 bytes, large"), (1, 8, "huge"))
    found = [variant for item, width, label in elements for variant in rle_variants(item, width, label)]
    images = [variant for variant in found if variant.label == "images"]
    found += [as_ones(variant, "one tile", ("tiles",)) for variant in images]
    found += [as_ones(variant, "one byte", ("tiles", "count", "stride")) for variant in images]
    return found + copy_variants() + frame_variants()


def rle_variants(item: int, width: int, label: str) -> list[Variant]:
    """The run-length kernels for one size of elements and of run ends."""
    from sb3_extra_buffers.gpu_buffers.kernels import rle_decode, rle_encode

    numbers = {"count": "i64" if width == 8 else "i32", "stride": "i32", "tiles": "i32"}
    wide, constants = ("count", "stride"), {"ITEM": item, "BLOCK": rle_encode.BLOCK}
    types = {"rows": "*u8", "counts": "*i32"} | numbers
    found = [Variant("count_runs", label, types, constants, wide)]
    types = {"rows": "*u8", "before": "*i64", "lengths": "*i64", "offsets": "*i64", "out": "*u8"} | numbers
    found.append(Variant("write_payloads", label, types, constants | {"WIDTH": width}, wide))
    types = {"addresses": "*i64", "lengths": "*i64", "out": "*u8", "status": "*i32", "scale": "fp32"} | numbers
    constants = {"ITEM": item, "WIDTH": width, "SCALED": False, "BLOCK": rle_decode.BLOCK}
    found.append(Variant("decode_cells", label, types, constants, wide, is_wide=True))
    if item == 1:
        found.append(Variant("decode_cells", f"{label}, not aligned", types | {"lengths": "*i32"}, constants))
        types, constants = types | {"out": "*fp32"}, constants | {"SCALED": True}
        found.append(Variant("decode_cells", f"{label}, scaled", types, constants, wide, is_wide=True))
    return found


def copy_variants() -> list[Variant]:
    """The kernel for uncompressed cells."""
    from sb3_extra_buffers.gpu_buffers.kernels import cell_copy

    types = {"addresses": "*i64", "out": "*u8", "nbytes": "i32", "stride": "i32", "tiles": "i32"}
    constants, wide = {"BLOCK": cell_copy.BLOCK}, ("nbytes", "stride")
    images = Variant("copy_cells", "images", types, constants, wide, is_wide=True)
    return [
        images,
        Variant("copy_cells", "images, not aligned", types, constants),
        Variant("copy_cells", "images, as floats", types | {"out": "*fp32"}, constants, wide, is_wide=True),
        as_ones(images, "one byte", ("nbytes", "stride", "tiles")),
    ]


def frame_variants() -> list[Variant]:
    """The kernels for chunks of frames."""
    from sb3_extra_buffers.gpu_buffers.kernels import frame_decode

    types = {"addresses": "*i64", "lengths": "*i64", "sizes": "*i32", "bases": "*i64", "scratch": "*u8", "out": "*u8"}
    types |= {"need_begin": "*i32", "need_frame": "*i32", "need_target": "*i64", "status": "*i32", "nbytes": "i32"}
    plane = {"WIDTH": 2, "GROUP": 1, "STRIDE": 1, "ALIGNMENT": 16, "BLOCK": frame_decode.BLOCK}
    beside, colour = plane | {"STRIDE": 4, "ALIGNMENT": 1}, {"WIDTH": 4, "GROUP": 3, "STRIDE": 12, "ALIGNMENT": 1}
    found = [
        Variant("decode_chunks", "frame by frame", types, plane, ("nbytes",), is_wide=True),
        Variant("decode_chunks", "pixel by pixel", types, beside, ("nbytes",)),
        Variant("decode_chunks", "large, in colour", types, plane | colour),
    ]
    types = {"planes": "*u8", "out": "*u8", "nbytes": "i32", "tiles": "i32"}
    for depth in (2, 4, 8):
        constants = {"DEPTH": depth, "PIXELS": frame_decode.BLOCK // depth}
        stacked = Variant("interleave_planes", f"{depth} frames", types, constants, ("nbytes",), is_wide=True)
        found += [stacked, as_ones(stacked, f"{depth} frames, one tile", ("tiles",))]
    return [*found, as_ones(found[1], "one byte", ("nbytes",))]


def as_ones(variant: Variant, label: str, names: tuple[str, ...]) -> Variant:
    """The variant with some arguments equal to 1: Triton makes them constants, which not all operators support."""
    types = {name: kind for name, kind in variant.types.items() if name not in names}
    aligned = tuple(name for name in variant.aligned if name not in names)
    constants = variant.constants | dict.fromkeys(names, 1)
    return Variant(variant.kernel, label, types, constants, aligned, variant.is_wide and aligned == variant.aligned)


def compile_for(variant: Variant, target: Any, options: dict[str, int | bool]) -> Any:
    """Compile with the options of a launch."""
    import triton
    from triton.compiler import ASTSource

    from sb3_extra_buffers.gpu_buffers.kernels import cell_copy, frame_decode, rle_decode, rle_encode

    modules = (cell_copy, rle_decode, rle_encode, frame_decode)
    function = next(getattr(module, variant.kernel) for module in modules if hasattr(module, variant.kernel))
    signature = {name: variant.types.get(name, "constexpr") for name in function.arg_names}
    constants = {(function.arg_names.index(name),): value for name, value in variant.constants.items()}
    aligned = [
        index for index, name in enumerate(function.arg_names) if signature[name][0] == "*" or name in variant.aligned
    ]
    attributes = {(index,): [["tt.divisibility", 16]] for index in aligned}
    source = ASTSource(fn=function, signature=signature, constexprs=constants, attrs=attributes)
    return triton.compile(source, target=target, options=options)


def examine_cuda(compiled: Any, finding: Finding) -> None:
    """Read the machine code for NVIDIA."""
    from triton import knobs

    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder, "kernel.cubin")
        binary.write_bytes(compiled.asm["cubin"])
        command = [knobs.nvidia.cuobjdump.path, "--dump-resource-usage", "--dump-sass", str(binary)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    finding.registers = int(re.findall(r"REG:(\d+)", text)[0])
    finding.spills = len(re.findall(r"\bSTL\b", text))
    finding.stores = len(re.findall(r"\bSTG\.\S*128", text))
    finding.shared = compiled.metadata.shared


def examine_hip(compiled: Any, finding: Finding) -> None:
    """Read the machine code for AMD."""
    text = compiled.asm["amdgcn"]
    finding.registers = int(re.findall(r"\.vgpr_count:\s*(\d+)", text)[0])
    finding.spills = sum(map(int, re.findall(r"\.vgpr_spill_count:\s*(\d+)", text)))
    finding.stores = len(re.findall(r"(?:global|buffer|flat)_store_dwordx4", text))
    finding.shared = compiled.metadata.shared


def findings() -> list[Finding]:
    """Compile all variants for all targets."""
    from triton.backends.compiler import GPUTarget

    from sb3_extra_buffers.gpu_buffers.kernels.launch import launch_options

    found = []
    targets = [GPUTarget("cuda", arch, 32) for arch in CUDA] + [GPUTarget("hip", arch, 64) for arch in HIP]
    for variant in variants():
        for target in targets:
            is_cuda = target.backend == "cuda"
            finding = Finding(variant, f"sm_{target.arch}" if is_cuda else str(target.arch))
            found.append(finding)
            try:
                compiled = compile_for(variant, target, launch_options(CAPS[variant.kernel][0], is_hip=not is_cuda))
            except Exception as error:
                finding.problems.append(f"does not compile: {error}")
                continue
            (examine_cuda if is_cuda else examine_hip)(compiled, finding)
            finding.judge(CAPS[variant.kernel][not is_cuda])
    return found


def show(found: list[Finding]) -> None:
    """Print the table."""
    head = ("kernel", "variant", "target", "registers", "spills", "shared", "128-bit stores", "verdict")
    rows = [
        (
            f.variant.kernel,
            f.variant.label,
            f.target,
            *map(str, (f.registers, f.spills, f.shared, f.stores)),
            "bad" if f.problems else "ok",
        )
        for f in found
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    for row in (head, *rows):
        print("  ".join(text.rjust(width) if text.isdigit() else text.ljust(width) for text, width in zip(row, widths)))


def main() -> int:
    if os.environ.get("TRITON_INTERPRET", "0") not in ("", "0"):
        print(
            "TRITON_INTERPRET is set: kernels are interpreted and not compiled. Unset it and run this again.",
            file=sys.stderr,
        )
        return 2
    found = findings()
    show(found)
    for finding in found:
        for problem in finding.problems:
            print(
                f"{finding.variant.kernel} ({finding.variant.label}) for {finding.target}: {problem}", file=sys.stderr
            )
    return 1 if any(finding.problems for finding in found) else 0


if __name__ == "__main__":
    sys.exit(main())
