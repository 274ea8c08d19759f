"""``BufferMemoryCallback``: the size of the buffer in the log, beside the reward."""

from __future__ import annotations

from stable_baselines3.common.callbacks import BaseCallback

from sb3_extra_buffers.compressed.base import BaseCompressedBuffer
from sb3_extra_buffers.errors import BufferStateError


class BufferMemoryCallback(BaseCallback):
    """
    Log what the observations in the model's buffer take, so that TensorBoard shows it over time.

    ``buffer/ratio`` is how many times smaller they are than uncompressed, ``buffer/stored_mb`` what they take with all
    overhead, ``buffer/raw_mb`` what Stable-Baselines3 would need for them.

    :param verbose: Verbosity level: 1 prints the whole report when training ends
    :param log_freq: Look again after this many steps at the earliest. Looking at a buffer of a million takes 50 ms,
        and off-policy models end a rollout every few steps.
    """

    def __init__(self, verbose: int = 0, log_freq: int = 1000) -> None:
        super().__init__(verbose)
        self.log_freq = log_freq
        self._next_look = 0

    def _on_training_start(self) -> None:
        self._next_look = 0
        if self._buffer() is None:
            found = "its buffer is not a compressed one"
            hint = "Pass one as replay_buffer_class or rollout_buffer_class."
            raise BufferStateError("BufferMemoryCallback", f"watch a {type(self.model).__name__}", found, hint)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        if self.num_timesteps < self._next_look:
            return
        self._next_look = self.num_timesteps + self.log_freq
        buffer = self._buffer()
        assert buffer is not None
        report = buffer.memory_report()
        self.logger.record("buffer/ratio", report.ratio)
        self.logger.record("buffer/stored_mb", (report.live_nbytes + report.overhead) / 1e6)
        self.logger.record("buffer/raw_mb", report.raw_nbytes / 1e6)

    def _on_training_end(self) -> None:
        buffer = self._buffer()
        if self.verbose and buffer is not None:
            print(buffer.memory_report())

    def _buffer(self) -> BaseCompressedBuffer | None:
        for name in ("replay_buffer", "rollout_buffer"):
            buffer = getattr(self.model, name, None)
            if isinstance(buffer, BaseCompressedBuffer):
                return buffer
        return None
