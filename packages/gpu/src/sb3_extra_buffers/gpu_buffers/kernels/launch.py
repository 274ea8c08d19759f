"""Launch options of kernels, and the status that reports damaged payloads without waiting for the device."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.memory import Indices

_DAMAGED = "its content is not valid"
#: Launches that may be pending before the oldest is waited for.
_LAUNCHES = 8


def launch_options(registers: int, *, is_hip: bool = torch.version.hip is not None) -> dict[str, int | bool]:
    """Compiler options of every launch.

    :param registers: registers per thread on NVIDIA. Without a limit, the compiler sometimes takes a few more, and
        fewer programs run in parallel. ``scripts/compile_kernels.py`` checks that the limit causes no spills
    :param is_hip: ``True`` for AMD (64 threads per warp), ``False`` for NVIDIA (32)
    """
    # 128 threads per program: a tile of 2,048 bytes is then one store of sixteen bytes per thread.
    threads = {"num_warps": 2} if is_hip else {"num_warps": 4, "maxnreg": registers}
    # No kernel multiplies and adds. Set explicitly because Triton warns that the default will change.
    return {**threads, "enable_fp_fusion": False}


def launch_device(tensor: torch.Tensor) -> AbstractContextManager[object]:
    """Make the device of a tensor current: Triton launches on the current device, whatever its arguments are.

    :param tensor: an argument of the kernel
    """
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()


class Status:
    """One number per launch, on the device: 0, or one more than the index of a damaged payload. Threads may share it.

    Nothing waits for the device while batches are decoded. On CUDA, the number is copied to the host asynchronously and
    checked before later launches, so a damaged payload raises an error one or more batches later. Other devices have no
    such copy: there, the host reads the numbers of eight launches at once. On the CPU, it reads each one.

    :param codec: codec of the payloads, for the error
    :param device: device of the kernels
    """

    def __init__(self, codec: str, device: torch.device) -> None:
        self._codec = codec
        self._is_awaited = device.type == "cpu"
        self._is_collected = device.type not in ("cpu", "cuda")
        # Not zeros: another stream may be the first to use them, and each launch sets its own.
        self._numbers = torch.empty(_LAUNCHES, dtype=torch.int32, device=device)
        self._seen = torch.zeros(_LAUNCHES, dtype=torch.int32, pin_memory=device.type == "cuda")
        self._next = 0
        #: Launches to be checked: index of the number, event of its copy, lengths of the payloads.
        self._pending: deque[tuple[int, Any, Indices]] = deque()
        self._lock = threading.RLock()

    @contextmanager
    def watching(self, lengths: Indices) -> Iterator[torch.Tensor]:
        """The number for one launch, as a tensor.

        :param lengths: sizes of the payloads that the launch reads
        """
        with self._lock:
            self.check(under_way=_LAUNCHES - 1)
            slot, self._next = self._next, (self._next + 1) % _LAUNCHES
            number = self._numbers[slot : slot + 1]
            number.zero_()
            yield number
            if not self._is_collected:
                self._seen[slot : slot + 1].copy_(number, non_blocking=not self._is_awaited)
            self._pending.append((slot, self._event(), lengths))
            if self._is_awaited:
                self.check()

    def check(self, *, under_way: int = 0) -> None:
        """Raise the error of a launch that met a damaged payload.

        :param under_way: number of the newest launches that are not waited for
        """
        with self._lock:
            if self._is_collected:
                if len(self._pending) <= under_way:
                    return
                self._seen.copy_(self._numbers)
            while self._pending:
                slot, done, lengths = self._pending[0]
                if done is not None and len(self._pending) <= under_way and not done.query():
                    return
                if done is not None:
                    done.synchronize()
                self._pending.popleft()
                found = int(self._seen[slot])
                if found:
                    raise PayloadError(self._codec, int(lengths[found - 1]), _DAMAGED, found - 1)

    def _event(self) -> Any:
        if not self._numbers.is_cuda:
            return None
        stream = torch.cuda.current_stream(self._numbers.device)
        self._numbers.record_stream(stream)
        make: Any = torch.cuda.Event  # has no types
        event = make()
        event.record(stream)
        return event
