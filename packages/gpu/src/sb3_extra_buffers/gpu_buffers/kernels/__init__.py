"""What runs on the device: one folder for each operation.

``rle_decode``
    many run-length payloads, wherever they are on the device, into the rows of one batch
``rle_encode``
    rows on the device into payloads: measure, let the host find room, write
``frame_decode``
    chunks of the frame store into the frames that a batch needs

Each folder has the same three files:

``kernel.py``
    the Triton kernels. Nothing else imports Triton.
``launch.py``
    starts them: chooses the grid and waits for nothing. For CUDA and ROCm.
``reference.py``
    the same in plain torch, for MPS, for the CPU and where Triton is missing; what the kernels are tested against

Kernels take payloads as absolute addresses, aligned to 16 bytes, so that a batch may reach into several heaps. They
report damage through a ``status`` of one ``int32`` that is 0 or one more than the index of a damaged payload: nobody
waits for the device to read it. No payload, however damaged, makes them read or write beyond what they were given.
References take slices and raise :class:`~sb3_extra_buffers.errors.PayloadError`.

The byte formats are those of the core: ``docs/rle-format.md`` and ``docs/frames.md``.
"""
