"""Helpers of the benchmarks and the examples."""
