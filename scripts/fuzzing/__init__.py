"""Bytes from anywhere, for everything that decodes bytes. ``python -m scripts.fuzz`` runs it."""
