"""Data sets of LeRobot, versions 2 and 3: Parquet files, read without LeRobot."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sb3_extra_buffers.datasets.arrow import ParquetTable
from sb3_extra_buffers.datasets.protocol import reading
from sb3_extra_buffers.datasets.table import Columns
from sb3_extra_buffers.errors import FileContentError

INFO = Path("meta") / "info.json"
#: Columns that LeRobot adds to every row.
_BOOKKEEPING = {"timestamp", "frame_index", "episode_index", "index", "task_index"}


def open_lerobot(path: Path, columns: Columns | None) -> ParquetTable:
    """Open a folder of LeRobot. Features that are stored as videos cannot be read and must not be asked for.

    :param path: the folder
    :param columns: columns of roles that have other names
    """
    with reading(str(path), "a data set of LeRobot"):
        info = json.loads((path / INFO).read_text(encoding="utf-8"))
        version, features = str(info["codebase_version"]), dict(info["features"])
        if version.lstrip("v").partition(".")[0] not in ("2", "3"):
            raise FileContentError(str(path), "version 2 or 3 of a data set of LeRobot", f"version {version}")
        files = sorted((path / "data").glob("*/*.parquet"))
        if not files:
            raise FileContentError(str(path), "Parquet files in the folder data", "none")
        videos = [name for name, feature in features.items() if feature.get("dtype") == "video"]
        if videos and not any(role.partition(".")[0] == "observation" for role in columns or ()):
            others = [one for one in features if one.startswith("observation.") and one not in videos]
            example = {f"observation.{name[len('observation.') :]}": name for name in others}
            found = f"the videos {', '.join(videos)}, which are compressed with loss"
            hint = f"Name the columns to read: columns={example}." if others else ""
            raise FileContentError(str(path), "observations in Parquet files", found, hint)
        table = ParquetTable(files)
        expected = int(info.get("total_frames", table.rows))
        if table.rows != expected:
            hint = "Download it again."
            raise FileContentError(str(path), f"{expected} steps", f"{table.rows} in the folder data", hint)
        table.names = _readable(table.names, features)
        return table


def _readable(names: Sequence[str], features: dict[str, Any]) -> list[str]:
    return [name for name in names if name in _BOOKKEEPING or features.get(name, {}).get("dtype") != "string"]
