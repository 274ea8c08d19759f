"""The kernels of the core keep every rule; those of plugins are compared with them."""

from sb3_extra_buffers.testing import KernelConformance


class TestNumpy(KernelConformance):
    kernels = "numpy"
