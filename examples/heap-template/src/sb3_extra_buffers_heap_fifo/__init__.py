"""``fifo`` for sb3-extra-buffers. The heap is in :mod:`.fifo`, which its entry point names."""
