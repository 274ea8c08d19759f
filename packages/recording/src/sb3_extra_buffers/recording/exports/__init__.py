"""Exports of recordings: videos, images, arrays and datasets. Libraries are imported on first use."""

from sb3_extra_buffers.recording.exports.contact_sheet import write_contact_sheet
from sb3_extra_buffers.recording.exports.hugging_face import write_dataset
from sb3_extra_buffers.recording.exports.minari import write_minari
from sb3_extra_buffers.recording.exports.npz import write_npz
from sb3_extra_buffers.recording.exports.parquet import METADATA_KEY, write_parquet
from sb3_extra_buffers.recording.exports.pixels import Pixels, label_colors
from sb3_extra_buffers.recording.exports.video import write_video

__all__ = [
    "METADATA_KEY",
    "Pixels",
    "label_colors",
    "write_contact_sheet",
    "write_dataset",
    "write_minari",
    "write_npz",
    "write_parquet",
    "write_video",
]
