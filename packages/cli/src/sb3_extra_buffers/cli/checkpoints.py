"""``inspect`` and ``verify``: what is in a checkpoint or a recording, and whether it is whole."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from sb3_extra_buffers.checkpoints import ArrayFile, load_state, open_arrays, read_manifest
from sb3_extra_buffers.checkpoints.manifest import folder_nbytes
from sb3_extra_buffers.cli import recordings
from sb3_extra_buffers.cli.console import console, print_json, table

_MAX_TEXT = 200
File = Annotated[Path, typer.Argument(help="The folder of a checkpoint, a recording, or one file of either.")]


def inspect(path: File, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Tell what a checkpoint or a recording holds, without loading it.

    Examples:

        sb3-buffers inspect checkpoints/buffer

        sb3-buffers inspect doom.recording --json
    """
    if path.is_dir() and not json and find_spec("gymnasium") is not None:
        from sb3_extra_buffers.compressed import inspect as told

        print(told(path))  # with its spaces as they are
        return
    if not path.is_dir() and not json:
        with open_arrays(path) as file:
            if file.kind == recordings.KIND:
                print(recordings.told(file))
                return
    said = _of_checkpoint(path) if path.is_dir() else _of_file(path)
    if json:
        print_json(said)
        return
    shown = table(str(path), ("", " "))
    for name, value in said.items():
        text = ", ".join(f"{key}: {one}" for key, one in value.items()) if isinstance(value, dict) else str(value)
        shown.add_row(name, text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]} ...")
    console().print(shown)


def verify(path: File) -> None:
    """Read everything and compare it with its checksums. Damage is named, and the exit code is 2.

    Examples:

        sb3-buffers verify checkpoints/buffer
    """
    if path.is_dir():
        state, manifest = load_state(path, verify=True)
        count = len(state.arrays) + len(state.pieces)
        print(f"{path}: whole. {len(manifest.segments) + 1} files, {count} arrays and logs, every checksum fits.")
        return
    with open_arrays(path, verify=True) as file:
        print(f"{path}: whole. {len(file)} arrays, {file.nbytes:,} bytes, every checksum fits.")


def _of_checkpoint(path: Path) -> dict[str, Any]:
    manifest = read_manifest(path)
    about = manifest.about
    return {
        "kind": "checkpoint",
        "buffer": about.get("class"),
        "transitions": about.get("transitions"),
        "codecs": about.get("codecs"),
        "arguments": about.get("arguments"),
        "written by": about.get("library"),
        "files": len(manifest.segments) + 1,
        "bytes": folder_nbytes(path),
    }


def _of_file(path: Path) -> dict[str, Any]:
    with open_arrays(path) as file:
        arrays = {name: _form(file, name) for name in file}
        return {"kind": file.kind, "bytes": file.nbytes, "metadata": file.metadata, "arrays": arrays}


def _form(file: ArrayFile, name: str) -> str:
    array = file[name]
    return f"{array.dtype}{list(array.shape)}"
