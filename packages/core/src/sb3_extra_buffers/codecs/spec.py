"""Which codec, with which parameters, and the shorthand that people type for it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.registry import Scalar

# Without a slash only a name of letters may carry a level: «zstd-5» is level -5 of zstd, but «lz4-frame5» would be
# a guess, and «bz2» must be able to be a name.
_LETTERS_THEN_LEVEL = re.compile(r"([A-Za-z]+)(-?[0-9]+)")
_INTEGER = re.compile(r"-?[0-9]+")


class CodecSpec:
    """A codec by name and parameters; immutable, hashable, picklable, JSON in and out.

    :param name: the word under which the codec is registered
    :param params: its parameters; what is left out takes the codec's default when it is bound
    """

    __slots__ = ("_name", "_params")

    def __init__(self, name: str, params: Mapping[str, Scalar] | None = None) -> None:
        self._name = name
        self._params = dict(params or {})

    @property
    def name(self) -> str:
        """The word under which the codec is registered."""
        return self._name

    @property
    def params(self) -> Mapping[str, Scalar]:
        """The parameters, read-only."""
        return MappingProxyType(self._params)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CodecSpec):
            return NotImplemented
        return (self._name, self._params) == (other._name, other._params)

    def __hash__(self) -> int:
        return hash((self._name, frozenset(self._params.items())))

    def __repr__(self) -> str:
        return f"CodecSpec({self._name!r}, {self._params!r})"

    def __str__(self) -> str:
        """The shorthand, where the level says it all; otherwise with the other parameters in brackets.

        A flag that is not set is not mentioned: a bound ``zstd/3`` reads as it was typed.
        """
        named = ((key, value) for key, value in sorted(self.params.items()) if key != "level" and value is not False)
        rest = ", ".join(f"{key}={value}" for key, value in named)
        level = self.params.get("level")
        return self.name + (f"/{level}" if level is not None else "") + (f"({rest})" if rest else "")

    def to_json(self) -> dict[str, Any]:
        """A form that JSON can hold and :meth:`from_json` reads back."""
        return {"name": self.name, "params": dict(self.params)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CodecSpec:
        """Rebuild what :meth:`to_json` wrote."""
        fits = isinstance(data.get("name"), str) and isinstance(data.get("params") or {}, Mapping)
        if not fits or not set(data) <= {"name", "params"}:
            raise ParameterError(
                "codec", "spec", dict(data), 'it must look like {"name": "zstd", "params": {"level": 3}}'
            )
        return cls(data["name"], data.get("params"))

    @classmethod
    def parse(cls, text: str, known_names: Collection[str] | None = None) -> CodecSpec:
        """Read the shorthand: ``zstd``, ``zstd-5``, ``zstd/-5``, ``igzip3``, ``lz4-frame/5``, ``bz2``, ``bz2/9``.

        :param text: what the user typed
        :param known_names: names that exist. One that is met exactly is not split into a name and a level, and a level
            is split off only if that leaves one. ``None`` goes by the form alone.
        """
        if not isinstance(text, str) or not text:
            raise ParameterError("codec", "name", text, "it must be text such as 'zstd', 'zstd-5' or 'lz4-frame/5'")
        if known_names is not None and text in known_names:
            return cls(text)
        if "/" in text:
            name, _, level = text.rpartition("/")
            if not name or not _INTEGER.fullmatch(level):
                raise ParameterError(
                    "codec", "name", text, "around the slash stand a name and an integer, as in 'lz4-frame/5'"
                )
            return cls(name, {"level": int(level)})
        match = _LETTERS_THEN_LEVEL.fullmatch(text)
        if match and (known_names is None or match[1] in known_names):
            return cls(match[1], {"level": int(match[2])})
        return cls(text)
