"""LZ4 for sb3-extra-buffers: :mod:`.frame` and :mod:`.block`, each named by its entry point."""
