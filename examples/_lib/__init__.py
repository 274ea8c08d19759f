"""Helpers of the examples."""
