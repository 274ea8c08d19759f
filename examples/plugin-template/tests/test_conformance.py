from pathlib import Path

from sb3_extra_buffers.testing import CodecConformance


class TestBz2(CodecConformance):
    codec = "bz2"
    golden = Path(__file__).parent / "golden" / "bz2.json"
