"""``BufferCheckpointCallback``: model and buffer on the disk while training goes on."""

from __future__ import annotations

import io
import os
from pathlib import Path

from stable_baselines3.common.callbacks import BaseCallback

from sb3_extra_buffers.checkpoints import replacing
from sb3_extra_buffers.compressed.base import BaseCompressedBuffer
from sb3_extra_buffers.errors import BufferStateError, ParameterError
from sb3_extra_buffers.memory import write_all

MODEL, BUFFER = "model.zip", "buffer"


class BufferCheckpointCallback(BaseCallback):
    """
    Save the model and its replay buffer every ``save_freq`` calls of the callback, always to the same place.

    What a ``CheckpointCallback`` with ``save_replay_buffer=True`` does, at the cost of what has changed: the buffer is
    a checkpoint that is added to. Go on with ``model = DQN.load(folder / "model.zip", env)`` and
    ``model.replay_buffer = CompressedReplayBuffer.load(folder / "buffer")``. As there, the transition of the step at
    which it is saved is not yet in the buffer. If the buffer was made with a ``folder`` or a ``path`` for its heap,
    name one again: ``load(folder / "buffer", heap_kwargs={"folder": ...})``. Otherwise its file is a temporary one.

    Each of the two is whole, whatever happens. The buffer is saved first, so a process that is killed between the two
    leaves a model that is one checkpoint older than its buffer.

    :param save_freq: Save every ``save_freq`` calls of the callback
    :param save_path: The folder; it is made if need be
    :param verbose: Verbosity level: 2 tells of every checkpoint
    """

    def __init__(self, save_freq: int, save_path: str | os.PathLike[str], verbose: int = 0) -> None:
        super().__init__(verbose)
        if isinstance(save_freq, bool) or not isinstance(save_freq, int) or save_freq < 1:
            raise ParameterError("BufferCheckpointCallback", "save_freq", save_freq, "it must be at least 1")
        self.save_freq = save_freq
        self.save_path = Path(save_path)

    def _init_callback(self) -> None:
        self.save_path.mkdir(parents=True, exist_ok=True)
        self._buffer()

    def _on_step(self) -> bool:
        if self.n_calls % self.save_freq == 0:
            self._buffer().save(self.save_path / BUFFER)
            packed = io.BytesIO()
            self.model.save(packed)
            with replacing(self.save_path / MODEL) as file:
                write_all(file, packed.getbuffer())
            if self.verbose >= 2:
                print(f"Saved model and buffer after {self.num_timesteps} steps to {self.save_path}")
        return True

    def _buffer(self) -> BaseCompressedBuffer:
        buffer = getattr(self.model, "replay_buffer", None)
        if not isinstance(buffer, BaseCompressedBuffer):
            found, hint = "its replay buffer is not a compressed one", "Pass one as replay_buffer_class."
            raise BufferStateError("BufferCheckpointCallback", f"save a {type(self.model).__name__}", found, hint)
        return buffer
