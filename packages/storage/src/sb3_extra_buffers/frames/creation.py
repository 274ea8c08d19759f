"""From what is installed to the fastest kernels."""

from __future__ import annotations

import logging

from sb3_extra_buffers.errors import PluginError
from sb3_extra_buffers.frames.kernels import KERNELS_PROTOCOL, FrameKernels, KernelsHooks, KernelsPlugin
from sb3_extra_buffers.registry import PluginKind, Registry
from sb3_extra_buffers.registry.homes import FRAME_KERNEL_HOMES

logger = logging.getLogger("sb3_extra_buffers")

#: What is always there, and slower than anything else.
REFERENCE = "numpy"

registry: Registry[KernelsPlugin] = Registry(
    PluginKind(
        label="frame kernels",
        group="sb3_extra_buffers.frame_kernels",
        hooks=KernelsHooks,
        hook="sb3_extra_buffers_frame_kernels",
        plugin_type=KernelsPlugin,
        protocol=KERNELS_PROTOCOL,
        homes=FRAME_KERNEL_HOMES,
        distribution="sb3-extra-buffers-storage",
    )
)


def create(name: str | None = None) -> FrameKernels:
    """Make frame kernels. Which ones changes the speed and nothing else.

    :param name: ``"numpy"``, ``"numba"``, or what a plugin offers; ``None`` takes the first that is installed and
        works, numpy last
    """
    if name is not None:
        return registry.load(name).factory()
    for offered in registry.names():
        if offered != REFERENCE:
            try:
                return registry.load(offered).factory()
            except PluginError as error:
                logger.warning(
                    "Frame kernels %r are installed but do not work; slower ones are used. %s", offered, error
                )
    return registry.load(REFERENCE).factory()
