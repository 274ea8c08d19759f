"""From several processes to one, on one machine: rings of records, and a board that everybody can read.

Plain files that are mapped, and no locks: a process that is killed leaves nothing behind that others wait for.
"""

from sb3_extra_buffers.sharing.board import Board
from sb3_extra_buffers.sharing.feeding import Feeder
from sb3_extra_buffers.sharing.records import transition_record
from sb3_extra_buffers.sharing.ring import Ring

__all__ = ["Board", "Feeder", "Ring", "transition_record"]
