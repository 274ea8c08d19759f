"""The base class of all compressed buffers: checked input, reports, checkpoints and pickles."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch as th
from gymnasium import spaces
from numpy import ndarray
from numpy.typing import NDArray
from stable_baselines3.common.buffers import BaseBuffer, DictReplayBuffer, DictRolloutBuffer

from sb3_extra_buffers.arrays import CompressedArray
from sb3_extra_buffers.arrays.casting import as_numbers
from sb3_extra_buffers.checkpoints import State
from sb3_extra_buffers.compressed import checkpoint
from sb3_extra_buffers.compressed.locking import forks_wait
from sb3_extra_buffers.compressed.options import StorageOptions
from sb3_extra_buffers.compressed.report import KeyReport, MemoryReport, readable
from sb3_extra_buffers.compressed.storage import NO_KEY, ObservationStorage, PerStep, parts_of

# Models that the published package saved name these here.
from sb3_extra_buffers.compressed.utils import DummyCls as DummyCls
from sb3_extra_buffers.compressed.utils import find_buffer_dtypes as find_buffer_dtypes
from sb3_extra_buffers.errors import BufferStateError, ObservationError, ParameterError
from sb3_extra_buffers.heaps import Heap

if TYPE_CHECKING:
    from typing_extensions import Self

Method = TypeVar("Method", bound=Callable[..., Any])
#: Version of the pickled form. Pickles of other versions are refused with an explanation.
FORMAT_VERSION = 1
#: Arguments that only some models pass to a buffer: these models, and the kind of buffer that they need.
_TELLING = {
    "gae_lambda": ("PPO, A2C and other on-policy models", "Rollout"),
    "optimize_memory_usage": ("DQN, SAC and other off-policy models", "Replay"),
}


def locked(method: Method) -> Method:
    """Let a method of a buffer hold the buffer's lock."""

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._storage.lock.lock:
            return method(self, *args, **kwargs)

    return call  # type: ignore[return-value]


