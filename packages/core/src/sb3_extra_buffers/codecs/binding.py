"""From a name to a codec that is ready for use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Union

from sb3_extra_buffers.codecs.cell import CellSpec
from sb3_extra_buffers.codecs.plugin import CODEC_PROTOCOL, CodecHooks, CodecPlugin
from sb3_extra_buffers.codecs.protocol import Codec
from sb3_extra_buffers.codecs.spec import CodecSpec
from sb3_extra_buffers.errors import ExtraBuffersError, ParameterError, PluginLoadError, PluginProtocolError
from sb3_extra_buffers.registry import PluginKind, Registry
from sb3_extra_buffers.registry.homes import CODEC_HOMES

#: What names a codec: the shorthand (``"zstd-5"``), a spec, or the JSON form of one.
CodecLike = Union[str, CodecSpec, "Mapping[str, Any]"]

registry: Registry[CodecPlugin] = Registry(
    PluginKind(
        label="codec",
        group="sb3_extra_buffers.codecs",
        hooks=CodecHooks,
        hook="sb3_extra_buffers_codec",
        plugin_type=CodecPlugin,
        protocol=CODEC_PROTOCOL,
        homes=CODEC_HOMES,
    )
)


def names() -> tuple[str, ...]:
    """The names of all installed codecs, sorted. Reads metadata; imports no plugin."""
    return registry.names()


def parse(codec: CodecLike) -> CodecSpec:
    """Read what names a codec, without importing it and without checking that it is installed."""
    if isinstance(codec, CodecSpec):
        return codec
    if isinstance(codec, Mapping):
        return CodecSpec.from_json(codec)
    # Names that are not installed count too: «zstd-5» without zstd must say so, not that «zstd-5» is unknown.
    return CodecSpec.parse(codec, {*names(), *registry.kind.homes})


def bind(codec: CodecLike, cell: CellSpec) -> Codec:
    """Load the codec's plugin, check its parameters and make it ready for cells of one kind.

    Binding is where levels are checked, contexts are built and kernels are compiled. Bind before you fork.

    :param codec: ``"zstd-5"``, ``"lz4-frame/3"``, ``"rle"``, or a :class:`CodecSpec`
    :param cell: dtype and element count of the cells
    :return: a codec for these cells
    """
    if not isinstance(cell, CellSpec):
        raise ParameterError("bind", "cell", cell, "it must be a CellSpec(dtype, count)")
    spec = parse(codec)
    plugin = registry.load(spec.name)
    complete, offer = plugin.complete(spec), registry.offers()[spec.name][0]
    try:
        bound = plugin.factory(complete, cell)
    except ExtraBuffersError:
        raise
    except Exception as cause:
        text = f"binding {complete} to {cell} raised {type(cause).__name__}: {cause}"
        raise PluginLoadError("codec", spec.name, str(offer), text) from cause
    if not isinstance(bound, Codec):
        missing = sorted(part for part in _CONTRACT if not hasattr(bound, part))
        found = f"a {type(bound).__name__} without {', '.join(missing)}"
        raise PluginProtocolError("codec", spec.name, str(offer), found, "an object that fulfils the Codec protocol")
    return bound


_CONTRACT = ("spec", "cell", "max_encoded_nbytes", "detects_corruption", "encode", "decode_into")
