"""``Exporting``: what can be made of a recording, as its methods."""

from __future__ import annotations

from sb3_extra_buffers.recording.exports import (
    write_contact_sheet,
    write_dataset,
    write_minari,
    write_npz,
    write_parquet,
    write_video,
)


class Exporting:
    """The functions of ``exports`` as methods: the recording is their first argument."""

    contact_sheet = write_contact_sheet
    to_dataset = write_dataset
    to_minari = write_minari
    to_npz = write_npz
    to_parquet = write_parquet
    to_video = write_video
