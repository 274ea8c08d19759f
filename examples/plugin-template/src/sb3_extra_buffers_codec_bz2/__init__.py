"""``bz2`` for sb3-extra-buffers. The codec is in :mod:`.bz2`, which its entry point names."""
