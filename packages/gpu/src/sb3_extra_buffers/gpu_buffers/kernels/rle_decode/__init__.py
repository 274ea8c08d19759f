"""Run-length payloads into the rows of a batch."""
