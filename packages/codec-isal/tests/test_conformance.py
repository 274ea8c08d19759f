"""igzip keeps every rule of the codec contract, at its fastest and its smallest."""

from pathlib import Path

from sb3_extra_buffers.testing import CodecConformance

GOLDEN = Path(__file__).parent / "golden"


class TestIgzip(CodecConformance):
    codec = "igzip"
    golden = GOLDEN / "igzip.json"


class TestIgzipFastest(CodecConformance):
    codec = "igzip0"
