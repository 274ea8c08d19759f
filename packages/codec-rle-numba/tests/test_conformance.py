"""rle-jit keeps every rule of the codec contract."""

from pathlib import Path

from sb3_extra_buffers.testing import CodecConformance


class TestRleJit(CodecConformance):
    codec = "rle-jit"
    golden = Path(__file__).parent / "golden" / "rle-jit.json"
    frozen_encoding = True
