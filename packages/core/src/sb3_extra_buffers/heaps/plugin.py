"""Heap plugins: what a distribution declares, and how a name becomes a heap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sb3_extra_buffers.errors import PluginProtocolError
from sb3_extra_buffers.heaps.protocol import Heap
from sb3_extra_buffers.registry import PluginKind, Registry, Scalar, complete_parameters
from sb3_extra_buffers.registry.homes import HEAP_HOMES

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


registry: Registry[HeapPlugin] = Registry(
    PluginKind(
        label="heap",
        group="sb3_extra_buffers.heaps",
        hook="sb3_extra_buffers_heap",
        plugin_type=HeapPlugin,
        protocol=HEAP_PROTOCOL,
        homes=HEAP_HOMES,
    )
)


names = registry.names


def create(name: str, cells: int, **parameters: Scalar) -> Heap:
    """Make a heap.

    :param name: ``"memory"``, ``"ring"``, ``"mmap"``, or what a plugin offers
    :param cells: number of cells
    :param parameters: what the heap takes, such as ``capacity`` in bytes for a ring
    """
    plugin = registry.load(name)
    heap = plugin.factory(cells, **plugin.complete(name, parameters))
    if not isinstance(heap, Heap):
        offer = str(registry.offers()[name][0])
        found = f"a {type(heap).__name__}"
        raise PluginProtocolError("heap", name, offer, found, "an object that fulfils the Heap protocol")
    return heap
