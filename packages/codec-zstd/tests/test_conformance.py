"""zstd keeps every rule of the codec contract, with and without its checksum."""

from pathlib import Path

from sb3_extra_buffers.testing import CodecConformance, CodecSubject

GOLDEN = Path(__file__).parent / "golden"


class TestZstd(CodecConformance):
    codec = "zstd"
    golden = GOLDEN / "zstd.json"


class TestZstdFast(CodecConformance):
    codec = "zstd-5"


class TestZstdWithChecksum(CodecConformance):
    codec = "zstd"
    params = {"checksum": True}

    def test_damage_is_detected(self):
        assert CodecSubject.installed(self.codec, self.params).bind().detects_corruption