class BaseCompressedBuffer(BaseBuffer):
    """Base class of all compressed buffers.

    Stable-Baselines3 uses observations only by ``array[position] = observation`` and ``array[indices]``. So its own
    ``add``, ``sample`` and ``get`` work on a :class:`CompressedArray`, and stay the reference for faster paths.
    """

    _options: StorageOptions
    _storage: ObservationStorage
    #: Whether ``to_torch`` gets arrays that were made for a batch only.
    _is_sampling = False
    #: Arguments that may be replaced when a checkpoint is loaded.
    _replaceable: tuple[str, ...] = ("heap_kwargs", "threads")
    #: The part of the class's name that says how a replay buffer samples.
    _variant = ""
    #: Attributes that a checkpoint need not hold. Those of base classes are added.
    _transient: tuple[str, ...] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith(f"{__package__}."):
            cls.__module__ = __package__  # pickles and saved models name the package, so files may move

    def _take_options(self, arguments: Mapping[str, Any], prefetch_obstacle: str) -> None:
        """Check the arguments of a constructor, its ``locals()``, and keep those about storage."""
        name, prefetch, unknown = type(self).__name__, arguments["prefetch"], arguments["kwargs"]
        known = {name for kind in type(self).__mro__[:-1] for name in signature(kind).parameters}
        for asked in sorted(set(unknown) - known):
            if asked in _TELLING:
                models, kind = _TELLING[asked]
                fitting = self._sibling(kind, isinstance(arguments["observation_space"], spaces.Dict))
                raise TypeError(f"{name} does not fit: {models} need a {kind.lower()} buffer. Use {fitting}.")
            close = get_close_matches(asked, known, 1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"{name}() got an unexpected keyword argument {asked!r}.{hint}")
        self._check_space(arguments["observation_space"])
        if not isinstance(prefetch, bool):
            raise ParameterError(name, "prefetch", prefetch, "it must be True or False")
        if prefetch and prefetch_obstacle:
            allowed = f"it must be False: {prefetch_obstacle}"
            raise ParameterError(name, "prefetch", prefetch, allowed, "Leave prefetch out.")
        self._options = StorageOptions.among(arguments)

    def _check_space(self, space: spaces.Space[Any]) -> None:
        """Refuse a Dict space for other buffers, any other space for Dict buffers, and nested Dict spaces."""
        name, is_dict = type(self).__name__, isinstance(space, spaces.Dict)
        if is_dict and any(not key or isinstance(part, spaces.Dict) for key, part in parts_of(space).items()):
            hint = "gymnasium.wrappers.FlattenObservation makes one level of several."
            raise ParameterError(name, "observation_space", space, "keys must have names and no keys below", hint)
        if is_dict == isinstance(self, (DictReplayBuffer, DictRolloutBuffer)):
            return
        allowed = "it must not be a Dict space" if is_dict else "it must be a Dict space"
        fitting = self._sibling("Rollout" if "Rollout" in name else "Replay", is_dict)
        hint = f"Use {fitting} for it, or a buffer named for its model."
        raise ParameterError(name, "observation_space", space, allowed, hint)

    def _sibling(self, kind: str, is_dict: bool) -> str:
        """The class of this family for another kind of model or space."""
        family = "Gpu" if type(self).__name__.startswith("Gpu") else "Compressed"
        return f"{family}{'Dict' if is_dict else ''}{self._variant if kind == 'Replay' else ''}{kind}Buffer"

    def __repr__(self) -> str:
        if not {"_storage", "pos"} <= vars(self).keys():
            return f"<{type(self).__name__}, incomplete>"
        report = self.memory_report()
        size = f"{report.transitions:,} of {self.buffer_size * self.n_envs:,} transitions, n_envs={self.n_envs}"
        layouts = ("" if key.codec.startswith("frames") else "cells, " for key in report.keys)
        stored = ", ".join(f"{key.key} {layout}{key.codec}".lstrip() for key, layout in zip(report.keys, layouts))
        memory = (
            f"{readable(report.live_nbytes + report.overhead)} in heap {report.heap!r}, {report.ratio:.1f}x smaller"
        )
        return f"<{report.buffer}: {size}, {stored}, {memory}>"

    @locked
    def save(self, path: str | os.PathLike[str]) -> None:
        """
        Save everything to a folder. A second save to the same folder writes only what has changed. The folder holds the
        previous checkpoint until the new one is complete, also if the process is killed in between.

        :param path: the folder; it is created if needed
        """
        checkpoint.save(self, path)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], device: th.device | str = "auto", verify: bool | None = None, **replaced: Any
    ) -> Self:
        """Load a checkpoint. The buffer continues exactly like the one that was saved; compressed observations are read
        from the files when they are needed. No code of the checkpoint is run.

        :param path: the folder
        :param device: PyTorch device
        :param verify: Compare everything with its checksums now; otherwise observations are compared when they are
            first read. Default: now, if the checkpoint has at most 64 MB
        :param replaced: ``threads`` or ``heap_kwargs`` other than those that were saved; for some classes more.
            Parameters of a heap that describe a machine, such as ``folder``, are never taken from a checkpoint; a
            warning names those that were saved and not given here.
        """
        return checkpoint.load(cls, path, device, verify, replaced)

    def _arguments(self) -> dict[str, Any]:
        """Arguments for the constructor of an equal, empty buffer. Subclasses add the arguments that they take."""
        names = ("buffer_size", "observation_space", "action_space", "n_envs")
        return {**{name: getattr(self, name) for name in names}, **vars(self._options)}

    @classmethod
    def _replaced(cls, arguments: dict[str, Any], replaced: Mapping[str, Any]) -> dict[str, Any]:
        """Check and complete arguments that were given to :meth:`load`."""
        for name in sorted(set(replaced) - set(cls._replaceable)):
            asked, hint = f"load with another {name}", f"Allowed: {', '.join(cls._replaceable)}."
            raise BufferStateError(cls.__name__, asked, f"{name} is what was saved", hint)
        found = dict(replaced)
        if "heap_kwargs" in found:
            found["heap_kwargs"] = {**(arguments.get("heap_kwargs") or {}), **(found["heap_kwargs"] or {})}
        return found

    @classmethod
    def _check_claims(cls, state: State, arguments: dict[str, Any]) -> None:
        checkpoint.check_claims(state, arguments)

    def _state(self) -> State:
        """Everything that changes while the buffer is used. Arrays of numbers are found automatically. Subclasses add
        what else they keep, under the name of the attribute, and take it back in :meth:`_restore`.
        """
        return State().put("own", checkpoint.own_state(self)).put("storage", self._storage.state())

    def _restore(self, state: State) -> None:
        """Become what another buffer was. This buffer must be new."""
        self._storage.restore(state.part("storage"))
        checkpoint.restore_own(self, state.part("own"))

    def _per_step(self) -> PerStep:
        return PerStep.SINGLE

    def _place_arrays(self) -> None:
        """Put the arrays of the storage where Stable-Baselines3 has its own."""
        self.observations: Any = self._alone(self._storage.observations)

    def _new_storage(self, per_step: PerStep, heap: Heap | None = None) -> ObservationStorage:
        """Make the storage; with this heap if the buffer is unpickled. Buffers on a device override it."""
        name, space = type(self).__name__, self.observation_space
        return ObservationStorage(name, space, self.buffer_size, self.n_envs, self._options, per_step, heap)

    @locked
    def memory_report(self) -> MemoryReport:
        """Memory of the observations, by key, and what Stable-Baselines3 would need for them."""
        storage, transitions = self._storage, self._kept_rows() * self.n_envs
        cells, planes = self.buffer_size * self.n_envs, 2 if storage.next_observations else 1
        keys = []
        for key, array in storage.observations.items():
            raw = planes * transitions * (array.nbytes // cells)
            # Next observations are in the same store.
            keys.append(KeyReport(key, array.codec, raw, array.nbytes_stored, storage.explanation(key)))
        capacity = sum(key.live_nbytes for key in keys) if storage.heap is None else storage.heap.capacity
        evicted = self.size() * self.n_envs - transitions
        about = (type(self).__name__, transitions, tuple(keys), self._options.heap)
        return MemoryReport(*about, capacity, storage.overhead, evicted, storage.nbytes_for_batches)

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Hold the buffer's lock. Every method does so for itself; this is for several calls that belong together, and
        for pickling while another thread adds.
        """
        with self._storage.lock.lock:
            yield

    def _kept_rows(self) -> int:
        """Number of steps that can be read."""
        return self.size()

    def to_torch(self, array: NDArray[Any], copy: bool = True) -> th.Tensor:
        """Convert a numpy array to a tensor. An array that was made for a batch is not copied, even if asked."""
        if self._is_sampling and self.device.type == "cpu":
            return th.from_numpy(array)  # the same as as_tensor(), without its checks
        return super().to_torch(array, copy and not self._is_sampling)

    def _alone(self, parts: dict[str, Any]) -> Any:
        """Parts by key in the form of Stable-Baselines3: a dictionary, or the only part of a space without keys."""
        return parts[NO_KEY] if NO_KEY in parts else dict(parts)

    def _incoming(self, argument: str, value: Any) -> Any:
        """Check an observation, or a dictionary of them, before anything is stored."""
        arrays = self._storage.observations
        if NO_KEY in arrays:
            return self._fitted(argument, value, arrays[NO_KEY])
        try:
            return {key: self._fitted(f"{argument}[{key!r}]", value[key], array) for key, array in arrays.items()}
        except (KeyError, TypeError, IndexError):
            found = f"{type(value).__name__} of {sorted(value)}" if isinstance(value, dict) else type(value).__name__
            expected = f"a dictionary with the keys {', '.join(arrays)}"
            raise ObservationError(type(self).__name__, argument, found, expected) from None

    def _fitted(self, argument: str, value: Any, array: CompressedArray) -> NDArray[Any]:
        if array.takes(value):
            return value  # type: ignore[no-any-return]
        item = array.shape[2:]
        expected = (self.n_envs, *item)
        values = array.fit(type(self).__name__, argument, value)
        # One environment needs no axis of its own, a single number no axis at all, and further axes of 1 do no harm.
        fits = item == (1,) or values.shape[max(values.ndim - len(item), 0) :] == item
        if fits and values.size == math.prod(expected):
            return self._storage.contiguous(values.reshape(expected))
        whose = "the environment" if self.n_envs == 1 else f"each of {self.n_envs} environments"
        found, hint = f"of shape {values.shape}", f"One observation of {item} for {whose}."
        raise ObservationError(type(self).__name__, argument, found, f"shape {expected}", hint)

    def _row(self, argument: str, value: Any, rows: NDArray[Any]) -> NDArray[Any]:
        """Convert a value to a row of an array of this buffer. One number is repeated for all environments, as in
        Stable-Baselines3.
        """
        shape = rows.shape[1:]
        kind = value.dtype.kind if isinstance(value, ndarray) else ""
        if kind and kind in "biu" and value.shape == shape:
            return value  # type: ignore[no-any-return]  # at most steps
        values: NDArray[Any] = value if kind and kind in "biuf" else as_numbers(type(self).__name__, argument, value)
        if values.shape != shape:
            needed = math.prod(shape)
            if values.size == 1 and len(shape) == 1:
                values = values.reshape(1).repeat(needed)
            elif values.size != needed:
                found = f"of shape {values.shape}"
                raise ObservationError(type(self).__name__, argument, found, f"{needed} values")
            values = values.reshape(shape)
        if kind == "f" or values.dtype.kind == "f":
            # A sum of squares is NaN only if one of them is, and takes a fifth of the time of isnan().any().
            if math.isnan(values.item() if values.size == 1 else np.vdot(values, values)):
                hint = "The policy or the environment has diverged; stable_baselines3's VecCheckNan finds out which."
                raise ObservationError(type(self).__name__, argument, "NaN", "numbers", hint)
            if values.dtype != rows.dtype:
                return values.astype(rows.dtype)  # it may warn, and a warning may be an error
        return values

    def _delivered(self, sample: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Sample, with the observations in the requested form: unchanged, as float32, or from 0 to 1."""
        try:
            self._is_sampling = True
            samples = sample(*args, **kwargs)
        finally:
            self._is_sampling = False
        if not self._storage.as_float:
            return samples
        names = [name for name in ("observations", "next_observations") if hasattr(samples, name)]
        return samples._replace(**{name: self._to_float(getattr(samples, name)) for name in names})

    def _to_float(self, observations: Any) -> Any:
        if isinstance(observations, dict):
            return {key: self._to_float(part) for key, part in observations.items()}
        floats = observations.to(th.float32)
        return floats / 255.0 if self._options.normalize_images else floats

    @locked
    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        # The same as the default, with the lock.
        twin = memo[id(self)] = type(self).__new__(type(self))
        twin.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return twin

    # A pickle holds the state of the stores, not the stores: it names public modules only, so that files may move.

    def __getstate__(self) -> dict[str, Any]:
        inherited = getattr(super(), "__getstate__", None)  # in object only since Python 3.11
        state = dict(inherited() if inherited is not None else self.__dict__)
        storage: ObservationStorage = state.pop("_storage")
        for name in ("observations", "next_observations"):
            state.pop(name, None)
        stores = storage.put_stores(State())
        state["_options"] = dict(vars(self._options))
        state["stored"] = {"heap": storage.heap, "facts": stores.facts, "arrays": stores.arrays}
        return {**state, "format_version": FORMAT_VERSION}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        version = state.pop("format_version", None)
        if version != FORMAT_VERSION:
            found, hint = f"its format version is {version}", "Upgrade sb3-extra-buffers."
            if version is None:
                found = "it has no format version"
                hint = "It was made by a version before 1; fill a new buffer instead."
            found += f", this version reads {FORMAT_VERSION}"
            raise BufferStateError(type(self).__name__, "load a pickled buffer", found, hint)
        stored = state.pop("stored")
        state["_options"] = StorageOptions(**state["_options"])
        inherited = getattr(super(), "__setstate__", None)
        if inherited is not None:
            inherited(state)
        else:
            self.__dict__.update(state)
        with forks_wait():
            self._storage = self._new_storage(self._per_step(), stored["heap"])
            self._storage.restore_stores(State(stored["facts"], stored["arrays"]))
        self._place_arrays()
