"""What can go wrong between a name and the plugin behind it."""

from __future__ import annotations

from dataclasses import dataclass

from sb3_extra_buffers.errors.base import ExtraBuffersError, sentence_join


class PluginError(ExtraBuffersError):
    """A name could not be turned into a working plugin."""


@dataclass(eq=False)
class UnknownPluginError(PluginError, LookupError):
    """No installed distribution offers this name."""

    kind: str
    name: str
    installed: tuple[str, ...]
    hint: str = ""

    def explain(self) -> str:
        installed = ", ".join(self.installed) or "none"
        return sentence_join(f"There is no {self.kind} named {self.name!r}. Installed: {installed}.", self.hint)


@dataclass(eq=False)
class PluginLoadError(PluginError, ImportError):
    """The plugin is installed, but importing or registering it failed. The cause is chained."""

    kind: str
    name: str
    distribution: str
    cause: str

    def explain(self) -> str:
        return (
            f"The {self.kind} {self.name!r} of {self.distribution} is installed but does not work: {self.cause}. "
            f"Reinstall {self.distribution.split(' ')[0]} or repair what the cause names; nothing else is affected."
        )


@dataclass(eq=False)
class PluginConflictError(PluginError, RuntimeError):
    """Several distributions offer one name, and none of them can be preferred honestly."""

    kind: str
    name: str
    distributions: tuple[str, ...]

    def explain(self) -> str:
        return (
            f"The {self.kind} name {self.name!r} is offered by {' and by '.join(self.distributions)}. "
            "Uninstall all but one of them; every other name keeps working."
        )


@dataclass(eq=False)
class PluginProtocolError(PluginError, TypeError):
    """The plugin loads, but does not speak the protocol that this core speaks."""

    kind: str
    name: str
    distribution: str
    found: str
    expected: str
    hint: str = ""

    def explain(self) -> str:
        return sentence_join(
            f"The {self.kind} {self.name!r} of {self.distribution} offers {self.found}, expected {self.expected}.",
            self.hint,
        )
