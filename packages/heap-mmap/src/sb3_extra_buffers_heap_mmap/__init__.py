"""A heap in a file for sb3-extra-buffers. The heap is in :mod:`.mmap`, which its entry point names."""
