"""What both classes share: the buffers behind them, and calls that reach them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from stable_baselines3.common.buffers import BaseBuffer

from sb3_extra_buffers.errors import ParameterError


class FanOut:
    """Several buffers of the same size.

    :param owner: who asks, for errors
    :param parts: buffers, or what makes one of the arguments that the owner was given: classes and partials
    :param make: calls such a maker with these arguments
    :param use_threads: whether the buffers are called in threads, side by side
    """

    def __init__(self, owner: str, parts: Iterable[Any], make: Callable[[Any], BaseBuffer], use_threads: bool) -> None:
        self.buffers: list[Any] = [part if isinstance(part, BaseBuffer) else make(part) for part in parts]
        if not self.buffers:
            raise ParameterError(owner, "buffers", [], "there must be at least one")
        self._use_threads = use_threads
        self._pool: ThreadPoolExecutor | None = None

    @property
    def first(self) -> Any:
        """The one that answers."""
        return self.buffers[0]

    def check(self, owner: str, buffer_size: int, n_envs: int) -> None:
        """Refuse buffers that cannot take what the owner gets."""
        for buffer in self.buffers:
            if (buffer.buffer_size, buffer.n_envs) != (buffer_size, n_envs):
                found = f"{type(buffer).__name__} with {buffer.buffer_size} rows for {buffer.n_envs} environments"
                allowed = f"each must have {buffer_size} rows for {n_envs} environments"
                raise ParameterError(owner, "buffers", found, allowed)

    def call(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Call a method of every buffer."""
        if not self._use_threads or len(self.buffers) == 1:
            for buffer in self.buffers:
                getattr(buffer, name)(*args, **kwargs)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(len(self.buffers), "vec_buf")
        futures = [self._pool.submit(getattr(buffer, name), *args, **kwargs) for buffer in self.buffers]
        for future in futures:
            future.result()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None}


class Fed:
    """A buffer that hands on what it gets, and answers as the first of those behind it."""

    _fan_out: FanOut

    @property
    def buffers(self) -> list[Any]:
        """The buffers that are fed; the first of them is the one that a model learns from."""
        return self._fan_out.buffers

    def __getattr__(self, name: str) -> Any:
        # Observations, rewards and so on. What is private may be asked for before there is anything, as by pickle.
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._fan_out.first, name)
