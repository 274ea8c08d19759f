"""Zstandard for sb3-extra-buffers. The codec is in :mod:`.zstd`, which its entry point names."""
