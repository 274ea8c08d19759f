"""Chunks of the frame store into the frames that a batch needs."""
