"""igzip for sb3-extra-buffers. The codec is in :mod:`.igzip`, which its entry point names."""
