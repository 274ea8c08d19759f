"""What can go wrong outside this project: an absent extra, an absent device."""

from __future__ import annotations

from dataclasses import dataclass

from sb3_extra_buffers.errors.base import ExtraBuffersError, sentence_join


@dataclass(eq=False)
class MissingExtraError(ExtraBuffersError, ImportError):
    """A feature needs a package that is not installed."""

    feature: str
    package: str
    #: Which brings it; empty if none does, so that there is nothing to install.
    extra: str
    distribution: str = "sb3-extra-buffers"
    hint: str = ""

    def explain(self) -> str:
        found = f"{self.feature} needs the package {self.package!r}, which is not installed."
        run = f'Run: pip install "{self.distribution}[{self.extra}]>=1"' if self.extra else ""
        return sentence_join(found, self.hint, run)


@dataclass(eq=False)
class DeviceError(ExtraBuffersError, RuntimeError):
    """A torch device was asked for that is absent or cannot do what was asked."""

    device: str
    problem: str
    hint: str = ""

    def explain(self) -> str:
        return sentence_join(f"Device {self.device!r}: {self.problem}.", self.hint)
