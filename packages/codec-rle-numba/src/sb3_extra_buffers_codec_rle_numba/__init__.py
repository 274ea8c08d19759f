"""Compiled run lengths for sb3-extra-buffers. The codec is in :mod:`.rle_jit`, which its entry point names."""
