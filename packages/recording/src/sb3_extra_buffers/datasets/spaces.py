"""Spaces of data sets: as JSON in exports, inferred from data, and compared with those of a buffer."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.datasets.protocol import NO_KEY, Block, Dataset, Parts
from sb3_extra_buffers.errors import ObservationError, ParameterError
from sb3_extra_buffers.recording.exports.extras import require

_FEATURE = "datasets"
#: Numbers that describe each kind of space.
_NUMBERS = {"Box": ("low", "high"), "Discrete": ("n", "start"), "MultiDiscrete": ("nvec", "start"), "MultiBinary": ()}


def space_to_json(space: Any) -> dict[str, Any]:
    """Convert a space, bit by bit.

    :param space: a Box, Discrete, MultiDiscrete or MultiBinary, or a Dict of these
    """
    kind = type(space).__name__
    if kind == "Dict":
        return {"kind": kind, "parts": [[key, space_to_json(part)] for key, part in space.spaces.items()]}
    if kind not in _NUMBERS:
        allowed = "it must be a Box, Discrete, MultiDiscrete or MultiBinary space, or a Dict space of these"
        raise ParameterError(_FEATURE, "space", space, allowed)
    numbers = {name: _numbers_to_json(getattr(space, name)) for name in _NUMBERS[kind]}
    return {"kind": kind, "shape": list(space.shape), **numbers}


def space_from_json(said: Any) -> Any:
    """Read what :func:`space_to_json` returned.

    :param said: the JSON
    """
    spaces = require("gymnasium.spaces", _FEATURE)
    kind, shape = said["kind"], tuple(said.get("shape", ()))
    if kind == "Dict":
        # A list keeps the order of the keys.
        return spaces.Dict([(str(key), space_from_json(part)) for key, part in said["parts"]])
    if kind == "MultiBinary":
        return spaces.MultiBinary(shape if len(shape) != 1 else shape[0])
    first, second = (_numbers_from_json(said[name], shape) for name in _NUMBERS[kind])
    if kind == "Box":
        return spaces.Box(first, second, shape, first.dtype.type)
    if kind == "Discrete":
        return spaces.Discrete(first.item(), start=second.item())
    return spaces.MultiDiscrete(first, dtype=first.dtype.type, start=second)


def _numbers_to_json(values: Any) -> list[str]:
    array = np.asarray(values)
    flat = np.ascontiguousarray(array).reshape(-1)
    is_constant = flat.tobytes() == flat[:1].tobytes() * flat.size
    return [array.dtype.str, b64encode((flat[:1] if is_constant else flat).tobytes()).decode()]


def _numbers_from_json(said: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    dtype = np.dtype(str(said[0]))
    if dtype.kind not in "biuf":
        raise ValueError(f"{dtype} is not a dtype of numbers")
    flat = np.frombuffer(b64decode(said[1], validate=True), dtype)
    return np.full(shape, flat[0]) if flat.size == 1 else flat.reshape(shape).copy()


def parts_of(space: Any) -> dict[str, Any]:
    """The spaces of an observation by key.

    :param space: an observation space
    """
    return dict(space.spaces) if type(space).__name__ == "Dict" else {NO_KEY: space}


def spaces_of(dataset: Dataset) -> tuple[Any, Any]:
    """Return the spaces that a data set declares, or the smallest simple ones that contain its data.

    Observations without a declared space get a ``Box`` of all values of their dtype. Actions get a ``Discrete`` space
    if they are single integers, a ``Box`` from -1 to 1 if they are within, and otherwise a ``Box`` without bounds.

    :param dataset: the data set
    """
    if dataset.observation_space is not None and dataset.action_space is not None:
        return dataset.observation_space, dataset.action_space
    spaces = require("gymnasium.spaces", _FEATURE)
    least, greatest, shape, kinds, dtype = np.inf, -np.inf, (), {}, np.dtype(np.float32)
    for block in dataset.blocks():
        kinds = {key: (part.shape[1:], part.dtype) for key, part in block.observations.items()}
        shape, dtype = block.actions.shape[1:], block.actions.dtype
        least, greatest = min(least, block.actions.min()), max(greatest, block.actions.max())
    if dtype.kind in "biu" and int(np.prod(shape)) == 1:
        start = min(int(least), 0)
        actions = spaces.Discrete(int(greatest) - start + 1, start=start)
    elif dtype.kind in "biu":
        actions = spaces.Box(int(least), int(greatest), shape, dtype.type)
    else:
        bound = 1 if least >= -1 and greatest <= 1 else np.inf
        actions = spaces.Box(-bound, bound, shape, dtype.type)
    boxes = {key: _whole_range(spaces, *kind) for key, kind in kinds.items()}
    observations = boxes[NO_KEY] if NO_KEY in boxes else spaces.Dict(list(boxes.items()))
    return dataset.observation_space or observations, dataset.action_space or actions


def _whole_range(spaces: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "b":
        dtype = np.dtype(np.uint8)
    low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.kind in "iu" else (-np.inf, np.inf)
    return spaces.Box(low, high, shape or (1,), dtype.type)


class Fitting:
    """Conversion of blocks to what a buffer stores. Whatever cannot be stored exactly is an error.

    Images are transposed to channels first if the buffer has them so, as Stable-Baselines3 does it.

    :param source: name of the data set, for errors
    :param observation_space: observation space of the buffer
    :param action_space: action space of the buffer
    :param scale_actions: whether to scale actions from the range of the space to the range from -1 to 1
    """

    def __init__(self, source: str, observation_space: Any, action_space: Any, scale_actions: bool) -> None:
        self._source = source
        self._parts = parts_of(observation_space)
        self._actions = action_space
        self._scale = scale_actions

    def check_spaces(self, observation_space: Any, action_space: Any) -> None:
        """Compare with the spaces that a data set declares.

        :param observation_space: declared observation space, or ``None``
        :param action_space: declared action space, or ``None``
        """
        if action_space is not None:
            self._compare("action_space", action_space, self._actions)
        if observation_space is not None:
            found = parts_of(observation_space)
            self._check_keys(found)
            for key, part in found.items():
                self._compare(f"observation_space[{key!r}]" if key else "observation_space", part, self._parts[key])

    def _compare(self, name: str, found: Any, expected: Any) -> None:
        kinds = type(found).__name__, type(expected).__name__
        shapes = [found.shape]
        if kinds == ("Box", "Box") and name != "action_space" and len(found.shape) == 3:
            shapes.append((found.shape[2], *found.shape[:2]))
        counts = [
            np.asarray(getattr(space, count)).tolist()
            for space in (found, expected)
            for count in ("n", "nvec", "start")
            if kinds[0] != "Box" and hasattr(space, count)
        ]
        half = len(counts) // 2
        if kinds[0] != kinds[1] or expected.shape not in shapes or counts[:half] != counts[half:]:
            hint = "Make the buffer with the spaces of the data set, or convert one of the two."
            raise ObservationError(self._source, name, str(found), f"{expected}, the space of the buffer", hint)

    def _check_keys(self, found: dict[str, Any]) -> None:
        if set(found) != set(self._parts):
            names = [", ".join(repr(key) for key in sorted(keys) if key) for keys in (found, self._parts)]
            has, needs = (f"a dictionary with the keys {text}" if text else "without keys" for text in names)
            hint = "columns={...} gives columns the names of keys."
            raise ObservationError(self._source, "an observation", has, f"{needs}, as in the buffer", hint)

    def fit(self, block: Block) -> Block:
        """Convert a block.

        :param block: rows of the data set
        """
        self._check_keys(block.observations)
        actions = self._fit_actions(block.actions)
        rewards = block.rewards.reshape(len(block))
        for name, values in (("reward", rewards), ("action", actions)):
            if values.dtype.kind == "f" and np.isnan(values).any():
                raise ObservationError(self._source, name, "NaN", "numbers")
        return Block(
            self._fit_parts("observation", block.observations),
            self._fit_parts("next observation", block.next_observations),
            actions,
            rewards,
            block.terminated,
            block.truncated,
        )

    def _fit_parts(self, name: str, parts: Parts) -> Parts:
        return {
            key: self._fit_part(f"{name}[{key!r}]" if key else name, parts[key], space)
            for key, space in self._parts.items()
        }

    def _fit_part(self, name: str, values: NDArray[Any], space: Any) -> NDArray[Any]:
        item = tuple(space.shape) or (1,)
        if values.shape[1:] != item:
            if values.ndim == 4 and (values.shape[3], *values.shape[1:3]) == item:
                values = np.ascontiguousarray(values.transpose(0, 3, 1, 2))
            elif values.ndim == 1 and item == (1,):
                values = values.reshape(-1, 1)
            else:
                hint = "Make the buffer with the observation space of the data set."
                found, expected = f"of shape {values.shape[1:]}", f"{item}, the shape of the buffer's space"
                raise ObservationError(self._source, name, found, expected, hint)
        return self._exact(name, values, np.dtype(space.dtype))

    def _exact(self, name: str, values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
        if values.dtype == dtype:
            return values
        with np.errstate(all="ignore"):
            cast = values.astype(dtype)
        if not np.can_cast(values.dtype, dtype) and not np.array_equal(
            cast, values, equal_nan="f" in (values.dtype.kind, dtype.kind)
        ):
            hint = "Use a space whose dtype holds the values exactly."
            expected = f"values that {dtype}, the dtype of the buffer's space, holds exactly"
            raise ObservationError(self._source, name, f"of {values.dtype}", expected, hint)
        return cast

    def _fit_actions(self, values: NDArray[Any]) -> NDArray[Any]:
        space, count = self._actions, len(values)
        size = int(np.prod(space.shape))
        if values.size != count * size:
            found, expected = f"of shape {values.shape[1:]}", f"{tuple(space.shape)}, the shape of the buffer's space"
            raise ObservationError(self._source, "an action", found, expected)
        flat = values.reshape(count, size)
        if type(space).__name__ != "Box":
            return self._exact("an action", self._in_range(flat), np.dtype(space.dtype))
        if self._scale:
            low, high = space.low.reshape(-1), space.high.reshape(-1)
            flat = (2.0 * ((flat - low) / (high - low)) - 1.0).astype(space.dtype)
        return flat  # replay buffers of Stable-Baselines3 hold float64 actions as float32

    def _in_range(self, flat: NDArray[Any]) -> NDArray[Any]:
        space = self._actions
        low = np.asarray(getattr(space, "start", 0)).reshape(-1)
        counts = getattr(space, "nvec", None)
        if counts is None:
            counts = 2 if type(space).__name__ == "MultiBinary" else space.n
        outside = (flat < low) | (flat >= low + np.asarray(counts).reshape(-1))
        if outside.any():
            hint = "Make the buffer with the action space of the data set."
            expected = f"an action of {space}, the space of the buffer"
            raise ObservationError(self._source, "an action", str(flat[outside][0]), expected, hint)
        return flat


def needs_scaling(action_space: Any) -> bool:
    """Whether off-policy models of Stable-Baselines3 store other actions than the environment gets.

    :param action_space: the action space
    """
    if type(action_space).__name__ != "Box" or not np.all(np.isfinite([action_space.low, action_space.high])):
        return False
    return bool((action_space.low != -1).any() or (action_space.high != 1).any())
