"""Scripts that measure. Run them from the root of the repository, as in ``python -m benchmarks.codecs --help``."""
