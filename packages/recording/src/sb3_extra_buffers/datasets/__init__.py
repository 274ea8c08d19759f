"""Data sets for replay buffers: read Minari, HDF5, Parquet, Hugging Face, LeRobot, npz and recordings; write some.

Libraries are imported on first use. Neither torch nor Stable-Baselines3 is needed to open a data set.
"""

from sb3_extra_buffers.datasets.arrow import METADATA_KEY
from sb3_extra_buffers.datasets.protocol import Block, Dataset, Episodes
from sb3_extra_buffers.datasets.sources import open_dataset
from sb3_extra_buffers.datasets.spaces import spaces_of
from sb3_extra_buffers.datasets.transfer import Imported, export_dataset, import_dataset

__all__ = [
    "METADATA_KEY",
    "Block",
    "Dataset",
    "Episodes",
    "Imported",
    "export_dataset",
    "import_dataset",
    "open_dataset",
    "spaces_of",
]
