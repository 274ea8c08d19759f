"""The rules of the heap contract, one file for each thing that can go wrong. Importing this enters them all."""

from sb3_extra_buffers.testing.heap_rules import eviction, lifetime, refusals, storage
from sb3_extra_buffers.testing.heap_subject import HEAP_RULES

__all__ = ["HEAP_RULES", "eviction", "lifetime", "refusals", "storage"]
