"""Wrappers that record while an agent plays. Import them from ``sb3_extra_buffers.recording``."""
