"""Operations that run on the device.

``rle_decode``
    decodes run-length payloads, anywhere on the device, into the rows of a batch
``rle_encode``
    encodes rows on the device as payloads: measures them, lets the host allocate, writes
``frame_decode``
    decodes the frames that a batch needs from chunks of the frame store, and interleaves channel-last ones
``cell_copy``
    copies uncompressed cells into the rows of a batch

These modules contain the Triton kernels and the functions that launch them on CUDA and ROCm. They are imported on first
use only: nothing else imports Triton, and ``TRITON_INTERPRET`` must be set before. ``rle_reference`` and
``frame_reference`` do the same in plain torch, for MPS, the CPU and systems without Triton. They are the specification:
the kernels are tested against them. (Plain torch for uncompressed cells is ``DevicePayloads.copy_rows``.)

Kernels take payloads as absolute addresses, aligned to 16 bytes, so a batch may read from several heaps. They report
damage through a ``status`` of one ``int32``: 0, or one more than the index of a damaged payload. Nothing waits for the
device to read it. No damaged payload makes a kernel read or write outside its arguments. The references take slices and
raise :class:`~sb3_extra_buffers.errors.PayloadError`.

The formats are those of the core: ``docs/rle-format.md`` and ``docs/frames.md``.
"""
