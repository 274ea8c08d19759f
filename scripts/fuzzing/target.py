"""What is attacked, and what it may answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sb3_extra_buffers.errors import ExtraBuffersError


class FindingError(AssertionError):
    """Something that must not happen, in words."""


@dataclass(frozen=True)
class Target:
    """A reader of bytes.

    :param name: what it is called in tables
    :param seeds: bytes that it accepts, to begin with
    :param attack: gives it any bytes; raises if it answers with anything but a result or an error of ours
    """

    name: str
    seeds: Sequence[bytes]
    attack: Callable[[bytes], None]


@contextmanager
def only_errors_of_ours(*others: type[Exception]) -> Iterator[None]:
    """What is refused must be refused by an error of the hierarchy.

    :param others: what else is an answer here
    """
    allowed: tuple[type[Exception], ...] = (ExtraBuffersError, *others)
    try:
        yield
    except allowed:
        pass
    except (FindingError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise FindingError(f"{type(error).__name__} instead of an error of ours: {error}") from error
