"""Scripts that measure. Run them from the root of a checkout, such as ``python -m benchmarks.codecs --help``."""
