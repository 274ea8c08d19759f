"""``Registry``: plugins of one kind by name, found in metadata of distributions and imported on first use."""

from __future__ import annotations

import copy
import difflib
import os
import re
import threading
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, Union

import pluggy

from sb3_extra_buffers.errors import (
    ParameterError,
    PluginConflictError,
    PluginError,
    PluginLoadError,
    PluginProtocolError,
    UnknownPluginError,
)
from sb3_extra_buffers.errors.install import install_command

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PROJECT = "sb3_extra_buffers"

hookimpl = pluggy.HookimplMarker(PROJECT)

#: Types of parameters: the scalars of JSON.
Scalar = Union[bool, int, float, str, None]


class Plugin(Protocol):
    """What plugins of all kinds have: the protocol that they were written against, and one line for listings."""

    @property
    def protocol(self) -> int: ...

    @property
    def summary(self) -> str: ...


def complete_parameters(
    owner: str, given: Mapping[str, Scalar], defaults: Mapping[str, Scalar], required: tuple[str, ...] = ()
) -> dict[str, Scalar]:
    """Fill in defaults and refuse parameters that are unknown, missing or of another type.

    :param owner: the plugin, for the error, such as ``codec 'zstd'``
    :param given: the parameters that the user gave
    :param defaults: every optional parameter with its default; the default's type is the parameter's type
    :param required: names without a default; their type is left to the owner
    :return: a new dictionary with a value for each parameter; ``given`` is not changed
    """
    known = sorted({*defaults, *required})
    for name, value in given.items():
        if name not in known:
            allowed = f"known parameters: {', '.join(known)}" if known else "it takes no parameters"
            raise ParameterError(owner, name, value, allowed)
        default = defaults.get(name)
        # bool is a subclass of int: ``level=True`` must not pass for 1.
        if default is not None and type(value) is not type(default):
            raise ParameterError(owner, name, value, f"it must be of type {type(default).__name__}, like {default!r}")
    for name in required:
        if name not in given:
            raise ParameterError(owner, name, None, "it must be given")
    return {**defaults, **given}


@dataclass(frozen=True)
class Offer:
    """One distribution offering one name."""

    name: str
    distribution: str
    version: str
    entry_point: EntryPoint

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"


def find_offers(group: str) -> dict[str, tuple[Offer, ...]]:
    """Read every entry point of ``group``, by name, in alphabetical order.

    More than one offer for a name is kept: it is an error only if the name is used.
    """
    from importlib.metadata import entry_points  # costs more than the rest of this module together

    offers: defaultdict[str, list[Offer]] = defaultdict(list)
    for entry_point in entry_points(group=group):
        dist = entry_point.dist
        distribution, version = (dist.name, dist.version) if dist is not None else ("an unknown distribution", "?")
        offers[entry_point.name].append(Offer(entry_point.name, distribution, version, entry_point))
    return {name: tuple(sorted(offers[name], key=str)) for name in sorted(offers)}


def unknown_name(kind: str, name: str, installed: Collection[str], homes: Mapping[str, str]) -> UnknownPluginError:
    """The error for an unknown name, with the nearest names and the command that installs the plugin.

    :param kind: such as ``codec`` or ``heap``
    :param name: the name that was asked for
    :param installed: the names that are offered
    :param homes: plugins of other distributions, and the distribution that provides each
    """
    return UnknownPluginError(kind, name, tuple(sorted(installed)), _hint(kind, name, installed, homes))


def _hint(kind: str, name: str, installed: Collection[str], homes: Mapping[str, str]) -> str:
    known = {*installed, *homes}
    if name in homes:
        return f"{name!r} is not installed. Run: {install_command(homes[name])}"
    attached = re.fullmatch(r"(.*?)(-?[0-9]+)", name)
    if attached and attached[1] in known:
        return f"The level of a name with a dash or a digit follows a slash: {attached[1]}/{attached[2]}"
    longer = sorted(other for other in known if name and other.startswith(name))
    nearest = longer or difflib.get_close_matches(name.lower(), sorted(known), n=1)
    if not nearest:
        return f"Check the spelling, or install the distribution that provides this {kind}."
    guess = f"Did you mean {' or '.join(map(repr, nearest))}?"
    return guess if nearest[0] in installed else f"{guess} {_hint(kind, nearest[0], installed, homes)}"


P = TypeVar("P", bound=Plugin)
#: Held while plugins are looked up and imported. Re-entrant, and one for all registries: a plugin may look up another
#: one of any kind while it is being imported.
_lock = threading.RLock()
# A fork waits for an import that is under way: the child would find a plugin that is registered in part, and a module
# whose import never ends.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


@pluggy.HookspecMarker(PROJECT)(historic=True)
def _offer_plugin() -> None:
    """Return the plugin that this module offers. One module, one plugin, one entry point."""


@dataclass(frozen=True)
class PluginKind(Generic[P]):
    """What differs between the registries of codecs, heaps and other plugins."""

    label: str
    #: The group of entry points, and the function that each module marks as its hook.
    group: str
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
            self._manager.add_hookspecs(type("Hooks", (), {self.kind.hook: _offer_plugin}))
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
        refused = partial(PluginProtocolError, self.kind.label, name, str(offer))
        expected = f"exactly one {self.kind.plugin_type.__name__}"
        if len(self._handed_over) != 1:
            hint = f"Its module must mark one function {self.kind.hook}() with @hookimpl and return the plugin from it."
            raise refused(f"{len(self._handed_over)} plugins", expected, hint)
        plugin = self._handed_over.pop()
        if not isinstance(plugin, self.kind.plugin_type):
            raise refused(f"an object of type {type(plugin).__name__}", expected)
        found, expected = f"protocol {plugin.protocol!r}", f"protocol {self.kind.protocol}"
        if type(plugin.protocol) is not int:
            raise refused(found, f"{expected}, as a number")
        if plugin.protocol != self.kind.protocol:
            older = offer.distribution if plugin.protocol < self.kind.protocol else self.kind.distribution
            raise refused(found, expected, f"Upgrade {older}: {install_command(older, upgrade=True)}")
        return plugin
