"""Shared files between processes of one machine: rings of records, and boards with the latest version of something.

The files are memory-mapped and have no locks, so a process that is killed never blocks the others.
"""

from sb3_extra_buffers.sharing.feeder import Feeder, transition_record
from sb3_extra_buffers.sharing.files import Board, Ring

__all__ = ["Board", "Feeder", "Ring", "transition_record"]
