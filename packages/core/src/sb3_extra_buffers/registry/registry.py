"""``Registry``: plugins of one kind by name, imported on first use."""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import pluggy

from sb3_extra_buffers.errors import (
    ParameterError,
    PluginConflictError,
    PluginError,
    PluginLoadError,
    PluginProtocolError,
)
from sb3_extra_buffers.errors.install import install_command
from sb3_extra_buffers.registry.discovery import Offer, find_offers, unknown_name
from sb3_extra_buffers.registry.plugin import PROJECT, Plugin

P = TypeVar("P", bound=Plugin)
#: Held while plugins are looked up and imported. Re-entrant, and one for all registries: a plugin may look up another
#: one of any kind while it is being imported.
_lock = threading.RLock()
# A fork waits for an import that is under way: the child would find a plugin that is registered in part, and a module
# whose import never ends.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


@dataclass(frozen=True)
class PluginKind(Generic[P]):
    """What differs between the registries of codecs, heaps and other plugins."""

    label: str
    group: str
    hooks: type
    hook: str
    plugin_type: type[P]
    protocol: int
    #: Plugins of other distributions, and the distribution that provides each.
    homes: Mapping[str, str]
    #: The distribution that defines the contract.
    distribution: str = "sb3-extra-buffers-core"


class Registry(Generic[P]):
    """Plugins of one kind, by name.

    Listing reads metadata. Loading imports the one plugin that was named. A plugin that fails is remembered, and
    its failure is raised again, with its cause, whenever its name is used; the others never notice.

    :param kind: what the plugins are and how they hand themselves over
    """

    def __init__(self, kind: PluginKind[P]) -> None:
        self.kind = kind
        self.refresh()

    def refresh(self) -> None:
        """Forget everything, so that distributions installed since then are found and broken ones get another try."""
        with _lock:
            self._offers: dict[str, tuple[Offer, ...]] | None = None
            self._loaded: dict[str, P] = {}
            self._failed: dict[str, tuple[PluginError, BaseException | None]] = {}
            self._handed_over: list[object] = []
            self._manager = pluggy.PluginManager(PROJECT)
            self._manager.add_hookspecs(self.kind.hooks)
            # Historic: the call is made once, here, and repeated by pluggy for each plugin registered later.
            getattr(self._manager.hook, self.kind.hook).call_historic(result_callback=self._handed_over.append)

    def offers(self) -> dict[str, tuple[Offer, ...]]:
        """Every offered name with the distributions that offer it. Reads metadata once, imports no plugin."""
        with _lock:
            if self._offers is None:
                self._offers = find_offers(self.kind.group)
            return self._offers

    def names(self) -> tuple[str, ...]:
        """Every offered name, sorted. Imports no plugin."""
        return tuple(self.offers())

    def load(self, name: str) -> P:
        """Import the plugin called ``name``, unless it is loaded already.

        :param name: the word that users type
        :raise PluginError: for an unknown name, a name offered twice, a plugin that fails or speaks another protocol
        """
        if not isinstance(name, str):
            raise ParameterError(self.kind.label, "name", name, f"it must be text, one of: {', '.join(self.names())}")
        with _lock:
            if name in self._loaded:
                return self._loaded[name]
            if name not in self._failed:
                try:
                    self._loaded[name] = self._load(name)
                    return self._loaded[name]
                except PluginError as error:
                    self._failed[name] = (error, error.__cause__)
            failure, cause = self._failed[name]
        # A copy: the stored one must not collect tracebacks.
        raise copy.copy(failure) from cause

    def _load(self, name: str) -> P:
        offers = self.offers().get(name, ())
        if not offers:
            raise unknown_name(self.kind.label, name, self.names(), self.kind.homes)
        if len(offers) > 1:
            raise PluginConflictError(self.kind.label, name, tuple(map(str, offers)))
        offer = offers[0]
        self._handed_over.clear()
        try:
            self._manager.register(offer.entry_point.load(), name=name)
            self._manager.check_pending()  # a misspelt hook name is an error, not a plugin that offers nothing
        except BaseException as cause:
            # pluggy leaves a plugin half registered when its hook raises, and would ignore it from then on.
            if self._manager.has_plugin(name):
                self._manager.unregister(name=name)
            # The plugin is to blame for an error, or for an attempt to end the process; not for an interrupt.
            if isinstance(cause, MemoryError) or not isinstance(cause, (Exception, SystemExit)):
                raise
            text = f"{type(cause).__name__}: {cause}"
            raise PluginLoadError(self.kind.label, name, str(offer), text) from cause
        return self._check(name, offer)

    def _check(self, name: str, offer: Offer) -> P:
        label, expected = self.kind.label, f"exactly one {self.kind.plugin_type.__name__}"
        if len(self._handed_over) != 1:
            hint = f"Its module must mark one function {self.kind.hook}() with @hookimpl and return the plugin from it."
            raise PluginProtocolError(label, name, str(offer), f"{len(self._handed_over)} plugins", expected, hint)
        plugin = self._handed_over.pop()
        if not isinstance(plugin, self.kind.plugin_type):
            raise PluginProtocolError(label, name, str(offer), f"an object of type {type(plugin).__name__}", expected)
        if type(plugin.protocol) is not int:
            found = f"protocol {plugin.protocol!r}"
            raise PluginProtocolError(label, name, str(offer), found, f"protocol {self.kind.protocol}, as a number")
        if plugin.protocol != self.kind.protocol:
            older = offer.distribution if plugin.protocol < self.kind.protocol else self.kind.distribution
            raise PluginProtocolError(
                label,
                name,
                str(offer),
                f"protocol {plugin.protocol}",
                f"protocol {self.kind.protocol}",
                f"Upgrade {older}: {install_command(older, upgrade=True)}",
            )
        return plugin
