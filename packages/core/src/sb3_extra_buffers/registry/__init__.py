"""Names to plugins, lazily. The lowest layer above the errors: it knows neither codecs nor heaps."""

from sb3_extra_buffers.registry.discovery import Offer
from sb3_extra_buffers.registry.hooks import hookimpl, hookspec
from sb3_extra_buffers.registry.plugin import Scalar, complete_parameters
from sb3_extra_buffers.registry.registry import PluginKind, Registry

__all__ = ["Offer", "PluginKind", "Registry", "Scalar", "complete_parameters", "hookimpl", "hookspec"]
