"""From a name to a heap."""

from __future__ import annotations

from sb3_extra_buffers.errors import PluginProtocolError
from sb3_extra_buffers.heaps.plugin import HEAP_PROTOCOL, HeapHooks, HeapPlugin
from sb3_extra_buffers.heaps.protocol import Heap
from sb3_extra_buffers.registry import PluginKind, Registry, Scalar
from sb3_extra_buffers.registry.homes import HEAP_HOMES

registry: Registry[HeapPlugin] = Registry(
    PluginKind(
        label="heap",
        group="sb3_extra_buffers.heaps",
        hooks=HeapHooks,
        hook="sb3_extra_buffers_heap",
        plugin_type=HeapPlugin,
        protocol=HEAP_PROTOCOL,
        homes=HEAP_HOMES,
    )
)


def names() -> tuple[str, ...]:
    """The names of all installed heaps, sorted. Reads metadata; imports no plugin."""
    return registry.names()


def create(name: str, cells: int, **parameters: Scalar) -> Heap:
    """Make a heap.

    :param name: ``"memory"``, ``"ring"``, ``"mmap"``, or what a plugin offers
    :param cells: how many cells it shall have
    :param parameters: what the heap takes, such as ``capacity`` in bytes for a ring
    """
    plugin = registry.load(name)
    heap = plugin.factory(cells, **plugin.complete(name, parameters))
    if not isinstance(heap, Heap):
        offer = str(registry.offers()[name][0])
        found = f"a {type(heap).__name__}"
        raise PluginProtocolError("heap", name, offer, found, "an object that fulfils the Heap protocol")
    return heap
