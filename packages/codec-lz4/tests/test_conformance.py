"""Both LZ4 codecs keep every rule of the codec contract, in each of their modes."""

from pathlib import Path

from sb3_extra_buffers.testing import CodecConformance, CodecSubject

GOLDEN = Path(__file__).parent / "golden"


class TestLz4Block(CodecConformance):
    codec = "lz4-block"
    golden = GOLDEN / "lz4-block.json"


class TestLz4BlockDefaultMode(CodecConformance):
    codec = "lz4-block/0"


class TestLz4BlockFastMode(CodecConformance):
    codec = "lz4-block/-8"


class TestLz4Frame(CodecConformance):
    codec = "lz4-frame"
    golden = GOLDEN / "lz4-frame.json"


class TestLz4FrameWithChecksum(CodecConformance):
    codec = "lz4-frame"
    params = {"checksum": True}

    def test_damage_is_detected(self):
        assert CodecSubject.installed(self.codec, self.params).bind().detects_corruption
