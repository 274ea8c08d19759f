"""``CompressedArray`` against ``ndarray``, under every sequence of operations that a state machine can think of."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sb3_extra_buffers.arrays import CompressedArray
from sb3_extra_buffers.errors import ObservationError

#: What an element may be; floats are compared bit by bit, so zeros have signs and NaN equals itself.
ELEMENTS = {
    "bool": [False, True],
    "uint8": [0, 1, 2, 255],
    "int16": [0, 1, -1, 32767, -32768],
    "int64": [0, 1, 7, 255],
    "float32": [0.0, -0.0, 0.5, np.nan, np.inf, -np.inf],
    "float64": [0.0, 1.0, -1e300, np.nan],
}
#: What no element may be.
MISFITS = {"bool": 2, "uint8": 256, "int16": -32769, "int64": 0.5, "float32": 1e39, "float64": "text"}
LEADING = [(1,), (4,), (3, 2), (2, 2, 2)]
ITEMS = [(), (1,), (3,), (0,), (2, 3), (2, 0)]
#: numpy before 2.3 only announces the error where the result has no elements; warnings are errors here.
OUT_OF_BOUNDS = (IndexError, DeprecationWarning)

#: The same values in other clothes.
DISGUISES = [
    lambda value: value,
    lambda value: value.tolist() if value.size else value,
    lambda value: value.astype(np.float64) if value.dtype == np.float32 else value,
    lambda value: value.astype(value.dtype.newbyteorder()),
    lambda value: value.reshape(1, 1, *value.shape),  # more axes than there are: those of length 1 are dropped
    lambda value: value.repeat(2, axis=-1)[..., ::2] if value.ndim else value,
]


@st.composite
def indices(draw, shape):
    """Anything that may stand between brackets: mostly within range, sometimes not."""
    parts, axis = [], 0
    count = draw(st.integers(1, 3))
    while axis < len(shape):
        kind = draw(st.sampled_from(["all", "integer", "slice", "array", "mask", "table", "stop", "new", "beyond"]))
        size = shape[axis]
        if kind == "stop":
            break
        if kind == "new":
            parts.append(None)
            continue
        if kind == "integer" and size:
            parts.append(draw(st.integers(-size, size - 1).map(draw(st.sampled_from([int, np.int64])))))
        elif kind == "slice":
            parts.append(draw(st.slices(size)))
        elif kind == "array" and size:
            numbers = st.lists(st.integers(-size, size - 1), min_size=count, max_size=count)
            parts.append(draw(numbers.map(draw(st.sampled_from([list, np.array, lambda n: np.array([n])])))))
        elif kind == "mask":
            axes = draw(st.integers(1, len(shape) - axis))
            size = int(np.prod(shape[axis : axis + axes]))
            bits = draw(st.lists(st.booleans(), min_size=size, max_size=size))
            parts.append(np.array(bits, bool).reshape(shape[axis : axis + axes]))
            axis += axes - 1
        elif kind == "beyond" and draw(st.integers(0, 4)) == 0:
            parts.append(draw(st.sampled_from([size, -size - 1, [0, size], np.ones(size + 1, bool)])))
        else:
            parts.append(slice(None))
        axis += 1
    if draw(st.booleans()):
        # The dots stand for whatever is left, which may be nothing.
        parts.insert(draw(st.integers(0, len(parts))), ...)
    return parts[0] if len(parts) == 1 and draw(st.booleans()) else tuple(parts)


def same(found, expected):
    """Equal in shape, dtype and every bit."""
    return (np.shape(found), np.asarray(found).dtype, np.asarray(found).tobytes()) == (
        np.shape(expected),
        expected.dtype,
        np.asarray(expected).tobytes(),
    )


class ArrayMachine(RuleBasedStateMachine):
    """An ``ndarray`` beside a ``CompressedArray``; whatever is done to one is done to the other."""

    @initialize(
        leading=st.sampled_from(LEADING),
        item=st.sampled_from(ITEMS),
        name=st.sampled_from(sorted(ELEMENTS)),
        codec=st.sampled_from(["none", "rle", "gzip", "auto"]),
        heap=st.sampled_from(["memory", "ring"]),
    )
    def make(self, leading, item, name, codec, heap):
        self.name, self.elements = name, np.array(ELEMENTS[name], name)
        self.plain = np.zeros(leading + item, name)
        self.array = CompressedArray(
            leading,
            name,
            item,
            compression_method=codec,
            dtypes=np.uint8 if name == "int64" else None,
            heap=heap,
            heap_kwargs={"capacity": 1 << 16} if heap == "ring" else None,
        )
        self.leading = len(leading)

    def values(self, data, shape):
        """Elements in a shape that can be broadcast to ``shape``."""
        cut = data.draw(st.integers(0, len(shape)))
        axes = [1 if data.draw(st.integers(0, 3)) == 0 else axis for axis in shape[cut:]]
        seed = data.draw(st.integers(0, 999))
        return np.random.default_rng(seed).choice(self.elements, axes)

    @rule(data=st.data())
    def read(self, data):
        key = data.draw(indices(self.plain.shape))
        try:
            expected = self.plain[key]
        except OUT_OF_BOUNDS:
            with pytest.raises(OUT_OF_BOUNDS):
                self.array[key]
            return
        assert same(self.array[key], expected)

    @rule(data=st.data())
    def assign(self, data):
        key = data.draw(indices(self.plain.shape))
        try:
            shape = np.shape(self.plain[key])
        except OUT_OF_BOUNDS:
            with pytest.raises(OUT_OF_BOUNDS):
                self.array[key] = self.elements[0]
            return
        value = self.values(data, shape)
        self.plain[key] = value
        self.array[key] = data.draw(st.sampled_from(DISGUISES))(value)

    @rule(data=st.data())
    def assign_what_does_not_fit(self, data):
        key = data.draw(indices(self.plain.shape))
        try:
            shape = np.shape(self.plain[key])
        except OUT_OF_BOUNDS:
            return
        with pytest.raises(ObservationError):
            self.array[key] = MISFITS[self.name]
        with pytest.raises(ObservationError):
            self.array[key] = np.zeros((2, *shape, 2), self.name)

    @rule(data=st.data())
    def assign_row(self, data):
        row = data.draw(st.integers(-len(self.plain), len(self.plain) - 1))
        seed = data.draw(st.integers(0, 999))
        self.plain[row] = np.random.default_rng(seed).choice(self.elements, self.plain.shape[1:])
        self.array[row] = self.plain[row].copy()

    @rule()
    def iterate(self):
        rows = list(self.array)
        assert len(rows) == len(self.plain)
        assert all(same(found, expected) for found, expected in zip(rows, self.plain))

    @rule()
    def flatten(self):
        if self.leading == 2:
            shape = self.plain.shape if self.plain.ndim > 2 else (*self.plain.shape, 1)
            flat = (shape[0] * shape[1], *shape[2:])
            view = self.array.swapaxes(0, 1).reshape(*flat)
            assert same(np.asarray(view), self.plain.swapaxes(0, 1).reshape(flat))

    @rule(duplicate=st.sampled_from([copy.deepcopy, CompressedArray.copy, lambda a: pickle.loads(pickle.dumps(a))]))
    def go_on_with_a_copy(self, duplicate):
        left, self.array = self.array, duplicate(self.array)
        left[...] = self.elements[-1]

    @rule()
    def leave_a_copy_behind(self):
        self.array.copy()[...] = self.elements[-1]

    @rule()
    def clear(self):
        self.array.clear()
        self.plain[...] = 0

    @invariant()
    def equals(self):
        if not hasattr(self, "array"):
            return
        assert same(np.asarray(self.array), self.plain)
        described = (self.array.shape, self.array.dtype, self.array.ndim, self.array.size, self.array.nbytes)
        assert described == (
            self.plain.shape,
            self.plain.dtype,
            self.plain.ndim,
            self.plain.size,
            self.plain.nbytes,
        )
        assert len(self.array) == len(self.plain)


TestArray = ArrayMachine.TestCase
TestArray.settings = settings(max_examples=100, stateful_step_count=25, deadline=None, derandomize=True)
