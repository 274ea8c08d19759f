"""Rows on the device into run-length payloads."""
