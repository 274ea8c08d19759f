"""The built-in codecs keep every rule of the contract."""

from pathlib import Path

from sb3_extra_buffers.testing import CodecConformance

GOLDEN = Path(__file__).parent / "golden"


class TestNone(CodecConformance):
    codec = "none"
    golden = GOLDEN / "none.json"
    frozen_encoding = True


class TestRle(CodecConformance):
    codec = "rle"
    golden = GOLDEN / "rle.json"
    frozen_encoding = True


class TestGzip(CodecConformance):
    codec = "gzip"
    golden = GOLDEN / "gzip.json"


class TestGzipStored(CodecConformance):
    """Level 0 does not compress, so every payload takes the raw escape."""

    codec = "gzip/0"
