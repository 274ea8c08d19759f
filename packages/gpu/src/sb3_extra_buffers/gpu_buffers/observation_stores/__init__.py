"""One observation at a time on a device: the stores of the published package, on the heap of this one.

The buffers do without them: they write a row of environments and read a batch at a time.
"""

from sb3_extra_buffers.gpu_buffers.observation_stores.creation import create_observation_store
from sb3_extra_buffers.gpu_buffers.observation_stores.dense import DenseObservationStore
from sb3_extra_buffers.gpu_buffers.observation_stores.raw import RawObservationStore

__all__ = ["DenseObservationStore", "RawObservationStore", "create_observation_store"]
