"""Callbacks for training: log the memory of a buffer, save model and buffer."""

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


class BufferMemoryCallback(BaseCallback):
    """Log the memory of the observations in the model's buffer, for TensorBoard and other loggers.

    ``buffer/ratio`` is the size of the uncompressed observations divided by their stored size. ``buffer/stored_mb`` is
    the stored size with all overhead, ``buffer/raw_mb`` the size in Stable-Baselines3.

    :param verbose: Verbosity level: 1 prints the whole report when training ends
    :param log_freq: Minimum number of steps between two reports. A report on a buffer of a million transitions takes
        50 ms, and off-policy models end a rollout every few steps.
    """

    def __init__(self, verbose: int = 0, log_freq: int = 1000) -> None:
        super().__init__(verbose)
        self.log_freq = log_freq
        self._next_look = 0

    def _on_training_start(self) -> None:
        self._next_look = 0
        self._buffer()

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        if self.num_timesteps < self._next_look:
            return
        self._next_look = self.num_timesteps + self.log_freq
        report = self._buffer().memory_report()
        self.logger.record("buffer/ratio", report.ratio)
        self.logger.record("buffer/stored_mb", (report.live_nbytes + report.overhead) / 1e6)
        self.logger.record("buffer/raw_mb", report.raw_nbytes / 1e6)

    def _on_training_end(self) -> None:
        if self.verbose:
            print(self._buffer().memory_report())

    def _buffer(self) -> BaseCompressedBuffer:
        for name in ("replay_buffer", "rollout_buffer"):
            buffer = getattr(self.model, name, None)
            if isinstance(buffer, BaseCompressedBuffer):
                return buffer
        found, hint = "its buffer is not a compressed one", "Pass one as replay_buffer_class or rollout_buffer_class."
        raise BufferStateError("BufferMemoryCallback", f"watch a {type(self.model).__name__}", found, hint)


class BufferCheckpointCallback(BaseCallback):
    """Save the model and its replay buffer every ``save_freq`` calls of the callback, always to the same folder.

    It does what ``CheckpointCallback`` with ``save_replay_buffer=True`` does, but writes only what has changed since
    the last checkpoint of the buffer. Continue with ``model = DQN.load(folder / "model.zip", env)`` and
    ``model.replay_buffer = CompressedReplayBuffer.load(folder / "buffer")``. As in ``CheckpointCallback``, the buffer
    does not yet hold the transition of the step at which it is saved. If the heap has parameters that describe this
    machine, such as ``folder``, pass them again: ``load(folder / "buffer", heap_kwargs={"folder": ...})``.

    Each of the two is written atomically. The buffer is saved first, so a process that is killed between the two
    leaves a model that is one checkpoint older than its buffer.

    :param save_freq: Save every ``save_freq`` calls of the callback
    :param save_path: The folder; it is created if necessary
    :param verbose: Verbosity level: 2 reports every checkpoint
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
        if isinstance(buffer, BaseCompressedBuffer):
            return buffer
        found, hint = "its replay buffer is not a compressed one", "Pass one as replay_buffer_class."
        raise BufferStateError("BufferCheckpointCallback", f"save a {type(self.model).__name__}", found, hint)
