"""What a heap distribution hands over when its name is used for the first time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sb3_extra_buffers.heaps.protocol import Heap
from sb3_extra_buffers.registry import Scalar, complete_parameters, hookspec

#: The version of the heap contract that this core speaks.
HEAP_PROTOCOL = 1


@dataclass(frozen=True)
class HeapPlugin:
    """A heap as its distribution describes it.

    :param protocol: the contract that the heap was written against, as a literal number (today: 1)
    :param factory: called as ``factory(cells, **parameters)``
    :param summary: one line for listings
    :param required: names of parameters that must be given
    :param parameters: further parameters with their defaults
    :param grows: payloads have no limit: the heap takes more memory as it is needed, and never evicts
    :param in_memory: payloads are ordinary memory of this process, so cells without a codec may bypass the heap
    :param fits_worst_case: ``capacity`` defaults to the worst case of the buffer, and a capacity from a checkpoint is
        capped at it
    :param local: names of parameters that describe this machine, such as folders; a checkpoint does not carry them over
    """

    protocol: int
    factory: Callable[..., Heap]
    summary: str
    required: tuple[str, ...] = ()
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    grows: bool = False
    in_memory: bool = False
    fits_worst_case: bool = False
    local: tuple[str, ...] = ()

    def complete(self, name: str, given: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """Check that every parameter is known and every required one is there."""
        return complete_parameters(f"heap {name!r}", given, self.parameters, self.required)


class HeapHooks:
    """The hook of a heap plugin."""

    @hookspec(historic=True)
    def sb3_extra_buffers_heap(self) -> HeapPlugin:  # type: ignore[empty-body]
        """Return the heap that this module offers. One module, one heap, one entry point."""
