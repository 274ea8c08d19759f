"""Plugins by name, loaded on first use. Independent of what the plugins are."""

from sb3_extra_buffers.registry.discovery import Offer
from sb3_extra_buffers.registry.plugin import Scalar, complete_parameters, hookimpl, hookspec
from sb3_extra_buffers.registry.registry import PluginKind, Registry

__all__ = ["Offer", "PluginKind", "Registry", "Scalar", "complete_parameters", "hookimpl", "hookspec"]
