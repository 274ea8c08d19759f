"""Plugins by name, loaded on first use. Independent of what the plugins are."""

from sb3_extra_buffers.registry.registry import Offer, PluginKind, Registry, Scalar, complete_parameters, hookimpl

__all__ = ["Offer", "PluginKind", "Registry", "Scalar", "complete_parameters", "hookimpl"]
