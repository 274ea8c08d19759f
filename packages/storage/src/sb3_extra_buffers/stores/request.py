"""What people ask for, in the words of the published package, as a codec spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sb3_extra_buffers.codecs import CodecLike, CodecSpec, parse
from sb3_extra_buffers.errors import ParameterError

#: The word that leaves the choice to us.
AUTO = "auto"
#: Published arguments that said what is now derived from the space. They are accepted and change nothing.
_DERIVED = {"elem_type", "runs_type", "arr_configs"}


def parse_request(
    method: CodecLike,
    compression_kwargs: Mapping[str, Any] | None = None,
    decompression_kwargs: Mapping[str, Any] | None = None,
) -> CodecSpec | None:
    """Read ``compression_method`` and its arguments. ``None`` stands for ``"auto"``.

    :param method: ``"auto"``, a shorthand such as ``"zstd-3"``, or a :class:`CodecSpec`
    :param compression_kwargs: parameters of the codec; ``compresslevel`` is another name for ``level``
    :param decompression_kwargs: nothing in it has an effect any more; unknown words are refused
    """
    unknown = set(decompression_kwargs or ()) - _DERIVED
    if unknown:
        allowed = f"decoding takes no parameters (accepted for old scripts: {', '.join(sorted(_DERIVED))})"
        raise ParameterError("buffer", "decompression_kwargs", dict(decompression_kwargs or {}), allowed)
    asked = {name: value for name, value in (compression_kwargs or {}).items() if name not in _DERIVED}
    if "compresslevel" in asked:
        asked["level"] = asked.pop("compresslevel")
    if method is None:
        allowed = "it must be 'auto', 'none' or the name of a codec"
        raise ParameterError("buffer", "compression_method", method, allowed)
    if method == AUTO:
        if asked:
            allowed = "without a codec there is nothing that they could be for"
            raise ParameterError("buffer", "compression_kwargs", asked, allowed, "Name a compression_method.")
        return None
    spec = parse(method)
    if asked.get("level", spec.params.get("level")) != spec.params.get("level", asked.get("level")):
        allowed = f"compression_method={method!r} asks for another level"
        raise ParameterError("buffer", "compression_kwargs", asked, allowed, "Give the level once.")
    return CodecSpec(spec.name, {**spec.params, **asked}) if asked else spec
